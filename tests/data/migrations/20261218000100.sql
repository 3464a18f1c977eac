insert into dalsegno.context_texts (kind, sha256, content) values ('agent_prompt', sha256('You write.'), 'You write.');
insert into dalsegno.context_text_uses (session_id, sha256)
select id, sha256('You write.') from dalsegno.sessions order by id limit 1;
