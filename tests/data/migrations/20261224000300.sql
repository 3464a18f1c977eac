insert into dalsegno.feed (created_at, kind, data) values (now(), 'agent.paused', '{"agent": "curator"}');
