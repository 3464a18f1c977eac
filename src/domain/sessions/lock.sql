-- The session by its id, locked. $1 uuid
select id, campaign_id, agent_type as agent, instance, provider, model, external_session_id, prompt_hash,
       state as "state: State", ephemeral, opened_by_task, opened_because as "opened_because: Reason",
       rebuild_because as "rebuild_because: Reason", expires_at, lease, turn_count, last_seq, generation, context_tokens,
       token_count, board_cursor, fence_seed, calibration, checkpoint, compaction_breaker,
       head, head_seq, head_generation, meter, login, rejected_turns
  from dalsegno.sessions
 where id = $1
   for no key update
