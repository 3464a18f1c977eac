-- Stores the progress of a running turn: its output so far, in place of the stored one, and events of the feed.
-- $1 session · $2 turn · $3 lease · $4 now · the output, or NULL: $5 weight, $6 digest, $7 text · $8 list of events
-- Result: false, and nothing is written, unless the turn runs under this lease.
--
-- The turn's row is locked, so the write happens before the turn is ended, or not at all.
with turn as (
    select t.session_id, t.number from dalsegno.turns as t
     where t.session_id = $1 and t.number = $2 and t.lease = $3 and t.state = 'running' for share
), output as (
    insert into dalsegno.partial_outputs as p (session_id, written_at, weight, turn, digest, text)
    select turn.session_id, $4, $5, turn.number, $6, $7::text from turn where $7::text is not null
        on conflict (session_id) do update
       set written_at = excluded.written_at, weight = excluded.weight, turn = excluded.turn, digest = excluded.digest, text = excluded.text
     where p.turn <= excluded.turn
), events as (
    insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
    select $4, e.campaign_id, e.task_id, e.session_id, e.kind, e.data
      from turn, jsonb_to_recordset($8) as e (
             place integer, campaign_id uuid, task_id uuid, session_id uuid, kind text, data jsonb)
     order by e.place
)
select exists (select from turn) as "is_running!"
