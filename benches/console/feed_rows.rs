//! The price of the feed for the queue: the trigger of each event, and the reader that the console keeps.

use std::time::Instant;

use anyhow::Context as _;
use dalsegno::{
    db,
    domain::{feed::Hub, tasks::RunTurn},
    queue::{Config, End, HandlerResult, Identity, Registry, Run, run_worker},
    shutdown::Shutdown,
};
use serde_json::{Value, json};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
};
use uuid::Uuid;

use crate::{
    common::{Database, size, wal_bytes},
    fixture::{Fixture, LargeDatabase},
    quantile,
};

const CLIENTS: usize = 8;

/// The time that the trigger adds to an event: it looks the agent up unless the event names it.
pub async fn trigger(ground: &Fixture) -> anyhow::Result<Value> {
    let n_rows = size::of(20_000, 100);
    let (mut named, mut unnamed) = (Vec::new(), Vec::new());
    for _ in 0..size::of(5, 1) {
        named.push(insert(&ground.pool, n_rows, true).await?);
        unnamed.push(insert(&ground.pool, n_rows, false).await?);
    }
    let (named, unnamed) = (quantile(&mut named, 0.5), quantile(&mut unnamed, 0.5));
    Ok(json!({
        "scenario": "feed_trigger", "rows": n_rows, "us_per_row": unnamed, "us_per_row_without_trigger": named,
        "us_of_trigger": unnamed - named,
    }))
}

/// Writes the events of as many tasks in a transaction that is rolled back. Returns the microseconds per event.
async fn insert(pool: &PgPool, n_rows: i64, is_agent_named: bool) -> anyhow::Result<f64> {
    let mut transaction = pool.begin().await?;
    let began = Instant::now();
    sqlx::query(
        "insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data, agent, instance)
         select now(), t.campaign_id, t.id, 'task.queued', '{}', case when $2 then t.agent end, case when $2 then t.instance end
           from dalsegno.tasks as t order by t.id desc limit $1",
    )
    .bind(n_rows)
    .bind(is_agent_named)
    .execute(&mut *transaction)
    .await?;
    let took = began.elapsed();
    transaction.rollback().await?;
    Ok(took.as_micros() as f64 / n_rows as f64)
}

/// Adds tasks in SQL and ends their jobs, in turns with and without a reader of the feed. Single rounds vary by a tenth and more, so the
/// medians are compared.
pub async fn beside_reader(large: &LargeDatabase) -> anyhow::Result<Value> {
    let ground = QueueGround::new(large).await?;
    let (n_tasks, n_rounds) = size::of((4_000, 7), (16, 1));
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    // Not measured: the first round plans the statements.
    ground.round(n_tasks).await?;
    let wal = wal_bytes(&ground.pool).await?;
    for _ in 0..n_rounds {
        alone.push(ground.round(n_tasks).await?);
        let reader = ground.start_reader().await?;
        beside.push(ground.round(n_tasks).await?);
        reader.shutdown_background();
    }
    let wal = wal_bytes(&ground.pool).await? - wal;
    let n_measured = i64::try_from(2 * n_rounds * n_tasks)?;
    ground.remove().await?;
    let spread =
        (quantile(&mut alone, 1.0) - quantile(&mut alone, 0.0)) / quantile(&mut alone, 0.5);
    let (alone, beside) = (quantile(&mut alone, 0.5), quantile(&mut beside, 0.5));
    Ok(json!({
        "scenario": "beside_reader", "tasks": n_tasks, "rounds": n_rounds, "tasks_per_s": beside.round(),
        "tasks_per_s_without_reader": alone.round(), "ratio": beside / alone, "spread_without_reader": spread,
        "wal_bytes_per_task": wal / n_measured,
    }))
}

/// A database with an empty queue, on the server of the large one.
struct QueueGround {
    pool: PgPool,
    campaign: Uuid,
    database: Database,
}

impl QueueGround {
    async fn new(large: &LargeDatabase) -> anyhow::Result<Self> {
        let database = Database::create_on(&large.options).await?;
        let pool =
            PgPoolOptions::new().max_connections(40).connect_with(database.options.clone()).await?;
        db::migrate(&pool).await?;
        let new = sqlx::query_scalar(
            "insert into dalsegno.campaigns (name) values ('rows') returning id",
        );
        let campaign = new.fetch_one(&pool).await?;
        Ok(Self { pool, campaign, database })
    }

    async fn remove(self) -> anyhow::Result<()> {
        self.pool.close().await;
        self.database.remove().await
    }

    /// Returns the tasks per second, from the first that is added to the end of the last job.
    async fn round(&self, n_tasks: usize) -> anyhow::Result<f64> {
        let (sender, mut ended) = mpsc::unbounded_channel();
        let shutdown = Shutdown::new();
        let config = Config { slots: 64, ..Config::default() };
        let registry = Registry::new(sender).with(end_at_once);
        let worker =
            run_worker(config, Identity::default(), registry, self.pool.clone(), shutdown.clone());
        let worker = tokio::spawn(worker);
        let began = Instant::now();
        let clients = (0..CLIENTS).map(|client| self.add(client, n_tasks / CLIENTS));
        futures_util::future::try_join_all(clients).await?;
        for _ in 0..n_tasks {
            ended.recv().await.context("the worker has ended")?;
        }
        shutdown.soft.cancel();
        worker.await??;
        Ok(n_tasks as f64 / began.elapsed().as_secs_f64())
    }

    async fn add(&self, client: usize, n_tasks: usize) -> anyhow::Result<()> {
        for n in 0..n_tasks {
            let add = sqlx::query(
                "select dalsegno.add_task($1, 'copywriter', 'Write part one.', instance => $2)",
            );
            let instance = format!("copy_{client}_{}", n % 50);
            add.bind(self.campaign).bind(instance).execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Starts a reader with connections of its own. It ends with its runtime.
    async fn start_reader(&self) -> anyhow::Result<Runtime> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let options = self.database.options.clone();
        let begun = runtime.spawn(async move {
            let pool = PgPool::connect_with(options).await?;
            let (_, mut follower) = Hub::default().follow(&pool, None).await?;
            tokio::spawn(async move { while follower.next().await.is_ok() {} });
            anyhow::Ok(())
        });
        begun.await??;
        Ok(runtime)
    }
}

/// Ends the job at once: the turn itself would hide the difference.
async fn end_at_once(_: RunTurn, _: Run, ended: mpsc::UnboundedSender<()>) -> HandlerResult {
    let _ = ended.send(());
    Ok(End::Done)
}
