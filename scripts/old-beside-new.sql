-- The report of scripts/old-beside-new: first the figures, then the checks, which have to be 0 and are marked with `!` otherwise.
select 'tasks sent | ' || count(*) from public.sent;
select 'tasks added during the migration | ' || count(*) from dalsegno.tasks
 where created_at between (select at from public.moments where name = 'migrate') and (select at from public.moments where name = 'migrated');
select 'turns that ran during the migration | ' || count(*) from dalsegno.turns
 where started_at < (select at from public.moments where name = 'migrated') and ended_at > (select at from public.moments where name = 'migrate');
select format('the longest request | %s ms (%s ms before and %s ms after the migration)',
              round(1000 * max(s.secs)), round(1000 * max(s.secs) filter (where t.created_at < m.at - interval '1 s')),
              round(1000 * max(s.secs) filter (where t.created_at > n.at)))
  from public.sent as s join dalsegno.tasks as t using (id), public.moments as m, public.moments as n where m.name = 'migrate' and n.name = 'migrated';
select format('the migration took | %s ms', round(1000 * extract(epoch from n.at - m.at)))
  from public.moments as m, public.moments as n where m.name = 'migrate' and n.name = 'migrated';
select format('turns of %s | %s, of them %s after the migration', p.name, count(*), count(*) filter (where r.started_at > m.at))
  from public.processes as p
  join dalsegno.workers as w using (pid) join dalsegno.runs as r on r.worker_id = w.id and r.kind like 'run_turn%',
       public.moments as m where m.name = 'migrated' group by p.name order by p.name;
select format('attempts that ended as %s | %s', outcome, count(*)) from dalsegno.runs where kind like 'run_turn%' group by outcome order by 1;
select format('an attempt ended as %s, error | %s', outcome, left(error, 200)) from dalsegno.runs where kind like 'run_turn%' and outcome <> 'done';
select format('compactions that were %s | %s', outcome, count(*)) from dalsegno.compactions group by outcome order by 1;
select 'requests for lists, by status | ' || string_agg(status || ': ' || n, ', ') from (select status, count(*) as n from public.looks group by 1 order by 1) as l;

create function public.must_be_none(what text, n bigint) returns text language sql as $body$
  select case n when 0 then '' else '!' end || what || ' | ' || n
$body$;
select public.must_be_none('new migrations that were not applied', :n_missing);
select public.must_be_none('no turn ran during the migration', case when exists (
  select from dalsegno.turns where started_at < (select at from public.moments where name = 'migrated')
                               and ended_at > (select at from public.moments where name = 'migrate')) then 0 else 1 end);
select public.must_be_none('no turn began on ' || p.name || ' after the migration', case when exists (
  select from dalsegno.workers as w join dalsegno.runs as r on r.worker_id = w.id and r.kind like 'run_turn%' and r.outcome = 'done',
              public.moments as m where w.pid = p.pid and m.name = 'migrated' and r.started_at > m.at) then 0 else 1 end)
  from public.processes as p order by 1;
select public.must_be_none('requests for a task that were not answered with 201', count(*)) from public.sent where status <> 201;
select public.must_be_none('repeated requests that returned another task', count(*)) from public.sent_again
 where (status, again) is distinct from (200, first);
select public.must_be_none('requests for lists that failed', count(*)) from public.looks where status >= 500 or status = 0;
select public.must_be_none('accepted tasks that were lost', count(*)) from (select id from public.sent union all select id from public.waiting) as a
 where not exists (select from dalsegno.tasks as t where t.id = a.id);
select public.must_be_none('tasks that are not done', count(*)) from dalsegno.tasks where state <> 'done';
select public.must_be_none('tasks without a completed turn, or with two', count(*)) from dalsegno.tasks as t
 where (select count(*) from dalsegno.turns as u where u.task_id = t.id and u.state = 'done') <> 1;
select public.must_be_none('prompts that are in a transcript twice, or never', count(*)) from dalsegno.tasks as t
 where (select count(*) from dalsegno.messages as m where m.id = t.id and m.role = 'user') <> 1;
select public.must_be_none('completed turns without exactly one answer', count(*)) from dalsegno.turns as u
 where u.state = 'done'
   and (select count(*) from dalsegno.messages as m where m.session_id = u.session_id and m.turn = u.number and m.role = 'assistant' and not m.partial) <> 1;
select public.must_be_none('turns out of order in their conversation', count(*))
  from (select u.number, lag(u.number, 1, 0) over (partition by s.poster, s.conversation order by s.number) as before
          from public.sent as s join dalsegno.turns as u on u.task_id = s.id and u.state = 'done') as o
 where o.number <= o.before;
select public.must_be_none('conversations that lost their session', count(*)) from dalsegno.sessions where opened_because <> 'new' or closed_at is not null;
select public.must_be_none('tasks that began before their dependencies had ended', count(*))
  from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.task_id join dalsegno.tasks as b on b.id = d.on_task_id
 where t.started_at < b.ended_at;
select public.must_be_none('dead jobs', count(*)) from dalsegno.dead_jobs;
select public.must_be_none('runs that failed or lost their worker', count(*)) from dalsegno.runs where outcome in ('lost', 'interrupted', 'failed');
select public.must_be_none('errors in the log of ' || name, n_errors) from public.processes order by name;
select public.must_be_none('exit code of ' || name, abs(code)) from public.processes order by name;
