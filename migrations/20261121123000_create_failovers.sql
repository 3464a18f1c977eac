-- Conversations whose provider fails: how often in a row, and which of them another provider has taken over.

create table dalsegno.failovers (
  campaign_id uuid not null constraint failovers_campaign references dalsegno.campaigns (id),
  failed_at timestamptz not null,
  since timestamptz,
  failures integer not null constraint failovers_failures_not_negative check (failures >= 0),
  agent text not null,
  instance text not null,
  constraint failovers_pkey primary key (campaign_id, agent, instance)
);
comment on table dalsegno.failovers is
  'Conversations whose provider has failed since it last answered. A row goes when their first provider answers again.';
comment on column dalsegno.failovers.failed_at is 'When the one that is asked now failed last.';
comment on column dalsegno.failovers.since is
  'When the fallback took over, or when the first provider was last tried in vain. NULL: the first provider is asked.';
comment on column dalsegno.failovers.failures is 'Failures in a row of the one that is asked now.';
