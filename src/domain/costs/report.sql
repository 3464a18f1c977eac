-- Adds up the ledger by one or two dimensions.
-- $1 the first of two dimensions, or NULL · $2 the second, or the only one · $3 the time zone of days · $4 the first moment, or NULL · $5 the moment after the last, or NULL
-- $6 a campaign, or NULL · $7 the only campaigns that the caller may see, or NULL · $8 the number of rows at most
-- $9 the last row of the ledger that is in the sums by day, or 0 · $10 the first whole day of the period · $11 the day after the last whole day
-- $12 values of the second dimension with rows of their own, or NULL for all · $13 how they are ranked: money or tokens
--
-- Whole days come from their sums. Single calls come from the ledger: those that are not in the sums yet, and those of the days at the edges of
-- the period, of which only a part is in it. A day has at most 26 hours.
--
-- Values of the second dimension beyond the first $12 by their costs or tokens share one row for each first value. Values that are missing are
-- empty until the end: a join on them is fast. bigint_sum and the plain text of a day halve the time of the sums; the driver sets DateStyle.
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
), pairs as materialized (
    select case $1::text
             when 'day' then s.day::text
             when 'campaign' then s.campaign_id::text
             when 'user' then w.user_name
             when 'agent' then s.agent
             when 'provider' then s.provider
             when 'model' then s.model
             when 'purpose' then s.purpose
           end as first,
           coalesce(case $2::text
             when 'day' then s.day::text
             when 'campaign' then s.campaign_id::text
             when 'user' then w.user_name
             when 'agent' then s.agent
             when 'provider' then s.provider
             when 'model' then s.model
             when 'purpose' then s.purpose
           end, '') as second,
           dalsegno.bigint_sum(s.calls) as calls, dalsegno.bigint_sum(s.cost_micros) as cost_micros,
           dalsegno.bigint_sum(s.input_tokens) as input_tokens, dalsegno.bigint_sum(s.output_tokens) as output_tokens,
           dalsegno.bigint_sum(s.cache_read_tokens) as cache_read_tokens, dalsegno.bigint_sum(s.cache_creation_tokens) as cache_creation_tokens,
           dalsegno.bigint_sum(s.calls_without_price) as calls_without_price
      from sums as s left join dalsegno.campaign_users as w on w.campaign_id = s.campaign_id
     where ($6::uuid is null or s.campaign_id = $6) and ($7::uuid[] is null or s.campaign_id = any ($7))
     group by 1, 2
), ranked as (
    select p.second,
           row_number() over (
             order by case when $13::text = 'money' then dalsegno.bigint_sum(p.cost_micros) end desc,
                      dalsegno.bigint_sum(p.input_tokens + p.output_tokens + p.cache_read_tokens + p.cache_creation_tokens) desc, p.second
           ) as place
      from pairs as p where $12::bigint is not null group by p.second
), named as (
    select p.*, coalesce(r.place > $12, false) as is_other from pairs as p left join ranked as r using (second)
)
select n.first, case when not n.is_other then nullif(n.second, '') end as second, n.is_other as "is_other!",
       (select count(*) from ranked as r where r.place > $12) as "n_others!",
       dalsegno.bigint_sum(n.calls) as "calls!", dalsegno.bigint_sum(n.cost_micros) as "cost_micros!",
       dalsegno.bigint_sum(n.input_tokens) as "input_tokens!", dalsegno.bigint_sum(n.output_tokens) as "output_tokens!",
       dalsegno.bigint_sum(n.cache_read_tokens) as "cache_read_tokens!",
       dalsegno.bigint_sum(n.cache_creation_tokens) as "cache_creation_tokens!",
       dalsegno.bigint_sum(n.calls_without_price) as "calls_without_price!"
  from named as n group by 1, 2, 3 order by n.first nulls last, n.is_other, second nulls last limit $8
