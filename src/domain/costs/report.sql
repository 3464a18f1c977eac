-- Adds up the ledger by one or two dimensions.
-- $1 the first dimension · $2 the second, or NULL · $3 the time zone of days · $4 the first moment, or NULL · $5 the moment after the last, or NULL
-- $6 a campaign, or NULL · $7 the only campaigns that the caller may see, or NULL · $8 the number of rows at most
-- $9 the last row of the ledger that is in the sums by day, or 0 · $10 the first whole day of the period · $11 the day after the last whole day
--
-- Whole days come from their sums. Single calls come from the ledger: those that are not in the sums yet, and those of the days at the edges of
-- the period, of which only a part is in it. A day has at most 26 hours.
with sums as (
    select d.day, d.campaign_id, d.agent, d.provider, d.model, d.purpose, d.calls, d.cost_micros, d.input_tokens, d.output_tokens,
           d.cache_read_tokens, d.cache_creation_tokens, d.calls_without_price
      from dalsegno.ledger_days as d where $9::bigint > 0 and d.day >= $10::date and d.day < $11::date
    union all
    select c.day, c.campaign_id, c.agent, c.provider, c.model, c.purpose, 1, c.cost_micros, coalesce(c.input_tokens, 0),
           coalesce(c.output_tokens, 0), coalesce(c.cache_read_tokens, 0), coalesce(c.cache_creation_tokens, 0),
           c.is_unpriced::integer
      from (select (u.called_at at time zone $3::text)::date as day, dalsegno.is_unpriced(u) as is_unpriced, u.*
              from dalsegno.usage as u
             where u.id > $9 and ($4::timestamptz is null or u.called_at >= $4) and ($5::timestamptz is null or u.called_at < $5)
            union all
            select (u.called_at at time zone $3)::date, dalsegno.is_unpriced(u), u.*
              from dalsegno.usage as u
             where u.id <= $9 and ($4 at time zone $3)::date < $10 and u.called_at >= $4 and u.called_at < $4 + interval '26 hours'
               and ($5 is null or u.called_at < $5) and (u.called_at at time zone $3)::date < $10
            union all
            select (u.called_at at time zone $3)::date, dalsegno.is_unpriced(u), u.*
              from dalsegno.usage as u
             where u.id <= $9 and ($5 at time zone $3)::time > '00:00' and u.called_at >= $5 - interval '26 hours' and u.called_at < $5
               and ($4 is null or u.called_at >= $4) and (u.called_at at time zone $3)::date >= greatest($10, $11)) as c
), keyed as (
    select case $1::text
             when 'day' then to_char(s.day, 'YYYY-MM-DD')
             when 'campaign' then s.campaign_id::text
             when 'user' then w.user_name
             when 'agent' then s.agent
             when 'provider' then s.provider
             when 'model' then s.model
             when 'purpose' then s.purpose
           end as first,
           case $2::text
             when 'day' then to_char(s.day, 'YYYY-MM-DD')
             when 'campaign' then s.campaign_id::text
             when 'user' then w.user_name
             when 'agent' then s.agent
             when 'provider' then s.provider
             when 'model' then s.model
             when 'purpose' then s.purpose
           end as second,
           s.*
      from sums as s left join dalsegno.campaign_users as w on w.campaign_id = s.campaign_id
     where ($6::uuid is null or s.campaign_id = $6) and ($7::uuid[] is null or s.campaign_id = any ($7))
)
select k.first, k.second, sum(k.calls)::bigint as "calls!", sum(k.cost_micros)::bigint as "cost_micros!",
       sum(k.input_tokens)::bigint as "input_tokens!", sum(k.output_tokens)::bigint as "output_tokens!",
       sum(k.cache_read_tokens)::bigint as "cache_read_tokens!", sum(k.cache_creation_tokens)::bigint as "cache_creation_tokens!",
       sum(k.calls_without_price)::bigint as "calls_without_price!"
  from keyed as k group by k.first, k.second order by k.first nulls last, k.second nulls last limit $8
