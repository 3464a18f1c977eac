-- The feed: the live log of what happens in campaigns.

create table dalsegno.feed (
  -- In front of id: a row draws its transaction number before its id, and readers rely on that order.
  written_by xid8 not null default pg_current_xact_id(),
  id bigint generated always as identity constraint feed_pkey primary key,
  created_at timestamptz not null,
  campaign_id uuid,
  task_id uuid,
  session_id uuid,
  kind text not null constraint feed_kind_length check (char_length(kind) between 1 and 60),
  data jsonb not null default '{}'
);
comment on table dalsegno.feed is
  'The operator''s log of what happened. Not the transcript: of an answer it has at most previews while it was written, of a prompt '
  'nothing.';
comment on column dalsegno.feed.written_by is
  'The transaction. Ids of transactions that are still open can be missing below an id that is already visible.';

create index feed_by_campaign on dalsegno.feed (campaign_id, id) where campaign_id is not null;
-- A follower of a task looks several times a second: at its own events, not at those of the whole campaign.
create index feed_by_task on dalsegno.feed (task_id, id) where task_id is not null;
comment on index dalsegno.feed_by_task is 'Followers of one task.';

create trigger feed_append_only before update or delete or truncate on dalsegno.feed
  for each statement execute function dalsegno.refuse_change();
