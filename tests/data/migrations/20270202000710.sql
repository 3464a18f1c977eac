-- The open sessions with a credential, for the index.
select provider, credential from dalsegno.sessions where credential is not null and closed_at is null;
