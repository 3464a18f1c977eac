-- The feed tells when a flow has ended, whichever of its tasks is the last one and whoever ends it.
--
-- At the commit, when nothing of the transaction changes any more. Race: two tasks of a flow end at once, and each transaction
-- sees the other's as open. So one after the other looks, under a lock that goes with the commit: the second one sees both.
-- It is no row's lock, because those who signal waiting tasks share the row of the flow, and could not both raise that.
--
-- An older binary ends tasks by the same statements, and so has nothing to know of this.
create function dalsegno.tell_end_of_flow() returns trigger language plpgsql as $body$
declare
  told text := coalesce(current_setting('dalsegno.told_flows', true), '');
begin
  -- Several of its tasks may end in one transaction.
  if position(new.flow_id::text in told) > 0 then
    return null;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('dalsegno flow ' || new.flow_id, 0));
  insert into dalsegno.feed (created_at, campaign_id, kind, data)
  select coalesce(f.ended_at, new.ended_at), f.campaign_id, 'flow.ended',
         jsonb_build_object('flow_id', f.id, 'template', f.template, 'state', f.state, 'done', f.done, 'failed', f.failed,
                            'cancelled', f.cancelled)
    from dalsegno.flow_states as f where f.id = new.flow_id and f.open = 0;
  if found then
    perform set_config('dalsegno.told_flows', told || ' ' || new.flow_id, true);
  end if;
  return null;
end
$body$;
comment on function dalsegno.tell_end_of_flow() is 'Writes flow.ended into the feed when the last task of a flow ends.';

create constraint trigger tasks_end_flow after update on dalsegno.tasks
  deferrable initially deferred for each row
  when (new.flow_id is not null and old.ended_at is null and new.ended_at is not null)
  execute function dalsegno.tell_end_of_flow();
