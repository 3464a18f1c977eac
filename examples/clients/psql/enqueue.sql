-- Stores an order and adds a task for an agent, in one transaction; then waits for the result.
--
--   psql -v campaign=019aa2f1-... -v prompt='Write part one.' -f enqueue.sql
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\pset format unaligned

create table if not exists orders (id bigint generated always as identity primary key, what text not null, task_id uuid);

begin;
insert into orders (what) values (:'prompt') returning id as order_id \gset
-- With the idempotency key, a second call for the same order returns the existing task.
select task_id from dalsegno.add_task(:'campaign', 'copywriter', :'prompt', idempotency_key => 'psql-order-' || :'order_id') \gset
update orders set task_id = :'task_id' where id = :'order_id';
commit;

-- Systems that HTTP requests can reach should use a webhook instead of polling.
select set_config('example.task_id', :'task_id', false) \g /dev/null
do $wait$
begin
  for i in 1..600 loop
    exit when exists (select from dalsegno.tasks where id = current_setting('example.task_id')::uuid and ended_at is not null);
    perform pg_sleep(0.1);
  end loop;
end
$wait$;
select format('task %s is %s: %s', id, state, coalesce(result, error)) from dalsegno.tasks where id = :'task_id';
