-- A post that is sent again because its answer was lost: the key that its sender gave it finds the first one.

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
comment on column dalsegno.post_keys.question_sha256 is 'SHA-256 of what was to be said, and to whom: another question under the key is a conflict.';
comment on column dalsegno.post_keys.came_of_it is 'What the sender was told beside the post: the tasks, names of nobody, what was not done.';
