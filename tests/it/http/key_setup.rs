//! A service that requires keys, and callers with keys.

use serde_json::{Value, json};

use super::{
    Fixture,
    client::{Reply, send},
};

pub const ADMIN_KEY: &str = "0123456789-the-key-of-the-configuration";

/// A service that requires a key for each request.
pub struct KeySetup {
    pub fixture: Fixture,
}

impl KeySetup {
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(set: &[(&str, &str)]) -> Self {
        let keys = [("http.require_key", "true"), ("http.admin_key", ADMIN_KEY)];
        Self { fixture: Fixture::with(&[&keys[..], set].concat()).await }
    }

    /// Sends a request, with a key or without.
    pub async fn ask(&self, key: Option<&str>, method: &str, path: &str, body: &Value) -> Reply {
        let header = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<_> = header.iter().map(|text| ("Authorization", text.as_str())).collect();
        let body =
            if ["GET", "DELETE"].contains(&method) { String::new() } else { body.to_string() };
        send(self.fixture.app.address, method, path, &headers, &body).await
    }

    pub async fn get(&self, key: &str, path: &str) -> Reply {
        self.ask(Some(key), "GET", path, &Value::Null).await
    }

    pub async fn admin(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.ask(Some(ADMIN_KEY), method, path, body).await
    }

    /// Creates a key with these scopes. Returns its JSON and its text.
    pub async fn create_key(&self, name: &str, scopes: &[&str]) -> (Value, String) {
        let wanted = json!({ "name": name, "scopes": scopes });
        let made = self.admin("POST", "/v1/keys", &wanted).await.expect(201);
        let text = made["secret"].as_str().unwrap().to_owned();
        (made, text)
    }

    /// Returns the key with this id from the list.
    pub async fn listed(&self, id: &Value) -> Value {
        let keys = self.admin("GET", "/v1/keys", &Value::Null).await.expect(200);
        let found = keys["items"].as_array().unwrap().iter().find(|key| key["id"] == *id).cloned();
        found.unwrap_or_else(|| panic!("{id} is not in {keys}"))
    }
}
