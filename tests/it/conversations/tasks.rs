//! Tasks and their jobs, which are written together.

use chrono::TimeDelta;
use dalsegno::{
    domain::{
        Amount, Page, StatementError,
        amount::Limit,
        campaign_control, campaigns,
        class::{Classify as _, Kind},
        explanations, sessions,
        tasks::{self, CancelOutcome, New, State, TaskFilter},
    },
    queue::admin::{self, GoneJob},
};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::task::JoinSet;

use super::{World, limits};
use crate::app::{eventually, noon, until_blocked};

#[tokio::test]
async fn a_task_and_its_job_exist_together_or_not_at_all() {
    let world = World::new().await;
    let mut tx = world.pool.begin().await.unwrap();
    let task = tasks::add(&mut tx, &limits(), &world.ask("Part one."), noon()).await.unwrap().task;
    tx.rollback().await.unwrap();
    let mut conn = world.pool.acquire().await.unwrap();
    assert!(matches!(tasks::get(&mut *conn, task.id).await, Err(tasks::Error::Unknown(_))));
    assert!(admin::find_job(&mut conn, task.job_id).await.is_err());

    let task = world.add("Part one.").await;
    let job = admin::find_job(&mut conn, task.job_id).await.unwrap();
    assert_eq!(job.summary.kind, "run_turn");
    assert_eq!(job.summary.queue, "turns");
    assert_eq!(job.summary.lane, Some(tasks::lane(world.campaign.id, "copywriter", "main")));
    assert_eq!(job.summary.group_key, Some(world.campaign.id.to_string()));
    assert_eq!(task.state, State::Queued);
    assert_eq!(tasks::by_job(&mut *conn, task.job_id).await.unwrap(), task);
}

#[tokio::test]
async fn a_key_identifies_one_input() {
    let world = World::new().await;
    let ask = New { idempotency_key: Some("order-1"), ..world.ask("Part one.") };
    let first = world.add_new(&ask).await.unwrap();
    let second = world.add_new(&ask).await.unwrap();
    assert!(first.created && !second.created);
    assert_eq!(first.task, second.task);
    let other = world.add_new(&New { prompt: "Part two.", ..ask }).await.unwrap_err();
    assert!(matches!(&other, tasks::Error::KeyTaken(_)), "{other:?}");
    assert!(other.to_string().contains("order-1"), "{other}");
    // Without a key, the same prompt is another task.
    assert_ne!(world.add("Part one.").await.id, first.task.id);
}

#[tokio::test]
async fn a_key_finds_its_task_after_a_retry_with_another_job() {
    let world = World::new().await;
    let ask = New { idempotency_key: Some("order-1"), ..world.ask("Part one.") };
    let first = world.add_new(&ask).await.unwrap().task;
    let mut before = first.clone();
    for _ in 0..2 {
        let mut tx = world.pool.begin().await.unwrap();
        tasks::cancel(&mut tx, first.id, "not now", noon()).await.unwrap();
        let retried = tasks::retry(&mut tx, first.id, noon()).await.unwrap();
        tx.commit().await.unwrap();
        assert_ne!(retried.job_id, before.job_id);
        before = retried;
        let again = world.add_new(&ask).await.unwrap();
        assert_eq!((again.created, &again.task), (false, &before));
    }
    // The first job is gone, so it runs no task.
    let by_first = tasks::by_job(&world.pool, first.job_id).await;
    assert!(matches!(by_first, Err(tasks::Error::NoTaskOfJob(_))), "{by_first:?}");
}

#[tokio::test]
async fn concurrent_calls_with_one_key_create_one_task() {
    let world = std::sync::Arc::new(World::new().await);
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let world = std::sync::Arc::clone(&world);
        calls.spawn(async move {
            let ask = New { idempotency_key: Some("order-1"), ..world.ask("Part one.") };
            let added = world.add_new(&ask).await.unwrap();
            (added.task.id, added.created)
        });
    }
    let added = calls.join_all().await;
    assert_eq!(added.iter().filter(|(_, created)| *created).count(), 1);
    assert!(added.iter().all(|(id, _)| *id == added[0].0), "{added:?}");
}

#[tokio::test]
async fn a_queued_task_is_cancelled_at_once_and_can_be_retried() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let mut tx = world.pool.begin().await.unwrap();
    let cancelled = tasks::cancel(&mut tx, task.id, "not needed", noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(cancelled.cancel, CancelOutcome::AtOnce);
    assert_eq!(world.task(task.id).await.state, State::Cancelled);

    let mut tx = world.pool.begin().await.unwrap();
    let again = tasks::cancel(&mut tx, task.id, "twice", noon()).await.unwrap_err();
    assert!(matches!(again, tasks::Error::Ended { state: State::Cancelled, .. }));
    let retried = tasks::retry(&mut tx, task.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(retried.state, State::Queued);
    assert_ne!(retried.job_id, task.job_id);
    let mut tx = world.pool.begin().await.unwrap();
    assert!(matches!(
        tasks::retry(&mut tx, task.id, noon()).await,
        Err(tasks::Error::NotEnded { state: State::Queued, .. })
    ));
}

/// The job is gone: its runs are kept for a shorter time than its task.
#[tokio::test]
async fn a_task_whose_job_is_missing_is_cancelled() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    delete_job(&world, task.job_id).await;
    let mut tx = world.pool.begin().await.unwrap();
    let cancelled = tasks::cancel(&mut tx, task.id, "lost", noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(cancelled.cancel, CancelOutcome::AtOnce);
    assert_eq!(world.task(task.id).await.state, State::Cancelled);
}

/// Two processes find the job of a task gone. One ends the task and retries it; the other had read it before.
#[tokio::test]
async fn the_end_of_an_old_job_does_not_end_a_retried_task() {
    let world = std::sync::Arc::new(World::new().await);
    let task = world.add("Part one.").await;
    delete_job(&world, task.job_id).await;
    let gone = tasks::list_ended_jobs(&world.pool, &[task.job_id]).await.unwrap();
    for sweeps in [true, false] {
        let read = world.task(task.id).await;
        delete_job(&world, read.job_id).await;
        let mut first = world.pool.begin().await.unwrap();
        tasks::cancel(&mut first, task.id, "lost", noon()).await.unwrap();
        let retried = tasks::retry(&mut first, task.id, noon()).await.unwrap();
        let second = {
            let (world, id) = (std::sync::Arc::clone(&world), task.id);
            let job = GoneJob { id: read.job_id, ..gone[0].clone() };
            tokio::spawn(async move {
                let mut tx = world.pool.begin().await.unwrap();
                let ended = match sweeps {
                    true => tasks::end_lost(&mut tx, &job, noon()).await,
                    false => tasks::cancel(&mut tx, id, "lost", noon()).await.map(drop),
                };
                tx.commit().await.unwrap();
                ended
            })
        };
        until_blocked(&world.pool).await;
        first.commit().await.unwrap();
        let ended = second.await.unwrap();
        assert!(matches!(ended, Err(tasks::Error::Requeued(_))), "{ended:?}");
        let now = world.task(task.id).await;
        assert_eq!((now.state, now.job_id), (State::Queued, retried.job_id));
    }
}

async fn delete_job(world: &World, job_id: i64) {
    for table in ["jobs where id", "job_payloads where job_id", "runs where job_id"] {
        let delete = format!("delete from dalsegno.{table} = {job_id}");
        sqlx::query(sqlx::AssertSqlSafe(delete)).execute(&world.pool).await.unwrap();
    }
}

/// A cancellation that comes first wins over a worker that begins the task.
#[tokio::test]
async fn a_cancelled_task_is_not_started() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let mut tx = world.pool.begin().await.unwrap();
    tasks::cancel(&mut tx, task.id, "not needed", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let begun = world
        .try_begin(&task, world.lease(), super::TurnSettings::default(), Default::default())
        .await;
    let error = begun.unwrap_err();
    assert!(error.to_string().contains("cancelled"), "{error}");
    assert!(world.sessions().await.is_empty(), "the transaction was rolled back");
}

#[tokio::test]
async fn lists_continue_after_the_previous_page() {
    let world = World::new().await;
    for part in 1..=5 {
        world.add(&format!("Part {part}.")).await;
    }
    let filter = TaskFilter { campaign_id: Some(world.campaign.id), ..Default::default() };
    let mut conn = world.pool.acquire().await.unwrap();
    let mut seen = Vec::new();
    let mut page = Page { after: None, limit: 2 };
    loop {
        let tasks = tasks::list(&mut conn, &filter, page).await.unwrap();
        let Some(last) = tasks.last() else { break };
        page.after = Some(last.id);
        seen.extend(tasks.iter().map(|task| task.id));
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|a, b| a > b), "newest first, each once");
    let done = TaskFilter { state: Some(State::Done), ..filter };
    assert!(tasks::list(&mut conn, &done, Page::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_paused_campaign_pauses_its_group() {
    let world = World::new().await;
    let mut tx = world.pool.begin().await.unwrap();
    let paused =
        campaign_control::pause(&mut tx, world.campaign.id, "waits for the client").await.unwrap();
    assert_eq!(paused.status, campaigns::Status::Paused);
    tx.commit().await.unwrap();
    let pauses = "select count(*) from dalsegno.pauses where scope = 'group' and name = $1";
    let count = async || {
        let name = world.campaign.id.to_string();
        sqlx::query_scalar::<_, i64>(pauses).bind(name).fetch_one(&world.pool).await.unwrap()
    };
    assert_eq!(count().await, 1);
    world.add("Taken in all the same.").await;
    let mut tx = world.pool.begin().await.unwrap();
    campaign_control::resume(&mut tx, world.campaign.id).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(count().await, 0);
}

/// A campaign created by another system, without a budget row.
#[tokio::test]
async fn a_campaign_created_in_sql_runs_its_tasks_and_has_a_budget() {
    let world = World::new().await;
    let insert = "insert into dalsegno.campaigns (name) values ('Made elsewhere') returning id";
    let id = sqlx::query_scalar(insert).fetch_one(&world.pool).await.unwrap();
    let task =
        world.add_new(&New { campaign_id: id, ..world.ask("Part one.") }).await.unwrap().task;
    let beside = dalsegno::domain::turn_phases::LoadParams {
        readers: &[],
        edicts_max_bytes: 0,
        told_facts: &[],
        facts_max_bytes: 0,
        has_rate_limits: false,
        now: noon(),
    };
    let wanted = dalsegno::domain::turn_phases::load_task_of_job(&world.pool, task.job_id, beside)
        .await
        .unwrap();
    assert_eq!((wanted.campaign.name.as_str(), wanted.limit), ("Made elsewhere", Limit::default()));
    let reserve = Amount { micros: 5, tokens: 7 };
    let (_, begun) = world
        .try_begin(&task, world.lease(), super::TurnSettings::default(), reserve)
        .await
        .unwrap();
    world.commit(&begun, "The harbour at dawn.", super::TurnSettings::default()).await.unwrap();
    let budget = campaigns::budget(&world.pool, id).await.unwrap().unwrap();
    assert_eq!((budget.spent.tokens, budget.reserved), (40, Amount::ZERO));
    // A limit can be set, as for other campaigns.
    let change = campaigns::LimitChange { tokens: Some(Some(100)), ..Default::default() };
    let mut conn = world.pool.acquire().await.unwrap();
    let changed = campaigns::change_limit(&mut conn, id, change).await.unwrap();
    assert_eq!(changed.limit.tokens, Some(100));
}

#[tokio::test]
async fn a_tasks_session_is_found_among_many_and_its_budget_estimated_from_its_size() {
    let limit = Limit { micros: None, tokens: Some(70) };
    let world = World::with_limit(limit).await;
    let session = world.turn("Part one.", super::TurnSettings::default()).await.session;
    let mut conn = world.pool.acquire().await.unwrap();
    sessions::reset(&mut conn, session.id, false, noon()).await.unwrap();
    // More sessions than fit on a page of the list, and newer ones.
    let copies = "insert into dalsegno.sessions (id, campaign_id, agent_type, instance, provider, model, prompt_hash, fence_seed, expires_at)
                  select gen_random_uuid(), campaign_id, agent_type, 'copy_' || n, provider, model, prompt_hash, fence_seed, expires_at
                    from dalsegno.sessions, generate_series(1, 60) as n where id = $1";
    sqlx::query(copies).bind(session.id).execute(&world.pool).await.unwrap();
    // 40 tokens are spent, and as many are in the conversation: 30 are too few for another turn.
    let task = world.add("Part two.").await;
    let told = explanations::explain(&mut conn, task.id).await.unwrap();
    let rebuilt = format!("a new session replaces its session {}", session.id);
    assert!(told.because.contains(&rebuilt), "{}", told.because);
    assert!(told.because.contains("too small for another turn"), "{}", told.because);
    assert!(told.because.contains("40 tokens of 70 tokens are spent"), "{}", told.because);
}

/// The row of a task that failed while it waited stays.
#[tokio::test]
async fn waits_for_providers_are_found_among_many_that_are_over() {
    let world = World::new().await;
    let fill = "with ended as (
                  insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, state, error, started_at, ended_at)
                  select gen_random_uuid(), $1, -n, 'copywriter', 'Part ' || n, 'failed', 'the model was busy', $2, $2
                    from generate_series(1, 3000) as n returning id)
                insert into dalsegno.busy_tasks (task_id, since, until)
                select id, $2::timestamptz - interval '2 days', $2::timestamptz - interval '1 day' from ended";
    sqlx::query(fill).bind(world.campaign.id).bind(noon()).execute(&world.pool).await.unwrap();
    let open = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt)
                select gen_random_uuid(), $1, -3000 - n, 'copywriter', 'Part ' || n from generate_series(1, 3000) as n";
    sqlx::query(open).bind(world.campaign.id).execute(&world.pool).await.unwrap();
    let task = world.add("Part one.").await;
    let mut tx = world.pool.begin().await.unwrap();
    let until = noon() + TimeDelta::minutes(1);
    tasks::wait_for_provider(&mut tx, task.id, until, noon()).await.unwrap();
    tx.commit().await.unwrap();
    for analyze in ["analyze dalsegno.busy_tasks", "analyze dalsegno.tasks"] {
        sqlx::query(analyze).execute(&world.pool).await.unwrap();
    }
    // The counts of a transaction are its own.
    let mut tx = world.pool.begin().await.unwrap();
    let longest = tasks::count_busy(&mut *tx, noon()).await.unwrap().since;
    assert_eq!(longest, Some(noon()));
    // Without a session, nothing is known about the server.
    assert_eq!(tasks::provider_waits(&mut *tx, noon()).await.unwrap(), []);
    let read =
        "select (seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables
                 where schemaname = 'dalsegno' and relname = 'busy_tasks'";
    let n_read: i64 = sqlx::query_scalar(read).fetch_one(&mut *tx).await.unwrap();
    assert!((2..100).contains(&n_read), "{n_read} rows read");
}

#[tokio::test]
async fn a_lock_or_statement_timeout_is_retryable() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    for setting in ["lock_timeout", "statement_timeout"] {
        let mut holder = world.pool.begin().await.unwrap();
        let lock = "select from dalsegno.jobs where id = $1 for update";
        sqlx::query(lock).bind(task.job_id).execute(&mut *holder).await.unwrap();
        let mut tx = world.pool.begin().await.unwrap();
        let set = format!("set local {setting} = '50ms'");
        sqlx::query(sqlx::AssertSqlSafe(set)).execute(&mut *tx).await.unwrap();
        let error = tasks::cancel(&mut tx, task.id, "no", noon()).await.unwrap_err();
        let class = error.class();
        assert_eq!(
            (class.kind, class.code, class.retryable),
            (Kind::Unavailable, "database_busy", true)
        );
        assert!(class.advice.unwrap().contains("try again"), "{class:?}");
    }
}

#[tokio::test]
async fn database_faults_have_their_own_codes_and_are_retryable() {
    let world = World::new().await;
    let codes = [
        ("08006", "database_unreachable"),
        ("57P01", "database_unreachable"),
        ("57P03", "database_unreachable"),
        ("40001", "database_conflict"),
        ("40P01", "database_conflict"),
        ("53100", "database_full"),
        ("53300", "database_full"),
        ("25006", "database_read_only"),
        ("55P03", "database_busy"),
        ("57014", "database_busy"),
    ];
    for (sqlstate, code) in codes {
        let raise = format!("do $$ begin raise 'as told' using errcode = '{sqlstate}'; end $$");
        let raised = sqlx::query(sqlx::AssertSqlSafe(raise)).execute(&world.pool).await;
        let error = StatementError { action: "do as told", source: raised.unwrap_err() };
        let class = error.class();
        let found = (class.kind, class.code, class.retryable);
        assert_eq!(found, (Kind::Unavailable, code, true), "{sqlstate}");
    }
}

/// A prompt of 200 KB has a TOAST table, whose reads are counted.
#[tokio::test]
async fn each_waiting_reader_reads_a_task_once() {
    let world = World::new().await;
    let (prompt, instance) = (random_text(200_000), "main");
    let insert = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, instance, prompt) values ($1, $2, -1, 'copywriter', $3, $4)";
    let id = uuid::Uuid::new_v4();
    let adder = single_connection(&world.pool).await;
    let insert = sqlx::query(insert).bind(id).bind(world.campaign.id).bind(instance).bind(prompt);
    insert.execute(&adder).await.unwrap();
    adder.close().await;
    // Storing a prompt reads its TOAST table, too.
    let n_before = counted_reads(&world.pool, 0).await;
    let waiter = single_connection(&world.pool).await;
    let waited = tasks::wait(&waiter, id, std::time::Duration::from_millis(1500)).await.unwrap();
    assert_eq!(waited.state, State::Queued);
    waiter.close().await;
    assert_eq!(counted_reads(&world.pool, n_before).await - n_before, 1);
}

/// Opens a single connection. Its end sends all its statistics; an open one sends them later.
async fn single_connection(pool: &PgPool) -> PgPool {
    let one = PgPoolOptions::new().max_connections(1);
    one.connect_with((*pool.connect_options()).clone()).await.unwrap()
}

/// Returns the number of prompt reads once it exceeds `known`.
async fn counted_reads(pool: &PgPool, known: i64) -> i64 {
    let reads = "select t.idx_scan from pg_stat_all_tables as t
                   join pg_class as c on c.reltoastrelid = t.relid where c.oid = 'dalsegno.tasks'::regclass";
    eventually("reads are counted", async || {
        let n_reads = sqlx::query_scalar::<_, i64>(reads).fetch_one(pool).await.unwrap();
        (n_reads > known).then_some(n_reads)
    })
    .await
}

/// Returns random text, which cannot be compressed.
fn random_text(n_bytes: usize) -> String {
    let text: String =
        (0..n_bytes / 32).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect();
    text
}
