-- What has the words, the best first. $1 uuid campaign · $2 text the question · $3 text the language · $4 boolean every word has to be
-- there, or any · $5 boolean the question is nothing but words · $6 text kind or null · $7 text the one journal that may be read, or null
-- for all · $8 timestamptz now · $9 bigint how many · $10 integer texts up to so many bytes are shown whole
--
-- What costs is to rank, so only few items are: those that have the rare words of the question. Which words are common, the statistics
-- of the column say (before the first `analyze`, none is). A question of nothing but common words is answered from the newest items. And
-- where very many have the words all the same, as of a phrase, some of them are ranked.
with lexemes as materialized (
  select false as is_stem, word from unnest(tsvector_to_array(to_tsvector('simple', $2))) as word where word !~ '[\\'']'
  union all
  select true, word from unnest(tsvector_to_array(to_tsvector($3::text::regconfig, $2))) as word where word !~ '[\\'']'
), common as materialized (
  select c.word from pg_stats as s, unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) as c (word, share)
   where s.schemaname = 'dalsegno' and s.tablename = 'memory_items' and s.attname = 'search' and c.share > 0.02
     and c.word in (select word from lexemes)
), rare as materialized (
  -- The longest ones: they are the rarest, as a rule.
  select r.is_stem, string_agg(format('%L', r.word), case when $4 then ' & ' else ' | ' end) as words
    from (select is_stem, word, row_number() over (partition by is_stem order by length(word) desc, word) as place
            from lexemes where word not in (select word from common)) as r
   where r.place <= 8 group by r.is_stem
), asked as materialized (
  select format('%L', ':' || $1::uuid::text)::tsquery as campaign, w.words,
         case when $5 then coalesce((select string_agg('(' || words || ')', ' | ') from rare), '')::tsquery else w.words end as rare
    from (select case when $4 then websearch_to_tsquery('simple', $2) || websearch_to_tsquery($3::text::regconfig, $2)
                      -- The plain form joins words by `&` and has no other operator.
                      else replace((plainto_tsquery('simple', $2) || plainto_tsquery($3::text::regconfig, $2))::text, ' & ', ' | ')::tsquery
                 end as words) as w
), near as materialized (
  select m.id, m.search from asked as a, lateral (
    select i.id, i.search from dalsegno.memory_items as i
     where numnode(a.rare) > 0 and i.search @@ (a.rare && a.campaign) and i.campaign_id = $1
       and ($6::text is null or i.kind = $6) and (i.kind <> 'journal' or $7::text is null or i.owner = $7)
       and i.revoked_at is null and (i.expires_at is null or i.expires_at > $8)
     limit 5000) as m
  union all
  select m.id, m.search from asked as a, lateral (
    select i.id, i.search, i.kind, i.owner, i.revoked_at, i.expires_at from dalsegno.memory_items as i
     where i.campaign_id = $1 order by i.id desc limit 2000) as m
   where numnode(a.rare) = 0
     and ($6::text is null or m.kind = $6) and (m.kind <> 'journal' or $7::text is null or m.owner = $7)
     and m.revoked_at is null and (m.expires_at is null or m.expires_at > $8)
), found as materialized (
  select n.id, ts_rank(n.search, a.words, 1) as rank from asked as a, near as n
   where numnode(a.words) > 0 and n.search @@ a.words
   order by rank desc, n.id desc limit $9
)
select m.id, m.kind as "kind: Kind", nullif(m.owner, '') as owner, m.name, m.version, m.title, m.bytes as "bytes!",
       m.trust as "trust: Trust", m.origin as "origin: Origin", m.author, m.task_id, m.turn, m.created_at, m.written_at,
       m.expires_at, f.rank as "rank!",
       ts_headline($3::text::regconfig, m.body, a.words,
                   case when octet_length(m.body) <= $10 then 'StartSel=**, StopSel=**, HighlightAll=true'
                        else 'StartSel=**, StopSel=**, MaxFragments=2, MinWords=8, MaxWords=24, FragmentDelimiter=" ... "'
                    end) as "snippet!"
  from asked as a, found as f join dalsegno.memory_items as m on m.id = f.id
 order by f.rank desc, f.id desc
