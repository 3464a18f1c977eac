-- Pauses of agents: who takes no turn, where, since when and why; and who let it go on.
--
-- The job of a paused agent's task is held when its turn would begin, by the worker that has it. An older binary does not look
-- here: while it runs beside a newer one, a paused agent may still take a turn.
create table dalsegno.agent_pauses (
  id uuid not null constraint agent_pauses_pkey primary key,
  campaign_id uuid constraint agent_pauses_campaign references dalsegno.campaigns (id),
  agent text not null,
  reason text not null constraint agent_pauses_reason_length check (octet_length(reason) between 1 and 500),
  paused_at timestamptz not null,
  paused_by text not null,
  resumed_at timestamptz,
  resumed_by text,
  constraint agent_pauses_end_complete check ((resumed_at is null) = (resumed_by is null))
);
comment on table dalsegno.agent_pauses is 'Pauses of agents, those that are over too. An agent with an open one begins no turn where it holds.';
comment on column dalsegno.agent_pauses.id is 'In order of time.';
comment on column dalsegno.agent_pauses.campaign_id is 'Where it holds; NULL: in all campaigns.';
comment on column dalsegno.agent_pauses.agent is 'The agent, with all its instances.';
comment on column dalsegno.agent_pauses.reason is 'Why, for whoever finds it paused.';
comment on column dalsegno.agent_pauses.paused_at is 'Since when.';
comment on column dalsegno.agent_pauses.paused_by is 'By whom, as in the audit log.';
comment on column dalsegno.agent_pauses.resumed_at is 'Until when; NULL: it is paused.';
comment on column dalsegno.agent_pauses.resumed_by is 'Who let it go on.';
create unique index agent_pauses_open on dalsegno.agent_pauses (agent, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'))
  where resumed_at is null;
comment on index dalsegno.agent_pauses_open is 'What a turn looks at before it begins. One open pause for each agent and place.';
create index agent_pauses_by_campaign on dalsegno.agent_pauses (campaign_id) where campaign_id is not null;
comment on index dalsegno.agent_pauses_by_campaign is 'The pauses of a campaign, for whoever looks back, and for its erasure.';
