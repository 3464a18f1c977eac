//! `/v1` over real HTTP on a real database.

mod attachments;
mod audit;
mod auth;
mod bad_input;
mod balancer;
mod blackboard;
mod bulk;
mod bulk_actions;
mod campaigns;
mod children;
pub mod client;
pub mod contract;
mod credentials;
mod events;
mod facts;
mod feed;
mod flows;
mod forwarded;
mod intake;
pub mod key_setup;
mod keys;
mod labels;
mod limits;
mod locks;
pub mod lossy_proxy;
mod memory;
mod metrics;
mod openapi;
mod operation_keys;
mod operations;
mod posts;
mod priorities;
mod queue;
mod reach;
mod request_ids;
mod result_schemas;
mod routes;
mod scopes;
mod search;
mod sessions;
mod slow_clients;
mod strict_input;
mod task_files;
mod tasks;
mod turns;
mod webhooks;

use dalsegno::domain::amount::Limit;
use serde_json::Value;

use self::client::{Reply, Stream};
use crate::{
    app::{TestApp, TestDatabase},
    conversations::world::World,
};

/// A service without workers, and a campaign in it.
pub struct Fixture {
    app: TestApp,
    world: World,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// Starts it with these settings.
    async fn with(set: &[(&str, &str)]) -> Self {
        let app = TestApp::start_with(TestDatabase::migrated().await, set).await;
        let world = World::over(app.pool.clone(), Limit::default()).await;
        Self { app, world }
    }

    async fn get(&self, path: &str) -> Reply {
        client::send(self.app.address, "GET", path, &[], "").await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_with(path, body, &[]).await
    }

    async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Reply {
        client::send(self.app.address, "POST", path, headers, &body.to_string()).await
    }

    async fn patch(&self, path: &str, body: &Value) -> Reply {
        client::send(self.app.address, "PATCH", path, &[], &body.to_string()).await
    }

    /// Returns the path for this campaign's tasks.
    fn tasks(&self) -> String {
        format!("/v1/campaigns/{}/tasks", self.world.campaign.id)
    }
}
