-- The audit log: each change with its author, written in the transaction of the change, so that neither exists without the other.
-- Adding a task writes no line: there are thousands a second, and the task itself names its author.

create table dalsegno.audit (
  id bigint generated always as identity constraint audit_pkey primary key,
  at timestamptz not null,
  actor_id uuid,
  actor_kind text not null
    constraint audit_actor_kind_known check (actor_kind in ('key', 'admin_key', 'cli', 'system', 'anonymous', 'agent')),
  actor text not null constraint audit_actor_length check (char_length(actor) <= 200),
  action text collate "C" not null constraint audit_action_form check (action ~ '^[a-z_]+[.][a-z_]+$'),
  subject_kind text collate "C" not null,
  subject text collate "C" not null constraint audit_subject_length check (char_length(subject) <= 300),
  peer text,
  data jsonb not null default '{}' constraint audit_data_length check (octet_length(data::text) <= 8192)
);
comment on table dalsegno.audit is
  'The audit log: each change with its author, append-only; removed by retention. No prompt, no answer and no secret is in it.';
comment on column dalsegno.audit.id is 'In the order in which the lines were written, which is about that of the commits.';
comment on column dalsegno.audit.at is 'Time of the change, by the clock of its author.';
comment on column dalsegno.audit.actor_id is 'The key, if one was shown that is in api_keys.';
comment on column dalsegno.audit.actor_kind is
  'key: a key of api_keys; admin_key: the one of the configuration; cli: a person at the command line; anonymous: no authentication was '
  'required; agent: a turn, by a tool.';
comment on column dalsegno.audit.actor is
  'The name of the key, user@host of the command line, or the agent as on the board; empty where there is none.';
comment on column dalsegno.audit.action is 'The change: campaign.create, task.cancel, key.revoke ...';
comment on column dalsegno.audit.subject_kind is 'Kind of the changed thing: the first word of the action.';
comment on column dalsegno.audit.subject is 'Its id or name.';
comment on column dalsegno.audit.peer is 'The address that the request came from; that of the proxy, if there is one.';
comment on column dalsegno.audit.data is 'Further details: the reason that was given, the new limit.';

create index audit_at on dalsegno.audit (at);
create index audit_subject on dalsegno.audit (subject, id);

create trigger audit_append_only before update or delete or truncate on dalsegno.audit
  for each statement execute function dalsegno.refuse_change();
