-- Flows: tasks that were made together from a template, each waiting for those before it.
--
-- The state of a flow follows from its tasks. A step that is tried again has a new task at its place; the latest one counts.
-- A flow that is paused lets nothing begin: jobs that have not begun wait for a signal, and no signal is given. The functions that
-- pause and resume are in the next file, with the waits.

create table dalsegno.flows (
  id uuid not null constraint flows_pkey primary key,
  campaign_id uuid not null constraint flows_campaign references dalsegno.campaigns (id),
  created_at timestamptz not null,
  paused_at timestamptz,
  template text not null constraint flows_template_form check (template ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  added_by text,
  inputs jsonb not null default '{}' constraint flows_inputs_object check (jsonb_typeof(inputs) = 'object')
);
comment on table dalsegno.flows is 'Tasks that were made together from a template of config/workflows.';
comment on column dalsegno.flows.paused_at is 'Since when nothing of it begins. NULL: it goes on.';
comment on column dalsegno.flows.template is
  'The name of the template. What its file said is in the prompts of the tasks; it may have changed since.';
comment on column dalsegno.flows.added_by is 'Its author, written as in the audit log.';
comment on column dalsegno.flows.inputs is 'Its inputs: texts and lists of texts by name.';

create index flows_by_campaign on dalsegno.flows (campaign_id, id desc);

alter table dalsegno.tasks add constraint tasks_flow foreign key (flow_id) references dalsegno.flows (id);

create view dalsegno.flow_steps as
  select distinct on (t.flow_id, t.step_place)
         t.flow_id, t.step_place as place, t.step, t.id as task_id, t.agent, t.instance, t.state, t.created_at, t.started_at, t.ended_at
    from dalsegno.tasks as t
   where t.flow_id is not null
   order by t.flow_id, t.step_place, t.id desc;
comment on view dalsegno.flow_steps is 'The task that counts at each place of each flow.';

create view dalsegno.flow_states as
  select f.id, f.campaign_id, f.template, f.created_at, f.paused_at, f.added_by, f.inputs,
         case when s.open > 0 and f.paused_at is not null then 'paused'
              when s.open > 0 then 'running'
              when s.failed > 0 then 'failed'
              when s.cancelled > 0 then 'cancelled'
              else 'done' end as state,
         s.tasks, s.done, s.failed, s.cancelled, s.open, s.ended_at
    from dalsegno.flows as f
   cross join lateral (
         select count(*) as tasks,
                count(*) filter (where t.state = 'done') as done,
                count(*) filter (where t.state = 'failed') as failed,
                count(*) filter (where t.state = 'cancelled') as cancelled,
                count(*) filter (where t.ended_at is null) as open,
                case when bool_and(t.ended_at is not null) then max(t.ended_at) end as ended_at
           from dalsegno.flow_steps as t where t.flow_id = f.id) as s;
comment on view dalsegno.flow_states is
  'Flows with their state, which follows from their tasks: running, paused, done, failed, cancelled, and the number of tasks in each '
  'state.';

create function dalsegno.is_flow_paused(flow uuid) returns boolean language sql stable as $body$
  select exists (select from dalsegno.flows as f where f.id = flow and f.paused_at is not null)
$body$;
comment on function dalsegno.is_flow_paused(uuid) is 'True if nothing of a flow begins. NULL is no flow, and not paused.';

----------------------------------------------------------------------------------------------- ends
-- Writes the end of a flow to the feed at the commit, when nothing of the transaction changes any more. Race: two tasks of a flow
-- end at once, and each transaction sees the other's as open. So they look one after the other, under an advisory lock that ends
-- with the commit: the second one sees both ends. It is not a row lock: transactions that signal waiting tasks share the row of
-- the flow, and could not both raise that lock.
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
