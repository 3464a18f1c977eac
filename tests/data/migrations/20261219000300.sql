insert into dalsegno.usage_contexts (usage_id, session_id, manifest) select 1, id, '{}' from dalsegno.sessions order by id limit 1;
