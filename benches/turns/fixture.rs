//! A database with campaigns and an agent, and a worker of the service on it.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use dalsegno::{
    clock::{Clock as _, SystemClock},
    config::Config,
    db,
    domain::{agents::Library, amount::Limit, budgets, campaigns, tasks},
    jobs::{Pool, Services},
    settings::{Environment, Flags},
    shutdown::Shutdown,
    traces::Traces,
    worker,
};
use sqlx::{ConnectOptions as _, PgPool};
use tempfile::TempDir;
use uuid::Uuid;

use crate::{
    common::{Database, Server, cpu, wal_bytes},
    stopwatch::Stopwatch,
    words,
};

/// Settings: room for the longest conversation, no delay, answers as long as the prompts.
const SETTINGS: &str = "
[worker]
turns_slots = 64
[database]
max_connections = 16
[sim]
window_tokens = 100000000
latency_ms = 0
chunk_delay_ms = 0
chunk_chars = 100000
faults = [\"words 290\"]
[log]
filter = \"warn\"
";

pub const WRITER: &str = "writer";
pub const LEAD: &str = "lead";
const AGENT: &str = "---\nname: writer\ndescription: Writes\n---\nYou write.\n";
const LEAD_FILE: &str = "---\nname: lead\ndescription: Plans\nlead: true\n---\nYou plan.\n";

/// Size of a prompt. The figures of comparable projects are of turns with twice this.
const PROMPT_BYTES: usize = 2048;

pub struct Fixture {
    pub pool: PgPool,
    pub stopwatch: Arc<Stopwatch>,
    pub config: Config,
    pub settings: PathBuf,
    agents: PathBuf,
    pub url: String,
    opened: db::Database,
    database: Database,
    _folder: TempDir,
}

/// The measured cost of some tasks.
pub struct Ran {
    pub took: Duration,
    pub n_claims: usize,
    pub wal_bytes: i64,
    /// Time of the first task after the start of the worker, if they ran one by one.
    pub first_millis: Option<f64>,
    /// Times of the tasks after it.
    pub millis: Vec<f64>,
    /// Processor time in microseconds, as is `server_micros`.
    pub worker_micros: u64,
    pub server_micros: Option<u64>,
}

/// The addressee of a task.
#[derive(Clone)]
pub struct Conversation {
    pub campaign_id: Uuid,
    pub agent: &'static str,
    pub instance: String,
}

impl Fixture {
    pub async fn new(server: &Server, stopwatch: Arc<Stopwatch>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let agents = folder.path().join("agents");
        let skills = folder.path().join("skills");
        std::fs::create_dir(&agents)?;
        std::fs::create_dir(&skills)?;
        std::fs::write(agents.join("writer.md"), AGENT)?;
        let database = Database::create(server).await?;
        let url = database.options.to_url_lossy().to_string();
        let settings = folder.path().join("settings.toml");
        let folders = format!("[agents]\nfolder = {agents:?}\nskills_folder = {skills:?}\n");
        std::fs::write(&settings, format!("{SETTINGS}{folders}"))?;
        let set = vec![("database.url".to_owned(), url.clone())];
        let flags = Flags { file: Some(settings.clone()), set };
        let config =
            Config::load(&Environment::default(), &flags).context("the bench's settings")?;
        let stop = Shutdown::new().soft;
        let opened = db::Database::open(&config.database, db::Use::Join, &stop).await?;
        db::migrate(&opened.pool).await?;
        Ok(Self {
            pool: opened.pool.clone(),
            stopwatch,
            config,
            settings,
            agents,
            url,
            opened,
            database,
            _folder: folder,
        })
    }

    pub async fn remove(self) -> anyhow::Result<()> {
        self.opened.close().await?;
        self.database.remove().await
    }

    /// Adds the lead, which sees the other agents and their statuses in each of its turns.
    pub fn add_lead(&self) -> anyhow::Result<()> {
        Ok(std::fs::write(self.agents.join("lead.md"), LEAD_FILE)?)
    }

    /// Creates `n` conversations, spread evenly over `n_campaigns`.
    pub async fn conversations(
        &self,
        n: usize,
        n_campaigns: usize,
    ) -> anyhow::Result<Vec<Conversation>> {
        let mut conn = self.pool.acquire().await?;
        let mut campaigns = Vec::with_capacity(n_campaigns);
        for _ in 0..n_campaigns {
            let new = campaigns::New {
                name: "Harbour",
                brief: "Ten parts about a harbour.",
                client_context: Some("Short sentences."),
                limit: Limit::default(),
            };
            campaigns.push(campaigns::create(&mut conn, &new, SystemClock.now()).await?.id);
        }
        let conversation = |index: usize| Conversation {
            campaign_id: campaigns[index % n_campaigns],
            agent: WRITER,
            instance: format!("copy-{index}"),
        };
        Ok((0..n).map(conversation).collect())
    }

    /// Sets the limit of the budget of the day, or removes it.
    pub async fn set_day_budget(&self, tokens: Option<i64>) -> anyhow::Result<()> {
        let mut conn = self.pool.acquire().await?;
        let change = budgets::Change { tokens: Some(tokens), ..Default::default() };
        let day = (budgets::OwnerKind::Day, "");
        budgets::change(&mut conn, day, change, "UTC", SystemClock.now()).await?;
        Ok(())
    }

    /// Adds `n_each` tasks to each conversation, then runs them.
    pub async fn run(&self, conversations: &[Conversation], n_each: usize) -> anyhow::Result<Ran> {
        self.add(&self.pool, conversations, n_each).await?;
        self.work(&self.pool, conversations.len() * n_each).await
    }

    /// Runs one task on the calling thread's runtime and a pool of its own: a pool's connections belong to the runtime that opened them.
    pub async fn run_on_own_pool(&self, conversation: &Conversation) -> anyhow::Result<()> {
        let stop = Shutdown::new().soft;
        let opened = db::Database::open(&self.config.database, db::Use::Join, &stop).await?;
        self.add(&opened.pool, std::slice::from_ref(conversation), 1).await?;
        self.work(&opened.pool, 1).await?;
        Ok(opened.close().await?)
    }

    /// Runs tasks as [`run`](Self::run), after the server has finished its earlier work.
    pub async fn measure(
        &self,
        conversations: &[Conversation],
        n_each: usize,
    ) -> anyhow::Result<Ran> {
        self.add(&self.pool, conversations, n_each).await?;
        self.settle().await?;
        self.work(&self.pool, conversations.len() * n_each).await
    }

    /// Adds one task to each conversation, then the next one to each, and so on.
    pub async fn add(
        &self,
        pool: &PgPool,
        conversations: &[Conversation],
        n_each: usize,
    ) -> anyhow::Result<()> {
        let catalogue = Library::open(&self.config.agents)?.current();
        let mut tx = pool.begin().await?;
        for n in 0..conversations.len() * n_each {
            let conversation = &conversations[n % conversations.len()];
            let prompt = words::text(n as u64, PROMPT_BYTES);
            let new = tasks::New {
                instance: &conversation.instance,
                ..tasks::New::for_agent(
                    conversation.campaign_id,
                    catalogue.agent(conversation.agent)?,
                    &prompt,
                )
            };
            tasks::add(&mut tx, &self.config.tasks, &new, SystemClock.now()).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Runs a worker from its start to the last acknowledged end.
    async fn work(&self, pool: &PgPool, n_tasks: usize) -> anyhow::Result<Ran> {
        let services = Services::build(
            &self.config,
            Arc::new(SystemClock),
            env!("CARGO_BIN_EXE_dalsegno").into(),
            Traces::default(),
        )?;
        let (config, shutdown, database) = (self.config.clone(), Shutdown::new(), pool.clone());
        let stop = shutdown.clone();
        self.stopwatch.take_millis();
        let (n_claims, wal) = (self.stopwatch.n_claims(), wal_bytes(pool).await?);
        let cpu = cpu::used(pool).await;
        let began = Instant::now();
        let target = self.stopwatch.n_finished() + n_tasks;
        let work = tokio::spawn(async move {
            worker::run_pool(&config, services, &database.into(), stop, Pool::Turns).await
        });
        self.stopwatch.until_finished(target).await;
        let took = began.elapsed();
        let cpu_after = cpu::used(pool).await;
        let mut millis = self.stopwatch.take_millis().into_iter();
        let ran = Ran {
            took,
            n_claims: self.stopwatch.n_claims() - n_claims,
            wal_bytes: wal_bytes(pool).await? - wal,
            first_millis: millis.next(),
            millis: millis.collect(),
            worker_micros: cpu_after.worker_micros - cpu.worker_micros,
            server_micros: cpu_after.server_micros.zip(cpu.server_micros).map(|(b, a)| b - a),
        };
        shutdown.soft.cancel();
        work.await??;
        Ok(ran)
    }

    /// Updates statistics as in a service in use, and writes a checkpoint, so that none comes in the middle of the measurement.
    pub async fn settle(&self) -> anyhow::Result<()> {
        for statement in ["vacuum analyze", "checkpoint"] {
            sqlx::query(statement).execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Returns the mean size of a turn's text, prompt and answer.
    pub async fn text_bytes_per_turn(&self) -> anyhow::Result<f64> {
        let mean = "select (sum(octet_length(text))::float8 / count(distinct (session_id, turn)))
                      from dalsegno.messages";
        Ok(sqlx::query_scalar(mean).fetch_one(&self.pool).await?)
    }
}

impl Conversation {
    pub fn lane(&self) -> String {
        tasks::lane(self.campaign_id, self.agent, &self.instance)
    }
}
