-- The job queue, tables: live jobs with their payloads, lanes, leases, the history of runs, dead letters, workers, counters.
-- The functions are in the next two files. The queue names no table of another noun.
--
-- Invariants that the constraints and indexes below hold:
--   * a lane has at most one head (ready, running, held, or waiting with a place): index jobs_one_head_per_lane;
--   * a job is running exactly while it carries a lease, a worker and a claim time;
--   * a transaction that adds a member to a lane, or looks for the next one, first locks the lane's row.
-- All times are those of the database's clock. Priority: 0 is the most urgent.

comment on schema dalsegno is
  'Dalsegno: durable conversations for agents on a job queue. Everything of the service is in this schema.';

---------------------------------------------------------------------------------------------- types
-- What one column may hold is a domain; what columns say together is a CHECK. Postgres keeps the parsed rules of a domain and the
-- body of a function for the whole connection, but parses the text of every CHECK once per statement. With nine CHECKs on jobs
-- they were half the cost of an enqueue, and one long one was still a fifth of it. Hence a short CHECK that calls a function.

create domain dalsegno.job_state as text collate "C"
  constraint job_state_known check (value in ('scheduled', 'ready', 'blocked', 'held', 'running'));
comment on domain dalsegno.job_state is 'States of a live job.';

create domain dalsegno.wait_reason as text collate "C"
  constraint wait_reason_known check (value in ('later', 'retry', 'snooze', 'crash', 'signal'));
comment on domain dalsegno.wait_reason is 'Why a scheduled job waits.';

create domain dalsegno.hold_by as text collate "C" constraint hold_by_known check (value in ('person', 'failure'));
comment on domain dalsegno.hold_by is 'The origin of a hold: a person, or the job''s own failure as the head of a lane.';

create domain dalsegno.lane_policy as text collate "C" constraint lane_policy_known check (value in ('continue', 'hold'));
comment on domain dalsegno.lane_policy is 'Effect of a failed head on its lane.';

create domain dalsegno.run_outcome as text collate "C"
  constraint run_outcome_known check (value in ('done', 'retry', 'snooze', 'given_back', 'failed', 'lost', 'interrupted', 'cancelled'));
comment on domain dalsegno.run_outcome is 'The end of one attempt.';

create domain dalsegno.count16 as smallint constraint count16_not_negative check (value >= 0);
comment on domain dalsegno.count16 is 'A small number that is never negative.';

create domain dalsegno.name as text collate "C" constraint name_length check (char_length(value) between 1 and 200);
comment on domain dalsegno.name is 'A name given by the application.';

---------------------------------------------------------------------------------------------- lanes
create table dalsegno.lanes (
  id bigint generated always as identity,
  next_seq bigint not null default 1,
  created_at timestamptz not null default now(),
  used_at timestamptz not null default now(),
  held_at timestamptz,
  key dalsegno.name not null,
  on_failure dalsegno.lane_policy not null default 'continue',
  hold_reason text,
  constraint lanes_pkey primary key (id),
  constraint lanes_key_unique unique (key),
  constraint lanes_hold_complete check ((held_at is null) = (hold_reason is null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table dalsegno.lanes is 'One row per serial key. Its row lock orders everything that changes the membership of the lane.';
comment on column dalsegno.lanes.id is 'Short stand-in for the key in dalsegno.jobs.';
comment on column dalsegno.lanes.next_seq is
  'The place after the last one given out. Every transaction that adds a member raises it; a finisher sees by it that its snapshot is '
  'too old to contain that member.';
comment on column dalsegno.lanes.created_at is 'When the lane was first used or given a policy.';
comment on column dalsegno.lanes.used_at is 'When a place was last given out; lanes that are empty and long unused are deleted.';
comment on column dalsegno.lanes.held_at is 'Since when the lane is held (paused). NULL: it runs.';
comment on column dalsegno.lanes.key is 'The name the application uses, for instance one conversation.';
comment on column dalsegno.lanes.on_failure is 'Effect of a dead head on the lane: continue with the next job, or hold for a person.';
comment on column dalsegno.lanes.hold_reason is 'Why the lane is held. While it is, none of its jobs is promoted.';

create table dalsegno.lane_sweeps (
  lane_id bigint not null,
  added_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
comment on table dalsegno.lane_sweeps is
  'Lanes that may need a promotion which could not be done at once, because the row of the lane was busy. Written in the transaction '
  'that owed the promotion, emptied by dalsegno.promote_lanes().';
comment on column dalsegno.lane_sweeps.lane_id is 'The lane to look at; may be listed several times.';
comment on column dalsegno.lane_sweeps.added_at is 'Since when the lane waits to be looked at.';

----------------------------------------------------------------------------------------------- jobs
-- A standby that takes over without the last of the log, or a restored database, hands numbers out again. A run of a worker that has
-- outlived this could pass for the run of another job. So a lease is a number of the sequence, in the order of the claims, plus twenty
-- random bits.
create sequence dalsegno.leases as bigint increment by 1048576 start with 1048576;
comment on sequence dalsegno.leases is
  'Every claim draws a new number from here, and adds a random one below 2^20; the sum fences all later writes of that run.';

create sequence dalsegno.job_ids as bigint;
comment on sequence dalsegno.job_ids is 'Ids of jobs; never reused.';

-- PL/pgSQL on purpose: the body of an SQL function would be put in its place and parsed anew by every statement.
create function dalsegno.is_consistent_job(state text, lease bigint, wait_reason text, lane_id bigint, lane_seq bigint, hold_by text)
    returns boolean language plpgsql immutable parallel safe as $body$
begin
    return (state = 'running') = (lease is not null)
       and (state = 'scheduled') = (wait_reason is not null)
       and (state = 'scheduled' or (lane_id is null) = (lane_seq is null))
       and (lane_seq is not null or state <> 'blocked')
       and case when hold_by is null then state <> 'held' else state <> 'ready' end;
end
$body$;
comment on function dalsegno.is_consistent_job(text, bigint, text, bigint, bigint, text) is
  'The state machine: which columns of a job are set in which state.';

create table dalsegno.jobs (
  id bigint not null default nextval('dalsegno.job_ids'),
  lane_id bigint,
  lane_seq bigint,
  run_at timestamptz not null,
  enqueued_at timestamptz not null default now(),
  lease bigint,
  claimed_at timestamptz,
  worker_id uuid,
  priority dalsegno.count16 not null default 100,
  attempt dalsegno.count16 not null default 0,
  max_attempts dalsegno.count16 not null default 20,
  crash_count dalsegno.count16 not null default 0,
  state dalsegno.job_state not null,
  queue text collate "C" not null,
  kind text collate "C" not null,
  group_key text collate "C",
  wait_reason dalsegno.wait_reason,
  hold_by dalsegno.hold_by,
  hold_reason text,
  constraint jobs_pkey primary key (id),
  constraint jobs_state_machine check (dalsegno.is_consistent_job(state, lease, wait_reason, lane_id, lane_seq, hold_by))
) with (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 5000);
comment on table dalsegno.jobs is
  'Live jobs only; a job that ends is deleted here and remembered in dalsegno.runs, or moved to dalsegno.dead_jobs.';
comment on column dalsegno.jobs.id is 'Stays the same through retries, death and redrive.';
comment on column dalsegno.jobs.lane_id is 'The serial lane; NULL: the job runs freely.';
comment on column dalsegno.jobs.lane_seq is
  'Place in the lane, in commit order. NULL with a lane: scheduled for later or until a signal, takes its place then.';
comment on column dalsegno.jobs.run_at is
  'scheduled: when it is due. ready: since when it can run (order of claims). Otherwise without meaning.';
comment on column dalsegno.jobs.enqueued_at is 'When it was put on the queue.';
comment on column dalsegno.jobs.lease is 'Number of the current run, new for every claim. Every write of a run has to name it.';
comment on column dalsegno.jobs.claimed_at is 'When the current run began.';
comment on column dalsegno.jobs.worker_id is 'The process incarnation that runs it.';
comment on column dalsegno.jobs.priority is '0 is the most urgent. Orders jobs of a queue, never jobs within a lane.';
comment on column dalsegno.jobs.attempt is
  'Runs so far that count, including the current one. Snooze, drain and crash give their attempt back.';
comment on column dalsegno.jobs.max_attempts is 'The job dies when this many attempts have failed.';
comment on column dalsegno.jobs.crash_count is
  'Workers lost in a row while running it. From 2 on it runs alone in an idle worker; the third loss kills it. Any orderly end sets it '
  'to 0.';
comment on column dalsegno.jobs.state is 'scheduled, ready, blocked (behind the head of its lane), held (for a person), running.';
comment on column dalsegno.jobs.queue is 'Workers serve queues by name.';
comment on column dalsegno.jobs.kind is 'Which handler runs it.';
comment on column dalsegno.jobs.group_key is
  'Fairness key, for instance the campaign: groups with ready jobs take turns. NULL: no group.';
comment on column dalsegno.jobs.wait_reason is
  'Why a scheduled job waits: later (asked for), retry, snooze, crash, signal (until the application says that it may run).';
comment on column dalsegno.jobs.hold_by is 'person (asked for) or failure (it failed for good as head of a lane with the policy hold).';
comment on column dalsegno.jobs.hold_reason is
  'A person wants it held. A blocked or scheduled job with a reason becomes held when its turn comes.';

-- Disjoint claim indexes: a ready job is in exactly one of the three, a blocked one in none.
create index jobs_claim_plain on dalsegno.jobs (queue, priority, run_at, id)
  where state = 'ready' and crash_count < 2 and group_key is null;
comment on index dalsegno.jobs_claim_plain is 'Claims of jobs without a group.';
create index jobs_claim_grouped on dalsegno.jobs (queue, group_key, priority, run_at, id)
  where state = 'ready' and crash_count < 2 and group_key is not null;
comment on index dalsegno.jobs_claim_grouped is 'Claims in turns: leads from one group with ready jobs to the next in one step.';
create index jobs_claim_alone on dalsegno.jobs (queue, run_at, id) where state = 'ready' and crash_count >= 2;
comment on index dalsegno.jobs_claim_alone is 'Jobs that may only run in an idle worker.';
create unique index jobs_one_head_per_lane on dalsegno.jobs (lane_id) where lane_seq is not null and state <> 'blocked';
comment on index dalsegno.jobs_one_head_per_lane is 'The guarantee of lanes: at most one member that is not blocked.';
create index jobs_blocked_in_lane on dalsegno.jobs (lane_id, lane_seq) where state = 'blocked';
comment on index dalsegno.jobs_blocked_in_lane is 'The next job of a lane.';
create index jobs_future_in_lane on dalsegno.jobs (lane_id) where lane_id is not null and lane_seq is null;
comment on index dalsegno.jobs_future_in_lane is 'Members of a lane that have no place yet.';
create index jobs_due on dalsegno.jobs (run_at, id) where state = 'scheduled';
comment on index dalsegno.jobs_due is 'The jobs that become due next.';
create index jobs_running_by_worker on dalsegno.jobs (worker_id) where state = 'running';
comment on index dalsegno.jobs_running_by_worker is 'The jobs of a lost worker.';

create table dalsegno.job_payloads (
  job_id bigint not null,
  timeout_secs integer,
  payload jsonb not null,
  headers jsonb,
  constraint job_payloads_pkey primary key (job_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table dalsegno.job_payloads is
  'Input of a job. Written once, deleted with the job; kept apart so that the hot table stays narrow.';
comment on column dalsegno.job_payloads.job_id is 'The job.';
comment on column dalsegno.job_payloads.timeout_secs is
  'Deadline of one run in seconds, if the caller set one; otherwise the policy of the kind decides.';
comment on column dalsegno.job_payloads.payload is 'Input of the handler.';
comment on column dalsegno.job_payloads.headers is 'Names and values beside the input, for instance traceparent.';

create table dalsegno.cancel_requests (
  job_id bigint not null,
  requested_at timestamptz not null default now(),
  reason text not null default '',
  constraint cancel_requests_pkey primary key (job_id)
);
comment on table dalsegno.cancel_requests is
  'Running jobs that should stop. Apart from dalsegno.jobs, so that an open transaction that cancels a job cannot make its worker wait.';
comment on column dalsegno.cancel_requests.job_id is 'The job to stop.';
comment on column dalsegno.cancel_requests.requested_at is 'Time of the request.';
comment on column dalsegno.cancel_requests.reason is 'The reason that the requester gave.';

create table dalsegno.idempotency_keys (
  key dalsegno.name not null,
  job_id bigint not null,
  fingerprint bytea not null,
  created_at timestamptz not null default now(),
  constraint idempotency_keys_pkey primary key (key)
);
comment on table dalsegno.idempotency_keys is 'Which job a key stands for. Outlives the job until its retention ends.';
comment on column dalsegno.idempotency_keys.key is 'Chosen by the caller; one name space for all queues.';
comment on column dalsegno.idempotency_keys.job_id is 'The job that the first call made; it may have ended.';
comment on column dalsegno.idempotency_keys.fingerprint is
  'SHA-256 over kind, lane and payload; another one under the same key is a conflict.';
comment on column dalsegno.idempotency_keys.created_at is 'Start of the retention.';

create index idempotency_keys_by_age on dalsegno.idempotency_keys (created_at);

------------------------------------------------------------------------------ runs and dead letters
create table dalsegno.runs (
  job_id bigint not null,
  lease bigint not null,
  lane_id bigint,
  started_at timestamptz,
  ended_at timestamptz not null default clock_timestamp(),
  worker_id uuid,
  attempt smallint not null,
  outcome dalsegno.run_outcome not null,
  queue text collate "C" not null,
  kind text collate "C" not null,
  group_key text collate "C",
  error text,
  constraint runs_pkey primary key (job_id, lease)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table dalsegno.runs is
  'One row per ended attempt, written when it ends. Append-only but for lost -> interrupted, and deleted by age.';
comment on column dalsegno.runs.job_id is 'The job; it may be gone.';
comment on column dalsegno.runs.lease is 'The lease the run held; negative for a job that was cancelled while it did not run.';
comment on column dalsegno.runs.lane_id is 'The lane of the job; the lane may be gone.';
comment on column dalsegno.runs.started_at is 'When it was claimed.';
comment on column dalsegno.runs.ended_at is 'Start of the retention.';
comment on column dalsegno.runs.worker_id is 'The worker that ran it.';
comment on column dalsegno.runs.attempt is 'The number of the attempt while it ran.';
comment on column dalsegno.runs.outcome is
  'done; retry, snooze, given_back (comes again); failed (dead letter); lost (its worker vanished); interrupted (lost, but the worker '
  'came back and says that it was not the job); cancelled.';
comment on column dalsegno.runs.queue is 'As in dalsegno.jobs.';
comment on column dalsegno.runs.kind is 'As in dalsegno.jobs.';
comment on column dalsegno.runs.group_key is 'As in dalsegno.jobs.';
comment on column dalsegno.runs.error is 'The error message, for people.';

create index runs_by_end on dalsegno.runs (ended_at);

create table dalsegno.dead_jobs (
  id bigint not null,
  lane_seq bigint,
  enqueued_at timestamptz not null,
  died_at timestamptz not null default clock_timestamp(),
  lease bigint not null,
  timeout_secs integer,
  priority smallint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  crash_count smallint not null,
  queue text collate "C" not null,
  kind text collate "C" not null,
  lane_key text collate "C",
  group_key text collate "C",
  reason text collate "C" not null,
  error text,
  payload jsonb not null,
  headers jsonb,
  constraint dead_jobs_pkey primary key (id),
  constraint dead_jobs_reason_known check (reason in ('failed', 'exhausted', 'bad_payload', 'worker_lost'))
);
comment on table dalsegno.dead_jobs is 'Jobs that failed for good, with all that is needed to run them again (dalsegno.retry).';
comment on column dalsegno.dead_jobs.id is 'The id it had, and will have again.';
comment on column dalsegno.dead_jobs.lane_seq is 'The place it had in its lane. The lane has gone on, so a retry queues up at the end.';
comment on column dalsegno.dead_jobs.enqueued_at is 'When it was first put on the queue; kept through a retry.';
comment on column dalsegno.dead_jobs.died_at is 'Start of the retention.';
comment on column dalsegno.dead_jobs.lease is 'The lease of the last run.';
comment on column dalsegno.dead_jobs.timeout_secs is 'As in dalsegno.job_payloads.';
comment on column dalsegno.dead_jobs.priority is 'As in dalsegno.jobs.';
comment on column dalsegno.dead_jobs.attempt is 'The attempt it died in; a retry starts at 0.';
comment on column dalsegno.dead_jobs.max_attempts is 'As in dalsegno.jobs.';
comment on column dalsegno.dead_jobs.crash_count is 'Workers lost in a row when it died; a retry starts at 0.';
comment on column dalsegno.dead_jobs.queue is 'As in dalsegno.jobs.';
comment on column dalsegno.dead_jobs.kind is 'As in dalsegno.jobs.';
comment on column dalsegno.dead_jobs.lane_key is 'Name of its lane; the row of the lane may have been purged since.';
comment on column dalsegno.dead_jobs.group_key is 'As in dalsegno.jobs.';
comment on column dalsegno.dead_jobs.reason is
  'failed (the handler said so), exhausted (attempts used up), bad_payload (could not be decoded), worker_lost (took three workers '
  'down).';
comment on column dalsegno.dead_jobs.error is 'The last error, for people.';
comment on column dalsegno.dead_jobs.payload is 'As in dalsegno.job_payloads.';
comment on column dalsegno.dead_jobs.headers is 'As in dalsegno.job_payloads.';

create index dead_jobs_by_death on dalsegno.dead_jobs (died_at);

--------------------------------------------------------------------------------- workers and pauses
create table dalsegno.workers (
  id uuid not null,
  started_at timestamptz not null default now(),
  renewed_at timestamptz not null default now(),
  renewing_since timestamptz not null default now(),
  lease_until timestamptz not null,
  gone_at timestamptz,
  slots integer not null,
  pid integer not null default 0,
  waiting boolean not null default false,
  draining boolean not null default false,
  host text not null default '',
  version text not null default '',
  queues text[] not null,
  kinds text[] not null default '{}',
  gone_reason text,
  constraint workers_pkey primary key (id),
  constraint workers_slots_positive check (slots > 0),
  constraint workers_gone_complete check ((gone_at is null) = (gone_reason is null)),
  constraint workers_gone_reason_known check (gone_reason in ('stopped', 'lost')),
  constraint workers_gone_do_not_wait check (gone_at is null or not waiting)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_cost_delay = 0);
comment on table dalsegno.workers is 'One row per process incarnation. All heartbeats go here, so that a running job is never rewritten.';
comment on column dalsegno.workers.id is 'Made by the process when it starts; never used again.';
comment on column dalsegno.workers.started_at is 'When the process registered.';
comment on column dalsegno.workers.renewed_at is 'The last heartbeat.';
comment on column dalsegno.workers.renewing_since is
  'Start of the unbroken chain of heartbeats. Only a worker that has renewed for a whole lease may declare others lost: after an outage '
  'of the database all workers look dead.';
comment on column dalsegno.workers.lease_until is 'Until then its running jobs are its own.';
comment on column dalsegno.workers.gone_at is 'When it stopped or was declared lost.';
comment on column dalsegno.workers.slots is 'Number of jobs that it runs at once.';
comment on column dalsegno.workers.pid is 'Process id on its host, for people.';
comment on column dalsegno.workers.waiting is
  'It found nothing to do and wants to be woken. A transaction that makes a job ready reads this to decide whether to NOTIFY.';
comment on column dalsegno.workers.draining is 'It claims nothing any more.';
comment on column dalsegno.workers.host is 'Where it runs, for people.';
comment on column dalsegno.workers.version is 'Version of the binary, for people.';
comment on column dalsegno.workers.queues is 'The queues it serves.';
comment on column dalsegno.workers.kinds is 'The kinds it has handlers for; it claims no others.';
comment on column dalsegno.workers.gone_reason is 'stopped (in order) or lost (lease ended).';

create table dalsegno.pauses (
  scope text collate "C" not null,
  name text collate "C" not null,
  paused_at timestamptz not null default now(),
  reason text not null default '',
  constraint pauses_pkey primary key (scope, name),
  constraint pauses_scope_known check (scope in ('queue', 'group'))
);
comment on table dalsegno.pauses is 'Queues and groups from which nothing is claimed. Lanes are held in dalsegno.lanes.';
comment on column dalsegno.pauses.scope is 'queue or group.';
comment on column dalsegno.pauses.name is 'Name of the queue or group; it need not exist yet.';
comment on column dalsegno.pauses.paused_at is 'Since when.';
comment on column dalsegno.pauses.reason is 'The reason that the person gave.';

------------------------------------------------------------------------------------------- counters
create table dalsegno.transition_deltas (
  n integer not null,
  queue text collate "C" not null,
  kind text collate "C" not null,
  event text collate "C" not null,
  from_state text collate "C" not null,
  to_state text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1);
comment on table dalsegno.transition_deltas is
  'Changes of state not yet added to dalsegno.transition_totals. Append-only, so that an open transaction blocks no other; one row per '
  'statement, queue and kind.';
comment on column dalsegno.transition_deltas.n is 'Number of jobs that changed.';
comment on column dalsegno.transition_deltas.queue is 'Queue of the jobs that changed.';
comment on column dalsegno.transition_deltas.kind is 'Kind of the jobs that changed.';
comment on column dalsegno.transition_deltas.event is
  'enqueue, claim, done, retry, snooze, give_back, fail, lost, cancel, promote, due, hold, release, redrive, purge.';
comment on column dalsegno.transition_deltas.from_state is 'State before; new if there was none, dead for a dead letter.';
comment on column dalsegno.transition_deltas.to_state is 'State after; done, dead, cancelled or purged for a job that ended.';

create table dalsegno.transition_totals (
  total bigint not null,
  queue text collate "C" not null,
  kind text collate "C" not null,
  event text collate "C" not null,
  from_state text collate "C" not null,
  to_state text collate "C" not null,
  constraint transition_totals_pkey primary key (queue, kind, event, from_state, to_state)
) with (fillfactor = 50);
comment on table dalsegno.transition_totals is
  'Number of jobs that ever made each change of state, up to the last roll-up. Jobs in a state = all that entered it minus all that '
  'left it; see the view dalsegno.job_counts.';
comment on column dalsegno.transition_totals.total is 'Only grows.';
comment on column dalsegno.transition_totals.queue is 'As in dalsegno.transition_deltas.';
comment on column dalsegno.transition_totals.kind is 'As in dalsegno.transition_deltas.';
comment on column dalsegno.transition_totals.event is 'As in dalsegno.transition_deltas.';
comment on column dalsegno.transition_totals.from_state is 'As in dalsegno.transition_deltas.';
comment on column dalsegno.transition_totals.to_state is 'As in dalsegno.transition_deltas.';

create view dalsegno.transition_counts as
    select queue, kind, event, from_state, to_state, sum(total)::bigint as total
      from (select queue, kind, event, from_state, to_state, total from dalsegno.transition_totals
            union all
            select queue, kind, event, from_state, to_state, n from dalsegno.transition_deltas) as t
     group by queue, kind, event, from_state, to_state;
comment on view dalsegno.transition_counts is
  'Exact totals of every change of state, roll-up and rest together; what the *_total metrics read.';

create view dalsegno.job_counts as
    select c.queue, c.kind, s.state, sum(s.n)::bigint as jobs
      from dalsegno.transition_counts as c
     cross join lateral (values (c.to_state, c.total), (c.from_state, -c.total)) as s(state, n)
     where s.state in ('scheduled', 'ready', 'blocked', 'held', 'running', 'dead')
     group by c.queue, c.kind, s.state;
comment on view dalsegno.job_counts is 'Jobs per queue, kind and state right now, without touching dalsegno.jobs.';

create view dalsegno.job_states as
    select j.id, j.state, j.wait_reason, j.run_at from dalsegno.jobs as j;
comment on view dalsegno.job_states is 'The state of each job that has not ended, for those who keep the ids of their jobs.';

-- For an autoscaler: its role may read this view and nothing else.
create view dalsegno.queue_load as
    select c.queue,
           case when exists (select from dalsegno.pauses as p where p.scope = 'queue' and p.name = c.queue) then 0
                else coalesce(sum(c.jobs) filter (where c.state = 'ready'), 0) end::bigint as ready,
           coalesce(sum(c.jobs) filter (where c.state = 'running'), 0)::bigint as running
      from dalsegno.job_counts as c
     group by c.queue;
comment on view dalsegno.queue_load is
  'Number of jobs of a queue that could run now, and of those that run: input of an autoscaler. Jobs that wait for a login or for their '
  'time are not ready, and none of a paused queue is.';
comment on column dalsegno.queue_load.ready is '0 while the queue is paused: more workers would not run more.';
comment on column dalsegno.queue_load.running is 'Counted too: a worker that runs something must not be taken away for want of more.';
