-- The job queue: live jobs, their payloads, lanes, leases, run history, dead letters and counters.
--
-- Invariants that the constraints and indexes below hold:
--   * a lane has at most one head (ready, running, held, or waiting with a place): index jobs_one_head_per_lane;
--   * a job is running exactly while it carries a lease, a worker and a claim time;
--   * everybody who adds a member to a lane, or looks for the next one, holds the lane's row first.
-- Clocks: only the database's. Priority: 0 is the most urgent.

CREATE SEQUENCE dalsegno.leases AS bigint;
COMMENT ON SEQUENCE dalsegno.leases IS 'Every claim draws a new number from here; it fences all later writes of that run.';

-- What one column may hold is a domain, what columns say together is a CHECK. Postgres keeps the parsed rules of a domain
-- and the body of a function for the whole connection, but parses the stored text of every CHECK once per statement: with
-- nine CHECKs on jobs they were half the cost of an enqueue, and one long one was still a fifth of it. Hence a short CHECK
-- that calls a function.
CREATE DOMAIN dalsegno.job_state AS text COLLATE "C"
    CONSTRAINT job_state_known CHECK (VALUE IN ('scheduled', 'ready', 'blocked', 'held', 'running'));
CREATE DOMAIN dalsegno.wait_reason AS text COLLATE "C"
    CONSTRAINT wait_reason_known CHECK (VALUE IN ('later', 'retry', 'snooze', 'crash'));
CREATE DOMAIN dalsegno.hold_by AS text COLLATE "C"
    CONSTRAINT hold_by_known CHECK (VALUE IN ('person', 'failure'));
CREATE DOMAIN dalsegno.lane_policy AS text COLLATE "C"
    CONSTRAINT lane_policy_known CHECK (VALUE IN ('continue', 'hold'));
CREATE DOMAIN dalsegno.run_outcome AS text COLLATE "C"
    CONSTRAINT run_outcome_known CHECK (VALUE IN ('done', 'retry', 'snooze', 'given_back', 'failed', 'lost', 'interrupted', 'cancelled'));
CREATE DOMAIN dalsegno.count16 AS smallint CONSTRAINT count16_not_negative CHECK (VALUE >= 0);
CREATE DOMAIN dalsegno.name AS text COLLATE "C" CONSTRAINT name_length CHECK (char_length(VALUE) BETWEEN 1 AND 200);
COMMENT ON DOMAIN dalsegno.job_state IS 'States of a live job.';
COMMENT ON DOMAIN dalsegno.wait_reason IS 'Why a scheduled job waits.';
COMMENT ON DOMAIN dalsegno.hold_by IS 'Who holds a job: a person, or its own failure as the head of a lane.';
COMMENT ON DOMAIN dalsegno.lane_policy IS 'What a failed head does to its lane.';
COMMENT ON DOMAIN dalsegno.run_outcome IS 'How one attempt ended.';
COMMENT ON DOMAIN dalsegno.count16 IS 'A small number that is never negative.';
COMMENT ON DOMAIN dalsegno.name IS 'A name given by the application.';

------------------------------------------------------------------------------------------------ lanes
CREATE TABLE dalsegno.lanes (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    next_seq    bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL DEFAULT now(),
    used_at     timestamptz NOT NULL DEFAULT now(),
    held_at     timestamptz,
    key         dalsegno.name NOT NULL,
    on_failure  dalsegno.lane_policy NOT NULL DEFAULT 'continue',
    hold_reason text,
    CONSTRAINT lanes_pkey PRIMARY KEY (id),
    CONSTRAINT lanes_key_unique UNIQUE (key),
    CONSTRAINT lanes_hold_complete CHECK ((held_at IS NULL) = (hold_reason IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE dalsegno.lanes IS 'One row per serial key. Its row lock orders everything that changes the membership of the lane.';
COMMENT ON COLUMN dalsegno.lanes.id IS 'Short stand-in for the key in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.lanes.next_seq IS 'The place after the last one given out. Raised by everybody who adds a member, which is how a finisher notices that its snapshot is too old to see that member.';
COMMENT ON COLUMN dalsegno.lanes.used_at IS 'When a place was last given out; lanes that are empty and long unused are deleted.';
COMMENT ON COLUMN dalsegno.lanes.held_at IS 'Since when the lane is held (paused). NULL: it runs.';
COMMENT ON COLUMN dalsegno.lanes.key IS 'The name the application uses, for instance one conversation.';
COMMENT ON COLUMN dalsegno.lanes.on_failure IS 'What a dead head does to the lane: continue with the next job, or hold for a person.';
COMMENT ON COLUMN dalsegno.lanes.hold_reason IS 'Why the lane is held. While it is, none of its jobs is promoted.';

CREATE TABLE dalsegno.lane_sweeps (
    lane_id  bigint      NOT NULL,
    added_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE dalsegno.lane_sweeps IS 'Lanes that may need a promotion which could not be done at once, because the row of the lane was busy. Written in the transaction that owed the promotion, emptied by dalsegno.promote_lanes().';
COMMENT ON COLUMN dalsegno.lane_sweeps.lane_id IS 'The lane to look at; may be listed several times.';
COMMENT ON COLUMN dalsegno.lane_sweeps.added_at IS 'Since when the lane waits to be looked at.';

------------------------------------------------------------------------------------------------ jobs
-- PL/pgSQL on purpose: the body of an SQL function would be put in its place and parsed anew by every statement.
CREATE FUNCTION dalsegno.is_consistent_job(state text, lease bigint, wait_reason text, lane_id bigint, lane_seq bigint, hold_by text)
    RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $body$
BEGIN
    RETURN (state = 'running') = (lease IS NOT NULL)
       AND (state = 'scheduled') = (wait_reason IS NOT NULL)
       AND (state = 'scheduled' OR (lane_id IS NULL) = (lane_seq IS NULL))
       AND (lane_seq IS NOT NULL OR state <> 'blocked')
       AND CASE WHEN hold_by IS NULL THEN state <> 'held' ELSE state <> 'ready' END;
END
$body$;
COMMENT ON FUNCTION dalsegno.is_consistent_job(text, bigint, text, bigint, bigint, text)
    IS 'The state machine: which columns of a job are set in which state.';

CREATE SEQUENCE dalsegno.job_ids AS bigint;
COMMENT ON SEQUENCE dalsegno.job_ids IS 'Ids of jobs; never reused.';

CREATE TABLE dalsegno.jobs (
    id           bigint      NOT NULL DEFAULT nextval('dalsegno.job_ids'),
    lane_id      bigint,
    lane_seq     bigint,
    run_at       timestamptz NOT NULL,
    enqueued_at  timestamptz NOT NULL DEFAULT now(),
    lease        bigint,
    claimed_at   timestamptz,
    worker_id    uuid,
    priority     dalsegno.count16 NOT NULL DEFAULT 100,
    attempt      dalsegno.count16 NOT NULL DEFAULT 0,
    max_attempts dalsegno.count16 NOT NULL DEFAULT 20,
    crash_count  dalsegno.count16 NOT NULL DEFAULT 0,
    state        dalsegno.job_state NOT NULL,
    queue        text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    group_key    text COLLATE "C",
    wait_reason  dalsegno.wait_reason,
    hold_by      dalsegno.hold_by,
    hold_reason  text,
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_state_machine CHECK (dalsegno.is_consistent_job(state, lease, wait_reason, lane_id, lane_seq, hold_by))
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 5000);
COMMENT ON TABLE dalsegno.jobs IS 'Live jobs only; a job that ends is deleted here and remembered in dalsegno.runs, or moved to dalsegno.dead_jobs.';
COMMENT ON COLUMN dalsegno.jobs.id IS 'Stays the same through retries, death and redrive.';
COMMENT ON COLUMN dalsegno.jobs.lane_id IS 'The serial lane; NULL: the job runs freely.';
COMMENT ON COLUMN dalsegno.jobs.lane_seq IS 'Place in the lane, in commit order. NULL with a lane: scheduled for later, takes its place when due.';
COMMENT ON COLUMN dalsegno.jobs.run_at IS 'scheduled: when it is due. ready: since when it can run (order of claims). Otherwise without meaning.';
COMMENT ON COLUMN dalsegno.jobs.enqueued_at IS 'When it was put on the queue.';
COMMENT ON COLUMN dalsegno.jobs.lease IS 'Number of the current run, new for every claim. Every write of a run has to name it.';
COMMENT ON COLUMN dalsegno.jobs.claimed_at IS 'When the current run began.';
COMMENT ON COLUMN dalsegno.jobs.worker_id IS 'The process incarnation that runs it.';
COMMENT ON COLUMN dalsegno.jobs.priority IS '0 is the most urgent. Orders jobs of a queue, never jobs within a lane.';
COMMENT ON COLUMN dalsegno.jobs.attempt IS 'Runs so far that count, including the current one. Snooze, drain and crash give their attempt back.';
COMMENT ON COLUMN dalsegno.jobs.max_attempts IS 'The job dies when this many attempts have failed.';
COMMENT ON COLUMN dalsegno.jobs.crash_count IS 'Workers lost in a row while running it. From 2 on it runs alone in an idle worker; the third loss kills it. Any orderly end sets it to 0.';
COMMENT ON COLUMN dalsegno.jobs.state IS 'scheduled, ready, blocked (behind the head of its lane), held (for a person), running.';
COMMENT ON COLUMN dalsegno.jobs.queue IS 'Workers serve queues by name.';
COMMENT ON COLUMN dalsegno.jobs.kind IS 'Which handler runs it.';
COMMENT ON COLUMN dalsegno.jobs.group_key IS 'Fairness key, for instance the campaign: groups with ready jobs take turns. NULL: no group.';
COMMENT ON COLUMN dalsegno.jobs.wait_reason IS 'Why a scheduled job waits: later (asked for), retry, snooze, crash.';
COMMENT ON COLUMN dalsegno.jobs.hold_by IS 'person (asked for) or failure (it failed for good as head of a lane with the policy hold).';
COMMENT ON COLUMN dalsegno.jobs.hold_reason IS 'A person wants it held. A blocked or scheduled job with a reason becomes held when its turn comes.';

-- Disjoint claim indexes: a ready job is in exactly one of the three, a blocked one in none.
CREATE INDEX jobs_claim_plain ON dalsegno.jobs (queue, priority, run_at, id)
    WHERE state = 'ready' AND crash_count < 2 AND group_key IS NULL;
CREATE INDEX jobs_claim_grouped ON dalsegno.jobs (queue, group_key, priority, run_at, id)
    WHERE state = 'ready' AND crash_count < 2 AND group_key IS NOT NULL;
CREATE INDEX jobs_claim_alone ON dalsegno.jobs (queue, run_at, id)
    WHERE state = 'ready' AND crash_count >= 2;
CREATE UNIQUE INDEX jobs_one_head_per_lane ON dalsegno.jobs (lane_id)
    WHERE lane_seq IS NOT NULL AND state <> 'blocked';
CREATE INDEX jobs_blocked_in_lane ON dalsegno.jobs (lane_id, lane_seq) WHERE state = 'blocked';
CREATE INDEX jobs_future_in_lane ON dalsegno.jobs (lane_id) WHERE lane_id IS NOT NULL AND lane_seq IS NULL;
CREATE INDEX jobs_due ON dalsegno.jobs (run_at, id) WHERE state = 'scheduled';
CREATE INDEX jobs_running_by_worker ON dalsegno.jobs (worker_id) WHERE state = 'running';
COMMENT ON INDEX dalsegno.jobs_claim_plain IS 'Claims of jobs without a group.';
COMMENT ON INDEX dalsegno.jobs_claim_grouped IS 'Claims in turns: leads from one group with ready jobs to the next in one step.';
COMMENT ON INDEX dalsegno.jobs_claim_alone IS 'Jobs that may only run in an idle worker.';
COMMENT ON INDEX dalsegno.jobs_one_head_per_lane IS 'The guarantee of lanes: at most one member that is not blocked.';
COMMENT ON INDEX dalsegno.jobs_blocked_in_lane IS 'The next of a lane.';
COMMENT ON INDEX dalsegno.jobs_future_in_lane IS 'Members of a lane that have no place yet.';
COMMENT ON INDEX dalsegno.jobs_due IS 'What becomes due next.';
COMMENT ON INDEX dalsegno.jobs_running_by_worker IS 'What a lost worker was running.';

CREATE TABLE dalsegno.job_payloads (
    job_id       bigint NOT NULL,
    timeout_secs integer,
    payload      jsonb NOT NULL,
    headers      jsonb,
    CONSTRAINT job_payloads_pkey PRIMARY KEY (job_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE dalsegno.job_payloads IS 'What a job was given. Written once, deleted with the job; kept apart so that the hot table stays narrow.';
COMMENT ON COLUMN dalsegno.job_payloads.job_id IS 'The job.';
COMMENT ON COLUMN dalsegno.job_payloads.timeout_secs IS 'Deadline of one run in seconds, if the caller set one; otherwise the policy of the kind decides.';
COMMENT ON COLUMN dalsegno.job_payloads.payload IS 'Input of the handler.';
COMMENT ON COLUMN dalsegno.job_payloads.headers IS 'Names and values beside the input, for instance traceparent.';

CREATE TABLE dalsegno.cancel_requests (
    job_id       bigint      NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    reason       text        NOT NULL DEFAULT '',
    CONSTRAINT cancel_requests_pkey PRIMARY KEY (job_id)
);
COMMENT ON TABLE dalsegno.cancel_requests IS 'Running jobs that somebody wants stopped. Apart from dalsegno.jobs, so that an open transaction which cancels a job cannot make its worker wait.';
COMMENT ON COLUMN dalsegno.cancel_requests.job_id IS 'The job to stop.';
COMMENT ON COLUMN dalsegno.cancel_requests.requested_at IS 'When it was asked for.';
COMMENT ON COLUMN dalsegno.cancel_requests.reason IS 'In the words of who asked.';

CREATE TABLE dalsegno.idempotency_keys (
    key         dalsegno.name NOT NULL,
    job_id      bigint      NOT NULL,
    fingerprint bytea       NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (key)
);
CREATE INDEX idempotency_keys_by_age ON dalsegno.idempotency_keys (created_at);
COMMENT ON TABLE dalsegno.idempotency_keys IS 'Which job a key stands for. Outlives the job until its retention ends.';
COMMENT ON COLUMN dalsegno.idempotency_keys.key IS 'Chosen by the caller; one name space for all queues.';
COMMENT ON COLUMN dalsegno.idempotency_keys.job_id IS 'The job that the first call made; it may have ended.';
COMMENT ON COLUMN dalsegno.idempotency_keys.fingerprint IS 'SHA-256 over kind, lane and payload; another one under the same key is a conflict.';
COMMENT ON COLUMN dalsegno.idempotency_keys.created_at IS 'Start of the retention.';

------------------------------------------------------------------------------------------------ runs and dead letters
CREATE TABLE dalsegno.runs (
    job_id     bigint      NOT NULL,
    lease      bigint      NOT NULL,
    lane_id    bigint,
    started_at timestamptz,
    ended_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    worker_id  uuid,
    attempt    smallint    NOT NULL,
    outcome    dalsegno.run_outcome NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    group_key  text COLLATE "C",
    error      text,
    CONSTRAINT runs_pkey PRIMARY KEY (job_id, lease)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX runs_by_end ON dalsegno.runs (ended_at);
COMMENT ON TABLE dalsegno.runs IS 'One row per ended attempt, written when it ends. Append-only but for lost -> interrupted, and deleted by age.';
COMMENT ON COLUMN dalsegno.runs.job_id IS 'The job; it may be gone.';
COMMENT ON COLUMN dalsegno.runs.lease IS 'The lease the run held; negative for a job that was cancelled while it did not run.';
COMMENT ON COLUMN dalsegno.runs.started_at IS 'When it was claimed.';
COMMENT ON COLUMN dalsegno.runs.ended_at IS 'Start of the retention.';
COMMENT ON COLUMN dalsegno.runs.worker_id IS 'Who ran it.';
COMMENT ON COLUMN dalsegno.runs.attempt IS 'The number of the attempt while it ran.';
COMMENT ON COLUMN dalsegno.runs.outcome IS 'done; retry, snooze, given_back (comes again); failed (dead letter); lost (its worker vanished); interrupted (lost, but the worker came back and says that it was not the job); cancelled.';
COMMENT ON COLUMN dalsegno.runs.error IS 'What went wrong, for people.';

CREATE TABLE dalsegno.dead_jobs (
    id           bigint      NOT NULL,
    lane_seq     bigint,
    enqueued_at  timestamptz NOT NULL,
    died_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease        bigint      NOT NULL,
    timeout_secs integer,
    priority     smallint    NOT NULL,
    attempt      smallint    NOT NULL,
    max_attempts smallint    NOT NULL,
    crash_count  smallint    NOT NULL,
    queue        text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    lane_key     text COLLATE "C",
    group_key    text COLLATE "C",
    reason       text COLLATE "C" NOT NULL,
    error        text,
    payload      jsonb       NOT NULL,
    headers      jsonb,
    CONSTRAINT dead_jobs_pkey PRIMARY KEY (id),
    CONSTRAINT dead_jobs_reason_known CHECK (reason IN ('failed', 'exhausted', 'bad_payload', 'worker_lost'))
);
CREATE INDEX dead_jobs_by_death ON dalsegno.dead_jobs (died_at);
COMMENT ON TABLE dalsegno.dead_jobs IS 'Jobs that failed for good, with all that is needed to run them again (dalsegno.retry).';
COMMENT ON COLUMN dalsegno.dead_jobs.id IS 'The id it had, and will have again.';
COMMENT ON COLUMN dalsegno.dead_jobs.lane_seq IS 'The place it had in its lane. The lane has gone on, so a retry queues up at the end.';
COMMENT ON COLUMN dalsegno.dead_jobs.died_at IS 'Start of the retention.';
COMMENT ON COLUMN dalsegno.dead_jobs.lease IS 'The lease of the last run.';
COMMENT ON COLUMN dalsegno.dead_jobs.reason IS 'failed (the handler said so), exhausted (attempts used up), bad_payload (could not be decoded), worker_lost (took three workers down).';
COMMENT ON COLUMN dalsegno.dead_jobs.error IS 'The last error, for people.';

------------------------------------------------------------------------------------------------ workers and pauses
CREATE TABLE dalsegno.workers (
    id             uuid        NOT NULL,
    started_at     timestamptz NOT NULL DEFAULT now(),
    renewed_at     timestamptz NOT NULL DEFAULT now(),
    renewing_since timestamptz NOT NULL DEFAULT now(),
    lease_until    timestamptz NOT NULL,
    gone_at        timestamptz,
    slots          integer     NOT NULL,
    pid            integer     NOT NULL DEFAULT 0,
    waiting        boolean     NOT NULL DEFAULT false,
    draining       boolean     NOT NULL DEFAULT false,
    host           text        NOT NULL DEFAULT '',
    version        text        NOT NULL DEFAULT '',
    queues         text[]      NOT NULL,
    kinds          text[]      NOT NULL DEFAULT '{}',
    gone_reason    text,
    CONSTRAINT workers_pkey PRIMARY KEY (id),
    CONSTRAINT workers_slots_positive CHECK (slots > 0),
    CONSTRAINT workers_gone_complete CHECK ((gone_at IS NULL) = (gone_reason IS NULL)),
    CONSTRAINT workers_gone_reason_known CHECK (gone_reason IN ('stopped', 'lost')),
    CONSTRAINT workers_gone_do_not_wait CHECK (gone_at IS NULL OR NOT waiting)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE dalsegno.workers IS 'One row per process incarnation. All heartbeats go here, so that a running job is never rewritten.';
COMMENT ON COLUMN dalsegno.workers.id IS 'Made by the process when it starts; never used again.';
COMMENT ON COLUMN dalsegno.workers.renewed_at IS 'The last heartbeat.';
COMMENT ON COLUMN dalsegno.workers.renewing_since IS 'Start of the unbroken chain of heartbeats. Only who has renewed for a whole lease may declare others lost: after an outage of the database everybody looks dead.';
COMMENT ON COLUMN dalsegno.workers.lease_until IS 'Until then its running jobs are its own.';
COMMENT ON COLUMN dalsegno.workers.gone_at IS 'When it stopped or was declared lost.';
COMMENT ON COLUMN dalsegno.workers.slots IS 'How many jobs it runs at once.';
COMMENT ON COLUMN dalsegno.workers.waiting IS 'It found nothing to do and wants to be woken. Whoever makes a job ready reads this to decide whether to NOTIFY.';
COMMENT ON COLUMN dalsegno.workers.draining IS 'It claims nothing any more.';
COMMENT ON COLUMN dalsegno.workers.kinds IS 'The kinds it has handlers for; it claims no others.';
COMMENT ON COLUMN dalsegno.workers.queues IS 'The queues it serves.';
COMMENT ON COLUMN dalsegno.workers.gone_reason IS 'stopped (in order) or lost (lease ended).';

CREATE TABLE dalsegno.pauses (
    scope     text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    paused_at timestamptz NOT NULL DEFAULT now(),
    reason    text        NOT NULL DEFAULT '',
    CONSTRAINT pauses_pkey PRIMARY KEY (scope, name),
    CONSTRAINT pauses_scope_known CHECK (scope IN ('queue', 'group'))
);
COMMENT ON TABLE dalsegno.pauses IS 'Queues and groups from which nothing is claimed. Lanes are held in dalsegno.lanes.';
COMMENT ON COLUMN dalsegno.pauses.scope IS 'queue or group.';
COMMENT ON COLUMN dalsegno.pauses.name IS 'Name of the queue or group; it need not exist yet.';
COMMENT ON COLUMN dalsegno.pauses.paused_at IS 'Since when.';
COMMENT ON COLUMN dalsegno.pauses.reason IS 'In the words of who paused it.';

------------------------------------------------------------------------------------------------ counters
CREATE TABLE dalsegno.transition_deltas (
    n          integer NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    event      text COLLATE "C" NOT NULL,
    from_state text COLLATE "C" NOT NULL,
    to_state   text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1);
COMMENT ON TABLE dalsegno.transition_deltas IS 'Changes of state not yet added to dalsegno.transition_totals. Append-only, so that an open transaction blocks nobody; one row per statement, queue and kind.';
COMMENT ON COLUMN dalsegno.transition_deltas.n IS 'How many jobs changed.';
COMMENT ON COLUMN dalsegno.transition_deltas.event IS 'enqueue, claim, done, retry, snooze, give_back, fail, lost, cancel, promote, due, hold, release, redrive, purge.';
COMMENT ON COLUMN dalsegno.transition_deltas.from_state IS 'State before; new if there was none, dead for a dead letter.';
COMMENT ON COLUMN dalsegno.transition_deltas.to_state IS 'State after; done, dead, cancelled or purged for a job that ended.';

CREATE TABLE dalsegno.transition_totals (
    total      bigint NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    event      text COLLATE "C" NOT NULL,
    from_state text COLLATE "C" NOT NULL,
    to_state   text COLLATE "C" NOT NULL,
    CONSTRAINT transition_totals_pkey PRIMARY KEY (queue, kind, event, from_state, to_state)
) WITH (fillfactor = 50);
COMMENT ON TABLE dalsegno.transition_totals IS 'How many jobs ever made each change of state, up to the last roll-up. Jobs in a state = all that entered it minus all that left it; see the view dalsegno.job_counts.';
COMMENT ON COLUMN dalsegno.transition_totals.total IS 'Only grows.';

CREATE VIEW dalsegno.transition_counts AS
    SELECT queue, kind, event, from_state, to_state, sum(total)::bigint AS total
      FROM (SELECT queue, kind, event, from_state, to_state, total FROM dalsegno.transition_totals
            UNION ALL
            SELECT queue, kind, event, from_state, to_state, n FROM dalsegno.transition_deltas) AS t
     GROUP BY queue, kind, event, from_state, to_state;
COMMENT ON VIEW dalsegno.transition_counts IS 'Exact totals of every change of state, roll-up and rest together; what the *_total metrics read.';

CREATE VIEW dalsegno.job_counts AS
    SELECT c.queue, c.kind, s.state, sum(s.n)::bigint AS jobs
      FROM dalsegno.transition_counts AS c
     CROSS JOIN LATERAL (VALUES (c.to_state, c.total), (c.from_state, -c.total)) AS s(state, n)
     WHERE s.state IN ('scheduled', 'ready', 'blocked', 'held', 'running', 'dead')
     GROUP BY c.queue, c.kind, s.state;
COMMENT ON VIEW dalsegno.job_counts IS 'Jobs per queue, kind and state right now, without touching dalsegno.jobs.';

-- Wakes a worker that says it waits. Deferred, so that it looks just before the commit: a worker that went idle while an
-- application's transaction was open is seen. What remains (idle between this look and the end of the commit) is
-- caught by the worker's second look and by polling.
CREATE FUNCTION dalsegno.wake_waiting_worker() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF EXISTS (SELECT FROM dalsegno.workers AS w WHERE w.waiting AND NEW.queue = ANY (w.queues)) THEN
        PERFORM pg_notify('dalsegno', 'ready ' || NEW.queue);
    END IF;
    RETURN NULL;
END
$body$;
COMMENT ON FUNCTION dalsegno.wake_waiting_worker() IS 'NOTIFY only if a worker waits: a notification in every transaction would serialise all commits.';
CREATE CONSTRAINT TRIGGER transition_deltas_wake AFTER INSERT ON dalsegno.transition_deltas
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.to_state = 'ready')
    EXECUTE FUNCTION dalsegno.wake_waiting_worker();
COMMENT ON TRIGGER transition_deltas_wake ON dalsegno.transition_deltas IS 'One look per statement that made jobs ready, not one per job.';

------------------------------------------------------------------------------------------------ lanes: promotion
CREATE FUNCTION dalsegno.promote_lanes(lanes bigint[]) RETURNS integer LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET jit = off AS $body$
#variable_conflict use_column
DECLARE
    mine     bigint[];
    promoted integer;
BEGIN
    -- Never waits: a lane that is busy stays listed in lane_sweeps for whoever comes next.
    mine := ARRAY(SELECT l.id FROM dalsegno.lanes AS l WHERE l.id = ANY (promote_lanes.lanes)
                   ORDER BY l.id FOR NO KEY UPDATE SKIP LOCKED);
    -- Listed and looked at in this order: whatever a deleted entry was written for is visible to the statement below.
    DELETE FROM dalsegno.lane_sweeps AS s WHERE s.lane_id = ANY (mine);
    WITH first AS (
        SELECT l.id AS lane_id, b.id
          FROM dalsegno.lanes AS l
         CROSS JOIN LATERAL (SELECT j.id FROM dalsegno.jobs AS j WHERE j.lane_id = l.id AND j.state = 'blocked'
                              ORDER BY j.lane_seq LIMIT 1) AS b
         WHERE l.id = ANY (mine) AND l.hold_reason IS NULL
           AND NOT EXISTS (SELECT FROM dalsegno.jobs AS h WHERE h.lane_id = l.id AND h.lane_seq IS NOT NULL AND h.state <> 'blocked')
    ), free AS (
        SELECT f.lane_id, f.id
          FROM first AS f
         CROSS JOIN LATERAL (SELECT FROM dalsegno.jobs AS j WHERE j.id = f.id AND j.state = 'blocked' FOR UPDATE SKIP LOCKED) AS locked
    ), changed AS (
        UPDATE dalsegno.jobs AS j
           SET state = CASE WHEN j.hold_reason IS NULL THEN 'ready' ELSE 'held' END, run_at = clock_timestamp()
         WHERE j.id = ANY (ARRAY(SELECT f.id FROM free AS f))
        RETURNING j.queue, j.kind, j.state
    ), busy AS (
        -- Somebody is about to cancel the next one; whether it stays is known later.
        INSERT INTO dalsegno.lane_sweeps (lane_id)
        SELECT f.lane_id FROM first AS f WHERE NOT EXISTS (SELECT FROM free WHERE free.id = f.id)
    ), counted AS (
        INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
        SELECT c.queue, c.kind, 'promote', 'blocked', c.state, count(*) FROM changed AS c GROUP BY c.queue, c.kind, c.state
    )
    SELECT count(*) INTO promoted FROM changed;
    RETURN promoted;
END
$body$;
COMMENT ON FUNCTION dalsegno.promote_lanes(bigint[]) IS 'Makes the next job of each given lane ready if the lane has no head and is not held. Skips lanes whose row is busy. Returns how many jobs moved.';

CREATE FUNCTION dalsegno.sweep_lanes(max_lanes integer DEFAULT 1000) RETURNS integer LANGUAGE sql AS $body$
    SELECT dalsegno.promote_lanes(ARRAY(SELECT DISTINCT s.lane_id FROM dalsegno.lane_sweeps AS s ORDER BY s.lane_id LIMIT max_lanes))
$body$;
COMMENT ON FUNCTION dalsegno.sweep_lanes(integer) IS 'dalsegno.promote_lanes() for the lanes listed in dalsegno.lane_sweeps.';

CREATE FUNCTION dalsegno.promote_due(max_jobs integer DEFAULT 1000) RETURNS integer LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET jit = off AS $body$
#variable_conflict use_column
DECLARE
    -- A variable, because a volatile function in the condition would be compared with every entry of the index.
    moment timestamptz := clock_timestamp();
    due    bigint[];
    taken  bigint[];
BEGIN
    due := ARRAY(SELECT j.id FROM dalsegno.jobs AS j WHERE j.state = 'scheduled' AND j.run_at <= moment
                  ORDER BY j.run_at, j.id LIMIT max_jobs FOR UPDATE SKIP LOCKED);
    IF due = '{}' THEN
        RETURN 0;
    END IF;
    -- Jobs that have waited outside their lane take a place now; a busy lane puts them off by a second, so that they
    -- cannot fill the window of due jobs for ever.
    taken := ARRAY(SELECT l.id FROM dalsegno.lanes AS l
                    WHERE l.id = ANY (ARRAY(SELECT j.lane_id FROM dalsegno.jobs AS j WHERE j.id = ANY (due) AND j.lane_seq IS NULL))
                    ORDER BY l.id FOR NO KEY UPDATE SKIP LOCKED);
    -- Joined by one key each: a second condition with the whole array would make the planner look up all of it for each row.
    WITH placed AS (
        SELECT j.id, j.lane_id, l.next_seq + row_number() OVER (PARTITION BY j.lane_id ORDER BY j.run_at, j.id) - 1 AS place
          FROM dalsegno.jobs AS j
         CROSS JOIN LATERAL (SELECT l.next_seq FROM dalsegno.lanes AS l WHERE l.id = j.lane_id OFFSET 0) AS l
         WHERE j.id = ANY (due) AND j.lane_seq IS NULL AND j.lane_id = ANY (taken)
    ), raised AS (
        UPDATE dalsegno.lanes AS l SET next_seq = l.next_seq + p.n, used_at = clock_timestamp()
          FROM (SELECT lane_id, count(*) AS n FROM placed GROUP BY lane_id) AS p
         WHERE l.id = p.lane_id
    ), changed AS (
        -- Place and state in one go: scheduled with a place would be a second head.
        UPDATE dalsegno.jobs AS j SET lane_seq = p.place, state = 'blocked', wait_reason = NULL
          FROM placed AS p
         WHERE j.id = p.id
        RETURNING j.queue, j.kind, j.lane_id
    ), owed AS (
        INSERT INTO dalsegno.lane_sweeps (lane_id) SELECT DISTINCT c.lane_id FROM changed AS c
    )
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT c.queue, c.kind, 'due', 'scheduled', 'blocked', count(*) FROM changed AS c GROUP BY c.queue, c.kind;
    UPDATE dalsegno.jobs AS j SET run_at = clock_timestamp() + interval '1 second'
     WHERE j.id = ANY (due) AND j.lane_id IS NOT NULL AND j.lane_seq IS NULL;
    WITH changed AS (
        UPDATE dalsegno.jobs AS j
           SET state = CASE WHEN j.lane_id IS NOT NULL THEN 'blocked' WHEN j.hold_reason IS NULL THEN 'ready' ELSE 'held' END,
               wait_reason = NULL, run_at = clock_timestamp()
         WHERE j.id = ANY (due) AND j.state = 'scheduled' AND (j.lane_id IS NULL OR j.lane_seq IS NOT NULL)
        RETURNING j.queue, j.kind, j.state, j.lane_id
    ), owed AS (
        INSERT INTO dalsegno.lane_sweeps (lane_id) SELECT DISTINCT c.lane_id FROM changed AS c WHERE c.lane_id IS NOT NULL
    )
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT c.queue, c.kind, 'due', 'scheduled', c.state, count(*) FROM changed AS c GROUP BY c.queue, c.kind, c.state;
    PERFORM dalsegno.promote_lanes(ARRAY(SELECT DISTINCT j.lane_id FROM dalsegno.jobs AS j
                                          WHERE j.id = ANY (due) AND j.state = 'blocked'));
    RETURN cardinality(due);
END
$body$;
COMMENT ON FUNCTION dalsegno.promote_due(integer) IS 'Makes scheduled jobs whose time has come ready; members of a lane queue up in it (a head that waited to be retried is the first again). Any process may call it at any time.';

------------------------------------------------------------------------------------------------ enqueue
CREATE FUNCTION dalsegno.is_bad_new_job(kind text, payload jsonb, queue text, lane text, group_key text, priority integer,
        run_at timestamptz, max_attempts integer, idempotency_key text, headers jsonb, timeout_secs integer, max_bytes bigint)
    RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $body$
    SELECT kind IS NULL OR btrim(kind) = '' OR char_length(kind) > 100
        OR queue IS NULL OR btrim(queue) = '' OR char_length(queue) > 100
        OR lane = '' OR char_length(lane) > 200
        OR group_key = '' OR char_length(group_key) > 200
        OR priority IS NULL OR priority NOT BETWEEN 0 AND 32767
        OR max_attempts IS NULL OR max_attempts NOT BETWEEN 1 AND 1000
        OR NOT isfinite(run_at)
        OR timeout_secs <= 0
        OR idempotency_key = '' OR char_length(idempotency_key) > 200
        OR jsonb_typeof(headers) <> 'object'
        OR payload IS NULL OR octet_length(payload::text) > max_bytes
$body$;
COMMENT ON FUNCTION dalsegno.is_bad_new_job(text, jsonb, text, text, text, integer, timestamptz, integer, text, jsonb, integer, bigint)
    IS 'True if dalsegno.check_new_job() has something to say about these arguments (otherwise false or NULL). One plain expression, which Postgres puts in place of the call: the good case runs no query.';

CREATE FUNCTION dalsegno.check_new_job(kind text, payload jsonb, queue text, lane text, group_key text, priority integer,
        run_at timestamptz, max_attempts integer, idempotency_key text, headers jsonb, timeout_secs integer)
    RETURNS void LANGUAGE plpgsql STABLE AS $body$
DECLARE
    max_bytes bigint := coalesce(nullif(current_setting('dalsegno.max_payload_bytes', true), '')::bigint, 1048576);
    problem   text;
    hint      text;
BEGIN
    CASE
        WHEN kind IS NULL OR btrim(kind) = '' THEN
            problem := 'kind is empty'; hint := 'Name the kind of a handler.';
        WHEN char_length(kind) > 100 THEN
            problem := format('kind has %s characters, the limit is 100', char_length(kind)); hint := 'Use a shorter name.';
        WHEN queue IS NULL OR btrim(queue) = '' THEN
            problem := 'queue is empty'; hint := 'Leave it out for the queue "default".';
        WHEN char_length(queue) > 100 THEN
            problem := format('queue has %s characters, the limit is 100', char_length(queue)); hint := 'Use a shorter name.';
        WHEN lane = '' THEN
            problem := 'lane is the empty string'; hint := 'Pass NULL for a job without a lane.';
        WHEN char_length(lane) > 200 THEN
            problem := format('lane has %s characters, the limit is 200', char_length(lane)); hint := 'Use an id or a hash as the name of the lane.';
        WHEN group_key = '' THEN
            problem := 'group_key is the empty string'; hint := 'Pass NULL for a job without a group.';
        WHEN char_length(group_key) > 200 THEN
            problem := format('group_key has %s characters, the limit is 200', char_length(group_key)); hint := 'Use an id or a hash.';
        WHEN priority IS NULL OR priority NOT BETWEEN 0 AND 32767 THEN
            problem := format('priority is %s', coalesce(priority::text, 'NULL')); hint := 'Use 0 (most urgent) to 32767; 100 is usual.';
        WHEN max_attempts IS NULL OR max_attempts NOT BETWEEN 1 AND 1000 THEN
            problem := format('max_attempts is %s', coalesce(max_attempts::text, 'NULL')); hint := 'Use 1 to 1000.';
        WHEN NOT isfinite(run_at) THEN
            problem := format('run_at is %s', run_at); hint := 'Pass a time, or NULL for now.';
        WHEN timeout_secs <= 0 THEN
            problem := format('timeout_secs is %s', timeout_secs); hint := 'Use a positive number of seconds, or NULL for the policy of the kind.';
        WHEN idempotency_key = '' THEN
            problem := 'idempotency_key is the empty string'; hint := 'Pass NULL for none.';
        WHEN char_length(idempotency_key) > 200 THEN
            problem := format('idempotency_key has %s characters, the limit is 200', char_length(idempotency_key)); hint := 'Use a hash of it.';
        WHEN headers IS NOT NULL AND jsonb_typeof(headers) <> 'object' THEN
            problem := format('headers is a JSON %s', jsonb_typeof(headers)); hint := 'Pass an object of names and values, or NULL.';
        WHEN payload IS NULL THEN
            problem := 'payload is NULL'; hint := 'Pass ''{}'' or ''null''::jsonb for a job without input.';
        WHEN octet_length(payload::text) > max_bytes THEN
            RAISE EXCEPTION USING ERRCODE = 'DS413', MESSAGE = format('payload of %s has %s bytes, the limit is %s', kind, octet_length(payload::text), max_bytes),
                HINT = 'Store the data elsewhere and enqueue a reference, or raise dalsegno.max_payload_bytes.';
        ELSE
            RETURN;
    END CASE;
    RAISE EXCEPTION USING ERRCODE = 'DS400', MESSAGE = 'cannot enqueue: ' || problem, HINT = hint;
END
$body$;
COMMENT ON FUNCTION dalsegno.check_new_job(text, jsonb, text, text, text, integer, timestamptz, integer, text, jsonb, integer)
    IS 'Raises DS400 (bad argument) or DS413 (payload over dalsegno.max_payload_bytes, 1 MiB by default).';

CREATE FUNCTION dalsegno.enqueue(
        kind            text,
        payload         jsonb       DEFAULT '{}',
        queue           text        DEFAULT 'default',
        lane            text        DEFAULT NULL,
        group_key       text        DEFAULT NULL,
        priority        integer     DEFAULT 100,
        run_at          timestamptz DEFAULT NULL,
        max_attempts    integer     DEFAULT 20,
        idempotency_key text        DEFAULT NULL,
        headers         jsonb       DEFAULT NULL,
        timeout_secs    integer     DEFAULT NULL,
        OUT job_id bigint, OUT created boolean, OUT state text)
    LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    moment     timestamptz := clock_timestamp();
    due        boolean     := coalesce(run_at <= moment, true);
    max_bytes  bigint      := coalesce(nullif(current_setting('dalsegno.max_payload_bytes', true), '')::bigint, 1048576);
    print      bytea;
    known      dalsegno.idempotency_keys;
    lane_id    bigint;
    lane_seq   bigint;
    lane_held  boolean;
BEGIN
    IF dalsegno.is_bad_new_job(kind, payload, queue, lane, group_key, priority, run_at, max_attempts, idempotency_key, headers, timeout_secs, max_bytes) THEN
        PERFORM dalsegno.check_new_job(kind, payload, queue, lane, group_key, priority, run_at, max_attempts, idempotency_key, headers, timeout_secs);
    END IF;
    job_id  := nextval('dalsegno.job_ids');
    created := true;
    state   := CASE WHEN due THEN 'ready' ELSE 'scheduled' END;

    IF idempotency_key IS NOT NULL THEN
        print := sha256(convert_to(jsonb_build_array(kind, lane, payload)::text, 'UTF8'));
        -- Waits for another transaction that is about to take the key; then one of the two finds the other's row. Again, if
        -- the retention deletes that row before it is read.
        LOOP
            INSERT INTO dalsegno.idempotency_keys AS i (key, job_id, fingerprint) VALUES (idempotency_key, job_id, print)
            ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO NOTHING;
            EXIT WHEN FOUND;
            SELECT * INTO known FROM dalsegno.idempotency_keys AS i WHERE i.key = idempotency_key;
            CONTINUE WHEN NOT FOUND;
            IF known.fingerprint <> print THEN
                RAISE EXCEPTION USING ERRCODE = 'DS409',
                    MESSAGE = format('idempotency key "%s" already stands for job %s with another kind, lane or payload', idempotency_key, known.job_id),
                    HINT = 'Use a new key for a new job; repeat the same call to get the same job.';
            END IF;
            job_id  := known.job_id;
            created := false;
            SELECT j.state INTO state FROM dalsegno.jobs AS j WHERE j.id = known.job_id;
            state := coalesce(state, CASE WHEN EXISTS (SELECT FROM dalsegno.dead_jobs AS d WHERE d.id = known.job_id) THEN 'dead' ELSE 'ended' END);
            RETURN;
        END LOOP;
    END IF;

    IF lane IS NOT NULL AND due THEN
        -- The lock on the lane lasts until the caller commits, so places follow commit order. The look at the other
        -- members is a statement of its own, with a snapshot from after the lock.
        INSERT INTO dalsegno.lanes AS l (key, next_seq) VALUES (lane, 2)
        ON CONFLICT ON CONSTRAINT lanes_key_unique DO UPDATE SET next_seq = l.next_seq + 1, used_at = moment
        RETURNING l.id, l.next_seq - 1, l.hold_reason IS NOT NULL INTO lane_id, lane_seq, lane_held;
        IF lane_held THEN
            state := 'blocked';
        ELSIF lane_seq > 1 THEN
            -- Apart from the condition above: a plan for "no other member yet" would look like free of cost, and Postgres
            -- would go on planning every call anew.
            IF EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.lane_id = lane_id AND j.lane_seq IS NOT NULL AND j.state <> 'blocked')
                OR EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.lane_id = lane_id AND j.state = 'blocked') THEN
                state := 'blocked';
            END IF;
        END IF;
    ELSIF lane IS NOT NULL THEN
        -- No place yet, hence no lock that others would wait for: KEY SHARE only keeps the row from being deleted. A lane
        -- that looks unused is touched, which a purge that is about to delete it notices.
        INSERT INTO dalsegno.lanes (key) VALUES (lane) ON CONFLICT ON CONSTRAINT lanes_key_unique DO NOTHING;
        SELECT l.id INTO STRICT lane_id FROM dalsegno.lanes AS l WHERE l.key = lane FOR KEY SHARE;
        UPDATE dalsegno.lanes AS l SET used_at = moment WHERE l.id = lane_id AND l.used_at < moment - interval '1 hour';
    END IF;

    INSERT INTO dalsegno.jobs (id, lane_id, lane_seq, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key, wait_reason)
    VALUES (job_id, lane_id, lane_seq, CASE WHEN due THEN moment ELSE run_at END, moment, priority, max_attempts, state, queue, kind, group_key,
            CASE WHEN NOT due THEN 'later' END);
    INSERT INTO dalsegno.job_payloads (job_id, timeout_secs, payload, headers) VALUES (job_id, timeout_secs, payload, headers);
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) VALUES (queue, kind, 'enqueue', 'new', state, 1);
END
$body$;
COMMENT ON FUNCTION dalsegno.enqueue(text, jsonb, text, text, text, integer, timestamptz, integer, text, jsonb, integer)
    IS 'Puts one job on the queue, in the caller''s transaction. A run_at that has passed means now. The same idempotency key with the same kind, lane and payload returns the same job (created = false); with others it raises DS409. Bad arguments raise DS400, a payload over the limit DS413.';

CREATE FUNCTION dalsegno.enqueue_many(jobs jsonb) RETURNS TABLE (ord bigint, job_id bigint, created boolean, state text)
    LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' AS $body$
#variable_conflict use_column
-- The settings cost one call nothing and a large one a quarter: compiling takes longer than running, and the arrays, which
-- are in memory anyway, would go through files to be sorted.
DECLARE
    moment timestamptz := clock_timestamp();
    max_bytes bigint := coalesce(nullif(current_setting('dalsegno.max_payload_bytes', true), '')::bigint, 1048576);
    ids bigint[];  kinds text[];  payloads jsonb[];  queues text[];  lanes text[];  groups text[];  priorities integer[];
    run_ats timestamptz[];  maxima integer[];  keys text[];  heads jsonb[];  timeouts integer[];
    owners bigint[];
    lane_keys text[];  lane_ids bigint[];  lane_ends bigint[];  lane_busy boolean[];
    bad record;  problem text;  advice text;
BEGIN
    IF enqueue_many.jobs IS NULL OR jsonb_typeof(enqueue_many.jobs) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'DS400', MESSAGE = 'cannot enqueue: jobs is not a JSON array',
            HINT = 'Pass an array of objects whose keys are the arguments of dalsegno.enqueue.';
    END IF;
    -- The payload is taken from the element itself: a record would make the JSON null, which is a payload, an SQL NULL.
    BEGIN
        SELECT array_agg(nextval('dalsegno.job_ids')), array_agg(r.kind), array_agg(coalesce(r.element -> 'payload', '{}')), array_agg(coalesce(r.queue, 'default')),
               array_agg(r.lane), array_agg(r.group_key), array_agg(coalesce(r.priority, 100)),
               array_agg(r.run_at), array_agg(coalesce(r.max_attempts, 20)), array_agg(r.idempotency_key), array_agg(r.headers), array_agg(r.timeout_secs)
          INTO ids, kinds, payloads, queues, lanes, groups, priorities, run_ats, maxima, keys, heads, timeouts
          FROM ROWS FROM (
                   jsonb_to_recordset(enqueue_many.jobs) AS (kind text, queue text, lane text, group_key text, priority integer,
                       run_at timestamptz, max_attempts integer, idempotency_key text, headers jsonb, timeout_secs integer),
                   jsonb_array_elements(enqueue_many.jobs))
               AS r (kind, queue, lane, group_key, priority, run_at, max_attempts, idempotency_key, headers, timeout_secs, element);
    EXCEPTION WHEN data_exception THEN
        -- Some value has the wrong type. Postgres does not say which, so the elements are tried one by one.
        problem := 'cannot enqueue: ' || SQLERRM;
        FOR bad IN SELECT e.element, e.ord FROM jsonb_array_elements(enqueue_many.jobs) WITH ORDINALITY AS e (element, ord) LOOP
            IF jsonb_typeof(bad.element) <> 'object' THEN
                problem := format('element %s: cannot enqueue: it is a JSON %s, not an object', bad.ord, jsonb_typeof(bad.element));
                EXIT;
            END IF;
            BEGIN
                PERFORM FROM jsonb_to_record(bad.element) AS r (kind text, queue text, lane text, group_key text, priority integer,
                    run_at timestamptz, max_attempts integer, idempotency_key text, headers jsonb, timeout_secs integer);
            EXCEPTION WHEN data_exception THEN
                problem := format('element %s: cannot enqueue: %s', bad.ord, SQLERRM);
                EXIT;
            END;
        END LOOP;
        RAISE EXCEPTION USING ERRCODE = 'DS400', MESSAGE = problem,
            HINT = 'Give each value the type that the argument of that name has in dalsegno.enqueue.';
    END;
    IF ids IS NULL THEN
        RETURN;
    END IF;
    -- A misspelt name would silently mean its default.
    SELECT e.ord, k.name INTO bad
      FROM jsonb_array_elements(enqueue_many.jobs) WITH ORDINALITY AS e (element, ord)
     CROSS JOIN LATERAL jsonb_object_keys(e.element - '{kind,payload,queue,lane,group_key,priority,run_at,max_attempts,idempotency_key,headers,timeout_secs}'::text[]) AS k (name)
     ORDER BY e.ord, k.name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'DS400', MESSAGE = format('element %s: cannot enqueue: unknown key "%s"', bad.ord, bad.name),
            HINT = 'The keys are the arguments of dalsegno.enqueue: kind, payload, queue, lane, group_key, priority, run_at, max_attempts, idempotency_key, headers, timeout_secs.';
    END IF;

    -- One cheap pass finds the first suspect; the function that also guards single jobs words the error.
    FOR bad IN
        SELECT * FROM unnest(kinds, payloads, queues, lanes, groups, priorities, run_ats, maxima, keys, heads, timeouts) WITH ORDINALITY
            AS u (kind, payload, queue, lane, group_key, priority, run_at, max_attempts, key, headers, timeout_secs, ord)
         WHERE dalsegno.is_bad_new_job(u.kind, u.payload, u.queue, u.lane, u.group_key, u.priority, u.run_at, u.max_attempts,
                                       u.key, u.headers, u.timeout_secs, max_bytes)
         ORDER BY u.ord LIMIT 1
    LOOP
        BEGIN
            PERFORM dalsegno.check_new_job(bad.kind, bad.payload, bad.queue, bad.lane, bad.group_key, bad.priority, bad.run_at, bad.max_attempts,
                                           bad.key, bad.headers, bad.timeout_secs);
        EXCEPTION WHEN SQLSTATE 'DS400' OR SQLSTATE 'DS413' THEN
            GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT, advice = PG_EXCEPTION_HINT;
            RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = format('element %s: %s', bad.ord, problem), HINT = advice;
        END;
    END LOOP;

    -- owners: per job the job that its key stands for; itself, if the key is new or there is none.
    owners := ids;
    IF EXISTS (SELECT FROM unnest(keys) AS k (key) WHERE k.key IS NOT NULL) THEN
        INSERT INTO dalsegno.idempotency_keys AS i (key, job_id, fingerprint)
        SELECT DISTINCT ON (u.key) u.key, u.id, sha256(convert_to(jsonb_build_array(u.kind, u.lane, u.payload)::text, 'UTF8'))
          FROM unnest(ids, keys, kinds, lanes, payloads) AS u (id, key, kind, lane, payload)
         WHERE u.key IS NOT NULL ORDER BY u.key, u.id
        ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO NOTHING;
        SELECT u.key, i.job_id INTO bad
          FROM unnest(ids, keys, kinds, lanes, payloads) AS u (id, key, kind, lane, payload)
          JOIN dalsegno.idempotency_keys AS i ON i.key = u.key
         WHERE i.fingerprint <> sha256(convert_to(jsonb_build_array(u.kind, u.lane, u.payload)::text, 'UTF8'))
         ORDER BY u.id LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'DS409',
                MESSAGE = format('idempotency key "%s" already stands for job %s with another kind, lane or payload', bad.key, bad.job_id),
                HINT = 'Use a new key for a new job; repeat the same call to get the same job.';
        END IF;
        SELECT array_agg(coalesce(i.job_id, u.id) ORDER BY u.ord) INTO owners
          FROM unnest(ids, keys) WITH ORDINALITY AS u (id, key, ord) LEFT JOIN dalsegno.idempotency_keys AS i ON i.key = u.key;
    END IF;

    -- Lanes are locked in the order of their names, so that two bulk calls cannot wait for each other in a circle.
    IF EXISTS (SELECT FROM unnest(lanes) AS l (key) WHERE l.key IS NOT NULL) THEN
        WITH raised AS (
            INSERT INTO dalsegno.lanes AS l (key, next_seq)
            SELECT u.lane, 1 + count(*) FILTER (WHERE u.run_at IS NULL OR u.run_at <= moment)
              FROM unnest(ids, owners, lanes, run_ats) AS u (id, owner, lane, run_at)
             WHERE u.lane IS NOT NULL AND u.id = u.owner GROUP BY u.lane ORDER BY u.lane
            ON CONFLICT ON CONSTRAINT lanes_key_unique DO UPDATE SET next_seq = l.next_seq + excluded.next_seq - 1, used_at = moment
            RETURNING l.id, l.key, l.next_seq, l.hold_reason IS NOT NULL AS held)
        SELECT array_agg(r.key), array_agg(r.id), array_agg(r.next_seq), array_agg(r.held) INTO lane_keys, lane_ids, lane_ends, lane_busy FROM raised AS r;
        SELECT array_agg(u.held
                   OR EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.lane_id = u.id AND j.lane_seq IS NOT NULL AND j.state <> 'blocked')
                   OR EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.lane_id = u.id AND j.state = 'blocked') ORDER BY u.ord)
          INTO lane_busy FROM unnest(lane_ids, lane_busy) WITH ORDINALITY AS u (id, held, ord);
    END IF;

    RETURN QUERY
    WITH placed AS MATERIALIZED (
        SELECT u.*, u.run_at IS NULL OR u.run_at <= moment AS due, l.lane_id, l.lane_end, l.busy,
               row_number() OVER (PARTITION BY u.lane, u.run_at IS NULL OR u.run_at <= moment ORDER BY u.ord) AS place,
               count(*) OVER (PARTITION BY u.lane, u.run_at IS NULL OR u.run_at <= moment) AS places
          FROM unnest(ids, owners, kinds, queues, lanes, groups, priorities, run_ats, maxima) WITH ORDINALITY
                   AS u (id, owner, kind, queue, lane, group_key, priority, run_at, max_attempts, ord)
          LEFT JOIN unnest(lane_keys, lane_ids, lane_ends, lane_busy) AS l (lane_key, lane_id, lane_end, busy) ON l.lane_key = u.lane
         WHERE u.id = u.owner
    ), added AS (
        INSERT INTO dalsegno.jobs (id, lane_id, lane_seq, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key, wait_reason)
        SELECT p.id, p.lane_id, CASE WHEN p.due THEN p.lane_end - p.places + p.place - 1 END,
               CASE WHEN p.due THEN moment ELSE p.run_at END, moment, p.priority, p.max_attempts,
               CASE WHEN NOT p.due THEN 'scheduled' WHEN p.lane_id IS NULL OR (p.place = 1 AND NOT p.busy) THEN 'ready' ELSE 'blocked' END,
               p.queue, p.kind, p.group_key, CASE WHEN NOT p.due THEN 'later' END
          FROM placed AS p ORDER BY p.ord
        RETURNING id, queue, kind, state
    ), stored AS (
        INSERT INTO dalsegno.job_payloads (job_id, timeout_secs, payload, headers)
        SELECT u.id, u.timeout_secs, u.payload, u.headers
          FROM unnest(ids, owners, payloads, heads, timeouts) AS u (id, owner, payload, headers, timeout_secs) WHERE u.id = u.owner
    ), counted AS (
        INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
        SELECT a.queue, a.kind, 'enqueue', 'new', a.state, count(*) FROM added AS a GROUP BY a.queue, a.kind, a.state
    )
    SELECT u.ord, u.owner, u.id = u.owner,
           coalesce(a.state, (SELECT j.state FROM dalsegno.jobs AS j WHERE j.id = u.owner),
                    (SELECT 'dead' FROM dalsegno.dead_jobs AS d WHERE d.id = u.owner), 'ended')
      FROM unnest(ids, owners) WITH ORDINALITY AS u (id, owner, ord) LEFT JOIN added AS a ON a.id = u.owner
     ORDER BY u.ord;
END
$body$;
COMMENT ON FUNCTION dalsegno.enqueue_many(jsonb)
    IS 'Puts an array of jobs on the queue with one statement; the keys of each object are the arguments of dalsegno.enqueue. All or none; an error names the first bad element. Returns one row per element, in order.';

------------------------------------------------------------------------------------------------ what people do
CREATE FUNCTION dalsegno.cancel(job_id bigint, reason text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    gone   dalsegno.jobs;
    runner uuid;
BEGIN
    -- A claim that is just happening makes this wait for a moment and then find nothing to delete.
    DELETE FROM dalsegno.jobs AS j WHERE j.id = job_id AND j.state <> 'running' RETURNING j.* INTO gone;
    IF FOUND THEN
        DELETE FROM dalsegno.job_payloads AS p WHERE p.job_id = cancel.job_id;
        DELETE FROM dalsegno.cancel_requests AS c WHERE c.job_id = cancel.job_id;
        INSERT INTO dalsegno.runs (job_id, lease, lane_id, attempt, outcome, queue, kind, group_key, error)
        VALUES (job_id, -nextval('dalsegno.leases'), gone.lane_id, gone.attempt, 'cancelled', gone.queue, gone.kind, gone.group_key, nullif(reason, ''));
        INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
        VALUES (gone.queue, gone.kind, 'cancel', gone.state, 'cancelled', 1);
        IF gone.lane_seq IS NOT NULL AND gone.state <> 'blocked' THEN
            INSERT INTO dalsegno.lane_sweeps (lane_id) VALUES (gone.lane_id);
            PERFORM dalsegno.promote_lanes(ARRAY[gone.lane_id]);
        END IF;
        RETURN 'cancelled';
    END IF;
    SELECT j.worker_id INTO runner FROM dalsegno.jobs AS j WHERE j.id = job_id;
    IF FOUND THEN
        INSERT INTO dalsegno.cancel_requests AS c (job_id, reason) VALUES (cancel.job_id, coalesce(cancel.reason, ''))
        ON CONFLICT ON CONSTRAINT cancel_requests_pkey DO NOTHING;
        PERFORM pg_notify('dalsegno', format('cancel %s %s', runner, job_id));
        RETURN 'requested';
    END IF;
    RETURN CASE WHEN EXISTS (SELECT FROM dalsegno.dead_jobs AS d WHERE d.id = job_id) THEN 'dead'
                WHEN EXISTS (SELECT FROM dalsegno.runs AS r WHERE r.job_id = cancel.job_id) THEN 'ended'
                ELSE 'unknown' END;
END
$body$;
COMMENT ON FUNCTION dalsegno.cancel(bigint, text) IS 'Cancels a job: at once (cancelled) if it does not run; a running one is asked to stop (requested). dead, ended, unknown: nothing to do.';

CREATE FUNCTION dalsegno.apply_cancel_requests(max_jobs integer DEFAULT 500) RETURNS integer LANGUAGE plpgsql AS $body$
DECLARE
    request record;
    done    integer := 0;
BEGIN
    FOR request IN
        SELECT c.job_id, c.reason, j.id IS NULL AS gone
          FROM dalsegno.cancel_requests AS c LEFT JOIN dalsegno.jobs AS j ON j.id = c.job_id
         WHERE j.id IS NULL OR j.state <> 'running'
         ORDER BY c.job_id LIMIT max_jobs FOR UPDATE OF c SKIP LOCKED
    LOOP
        IF request.gone THEN
            DELETE FROM dalsegno.cancel_requests AS c WHERE c.job_id = request.job_id;
        ELSE
            PERFORM dalsegno.cancel(request.job_id, request.reason);
        END IF;
        done := done + 1;
    END LOOP;
    RETURN done;
END
$body$;
COMMENT ON FUNCTION dalsegno.apply_cancel_requests(integer) IS 'For jobs that stopped running before their worker saw the request: cancels those that wait to run again, forgets the request of those that ended.';

CREATE FUNCTION dalsegno.hold_lane(lane text, reason text) RETURNS boolean LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    target bigint;
BEGIN
    IF coalesce(btrim(reason), '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = 'DS400', MESSAGE = 'cannot hold the lane: no reason given', HINT = 'Say why, for whoever finds it held.';
    END IF;
    UPDATE dalsegno.lanes AS l SET hold_reason = reason, held_at = clock_timestamp() WHERE l.key = lane RETURNING l.id INTO target;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH back AS (
        UPDATE dalsegno.jobs AS j SET state = 'blocked' WHERE j.lane_id = target AND j.state = 'ready' RETURNING j.queue, j.kind
    )
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT b.queue, b.kind, 'hold', 'ready', 'blocked', 1 FROM back AS b;
    RETURN true;
END
$body$;
COMMENT ON FUNCTION dalsegno.hold_lane(text, text) IS 'Stops a lane after its running job. Its ready job steps back into the line. Waits for transactions that enqueue into this lane. false: no such lane.';

CREATE FUNCTION dalsegno.release_lane(lane text) RETURNS boolean LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    target bigint;
    gone   dalsegno.jobs;
BEGIN
    UPDATE dalsegno.lanes AS l SET hold_reason = NULL, held_at = NULL WHERE l.key = lane RETURNING l.id INTO target;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM dalsegno.jobs AS j WHERE j.lane_id = target AND j.state = 'held' AND j.hold_by = 'failure' RETURNING j.* INTO gone;
    IF FOUND THEN
        WITH payload AS (
            DELETE FROM dalsegno.job_payloads AS p WHERE p.job_id = gone.id RETURNING p.payload, p.headers, p.timeout_secs
        )
        INSERT INTO dalsegno.dead_jobs (id, lane_seq, enqueued_at, lease, timeout_secs, priority, attempt, max_attempts, crash_count,
                                        queue, kind, lane_key, group_key, reason, error, payload, headers)
        SELECT gone.id, gone.lane_seq, gone.enqueued_at, coalesce((SELECT max(r.lease) FROM dalsegno.runs AS r WHERE r.job_id = gone.id), 0), p.timeout_secs,
               gone.priority, gone.attempt, gone.max_attempts, gone.crash_count, gone.queue, gone.kind, lane, gone.group_key, 'failed', gone.hold_reason, p.payload, p.headers
          FROM payload AS p;
        INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) VALUES (gone.queue, gone.kind, 'release', 'held', 'dead', 1);
    END IF;
    PERFORM dalsegno.promote_lanes(ARRAY[target]);
    RETURN true;
END
$body$;
COMMENT ON FUNCTION dalsegno.release_lane(text) IS 'Lets a held lane go on with its next job; a failed head that held it becomes a dead letter. false: no such lane.';

CREATE FUNCTION dalsegno.set_lane_policy(lane text, on_failure text) RETURNS void LANGUAGE sql AS $body$
    INSERT INTO dalsegno.lanes AS l (key, on_failure) VALUES (lane, set_lane_policy.on_failure)
    ON CONFLICT ON CONSTRAINT lanes_key_unique DO UPDATE SET on_failure = excluded.on_failure
$body$;
COMMENT ON FUNCTION dalsegno.set_lane_policy(text, text) IS 'What a dead head does to this lane: continue or hold. A handler''s own policy "hold" wins.';

CREATE FUNCTION dalsegno.hold_job(job_id bigint, reason text) RETURNS text LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    was record;
BEGIN
    IF coalesce(btrim(reason), '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = 'DS400', MESSAGE = 'cannot hold the job: no reason given', HINT = 'Say why, for whoever finds it held.';
    END IF;
    SELECT j.state, j.queue, j.kind INTO was FROM dalsegno.jobs AS j WHERE j.id = job_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'DS404', MESSAGE = format('job %s is not on the queue', job_id), HINT = 'It has ended, is a dead letter, or never was.';
    ELSIF was.state = 'running' THEN
        RAISE EXCEPTION USING ERRCODE = 'DS409', MESSAGE = format('job %s is running', job_id), HINT = 'Cancel it, or hold its lane.';
    ELSIF was.state = 'held' THEN
        RETURN 'held';
    END IF;
    UPDATE dalsegno.jobs AS j SET hold_reason = reason, hold_by = 'person', state = CASE j.state WHEN 'ready' THEN 'held' ELSE j.state END WHERE j.id = job_id;
    IF was.state = 'ready' THEN
        INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) VALUES (was.queue, was.kind, 'hold', 'ready', 'held', 1);
        RETURN 'held';
    END IF;
    RETURN was.state;
END
$body$;
COMMENT ON FUNCTION dalsegno.hold_job(bigint, text) IS 'Holds a job for a person: at once if it is ready, else when its turn comes. A held head holds up its lane. Returns the state it is in now.';

CREATE FUNCTION dalsegno.release_job(job_id bigint) RETURNS text LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    was  record;
    next text;
BEGIN
    SELECT j.state, j.queue, j.kind, j.lane_id, j.hold_by INTO was FROM dalsegno.jobs AS j WHERE j.id = job_id AND j.hold_reason IS NOT NULL FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'DS404', MESSAGE = format('job %s is not held', job_id), HINT = 'Look at it with job show; its lane may be held instead.';
    END IF;
    -- A member of a lane steps back to the front of the line; the line decides, under the lock of the lane, whether it may go.
    next := CASE WHEN was.state <> 'held' THEN was.state WHEN was.lane_id IS NULL THEN 'ready' ELSE 'blocked' END;
    UPDATE dalsegno.jobs AS j
       SET hold_reason = NULL, hold_by = NULL, state = next,
           run_at      = CASE WHEN was.state = 'held' THEN clock_timestamp() ELSE j.run_at END,
           attempt     = CASE WHEN was.hold_by = 'failure' THEN 0 ELSE j.attempt END,
           crash_count = CASE WHEN was.hold_by = 'failure' THEN 0 ELSE j.crash_count END
     WHERE j.id = job_id;
    IF was.state = 'held' THEN
        INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) VALUES (was.queue, was.kind, 'release', 'held', next, 1);
    END IF;
    IF next = 'blocked' THEN
        INSERT INTO dalsegno.lane_sweeps (lane_id) VALUES (was.lane_id);
        PERFORM dalsegno.promote_lanes(ARRAY[was.lane_id]);
    END IF;
    RETURN (SELECT j.state FROM dalsegno.jobs AS j WHERE j.id = job_id);
END
$body$;
COMMENT ON FUNCTION dalsegno.release_job(bigint) IS 'Lets a held job go on; one that was held because it failed starts with fresh attempts. Returns its new state.';

CREATE FUNCTION dalsegno.retry(job_id bigint) RETURNS text LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    dead  dalsegno.dead_jobs;
    now_  dalsegno.jobs;
    place record;
BEGIN
    DELETE FROM dalsegno.dead_jobs AS d WHERE d.id = job_id RETURNING d.* INTO dead;
    IF FOUND THEN
        IF dead.lane_key IS NOT NULL THEN
            INSERT INTO dalsegno.lanes AS l (key, next_seq) VALUES (dead.lane_key, 2)
            ON CONFLICT ON CONSTRAINT lanes_key_unique DO UPDATE SET next_seq = l.next_seq + 1, used_at = clock_timestamp()
            RETURNING l.id, l.next_seq - 1 AS seq INTO place;
            INSERT INTO dalsegno.jobs (id, lane_id, lane_seq, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key)
            VALUES (job_id, place.id, place.seq, clock_timestamp(), dead.enqueued_at, dead.priority, dead.max_attempts, 'blocked', dead.queue, dead.kind, dead.group_key);
        ELSE
            INSERT INTO dalsegno.jobs (id, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key)
            VALUES (job_id, clock_timestamp(), dead.enqueued_at, dead.priority, dead.max_attempts, 'ready', dead.queue, dead.kind, dead.group_key);
        END IF;
        INSERT INTO dalsegno.job_payloads (job_id, timeout_secs, payload, headers) VALUES (job_id, dead.timeout_secs, dead.payload, dead.headers);
        -- Whoever asked to cancel the run that died did not mean this one.
        DELETE FROM dalsegno.cancel_requests AS c WHERE c.job_id = retry.job_id;
        INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
        VALUES (dead.queue, dead.kind, 'redrive', 'dead', CASE WHEN dead.lane_key IS NULL THEN 'ready' ELSE 'blocked' END, 1);
        IF dead.lane_key IS NOT NULL THEN
            PERFORM dalsegno.promote_lanes(ARRAY[place.id]);
        END IF;
        RETURN (SELECT j.state FROM dalsegno.jobs AS j WHERE j.id = job_id);
    END IF;

    SELECT * INTO now_ FROM dalsegno.jobs AS j WHERE j.id = job_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'DS404', MESSAGE = format('job %s is neither on the queue nor a dead letter', job_id), HINT = 'It has ended; enqueue a new one.';
    ELSIF now_.state = 'held' AND now_.hold_by = 'failure' THEN
        RETURN dalsegno.release_job(job_id);
    ELSIF now_.state = 'scheduled' THEN
        UPDATE dalsegno.jobs AS j SET run_at = clock_timestamp() WHERE j.id = job_id;
        PERFORM dalsegno.promote_due();
        RETURN (SELECT j.state FROM dalsegno.jobs AS j WHERE j.id = job_id);
    END IF;
    RETURN now_.state;
END
$body$;
COMMENT ON FUNCTION dalsegno.retry(bigint) IS 'Runs a dead, failed-and-held or waiting job again: dead letters with fresh attempts, at the end of their lane because the lane has gone on; scheduled jobs at once. Returns the new state.';

CREATE FUNCTION dalsegno.pause(scope text, name text, reason text DEFAULT '') RETURNS void LANGUAGE sql AS $body$
    INSERT INTO dalsegno.pauses (scope, name, reason) VALUES (pause.scope, pause.name, coalesce(pause.reason, ''))
    ON CONFLICT ON CONSTRAINT pauses_pkey DO UPDATE SET reason = excluded.reason
$body$;
COMMENT ON FUNCTION dalsegno.pause(text, text, text) IS 'pause(''queue'' or ''group'', name, reason): nothing more is claimed from it; what runs goes on.';

CREATE FUNCTION dalsegno.resume(scope text, name text) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
    was_paused boolean;
BEGIN
    DELETE FROM dalsegno.pauses AS p WHERE p.scope = resume.scope AND p.name = resume.name;
    was_paused := FOUND;
    IF was_paused THEN
        PERFORM pg_notify('dalsegno', CASE WHEN resume.scope = 'queue' THEN 'ready ' || resume.name ELSE 'ready *' END);
    END IF;
    RETURN was_paused;
END
$body$;
COMMENT ON FUNCTION dalsegno.resume(text, text) IS 'Ends a pause and wakes the workers. false: it was not paused.';

------------------------------------------------------------------------------------------------ remaining columns
COMMENT ON COLUMN dalsegno.lanes.created_at IS 'When the lane was first used or given a policy.';
COMMENT ON COLUMN dalsegno.runs.lane_id IS 'The lane of the job; the lane may be gone.';
COMMENT ON COLUMN dalsegno.runs.queue IS 'As in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.runs.kind IS 'As in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.runs.group_key IS 'As in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.dead_jobs.enqueued_at IS 'When it was first put on the queue; kept through a retry.';
COMMENT ON COLUMN dalsegno.dead_jobs.timeout_secs IS 'As in dalsegno.job_payloads.';
COMMENT ON COLUMN dalsegno.dead_jobs.priority IS 'As in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.dead_jobs.attempt IS 'The attempt it died in; a retry starts at 0.';
COMMENT ON COLUMN dalsegno.dead_jobs.max_attempts IS 'As in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.dead_jobs.crash_count IS 'Workers lost in a row when it died; a retry starts at 0.';
COMMENT ON COLUMN dalsegno.dead_jobs.queue IS 'As in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.dead_jobs.kind IS 'As in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.dead_jobs.lane_key IS 'Name of its lane; the row of the lane may have been purged since.';
COMMENT ON COLUMN dalsegno.dead_jobs.group_key IS 'As in dalsegno.jobs.';
COMMENT ON COLUMN dalsegno.dead_jobs.payload IS 'As in dalsegno.job_payloads.';
COMMENT ON COLUMN dalsegno.dead_jobs.headers IS 'As in dalsegno.job_payloads.';
COMMENT ON COLUMN dalsegno.workers.started_at IS 'When the process registered.';
COMMENT ON COLUMN dalsegno.workers.pid IS 'Process id on its host, for people.';
COMMENT ON COLUMN dalsegno.workers.host IS 'Where it runs, for people.';
COMMENT ON COLUMN dalsegno.workers.version IS 'What it is, for people.';
COMMENT ON COLUMN dalsegno.transition_deltas.queue IS 'Queue of the jobs that changed.';
COMMENT ON COLUMN dalsegno.transition_deltas.kind IS 'Kind of the jobs that changed.';
COMMENT ON COLUMN dalsegno.transition_totals.queue IS 'As in dalsegno.transition_deltas.';
COMMENT ON COLUMN dalsegno.transition_totals.kind IS 'As in dalsegno.transition_deltas.';
COMMENT ON COLUMN dalsegno.transition_totals.event IS 'As in dalsegno.transition_deltas.';
COMMENT ON COLUMN dalsegno.transition_totals.from_state IS 'As in dalsegno.transition_deltas.';
COMMENT ON COLUMN dalsegno.transition_totals.to_state IS 'As in dalsegno.transition_deltas.';
