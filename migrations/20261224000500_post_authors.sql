-- Posts name their authors as the audit log does, so that a post by a program with an API key can be told from one by a person.
--
-- Adds: posts.author, the argument of_author of add_post, trust_of_post.

alter table dalsegno.posts add column author text;
comment on column dalsegno.posts.author is
  'The person or the API key that posted, as in the audit log. NULL: an agent or the service, or the post is older than this column.';

create function dalsegno.trust_of_post(origin text, author text) returns text language sql immutable parallel safe as $body$
  select case when origin <> 'operator' then origin when author ~ '^key(:|$)' then 'key' else 'operator' end
$body$;
comment on function dalsegno.trust_of_post(text, text) is
  'The trust level of a post: operator for a person, key for a caller with an API key, agent for a model, system for the service.';

-- A function gets one more argument as another one in its place. Calls that leave it out stay as they are.
drop function dalsegno.add_post(uuid, uuid, timestamptz, text, text, text[], text, uuid, uuid, uuid, integer, uuid);

create function dalsegno.add_post(
    to_campaign uuid, post_id uuid, moment timestamptz, post_origin text, post_sender text, post_audience text[], post_text text,
    answers uuid default null, of_task uuid default null, of_session uuid default null, of_turn integer default null,
    of_message uuid default null, of_author text default null)
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
         (campaign_id, seq, id, posted_at, reply_to, task_id, session_id, message_id, turn, origin, sender, author, audience, text)
  values (to_campaign, place, post_id, moment, answers, of_task, of_session, of_message, of_turn, post_origin, post_sender, of_author,
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
comment on function dalsegno.add_post(uuid, uuid, timestamptz, text, text, text[], text, uuid, uuid, uuid, integer, uuid, text) is
  'Writes a post, the rows of who may see it and its event in the feed, and returns its seq. Holds the board until the transaction '
  'ends. Raises DS404 (constraint posts_campaign or posts_reply_to: no such campaign or post) and DS409 (a person posts in a closed '
  'campaign). Whether there are agents of the names in the audience is known to the service and not here. of_author is the caller as in the audit log; NULL: the sender says it.';
