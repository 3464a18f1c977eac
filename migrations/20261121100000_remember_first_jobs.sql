-- A task that is asked for again under its idempotency key is found by the job that the key stands for. A retry gives the
-- task another job, so the first one has to be remembered.
--
-- NULL for nearly all tasks: neither adding nor running one writes it.
alter table dalsegno.tasks add column first_job_id bigint;
comment on column dalsegno.tasks.first_job_id is
  'The job that it was added with, if a retry has given it another. NULL: job_id is still that one.';
create unique index tasks_one_per_first_job on dalsegno.tasks (first_job_id) where first_job_id is not null;
comment on index dalsegno.tasks_one_per_first_job is 'Retried tasks by the job that their idempotency key stands for.';

-- Tasks that were retried before now, as far as their turns tell.
update dalsegno.tasks as t set first_job_id = f.job_id
  from (select task_id, min(job_id) as job_id from dalsegno.turns group by task_id) as f
 where f.task_id = t.id and f.job_id < t.job_id;
