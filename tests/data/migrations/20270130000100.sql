-- A task that failed at the budget of its campaign.
insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, state, error, budget_refusal, started_at, ended_at)
select '00000000-0000-7000-8000-000000000130', '00000000-0000-7000-8000-000000000001', job_id, 'copywriter', 'A long part.', 'failed',
       'this call may use up to 700 tokens; the whole limit of the budget of the campaign is 500 tokens',
       '{"owner": "campaign", "key": "00000000-0000-7000-8000-000000000001", "unit": "tokens", "limit": 500, "spent": 0, "reserved": 0,
         "needed": 700, "call": {"micros": 0, "tokens": 700}, "on_limit": "wait", "ends": null}', now(), now()
  from dalsegno.enqueue('run_turn', queue => 'turns');
