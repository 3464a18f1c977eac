insert into dalsegno.feed (created_at, campaign_id, session_id, kind, data)
select now(), campaign_id, id, 'session.reset', '{}' from dalsegno.sessions order by id limit 1;
