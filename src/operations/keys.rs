//! API keys.

use chrono::TimeDelta;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, Success,
    page_limit,
};
use crate::domain::{
    Page,
    audit::Action,
    campaigns,
    class::{BAD_VALUE, Kind, NUL_IN_TEXT},
    keys::{self, Error, Key, New, NewKey, Scope},
};

const TAG: &str = "keys";
const ADMIN: &[Scope] = &[Scope::Admin];

/// Lists the API keys, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListKeys {
    /// Only keys with this name that are not revoked, with this handle, or with an id that begins or ends so; all of them, on one page.
    pub named: Option<String>,
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Creates an API key. Only this response contains its text.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKey, example = json!({ "name": "shop", "scopes": ["enqueue"] }))]
pub struct CreateKey {
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The campaigns that it is bound to, at most 100: it reaches nothing else. All, if they are left out.
    #[schema(min_items = 1, max_items = 100)]
    pub campaigns: Option<Vec<Uuid>>,
    /// Never, if it is left out.
    pub expires_in_secs: Option<u32>,
}

/// Creates the successor of an API key; the old key stays valid for some time.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KeyRotation)]
pub struct RotateKey {
    pub id: Uuid,
    /// Time for which the old key stays valid.
    #[serde(default = "a_day")]
    pub overlap_secs: u32,
}

/// Revokes an API key: all processes refuse it within 5 seconds.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeKey {
    pub id: Uuid,
}

/// A key with its text, which no other answer has.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ShownKey)]
pub struct KeyWithSecret {
    #[serde(flatten)]
    pub key: Key,
    pub secret: String,
}

impl Operation for ListKeys {
    const SPEC: Spec = Spec::read("list_keys", "/v1/keys", "key ls").tag(TAG).needs(ADMIN);
    type Output = Listing<Key>;

    async fn run(self, call: &Call) -> Result<Listing<Key>, Refusal> {
        if let Some(named) = &self.named {
            if self.cursor.is_some() || self.limit.is_some() {
                let detail =
                    "`named` finds the few keys of one name: leave out `cursor` and `limit`";
                return Err(Refusal::new(Kind::Malformed, "bad_query", detail));
            }
            return Ok(Listing { items: keys::find(&call.pool, named).await?, next: None });
        }
        let limit = page_limit(self.limit)?;
        let page = Page { after: self.cursor, limit: limit + 1 };
        Ok(Listing::of(keys::list(&call.pool, page).await?, limit, |key| key.id))
    }
}

impl Change for CreateKey {
    const SPEC: Spec = Spec::change("create_key", "/v1/keys", "key create")
        .tag(TAG)
        .needs(ADMIN)
        .answers(Success::Created)
        .shows_secret()
        .refuses(&[
            campaigns::Error::UNKNOWN,
            Error::NAME_TAKEN,
            Error::EXPIRED,
            BAD_VALUE,
            NUL_IN_TEXT,
        ]);
    const ACTION: Action = Action::KeyCreate;
    type Output = KeyWithSecret;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<KeyWithSecret> {
        let life = self.expires_in_secs.map(|secs| TimeDelta::seconds(secs.into()));
        let new = New {
            name: &self.name,
            scopes: &self.scopes,
            campaigns: self.campaigns.as_deref(),
            created_by: &call.actor.label(),
            expires_at: life.map(|life| call.now + life),
        };
        let made = keys::create(conn, &new, call.now).await?;
        let Key { id, name, scopes, campaigns, .. } = &made.key;
        let data = json!({ "name": name, "scopes": scopes, "campaigns": campaigns });
        Ok(ChangeOutput::of(*id, made.into(), data))
    }
}

impl Change for RotateKey {
    const SPEC: Spec = Spec::change("rotate_key", "/v1/keys/{id}/rotate", "key rotate")
        .tag(TAG)
        .needs(ADMIN)
        .answers(Success::Created)
        .shows_secret()
        .refuses(&[Error::UNKNOWN, Error::REVOKED, Error::REPLACED, Error::NAME_TAKEN]);
    const ACTION: Action = Action::KeyRotate;
    type Output = KeyWithSecret;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<KeyWithSecret> {
        let Self { id, overlap_secs } = self;
        let overlap = TimeDelta::seconds(overlap_secs.into());
        let made = keys::rotate(conn, id, overlap, &call.actor.label(), call.now).await?;
        let Key { name, id: successor, .. } = &made.key;
        let data = json!({ "name": name, "successor": successor, "overlap_secs": overlap_secs });
        Ok(ChangeOutput::of(id, made.into(), data))
    }
}

impl Change for RevokeKey {
    const SPEC: Spec = Spec::change("revoke_key", "/v1/keys/{id}/revoke", "key revoke")
        .tag(TAG)
        .needs(ADMIN)
        .refuses(&[Error::UNKNOWN]);
    const ACTION: Action = Action::KeyRevoke;
    type Output = Key;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Key> {
        let (key, is_news) = keys::revoke(conn, self.id, call.now).await?;
        if !is_news {
            return Ok(ChangeOutput::nothing(self.id, key));
        }
        let data = json!({ "name": key.name });
        Ok(ChangeOutput::of(self.id, key, data))
    }
}

impl From<NewKey> for KeyWithSecret {
    fn from(NewKey { key, text }: NewKey) -> Self {
        Self { key, secret: text.expose_secret().to_owned() }
    }
}

fn a_day() -> u32 {
    86_400
}
