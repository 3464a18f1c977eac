-- Lists of sessions show the cost of each: the sum of its calls in the ledger.
--
-- Adds: session_cost.

create function dalsegno.session_cost(of_campaign uuid, of_session uuid) returns bigint language sql stable as $body$
  select coalesce(sum(u.cost_micros), 0)::bigint from dalsegno.usage as u where u.campaign_id = of_campaign and u.session_id = of_session;
$body$;
comment on function dalsegno.session_cost(uuid, uuid) is 'Cost of all calls of a session, also for summaries, facts and reruns.';
