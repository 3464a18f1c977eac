-- Adds up the ledger by one or two dimensions.
-- $1 the first dimension · $2 the second, or NULL · $3 the time zone of days · $4 the first moment, or NULL · $5 the moment after the last, or NULL
-- $6 a campaign, or NULL · $7 the only campaigns that the caller may see, or NULL · $8 the number of rows at most
with calls as (
    select u.called_at, u.campaign_id, u.agent, u.provider, u.model, u.purpose, u.cost_micros, u.input_tokens, u.output_tokens,
           u.cache_read_tokens, u.cache_creation_tokens
      from dalsegno.usage as u
     where ($4::timestamptz is null or u.called_at >= $4) and ($5::timestamptz is null or u.called_at < $5)
       and ($6::uuid is null or u.campaign_id = $6) and ($7::uuid[] is null or u.campaign_id = any ($7))
), keyed as (
    select case $1::text
             when 'day' then to_char(c.called_at at time zone $3::text, 'YYYY-MM-DD')
             when 'campaign' then c.campaign_id::text
             when 'user' then w.user_name
             when 'agent' then c.agent
             when 'provider' then c.provider
             when 'model' then c.model
             when 'purpose' then c.purpose
           end as first,
           case $2::text
             when 'day' then to_char(c.called_at at time zone $3::text, 'YYYY-MM-DD')
             when 'campaign' then c.campaign_id::text
             when 'user' then w.user_name
             when 'agent' then c.agent
             when 'provider' then c.provider
             when 'model' then c.model
             when 'purpose' then c.purpose
           end as second,
           c.*
      from calls as c left join dalsegno.campaign_users as w on w.campaign_id = c.campaign_id
)
select k.first, k.second, count(*) as "calls!", sum(k.cost_micros)::bigint as "cost_micros!",
       coalesce(sum(k.input_tokens), 0)::bigint as "input_tokens!", coalesce(sum(k.output_tokens), 0)::bigint as "output_tokens!",
       coalesce(sum(k.cache_read_tokens), 0)::bigint as "cache_read_tokens!",
       coalesce(sum(k.cache_creation_tokens), 0)::bigint as "cache_creation_tokens!"
  from keyed as k group by k.first, k.second order by k.first nulls last, k.second nulls last limit $8
