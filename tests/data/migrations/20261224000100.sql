-- Events of a task, of a session, of an instance by its name on the board, and of no agent.
insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
select now(), campaign_id, id, null, 'task.waiting', '{}' from dalsegno.tasks order by id limit 1;
insert into dalsegno.feed (created_at, campaign_id, session_id, kind, data)
select now(), campaign_id, id, 'session.compacted', '{}' from dalsegno.sessions order by id limit 1;
insert into dalsegno.feed (created_at, kind, data) values (now(), 'blackboard.changed', '{"agent": "curator/2"}'), (now(), 'flow.started', '{}');
