//! A database with agents that have the tools, a worker, and the endpoint of a worker for its turns.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use dalsegno::{
    clock::{Clock as _, SystemClock},
    config::Config,
    db,
    domain::{
        agents::Library,
        amount::Limit,
        campaigns,
        tasks::{self, Task},
        turn_tokens::{self, Bearer},
    },
    http,
    jobs::{Pool, Services},
    settings::{Environment, Flags},
    shutdown::Shutdown,
    tools::{Settings, Tools},
    traces::Traces,
    worker,
};
use secrecy::ExposeSecret as _;
use sqlx::{ConnectOptions as _, PgPool};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    common::{Database, Server},
    ollama::Model,
};

/// Turns that run at the same time, each with a client of its own.
pub const N_CLIENTS: usize = 16;

const AGENTS: [(&str, &str); 2] = [
    ("caller", "lead: true\nprovider: sim\nmodel: sim-1\n"),
    ("writer", "provider: ollama\nmodel: qwen3:8b\n"),
];
/// The simulated latency is longer than the bench, so that the turns keep running.
const SETTINGS: [(&str, &str); 9] = [
    ("agents.max_same_calls", "9"),
    ("database.max_connections", "16"),
    ("log.filter", "warn"),
    ("ollama.num_ctx", "16384"),
    ("queue.cancel_grace_secs", "1"),
    ("shutdown.drain_timeout_secs", "1"),
    ("sim.latency_ms", "3600000"),
    ("sim.window_tokens", "1000000"),
    ("worker.turns_slots", "16"),
];

/// Poll interval, much shorter than the measured times.
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub struct Fixture {
    pub pool: PgPool,
    pub model: Model,
    config: Config,
    library: Arc<Library>,
    opened: db::Database,
    database: Database,
    _folder: TempDir,
}

/// A worker that runs until it is stopped.
pub struct Worker {
    shutdown: Shutdown,
    work: JoinHandle<Result<(), worker::Error>>,
}

/// The endpoint at which turns call their tools.
pub struct Endpoint {
    pub address: SocketAddr,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl Fixture {
    pub async fn new(server: &Server) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let agents = folder.path().join("agents");
        std::fs::create_dir(&agents)?;
        for (name, more) in AGENTS {
            let text = format!(
                "---\nname: {name}\ndescription: Works\ntools: mcp__dalsegno\n{more}---\nYou work.\n"
            );
            std::fs::write(agents.join(format!("{name}.md")), text)?;
        }
        let (model, database) = (Model::start().await?, Database::create(server).await?);
        let own = [
            ("database.url", database.options.to_url_lossy().to_string()),
            ("agents.folder", agents.display().to_string()),
            ("ollama.base_url", format!("http://{}", model.address)),
            ("service.data_dir", folder.path().join("data").display().to_string()),
        ];
        let usual = SETTINGS.map(|(key, value)| (key, value.to_owned()));
        let set = usual.into_iter().chain(own);
        let set = set.map(|(key, value)| (key.to_owned(), value)).collect();
        let config = Config::load(&Environment::default(), &Flags { file: None, set })
            .context("the bench's settings")?;
        let stop = Shutdown::new().soft;
        let opened = db::Database::open(&config.database, db::Use::Join, &stop).await?;
        db::migrate(&opened.pool).await?;
        let library = Arc::new(Library::open(&config.agents)?);
        let pool = opened.pool.clone();
        Ok(Self { pool, model, config, library, opened, database, _folder: folder })
    }

    pub async fn remove(self) -> anyhow::Result<()> {
        self.opened.close().await?;
        self.database.remove().await
    }

    pub async fn campaign(&self) -> anyhow::Result<Uuid> {
        let new = campaigns::New {
            name: "Harbour",
            brief: "Ten parts about a harbour.",
            client_context: None,
            limit: Limit::default(),
        };
        let mut conn = self.pool.acquire().await?;
        Ok(campaigns::create(&mut conn, &new, SystemClock.now()).await?.id)
    }

    pub async fn add(
        &self,
        campaign_id: Uuid,
        agent: &str,
        instance: &str,
    ) -> anyhow::Result<Task> {
        let catalogue = self.library.current();
        let new = tasks::New {
            instance,
            ..tasks::New::for_agent(campaign_id, catalogue.agent(agent)?, "Write part one.")
        };
        let mut tx = self.pool.begin().await?;
        let added = tasks::add(&mut tx, &self.config.tasks, &new, SystemClock.now()).await?;
        tx.commit().await?;
        Ok(added.task)
    }

    pub fn work(&self) -> anyhow::Result<Worker> {
        let program = std::env::current_exe()?;
        let services =
            Services::build(&self.config, Arc::new(SystemClock), program, Traces::default())?;
        let (config, pool, shutdown) = (self.config.clone(), self.pool.clone(), Shutdown::new());
        let stop = shutdown.clone();
        let work = async move {
            worker::run_pool(&config, services, &pool.into(), stop, Pool::Turns).await
        };
        Ok(Worker { shutdown, work: tokio::spawn(work) })
    }

    pub async fn endpoint(&self) -> anyhow::Result<Endpoint> {
        let listener = http::bind_turns().await?;
        let address = listener.local_addr()?;
        let settings =
            Settings::new(&self.config, Arc::new(SystemClock), Arc::clone(&self.library));
        let tools = Tools { pool: self.pool.clone(), settings: Arc::new(settings) };
        let (stop, config) = (CancellationToken::new(), self.config.http.clone());
        let stopped = stop.clone().cancelled_owned();
        let served =
            tokio::spawn(async move { http::run_turns(&config, tools, listener, stopped).await });
        Ok(Endpoint { address, stop, served })
    }

    /// Starts a turn and returns the token that its child would have.
    pub async fn token(&self, instance: &str) -> anyhow::Result<String> {
        let task = self.add(self.campaign().await?, "caller", instance).await?;
        let running = "select session_id, number from dalsegno.turns where task_id = $1 and state = 'running'";
        loop {
            let turn: Option<(Uuid, i32)> =
                sqlx::query_as(running).bind(task.id).fetch_optional(&self.pool).await?;
            if let Some((session_id, turn)) = turn {
                let bearer = Bearer { session_id, turn };
                let token = turn_tokens::mint(&self.pool, &bearer, SystemClock.now()).await?;
                let token = token.context("the turn is over")?;
                return Ok(token.expose_secret().to_owned());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits for the end of a task's job. Returns the milliseconds from its claim to its committed end.
    pub async fn run_millis(&self, task: &Task) -> anyhow::Result<f64> {
        let ended = "select outcome, (extract(epoch from ended_at - started_at) * 1e3)::float8
                       from dalsegno.runs where job_id = $1 and ended_at is not null";
        loop {
            let run: Option<(String, f64)> =
                sqlx::query_as(ended).bind(task.job_id).fetch_optional(&self.pool).await?;
            if let Some((outcome, millis)) = run {
                anyhow::ensure!(outcome == "done", "the turn ended as {outcome}");
                return Ok(millis);
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

impl Worker {
    pub async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.soft.cancel();
        self.shutdown.hard.cancel();
        Ok(self.work.await??)
    }
}

impl Endpoint {
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.served.await?)
    }
}
