-- Comments that no longer said everything: ids of reruns are among those of erased sessions, and a line of the ledger may have an id of the
-- service itself.
--
-- Changes comments only.

comment on table dalsegno.erased_sessions is
  'Names of sessions, and of reruns of their calls, that are gone, so that each host finds the folders that it has of them.';
comment on column dalsegno.erased_sessions.session_id is 'The id of a session, or of a rerun.';
comment on column dalsegno.erased_sessions.external_session_id is
  'The name that the provider gave it, which is also the name of its folder. Of a rerun: its id.';
comment on column dalsegno.usage.provider_message_id is
  'The provider''s own name for its answer; of a call in a batch, and of a call for a summary, facts or a rerun whose provider names none, the id '
  'that the service gave to the call. The same answer is charged once.';
