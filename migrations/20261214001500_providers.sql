-- Providers that fail: failovers of conversations, and credentials that are paused.

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
comment on column dalsegno.failovers.failed_at is 'Time of the last failure of the provider that is asked now.';
comment on column dalsegno.failovers.since is
  'When the fallback took over, or when the first provider was last tried without success. NULL: the first provider is asked.';
comment on column dalsegno.failovers.failures is 'Failures in a row of the provider that is asked now.';

create table dalsegno.resting_logins (
  provider text not null,
  login text not null,
  until timestamptz not null,
  why text not null,
  constraint resting_logins_pkey primary key (provider, login)
);
comment on table dalsegno.resting_logins is
  'Logins whose limit is used up. All conversations on them wait, and new ones begin on others.';
