-- The archive of a board: its oldest posts, which turns no longer show. They stay in dalsegno.posts, in their places, and people read them as before.
--
-- Adds: the end of the archive on each board, board_archives, the number of archived posts in the record of a cleanup.

alter table dalsegno.boards add column archived_seq bigint not null default 0, add column archived_at timestamptz;
alter table dalsegno.boards add constraint boards_archive_fits check (archived_seq between 0 and last_seq);
comment on column dalsegno.boards.archived_seq is 'The last place of the archive. 0: nothing was archived.';
comment on column dalsegno.boards.archived_at is 'When that last changed.';

create table dalsegno.board_archives (
  campaign_id uuid not null constraint board_archives_campaign references dalsegno.campaigns (id),
  viewer text collate "C" not null,
  sender text not null,
  n_posts bigint not null constraint board_archives_n_posts_positive check (n_posts > 0),
  first_at timestamptz not null,
  last_at timestamptz not null,
  constraint board_archives_pkey primary key (campaign_id, viewer, sender)
);
comment on table dalsegno.board_archives is
  'Who wrote how many archived posts, and when, for each of their readers: the summary of the archive, without a text.';
comment on column dalsegno.board_archives.viewer is
  'A reader name, all for posts that every agent sees, or operator for all posts together. A reader sees its own rows and those of all.';

alter table dalsegno.cleanup_runs add column posts_archived bigint not null default 0;
comment on column dalsegno.cleanup_runs.posts_archived is 'Posts of boards that were archived because of their age or number.';
