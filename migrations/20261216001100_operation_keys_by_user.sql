-- no-transaction
-- Forgetting a user finds the stored outputs about that user without reading the others.
create index concurrently if not exists operation_keys_by_user on dalsegno.operation_keys ((output ->> 'user'))
  where output ->> 'user' is not null;
