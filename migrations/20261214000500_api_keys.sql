-- API keys: other systems and people show them to the API. The stored part finds a key and recognises it, and cannot reproduce it.

create table dalsegno.api_keys (
  id uuid not null constraint api_keys_pkey primary key,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  replaced_by uuid constraint api_keys_successor references dalsegno.api_keys (id) deferrable initially deferred,
  handle text collate "C" not null
    constraint api_keys_handle_unique unique
    constraint api_keys_handle_form check (handle ~ '^[0-9a-f]{12}$'),
  name text collate "C" not null constraint api_keys_name_form check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
  created_by text not null constraint api_keys_created_by_length check (char_length(created_by) between 1 and 300),
  scopes text[] not null
    constraint api_keys_scopes_known
      check (cardinality(scopes) > 0 and scopes <@ array['read', 'enqueue', 'operate', 'admin', 'mcp']),
  sha256 bytea not null constraint api_keys_sha256_length check (octet_length(sha256) = 32),
  campaigns uuid[] constraint api_keys_campaigns_number check (cardinality(campaigns) between 1 and 100)
);
comment on table dalsegno.api_keys is 'Keys of the API. The text of a key is shown once, when it is made, and is nowhere here.';
comment on column dalsegno.api_keys.id is 'The id, version 7.';
comment on column dalsegno.api_keys.created_at is 'When it was made.';
comment on column dalsegno.api_keys.expires_at is 'From when on it is refused; NULL: never.';
comment on column dalsegno.api_keys.revoked_at is 'Since when it is refused because it was revoked.';
comment on column dalsegno.api_keys.last_used_at is 'When it was last used, up to a minute late. NULL: not yet.';
comment on column dalsegno.api_keys.replaced_by is 'The key that a rotation made in its place; both hold until this one expires.';
comment on column dalsegno.api_keys.handle is 'The middle part of its text: finds it, and proves nothing.';
comment on column dalsegno.api_keys.name is 'Name of its holder. A successor has the same.';
comment on column dalsegno.api_keys.created_by is 'Its author, written as in the audit log.';
comment on column dalsegno.api_keys.scopes is 'Its scopes: read, enqueue, operate, admin, mcp.';
comment on column dalsegno.api_keys.sha256 is 'SHA-256 of its text. Enough for a text with 256 bits of chance in it.';
comment on column dalsegno.api_keys.campaigns is 'The campaigns that it is bound to. NULL: all.';

-- Of all keys of one name, one is the latest: the one that is rotated next.
create unique index api_keys_latest on dalsegno.api_keys (name) where revoked_at is null and replaced_by is null;

create function dalsegno.caller_of(added_by text)
  returns text language sql immutable parallel safe as $body$
  select coalesce(substring(added_by from '^key:([A-Za-z0-9][A-Za-z0-9._-]*):[0-9a-f]{12}$'), '')
$body$;
comment on function dalsegno.caller_of(text) is
$comment$The caller that a label of the audit log names: the name of an API key, which a rotation does not change. Everything without an API
key is one caller, whose name is empty: SQL, the command line, loopback, the key of the configuration, agents.$comment$;
