-- The board of a campaign: posts of people and agents, and who may see which.
--
-- Invariants:
--   * seq is dense, grows within a campaign and is the order of commits: it is given out under the lock of the board's row, so a
--     reader that has seen everything up to a seq never finds a smaller one later;
--   * the readers of a post are settled when it is written, one row per reader, and looked up by the reader's whole name. Names
--     are never compared in part;
--   * posts are append-only: trigger posts_append_only.
--
-- The name of a reader is that of its agent for the instance `main`, and `<agent>/<instance>` otherwise. No name of an agent has a
-- slash in it, so that no instance is taken for an agent.

create table dalsegno.boards (
  campaign_id uuid not null
    constraint boards_pkey primary key
    constraint boards_campaign references dalsegno.campaigns (id),
  last_seq bigint not null constraint boards_last_seq_positive check (last_seq > 0)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
comment on table dalsegno.boards is
  'The last place that was given out on a campaign''s board. There from the first post on; its lock makes seq the order of commits.';

create table dalsegno.posts (
  campaign_id uuid not null constraint posts_campaign references dalsegno.campaigns (id),
  seq bigint not null,
  id uuid not null,
  posted_at timestamptz not null,
  reply_to uuid,
  task_id uuid,
  session_id uuid,
  message_id uuid,
  turn integer,
  origin text not null constraint posts_origin_known check (origin in ('operator', 'agent', 'system')),
  sender text not null constraint posts_sender_length check (char_length(sender) between 1 and 129),
  audience text[] not null constraint posts_audience_size check (cardinality(audience) between 1 and 200),
  text text not null constraint posts_text_length check (octet_length(text) between 1 and 1048576),
  constraint posts_pkey primary key (campaign_id, seq),
  constraint posts_id_unique unique (campaign_id, id),
  constraint posts_reply_to foreign key (campaign_id, reply_to) references dalsegno.posts (campaign_id, id),
  constraint posts_sender_fits_origin check ((origin = 'agent') = (sender not in ('operator', 'system')))
);
comment on table dalsegno.posts is 'Posts on the board of a campaign, append-only.';
comment on column dalsegno.posts.seq is 'Its place on the board: 1, 2, 3 in the order of commits.';
comment on column dalsegno.posts.reply_to is 'The post that it answers, of the same campaign.';
comment on column dalsegno.posts.task_id is 'The task whose turn said it, or that it is about.';
comment on column dalsegno.posts.session_id is 'The session whose turn said it.';
comment on column dalsegno.posts.message_id is
  'The answer in the transcript that it repeats: a session that holds it needs no post of it.';
comment on column dalsegno.posts.turn is 'That turn.';
comment on column dalsegno.posts.origin is 'operator: a person; agent: a turn; system: the service itself.';
comment on column dalsegno.posts.sender is 'operator, system, or the reader name of the agent. From the origin, never from the text.';
comment on column dalsegno.posts.audience is 'The addressees: operator, reader names, or all.';

create index posts_by_reply on dalsegno.posts (campaign_id, reply_to) where reply_to is not null;
-- Asked for each answer that calls other agents: does the agent repeat itself?
create index posts_by_sender on dalsegno.posts (campaign_id, sender, posted_at) where origin = 'agent';
comment on index dalsegno.posts_by_sender is 'Latest posts of an agent.';

create trigger posts_append_only before update or delete or truncate on dalsegno.posts
  for each statement execute function dalsegno.refuse_change();

create table dalsegno.post_viewers (
  campaign_id uuid not null,
  viewer text collate "C" not null,
  seq bigint not null,
  constraint post_viewers_pkey primary key (campaign_id, viewer, seq)
) with (autovacuum_vacuum_insert_threshold = 1000, autovacuum_vacuum_insert_scale_factor = 0.05);
comment on table dalsegno.post_viewers is
  'Readers of a post besides the operator and the lead, who see all: one row for each addressee and one for its sender, or a single one '
  'for all.';
comment on column dalsegno.post_viewers.viewer is 'A reader name, or all.';

-- A post that is sent again because its answer was lost: the key of the sender finds the first one.
create table dalsegno.post_keys (
  campaign_id uuid not null,
  post_id uuid not null,
  key text collate "C" not null constraint post_keys_key_length check (char_length(key) between 1 and 195),
  question_sha256 bytea not null constraint post_keys_question_length check (octet_length(question_sha256) = 32),
  came_of_it jsonb not null,
  constraint post_keys_pkey primary key (campaign_id, key),
  constraint post_keys_post_unique unique (campaign_id, post_id),
  constraint post_keys_post foreign key (campaign_id, post_id) references dalsegno.posts (campaign_id, id)
);
comment on table dalsegno.post_keys is 'The idempotency keys of posts. One is good for as long as its post is there.';
comment on column dalsegno.post_keys.key is 'As the sender chose it, within its campaign.';
comment on column dalsegno.post_keys.question_sha256 is 'SHA-256 of text and audience: another post under the same key is a conflict.';
comment on column dalsegno.post_keys.came_of_it is 'The rest of the answer to the sender: the tasks, unknown names, omissions.';

-- A table of its own, and not a column with an index on tasks, so that counting does not slow down adding tasks.
create table dalsegno.post_trees (
  campaign_id uuid not null,
  root_post_id uuid not null,
  n_tasks bigint not null constraint post_trees_n_tasks_positive check (n_tasks > 0),
  constraint post_trees_pkey primary key (campaign_id, root_post_id),
  constraint post_trees_root foreign key (campaign_id, root_post_id) references dalsegno.posts (campaign_id, id) on delete cascade
);
comment on table dalsegno.post_trees is
  'Number of tasks that came from one post of a person, over any number of answers that called other agents.';
comment on column dalsegno.post_trees.campaign_id is 'Where it was posted.';
comment on column dalsegno.post_trees.root_post_id is
  'The post of a person that all of it goes back to; where that is further back than was looked, the furthest one.';
comment on column dalsegno.post_trees.n_tasks is 'The tasks that were added, for the post itself and for each answer.';

----------------------------------------------------------------------------------------- visibility
-- Readers that see all need no look-up: the places are dense and can be counted. For each other reader it is a merge of two index
-- scans, which both end after `most` rows.

create function dalsegno.visible_posts(of_campaign uuid, reader text, after_seq bigint, before_seq bigint, most bigint)
  returns setof bigint language plpgsql stable parallel safe rows 50 as $body$
begin
  if reader is null then
    return query
      select generate_series(r.newest, greatest(after_seq + 1, r.newest - most + 1), -1)
        from (select least(before_seq - 1, b.last_seq) as newest from dalsegno.boards as b where b.campaign_id = of_campaign) as r;
  else
    return query
      select s.seq from (
        (select v.seq from dalsegno.post_viewers as v
          where v.campaign_id = of_campaign and v.viewer = reader and v.seq > after_seq and v.seq < before_seq order by v.seq desc limit most)
        union all
        (select v.seq from dalsegno.post_viewers as v
          where v.campaign_id = of_campaign and v.viewer = 'all' and v.seq > after_seq and v.seq < before_seq order by v.seq desc limit most)
      ) as s order by s.seq desc limit most;
  end if;
end
$body$;
comment on function dalsegno.visible_posts(uuid, text, bigint, bigint, bigint) is
  'The places of the newest posts between two places that a reader may see, the newest first. reader NULL sees all. With the next '
  'function, the one definition of visibility.';

create function dalsegno.visible_posts_from(of_campaign uuid, reader text, after_seq bigint, most bigint)
  returns setof bigint language plpgsql stable parallel safe rows 50 as $body$
begin
  if reader is null then
    return query
      select generate_series(after_seq + 1, least(after_seq + most, b.last_seq)) from dalsegno.boards as b where b.campaign_id = of_campaign;
  else
    return query
      select s.seq from (
        (select v.seq from dalsegno.post_viewers as v
          where v.campaign_id = of_campaign and v.viewer = reader and v.seq > after_seq order by v.seq limit most)
        union all
        (select v.seq from dalsegno.post_viewers as v
          where v.campaign_id = of_campaign and v.viewer = 'all' and v.seq > after_seq order by v.seq limit most)
      ) as s order by s.seq limit most;
  end if;
end
$body$;
comment on function dalsegno.visible_posts_from(uuid, text, bigint, bigint) is
  'The places of the oldest posts behind a place that a reader may see, the oldest first. reader NULL sees all.';

-------------------------------------------------------------------------------------------- posting
create function dalsegno.add_post(
    to_campaign uuid, post_id uuid, moment timestamptz, post_origin text, post_sender text, post_audience text[], post_text text,
    answers uuid default null, of_task uuid default null, of_session uuid default null, of_turn integer default null,
    of_message uuid default null)
  returns bigint language plpgsql as $body$
declare
  status text;
  place bigint;
begin
  -- Locked, so that an erasure, which closes the campaign first and then takes this lock, finds every post.
  select c.status into status from dalsegno.campaigns as c where c.id = to_campaign for key share;
  if status is null then
    raise exception using errcode = 'DS404', constraint = 'posts_campaign', message = format('there is no campaign %s', to_campaign),
      hint = '`dalsegno campaign ls` lists them.';
  -- Turns that still run may post.
  elsif status = 'closed' and post_origin = 'operator' then
    raise exception using errcode = 'DS409', message = format('campaign %s is closed', to_campaign),
      hint = 'Create another one: `dalsegno campaign create`.';
  end if;
  if answers is not null and not exists (select from dalsegno.posts as p where p.campaign_id = to_campaign and p.id = answers) then
    raise exception using errcode = 'DS404', constraint = 'posts_reply_to', message = format('there is no post %s in this campaign', answers),
      hint = '`dalsegno board history` lists them.';
  end if;
  insert into dalsegno.boards as b (campaign_id, last_seq) values (to_campaign, 1)
    on conflict on constraint boards_pkey do update set last_seq = b.last_seq + 1
    returning b.last_seq into place;
  insert into dalsegno.posts
         (campaign_id, seq, id, posted_at, reply_to, task_id, session_id, message_id, turn, origin, sender, audience, text)
  values (to_campaign, place, post_id, moment, answers, of_task, of_session, of_message, of_turn, post_origin, post_sender,
          post_audience, post_text);
  insert into dalsegno.post_viewers (campaign_id, viewer, seq)
  select to_campaign, r.name, place
    from (select distinct a.name from unnest(case when 'all' = any(post_audience) then array['all'] else post_audience || post_sender end)
                                      as a (name)) as r
   where r.name not in ('operator', 'system');
  insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
  values (moment, to_campaign, of_task, of_session, 'post.added',
          jsonb_build_object('id', post_id, 'seq', place, 'sender', post_sender, 'origin', post_origin, 'audience', post_audience,
                             'reply_to', answers));
  return place;
end
$body$;
comment on function dalsegno.add_post(uuid, uuid, timestamptz, text, text, text[], text, uuid, uuid, uuid, integer, uuid) is
  'Writes a post, the rows of who may see it and its event in the feed, and returns its seq. Holds the board until the transaction '
  'ends. Raises DS404 (constraint posts_campaign or posts_reply_to: no such campaign or post) and DS409 (a person posts in a closed '
  'campaign). Whether there are agents of the names in the audience is known to the service and not here.';
