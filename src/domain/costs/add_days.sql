-- Adds rows of the ledger to the sums of their days.
-- $1 the last row that is in the sums · $2 the last row to add
with days as (
    select (u.called_at at time zone s.time_zone)::date as day, u.campaign_id, u.agent, u.provider, u.model, u.purpose, count(*) as calls,
           sum(u.cost_micros)::bigint as cost_micros, coalesce(sum(u.input_tokens), 0)::bigint as input_tokens,
           coalesce(sum(u.output_tokens), 0)::bigint as output_tokens, coalesce(sum(u.cache_read_tokens), 0)::bigint as cache_read_tokens,
           coalesce(sum(u.cache_creation_tokens), 0)::bigint as cache_creation_tokens,
           count(*) filter (where dalsegno.is_unpriced(u)) as calls_without_price
      from dalsegno.usage as u cross join dalsegno.ledger_sums as s
     where u.id > $1 and u.id <= $2
     group by 1, 2, 3, 4, 5, 6
), added as (
    insert into dalsegno.ledger_days as d (day, campaign_id, agent, provider, model, purpose, calls, cost_micros, input_tokens, output_tokens,
           cache_read_tokens, cache_creation_tokens, calls_without_price)
    select * from days
    on conflict on constraint ledger_days_pkey do update
       set calls = d.calls + excluded.calls, cost_micros = d.cost_micros + excluded.cost_micros,
           input_tokens = d.input_tokens + excluded.input_tokens, output_tokens = d.output_tokens + excluded.output_tokens,
           cache_read_tokens = d.cache_read_tokens + excluded.cache_read_tokens,
           cache_creation_tokens = d.cache_creation_tokens + excluded.cache_creation_tokens,
           calls_without_price = d.calls_without_price + excluded.calls_without_price
)
update dalsegno.ledger_sums
   set up_to = $2, next_up_to = nullif(next_up_to, $2), next_after = case when next_up_to > $2 then next_after end
