-- Calls that read facts about users have a purpose of their own in the ledger. Until now they were billed as summaries.
--
-- Older binaries write no such line; one that adds up a campaign with such a line cannot show what the campaign has cost.
create or replace function dalsegno.is_consistent_call(purpose text, outcome text, least_count bigint)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return purpose in ('turn', 'summary', 'facts') and outcome in ('done', 'failed', 'interrupted') and least_count >= 0;
end
$body$;
