-- What holds of a user and has the words, the best first. $1 text user · $2 text the question · $3 text the language · $4 boolean every
-- word has to be there, or any · $5 boolean the question is nothing but words · $6 timestamptz now · $7 bigint how many
--
-- As in domain/memory/search.sql: what costs is to rank, so only those facts are that have the rare words of the question, and one of
-- nothing but common words is answered from the newest facts. And where very many have the words all the same, some of them are ranked.
with lexemes as materialized (
  select false as is_stem, word from unnest(tsvector_to_array(to_tsvector('simple', $2))) as word where word !~ '[\\'']'
  union all
  select true, word from unnest(tsvector_to_array(to_tsvector($3::text::regconfig, $2))) as word where word !~ '[\\'']'
), common as materialized (
  select c.word from pg_stats as s, unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) as c (word, share)
   where s.schemaname = 'dalsegno' and s.tablename = 'facts' and s.attname = 'search' and c.share > 0.02
     and c.word in (select word from lexemes)
), rare as materialized (
  -- The longest ones: they are the rarest, as a rule.
  select r.is_stem, string_agg(format('%L', r.word), case when $4 then ' & ' else ' | ' end) as words
    from (select is_stem, word, row_number() over (partition by is_stem order by length(word) desc, word) as place
            from lexemes where word not in (select word from common)) as r
   where r.place <= 8 group by r.is_stem
), asked as materialized (
  -- No name of a user has a character that would end the quotes.
  select format('%L', ':' || $1)::tsquery as about, w.words,
         case when $5 then coalesce((select string_agg('(' || words || ')', ' | ') from rare), '')::tsquery else w.words end as rare
    from (select case when $4 then websearch_to_tsquery('simple', $2) || websearch_to_tsquery($3::text::regconfig, $2)
                      -- The plain form joins words by `&` and has no other operator.
                      else replace((plainto_tsquery('simple', $2) || plainto_tsquery($3::text::regconfig, $2))::text, ' & ', ' | ')::tsquery
                 end as words) as w
), near as materialized (
  select f.id, f.search from asked as a, lateral (
    select i.id, i.search from dalsegno.facts as i
     where numnode(a.rare) > 0 and i.search @@ (a.rare && a.about) and i.user_name = $1
       and i.valid_until is null and (i.expires_at is null or i.expires_at > $6)
     limit 5000) as f
  union all
  select f.id, f.search from asked as a, lateral (
    select i.id, i.search, i.valid_until, i.expires_at from dalsegno.facts as i
     where i.user_name = $1 order by i.id desc limit 2000) as f
   where numnode(a.rare) = 0 and f.valid_until is null and (f.expires_at is null or f.expires_at > $6)
), found as materialized (
  select n.id, ts_rank(n.search, a.words, 1) as rank from asked as a, near as n
   where numnode(a.words) > 0 and n.search @@ a.words
   order by rank desc, n.id desc limit $7
)
select f.id, f.user_name as user, f.attribute, f.text, f.source as "source: Source", f.trust as "trust: Trust", f.author, f.campaign_id,
       f.session_id, f.turn, f.task_id, f.recorded_at, f.valid_from, f.valid_until, f.ended_because as "ended_because: Ended",
       f.replaced_by, f.expires_at, n.rank as "rank!"
  from found as n join dalsegno.facts as f on f.id = n.id
 order by n.rank desc, n.id desc
