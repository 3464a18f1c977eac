-- Events of the feed name the agent instance that they are about, so that a reader can follow one agent.
--
-- Adds: agent and instance of events, and a trigger that fills them. Events from before have none. The next two migrations add indexes.

alter table dalsegno.feed add column agent text, add column instance text;
comment on column dalsegno.feed.agent is 'The agent that the event is about. NULL: none, or the event is older than this column.';
comment on column dalsegno.feed.instance is 'Its instance. NULL: all instances of the agent.';

create function dalsegno.name_agent_of_event() returns trigger language plpgsql as $body$
declare
  named text := new.data ->> 'agent';
begin
  if named is not null then
    -- A name on the board has the instance after a slash.
    new.agent := split_part(named, '/', 1);
    new.instance := coalesce(new.data ->> 'instance', nullif(split_part(named, '/', 2), ''));
    return new;
  end if;
  if new.task_id is not null then
    select t.agent, t.instance into new.agent, new.instance from dalsegno.tasks as t where t.id = new.task_id;
  end if;
  if new.agent is null and new.session_id is not null then
    select s.agent_type, s.instance into new.agent, new.instance from dalsegno.sessions as s where s.id = new.session_id;
  end if;
  return new;
end
$body$;
comment on function dalsegno.name_agent_of_event() is
  'Fills agent and instance of an event: from its data, from its task, or from its session.';

create trigger feed_name_agent before insert on dalsegno.feed
  for each row when (new.agent is null and (new.task_id is not null or new.session_id is not null or new.data ? 'agent'))
  execute function dalsegno.name_agent_of_event();
