-- Sign-ins to the console: a browser that has exchanged an API key for a cookie.

create table dalsegno.sign_ins (
  id uuid not null constraint sign_ins_pkey primary key,
  created_at timestamptz not null,
  expires_at timestamptz not null constraint sign_ins_have_time check (expires_at > created_at),
  ended_at timestamptz,
  key_id uuid constraint sign_ins_key references dalsegno.api_keys (id) on delete cascade,
  admin_key_sha256 bytea constraint sign_ins_admin_key_length check (octet_length(admin_key_sha256) = 32),
  sha256 bytea not null
    constraint sign_ins_sha256_unique unique
    constraint sign_ins_sha256_length check (octet_length(sha256) = 32),
  peer text constraint sign_ins_peer_length check (char_length(peer) between 1 and 100),
  browser text constraint sign_ins_browser_length check (char_length(browser) between 1 and 300),
  constraint sign_ins_one_key check ((key_id is null) <> (admin_key_sha256 is null))
);
comment on table dalsegno.sign_ins is 'Browsers that have exchanged an API key for a cookie. A sign-in has the scopes of its key, and ends with it.';
comment on column dalsegno.sign_ins.id is 'The id, version 7.';
comment on column dalsegno.sign_ins.created_at is 'Time of the sign-in.';
comment on column dalsegno.sign_ins.expires_at is 'End of its lifetime, at most that of its key.';
comment on column dalsegno.sign_ins.ended_at is 'Time at which the person or an administrator ended it. NULL: not ended.';
comment on column dalsegno.sign_ins.key_id is 'The API key that was exchanged. NULL: the key of the configuration.';
comment on column dalsegno.sign_ins.admin_key_sha256 is 'SHA-256 of the key of the configuration. The sign-in ends when that key changes.';
comment on column dalsegno.sign_ins.sha256 is 'SHA-256 of the cookie, which has 256 random bits.';
comment on column dalsegno.sign_ins.peer is 'The address that signed in.';
comment on column dalsegno.sign_ins.browser is 'The name that the browser gave, shortened.';

create index sign_ins_by_key on dalsegno.sign_ins (key_id);
create index sign_ins_by_end on dalsegno.sign_ins (expires_at);
