-- Reads the next events for a reader, in order: few enough to be held for a stalled reader. Each branch has an index of its own; only the
-- one that fits the filter reads rows, with any plan.
-- $1 bigint after this id · $2 bigint up to this id · $3 uuid campaign · $4 text[] kinds · $5 bigint events at most · $6 bigint bytes of
-- them at most · $7 uuid[] the campaigns that the reader may see · $8 uuid session · $9 text agent · $10 text instance
select id as "id!", created_at as "created_at!", campaign_id, task_id, session_id, agent, instance, kind as "kind!", data as "data!"
  from (
    select f.*, row_number() over (order by f.id) as place, sum(octet_length(f.data::text)) over (order by f.id) as bytes
      from (
        (select id, created_at, campaign_id, task_id, session_id, agent, instance, kind, data from dalsegno.feed
          where $8::uuid is null and $9::text is null and id > $1 and id <= $2 and ($3::uuid is null or campaign_id = $3)
            and ($4::text[] is null or kind = any ($4)) and ($7::uuid[] is null or campaign_id = any ($7))
          order by id limit $5)
        union all
        (select id, created_at, campaign_id, task_id, session_id, agent, instance, kind, data from dalsegno.feed
          where session_id = $8 and id > $1 and id <= $2 and ($3::uuid is null or campaign_id = $3)
            and ($9::text is null or agent = $9) and ($10::text is null or instance is null or instance = $10)
            and ($4::text[] is null or kind = any ($4)) and ($7::uuid[] is null or campaign_id = any ($7))
          order by session_id, id limit $5)
        union all
        (select id, created_at, campaign_id, task_id, session_id, agent, instance, kind, data from dalsegno.feed
          where $8::uuid is null and agent = $9 and id > $1 and id <= $2 and ($3::uuid is null or campaign_id = $3)
            and ($10::text is null or instance is null or instance = $10)
            and ($4::text[] is null or kind = any ($4)) and ($7::uuid[] is null or campaign_id = any ($7))
          order by agent, id limit $5)) as f) as p
 where place = 1 or bytes <= $6
 order by id
