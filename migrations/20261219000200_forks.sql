-- Forks: sessions that begin as another session was after one of its turns.
--
-- Adds: sessions.forked_from_session, sessions.forked_at_turn, turns.board_cursor. Replaces: check_opened.

alter table dalsegno.sessions add column forked_from_session uuid, add column forked_at_turn integer;
comment on column dalsegno.sessions.forked_from_session is
  'The session whose messages a fork began with. It may be gone: a fork has copies. NULL: the session is no fork.';
comment on column dalsegno.sessions.forked_at_turn is 'The last turn of that session of which the fork has messages.';

alter table dalsegno.turns add column board_cursor bigint;
comment on column dalsegno.turns.board_cursor is
  'The last post that the session had seen when the turn ended. NULL: it runs, or an older version has ended it.';

create or replace function dalsegno.check_opened() returns trigger language plpgsql as $body$
declare
  broken text := case
    when new.agent_type !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then 'sessions_agent_form'
    when new.instance !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then 'sessions_instance_form'
    when char_length(new.provider) not between 1 and 50 then 'sessions_provider_length'
    when new.model = '' then 'sessions_model_not_empty'
    when new.prompt_hash !~ '^[0-9a-f]{64}$' then 'sessions_prompt_hash_form'
    when new.opened_because not in
      ('new', 'prompt_changed', 'model_changed', 'provider_changed', 'context_full', 'expired', 'reset', 'lost', 'poisoned', 'fresh')
      then 'sessions_opened_because_known'
    when octet_length(new.fence_seed) <> 32 then 'sessions_fence_seed_length'
    when (new.forked_from_session is null) <> (new.forked_at_turn is null) then 'sessions_fork_complete'
  end;
begin
  if broken is not null then
    raise check_violation using constraint = broken, schema = tg_table_schema, table = tg_table_name,
      message = format('new row for relation "sessions" violates check constraint "%s"', broken);
  end if;
  return null;
end
$body$;
