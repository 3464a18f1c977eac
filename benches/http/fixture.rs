//! The API on a database of its own, with one campaign.

use std::{net::SocketAddr, sync::Arc};

use dalsegno::{
    clock::{Clock as _, SystemClock},
    config::Config,
    db,
    domain::{amount::Limit, campaigns},
    http::{self, RouterState},
    jobs::Services,
    settings::{Environment, Flags},
    shutdown::Shutdown,
    telemetry,
    traces::Traces,
    worker,
};
use sqlx::{ConnectOptions as _, PgPool};
use tokio::{net::TcpListener, task::JoinHandle};
use uuid::Uuid;

use crate::common::{Database, Server};

pub struct Fixture {
    pub address: SocketAddr,
    pub pool: PgPool,
    campaign_id: Uuid,
    shutdown: Shutdown,
    served: JoinHandle<()>,
    opened: db::Database,
    database: Database,
}

impl Fixture {
    pub async fn new(server: &Server) -> anyhow::Result<Self> {
        let database = Database::create(server).await?;
        let url = database.options.to_url_lossy().to_string();
        let set = [
            ("database.url", url.as_str()),
            ("log.filter", "warn"),
            ("http.listen", "127.0.0.1:0"),
        ];
        let set = set.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let config = Config::load(&Environment::default(), &Flags { file: None, set })?;
        let telemetry = telemetry::init(&config.log)?;
        let shutdown = Shutdown::new();
        let opened = db::Database::open(&config.database, db::Use::Serve, &shutdown.soft).await?;
        db::migrate(&opened.pool).await?;
        let new = campaigns::New {
            name: "bench",
            brief: "",
            client_context: None,
            limit: Limit::default(),
        };
        let mut conn = opened.pool.acquire().await?;
        let campaign = campaigns::create(&mut conn, &new, SystemClock.now()).await?;
        drop(conn);
        let listener = TcpListener::bind(config.http.listen).await?;
        let address = listener.local_addr()?;
        let clock = Arc::new(SystemClock);
        // No Claude CLI is started: the requests add tasks only.
        let services = Services::build(&config, clock, "dalsegno".into(), Traces::default())?;
        let front = RouterState::new(telemetry.metrics.clone(), shutdown.clone());
        front.open(worker::app(&config, &services, &front, &opened));
        let (stop, router) = (shutdown.clone(), http::router(&config.http, front));
        let served = tokio::spawn(async move {
            http::run(&config.http, stop, router, listener).await;
        });
        let pool = opened.pool.clone();
        Ok(Self { address, pool, campaign_id: campaign.id, shutdown, served, opened, database })
    }

    pub fn tasks(&self) -> String {
        format!("/v1/campaigns/{}/tasks", self.campaign_id)
    }

    pub async fn n_tasks(&self) -> anyhow::Result<i64> {
        let count = sqlx::query_scalar("select count(*) from dalsegno.tasks");
        Ok(count.fetch_one(&self.pool).await?)
    }

    pub async fn remove(self) -> anyhow::Result<()> {
        self.shutdown.soft.cancel();
        self.shutdown.hard.cancel();
        self.served.await?;
        self.opened.close().await?;
        self.database.remove().await
    }
}
