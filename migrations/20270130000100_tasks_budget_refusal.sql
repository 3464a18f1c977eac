-- Stores why a budget refused the call of a failed task as data: its readers took the amounts from the text of the error.
--
-- Processes of an older version beside this one do not know the column. Tasks that they fail have the error alone. Where they retry a task or
-- erase its error, the trigger removes the refusal with it. Tasks that failed before this migration keep the error alone.
--
-- Adds: tasks.budget_refusal; is_unpriced, the one definition of a call without a price.

alter table dalsegno.tasks add column budget_refusal jsonb;
comment on column dalsegno.tasks.budget_refusal is
  'The budget that refused a call of a failed task: owner, key, unit, limit, spent, reserved, needed, call, on_limit, ends. NULL: the task has '
  'not failed, or for another reason.';
-- Without a look at the rows that are there: none of them has a value.
alter table dalsegno.tasks add constraint tasks_budget_refusal_of_failed check (budget_refusal is null or state = 'failed') not valid;

create function dalsegno.remove_budget_refusal() returns trigger language plpgsql as $body$
begin
  new.budget_refusal := null;
  return new;
end
$body$;
comment on function dalsegno.remove_budget_refusal() is 'Removes the refusal of a budget together with the error of its task.';

create trigger tasks_remove_budget_refusal before update of error on dalsegno.tasks for each row
  when (old.budget_refusal is not null and new.error is distinct from old.error)
  execute function dalsegno.remove_budget_refusal();

create function dalsegno.is_unpriced(entry dalsegno.usage) returns boolean language sql immutable parallel safe as $body$
  select entry.price is null and entry.cost_micros = 0
     and coalesce(entry.input_tokens, 0) + coalesce(entry.output_tokens, 0) + coalesce(entry.cache_read_tokens, 0)
         + coalesce(entry.cache_creation_tokens, 0) > 0
$body$;
comment on function dalsegno.is_unpriced(dalsegno.usage) is
  'A call that used tokens, for whose model no price was set, and for which the provider reported no cost.';
