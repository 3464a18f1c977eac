//! The reach of keys: with the scope `enqueue` alone, their own tasks; bound keys, their campaigns.

mod bound_keys;
mod enqueue_keys;
mod request_parts;

use serde_json::{Value, json};

use super::{Fixture, client::Reply, key_setup::KeySetup};

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// Returns status and body, with names and request ids masked.
fn without_names(reply: &Reply, names: &[&str]) -> (u16, String) {
    let body = reply.body.replace(reply.request_id(), "REQUEST");
    let body = names.iter().fold(body, |body, name| body.replace(name, "NAME"));
    (reply.status, body)
}

impl KeySetup {
    /// Sends a request with a key and an idempotency key.
    async fn add(&self, key: &str, path: &str, body: &Value, idempotency_key: &str) -> Reply {
        let bearer = format!("Bearer {key}");
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", idempotency_key)];
        let address = self.fixture.app.address;
        super::client::send(address, "POST", path, &headers, &body.to_string()).await
    }

    /// Adds a task of this key that is done.
    async fn add_done_task(&self, key: &str, idempotency_key: &str, prompt: &str) -> String {
        let ask = json!({ "agent": "copywriter", "prompt": prompt });
        let added = self.add(key, &self.fixture.tasks(), &ask, idempotency_key).await;
        let task = id(&added.expect(201));
        let done = "update dalsegno.tasks set state = 'done', result = 'Two parts.', started_at = now(), ended_at = now() where id = $1::uuid";
        sqlx::query(done).bind(&task).execute(&self.fixture.app.pool).await.unwrap();
        task
    }
}

async fn count(fixture: &Fixture, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&fixture.app.pool).await.unwrap()
}
