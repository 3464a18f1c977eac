-- Who follows a task looks several times a second: at its own events, not at those of the whole campaign.
create index feed_by_task on dalsegno.feed (task_id, id) where task_id is not null;
comment on index dalsegno.feed_by_task is 'What followers of a task read.';
