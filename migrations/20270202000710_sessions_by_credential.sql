-- no-transaction
-- The open sessions of each credential, for the page of workers and `dalsegno doctor`, which count them. They were looked for among all sessions.
--
-- Adds: sessions_by_credential.
create index concurrently if not exists sessions_by_credential on dalsegno.sessions (provider, credential)
  where credential is not null and closed_at is null;
