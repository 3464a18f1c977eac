-- How many tasks have come from one post of a person, through answers that called others.
--
-- An older binary does not fill it: its tasks are not counted, and the depth and the fan-out of its calls are bounded all the same.
alter table dalsegno.tasks add column root_post_id uuid;
comment on column dalsegno.tasks.root_post_id is
  'The post of a person that led to it, over any number of answers that called others. NULL: it came from no post.';
create index tasks_by_root_post on dalsegno.tasks (root_post_id) where root_post_id is not null;
comment on index dalsegno.tasks_by_root_post is 'The tasks that one post has led to.';
comment on column dalsegno.messages.tool_name is
  'Of a tool''s result: the tool. Of a prompt: the agent that asked it on the board. Of a notice: what its text is the JSON of.';
