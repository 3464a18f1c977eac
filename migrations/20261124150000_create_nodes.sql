-- Nodes: where in the work a session stands, and compactions that fold what was said there.
--
-- An older binary knows nothing of nodes: its tasks have none, its turns leave every session where it stands, and its
-- compactions fold a session as one.
alter table dalsegno.tasks add column node text;
-- Not looked for in what is there: no row can have one yet.
alter table dalsegno.tasks add constraint tasks_node_form check (node ~ '^[a-z0-9][a-z0-9_-]{0,63}$') not valid;
comment on column dalsegno.tasks.node is
  'The node of the work that the task belongs to; its turn enters it. NULL: the task stays where its session stands.';

create table dalsegno.session_nodes (
  -- An older binary removes sessions without knowing of these rows.
  session_id uuid not null constraint session_nodes_session references dalsegno.sessions (id) on delete cascade,
  campaign_id uuid not null,
  task_id uuid not null,
  entered_at timestamptz not null,
  left_at timestamptz,
  first_seq bigint not null,
  last_seq bigint,
  entry_id uuid,
  ordinal integer not null constraint session_nodes_ordinal_positive check (ordinal > 0),
  agent text not null,
  instance text not null,
  node text not null constraint session_nodes_node_form check (node ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  constraint session_nodes_pkey primary key (session_id, ordinal),
  constraint session_nodes_left_complete check ((left_at is null) = (last_seq is null))
);
comment on table dalsegno.session_nodes is
  'The stays of a session at nodes of the work. The one that has not been left is where it stands.';
comment on column dalsegno.session_nodes.session_id is 'Whose stay it is.';
comment on column dalsegno.session_nodes.campaign_id is 'Of the session: all stays of a campaign are its hand-offs.';
comment on column dalsegno.session_nodes.task_id is 'The task whose turn entered the node.';
comment on column dalsegno.session_nodes.first_seq is 'The place of the first message of the turn that entered.';
comment on column dalsegno.session_nodes.last_seq is 'The last place of the transcript when the session went on to another node.';
comment on column dalsegno.session_nodes.entry_id is
  'The message that said what the node asks for. NULL: a successor did not take it over, and its next turn says it again.';
comment on column dalsegno.session_nodes.ordinal is 'Counts the stays of a session. A successor''s first one is that of its predecessor, with the same task and moment.';
comment on column dalsegno.session_nodes.node is 'The name of the node.';
create unique index session_nodes_one_current on dalsegno.session_nodes (session_id) where left_at is null;
create index session_nodes_by_campaign on dalsegno.session_nodes (campaign_id, entered_at);

alter table dalsegno.compactions add column node text, add column flow jsonb;
comment on column dalsegno.compactions.node is 'The node whose exchanges are in the summary; what was folded beside them is not. NULL: the session was at none.';
comment on column dalsegno.compactions.flow is 'Where the work stood: ids, hand-offs, what the node asks for, the message that waited. Stands in front of the summary.';
