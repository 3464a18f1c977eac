-- The erasure of what was said in a campaign, and its receipt. What it has cost stays, without content.
create table dalsegno.erasures (
  id uuid not null constraint erasures_pkey primary key,
  campaign_id uuid not null
    constraint erasures_campaign references dalsegno.campaigns (id)
    constraint erasures_one_per_campaign unique,
  asked_at timestamptz not null,
  ended_at timestamptz,
  reason text not null constraint erasures_reason_length check (char_length(reason) between 1 and 500 and btrim(reason) <> ''),
  removed jsonb not null default '{}'
);
comment on table dalsegno.erasures is 'Receipts: a campaign whose texts are to be erased, or have been, with how much went. No text is in it but the reason that somebody gave.';
comment on column dalsegno.erasures.ended_at is 'When nothing was left in the database. Copies on the disks of hosts: dalsegno.erasure_hosts.';
comment on column dalsegno.erasures.removed is 'How much, by what it was.';

create table dalsegno.erased_sessions (
  erasure_id uuid not null constraint erased_sessions_erasure references dalsegno.erasures (id),
  session_id uuid not null,
  external_session_id text collate "C",
  constraint erased_sessions_pkey primary key (erasure_id, session_id)
);
comment on table dalsegno.erased_sessions is 'Names of sessions that are gone, so that each host finds the folders that it has of them.';
comment on column dalsegno.erased_sessions.external_session_id is 'What the provider calls it, and what its folder is called.';

create table dalsegno.erasure_hosts (
  erasure_id uuid not null constraint erasure_hosts_erasure references dalsegno.erasures (id),
  host text not null,
  swept_at timestamptz not null,
  folders bigint not null,
  bytes bigint not null,
  constraint erasure_hosts_pkey primary key (erasure_id, host),
  constraint erasure_hosts_not_negative check (least(folders, bytes) >= 0)
);
comment on table dalsegno.erasure_hosts is 'Which hosts have looked through their folders after an erasure, and what they removed.';
