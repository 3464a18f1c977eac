-- How many tasks have come from one post of a person, through answers that called others. A table of its own, because an index on
-- tasks would keep everybody from writing there as long as it is built.
--
-- An older binary does not count: its tasks are not in the sum, and the depth and the fan-out of its calls are bounded all the same.
create table dalsegno.post_trees (
  campaign_id uuid not null,
  root_post_id uuid not null,
  n_tasks bigint not null constraint post_trees_n_tasks_positive check (n_tasks > 0),
  constraint post_trees_pkey primary key (campaign_id, root_post_id),
  constraint post_trees_root foreign key (campaign_id, root_post_id) references dalsegno.posts (campaign_id, id) on delete cascade
);
comment on table dalsegno.post_trees is 'What posts that called somebody have led to, over any number of answers that called others.';
comment on column dalsegno.post_trees.campaign_id is 'Where it was posted.';
comment on column dalsegno.post_trees.root_post_id is
  'The post of a person that all of it goes back to; where that is further back than was looked, the furthest one.';
comment on column dalsegno.post_trees.n_tasks is 'The tasks that were added, for the post itself and for each answer.';
comment on column dalsegno.messages.tool_name is
  'Of a tool''s result: the tool. Of a prompt: the agent that asked it on the board. Of a notice: what its text is the JSON of.';
