//! Webhooks from the end of a task to a receiver on loopback.

mod ends;
mod faults;
mod operators;
mod private_addresses;
pub mod receiver;
mod retention;
mod secret_rotation;

use chrono::Utc;
use dalsegno::domain::{
    tasks::Task,
    webhooks::{self, Delivery, Filter, New, State, Webhook, WithSecret},
};
use uuid::Uuid;

use self::receiver::Receiver;
use crate::{
    app::{eventually, noon},
    turns::fixture::Fixture,
};

/// A campaign whose ends are delivered to a receiver.
struct WebhookSetup {
    fixture: Fixture,
    receiver: Receiver,
    webhook: Webhook,
    secret: String,
}

impl WebhookSetup {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    async fn with(settings: &[(&str, &str)]) -> Self {
        let usual = [("webhooks.allow_private", "true"), ("scheduler.enabled", "false")];
        let fixture = Fixture::new(&[&usual, settings].concat()).await;
        // The receiver's check of signatures uses the real clock.
        fixture.advance(Utc::now() - noon());
        let receiver = Receiver::start().await;
        let (webhook, secret) = add(&fixture, &receiver.url()).await;
        Self { fixture, receiver, webhook, secret }
    }

    /// Ends a task at once. Returns its delivery.
    async fn end_a_task(&self) -> (Task, Delivery) {
        let task = self.fixture.add("Write.").await;
        self.fixture.cancel(&task).await;
        let mut made = deliveries(&self.fixture, Some(&task)).await;
        assert_eq!(made.len(), 1, "{made:?}");
        (task, made.remove(0))
    }

    async fn delivery(&self, id: Uuid) -> Delivery {
        webhooks::get_delivery(&self.fixture.pool, id).await.unwrap()
    }

    /// Waits until a delivery meets a condition.
    async fn until(&self, id: Uuid, what: &str, is_so: impl Fn(&Delivery) -> bool) -> Delivery {
        eventually(what, async || Some(self.delivery(id).await).filter(|found| is_so(found))).await
    }

    async fn delivered(&self, id: Uuid) -> Delivery {
        self.until(id, "it is delivered", |found| found.state == State::Delivered).await
    }

    /// Returns the current state of the webhook.
    async fn now(&self) -> Webhook {
        webhooks::get(&self.fixture.pool, self.webhook.id).await.unwrap()
    }

    /// Makes deliveries due, instead of waiting for minutes.
    async fn make_due(&self) {
        let due = "update dalsegno.jobs set run_at = now() where kind = 'deliver_webhook' and state = 'scheduled'";
        sqlx::query(due).execute(&self.fixture.pool).await.unwrap();
    }
}

/// Adds a webhook for all ends of all campaigns. Returns its secret, too.
async fn add(fixture: &Fixture, url: &str) -> (Webhook, String) {
    add_new(fixture, &New { url, ..New::default() }).await
}

async fn add_new(fixture: &Fixture, new: &New<'_>) -> (Webhook, String) {
    let mut conn = fixture.pool.acquire().await.unwrap();
    let config = &fixture.config().webhooks;
    let added = webhooks::add(&mut conn, config, new, Utc::now()).await.unwrap();
    let WithSecret { webhook, secret } = added;
    (webhook, secret.expose().to_owned())
}

/// Returns the deliveries of a task, or of all.
async fn deliveries(fixture: &Fixture, task: Option<&Task>) -> Vec<Delivery> {
    let filter = Filter { task_id: task.map(|task| task.id), ..Filter::default() };
    let page = dalsegno::domain::Page { after: None, limit: 1000 };
    webhooks::deliveries(&fixture.pool, filter, page).await.unwrap()
}
