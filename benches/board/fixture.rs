//! A database with agents that posts can mention, and a worker of the service on it.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use dalsegno::{
    clock::{Clock as _, SystemClock},
    config::Config,
    db,
    domain::{
        agents::{Agent, Catalogue, Library},
        amount::Limit,
        campaigns,
        tasks::{self, Task},
    },
    jobs::{Pool, Services},
    settings::{Environment, Flags},
    shutdown::Shutdown,
    traces::Traces,
    worker,
};
use sqlx::{ConnectOptions as _, PgPool};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::sleep};
use uuid::Uuid;

use crate::common::{Database, Server};

pub const N_AGENTS: usize = 20;

const SETTINGS: [(&str, &str); 7] = [
    ("agents.provider", "sim"),
    ("agents.model", "sim-1"),
    ("database.max_connections", "16"),
    ("log.filter", "warn"),
    ("sim.chunk_delay_ms", "0"),
    ("sim.latency_ms", "0"),
    ("sim.window_tokens", "1000000"),
];

/// Poll interval, much shorter than the measured times.
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub struct Fixture {
    pub pool: PgPool,
    pub config: Config,
    library: Library,
    opened: db::Database,
    database: Database,
    _folder: TempDir,
}

/// A worker that runs until it is stopped.
pub struct Worker {
    shutdown: Shutdown,
    work: JoinHandle<Result<(), worker::Error>>,
}

/// Returns the name of the nth agent.
pub fn agent(n: usize) -> String {
    format!("agent-{n:02}")
}

impl Fixture {
    pub async fn new(server: &Server) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let agents = folder.path().join("agents");
        std::fs::create_dir(&agents)?;
        for name in (0..N_AGENTS).map(agent) {
            let text = format!("---\nname: {name}\ndescription: Answers\n---\nYou answer.\n");
            std::fs::write(agents.join(format!("{name}.md")), text)?;
        }
        let database = Database::create(server).await?;
        let mut set: Vec<(String, String)> =
            SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        set.push(("database.url".to_owned(), database.options.to_url_lossy().to_string()));
        set.push(("agents.folder".to_owned(), agents.display().to_string()));
        let config = Config::load(&Environment::default(), &Flags { file: None, set })
            .context("the bench's settings")?;
        let stop = Shutdown::new().soft;
        let opened = db::Database::open(&config.database, db::Use::Join, &stop).await?;
        db::migrate(&opened.pool).await?;
        let library = Library::open(&config.agents)?;
        let pool = opened.pool.clone();
        Ok(Self { pool, config, library, opened, database, _folder: folder })
    }

    pub async fn remove(self) -> anyhow::Result<()> {
        self.opened.close().await?;
        self.database.remove().await
    }

    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.library.current()
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

    pub async fn add(&self, campaign_id: Uuid, prompt: &str) -> anyhow::Result<Task> {
        let catalogue = self.catalogue();
        let mut tx = self.pool.begin().await?;
        let new = ask(campaign_id, catalogue.agent(&agent(0))?, prompt);
        let added = tasks::add(&mut tx, &self.config.tasks, &new, SystemClock.now()).await?;
        tx.commit().await?;
        Ok(added.task)
    }

    pub fn work(&self) -> anyhow::Result<Worker> {
        let program = std::env::current_exe()?;
        let clock = Arc::new(SystemClock);
        let services = Services::build(&self.config, clock, program, Traces::default())?;
        let (config, pool, shutdown) = (self.config.clone(), self.pool.clone(), Shutdown::new());
        let stop = shutdown.clone();
        let work = async move {
            worker::run_pool(&config, services, &pool.into(), stop, Pool::Turns).await
        };
        Ok(Worker { shutdown, work: tokio::spawn(work) })
    }

    /// Waits until a task has ended.
    pub async fn done(&self, id: Uuid) -> anyhow::Result<Task> {
        loop {
            let task = tasks::get(&self.pool, id).await?;
            if task.ended_at.is_some() {
                return Ok(task);
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

impl Worker {
    pub async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.soft.cancel();
        Ok(self.work.await??)
    }
}

pub fn ask<'a>(campaign_id: Uuid, agent: &'a Agent, prompt: &'a str) -> tasks::New<'a> {
    tasks::New::for_agent(campaign_id, agent, prompt)
}
