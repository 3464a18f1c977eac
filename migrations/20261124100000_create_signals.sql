-- Jobs that wait for a signal: scheduled without a moment of their own, until the application says that they may run.
--
-- Such a job is one for `later` in everything but its moment: it has no slot, no place in its lane, and holds nobody up. To a
-- binary that does not know the reason it is a job for a year in which nobody will look any more.
--
-- Nothing here waits for a lock: whoever signals does so while it ends something else, and must not wait for a person who is
-- about to cancel the job, nor for an application that has added to its lane and not committed.

-- Not validated: what is wider than before holds for everything that is there.
alter domain dalsegno.wait_reason drop constraint wait_reason_known;
alter domain dalsegno.wait_reason add constraint wait_reason_known
  check (value in ('later', 'retry', 'snooze', 'crash', 'signal')) not valid;
comment on column dalsegno.jobs.wait_reason is
  'Why a scheduled job waits: later (asked for), retry, snooze, crash, signal (until the application says that it may run).';
comment on column dalsegno.jobs.lane_seq is
  'Place in the lane, in commit order. NULL with a lane: scheduled for later or until a signal, takes its place then.';

create function dalsegno.never() returns timestamptz language sql immutable parallel safe as $body$
  -- No infinity: few drivers can read one.
  select timestamptz '9999-12-31 00:00:00+00'
$body$;
comment on function dalsegno.never() is 'When a job is due that waits for a signal.';

create function dalsegno.await_signal(job_ids bigint[]) returns integer language plpgsql as $body$
declare
  n_jobs integer;
begin
  update dalsegno.jobs as j set wait_reason = 'signal', run_at = dalsegno.never()
   where j.id = any (job_ids) and j.state = 'scheduled' and j.wait_reason = 'later';
  get diagnostics n_jobs = row_count;
  return n_jobs;
end
$body$;
comment on function dalsegno.await_signal(bigint[]) is
  'Has jobs that were just enqueued for dalsegno.never() wait for dalsegno.signal() instead of a moment. Returns how many wait.';

create function dalsegno.signal(job_ids bigint[], not_before timestamptz default null) returns integer language plpgsql as $body$
declare
  moment timestamptz := greatest(not_before, clock_timestamp());
  told bigint[];
begin
  told := array(select j.id from dalsegno.jobs as j where j.id = any (job_ids) and j.wait_reason = 'signal'
                 order by j.id for update skip locked);
  if told = '{}' then
    return 0;
  end if;
  update dalsegno.jobs as j set wait_reason = 'later', run_at = moment where j.id = any (told);
  if not_before is null or not_before <= clock_timestamp() then
    -- A lane that is busy takes them with the next look of upkeep.
    perform dalsegno.promote_due();
  end if;
  return cardinality(told);
end
$body$;
comment on function dalsegno.signal(bigint[], timestamptz) is
  'Lets jobs that wait for a signal run, not before the given moment. Passes over those that somebody else has locked. Returns how many were told.';
