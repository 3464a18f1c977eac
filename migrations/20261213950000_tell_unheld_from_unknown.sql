-- A job that is there and not held is a conflict (DS409), and no unknown job (DS404).
CREATE OR REPLACE FUNCTION dalsegno.release_job(job_id bigint) RETURNS text LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    was  record;
    next text;
BEGIN
    SELECT j.state, j.queue, j.kind, j.lane_id, j.hold_by, j.hold_reason INTO was FROM dalsegno.jobs AS j WHERE j.id = job_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'DS404', MESSAGE = format('job %s is not on the queue', job_id), HINT = 'It has ended, is a dead letter, or never was.';
    ELSIF was.hold_reason IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'DS409', MESSAGE = format('job %s is not held', job_id), HINT = 'Look at it with job show; its lane may be held instead.';
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
