-- Lists calls of the ledger, the most expensive first.
-- $1 the first moment, or NULL · $2 the moment after the last, or NULL · $3 a campaign, or NULL · $4 the only campaigns that the caller may see, or NULL
-- $5 agent · $6 model · $7 provider · $8 purpose, or NULL · $9 the user of the campaign; NULL: any, empty: campaigns without one
-- $10 the number of rows at most · $11 true: without reruns
select u.id, u.campaign_id, u.agent, u.task_id, u.session_id, u.turn, u.purpose as "purpose: Purpose", u.outcome as "outcome: Outcome",
       u.provider, u.model, u.provider_message_id, u.called_at, u.first_byte_ms, u.total_ms, u.input_tokens, u.output_tokens,
       u.cache_read_tokens, u.cache_creation_tokens, u.cost_micros, u.price is not null as "has_price!"
  from dalsegno.usage as u
 where ($1::timestamptz is null or u.called_at >= $1) and ($2::timestamptz is null or u.called_at < $2)
   and ($3::uuid is null or u.campaign_id = $3) and ($4::uuid[] is null or u.campaign_id = any ($4))
   and ($5::text is null or u.agent = $5) and ($6::text is null or u.model = $6) and ($7::text is null or u.provider = $7)
   and ($8::text is null or u.purpose = $8)
   and ($9::text is null or $9 = coalesce((select w.user_name from dalsegno.campaign_users as w where w.campaign_id = u.campaign_id), ''))
   and not ($11 and u.purpose = 'rerun')
 order by u.cost_micros desc, u.id desc limit $10
