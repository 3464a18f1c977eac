-- Idempotency keys of operations (operation_keys): the output of each change that a caller has made under a key, so that the same call
-- again is answered with it. Tasks and posts have keys of their own.

create table dalsegno.operation_keys (
  caller text collate "C" not null,
  operation text collate "C" not null,
  key text collate "C" not null constraint operation_keys_key_length check (char_length(key) between 1 and 195),
  input_sha256 bytea not null constraint operation_keys_input_length check (octet_length(input_sha256) = 32),
  created_at timestamptz not null,
  subject text not null default '',
  output jsonb,
  constraint operation_keys_pkey primary key (caller, operation, key)
);
comment on table dalsegno.operation_keys is
  'Outputs of changes that were made under an idempotency key. The nightly cleanup removes them, and an erasure those of its campaign.';
comment on column dalsegno.operation_keys.caller is 'The name of the API key, see caller_of. Everything without one is one caller.';
comment on column dalsegno.operation_keys.operation is 'The id of the operation.';
comment on column dalsegno.operation_keys.key is 'As the caller chose it.';
comment on column dalsegno.operation_keys.input_sha256 is 'SHA-256 of the input: another input under the same key is a conflict.';
comment on column dalsegno.operation_keys.created_at is 'Start of the retention.';
comment on column dalsegno.operation_keys.subject is 'The subject of its line in the audit log, by which an erasure finds it.';
comment on column dalsegno.operation_keys.output is 'The output. NULL only in the transaction that makes the change.';

create index operation_keys_by_age on dalsegno.operation_keys (created_at);
create index operation_keys_by_subject on dalsegno.operation_keys (subject);
