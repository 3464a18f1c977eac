-- Counts the calls without a price on the days that are added up already. It reads the ledger once.
--
-- Race: the scheduler locks the row of ledger_sums before it adds calls to the days, so the two do not count a call twice.
--
-- Changes: rows of ledger_days.

select up_to from dalsegno.ledger_sums for update;

update dalsegno.ledger_days as d set calls_without_price = u.calls
  from (select (u.called_at at time zone s.time_zone)::date as day, u.campaign_id, u.agent, u.provider, u.model, u.purpose, count(*) as calls
          from dalsegno.usage as u cross join dalsegno.ledger_sums as s
         where u.id <= s.up_to and u.price is null and u.cost_micros = 0
           and coalesce(u.input_tokens, 0) + coalesce(u.output_tokens, 0) + coalesce(u.cache_read_tokens, 0)
               + coalesce(u.cache_creation_tokens, 0) > 0
         group by 1, 2, 3, 4, 5, 6) as u
 where d.day = u.day and d.campaign_id = u.campaign_id and d.agent = u.agent and d.provider = u.provider and d.model = u.model
   and d.purpose = u.purpose;
