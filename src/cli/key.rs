//! `dalsegno key`: what others show to the API.

use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    database::with_database,
    output::{Output, table},
    words::{period, time, time_or_dash},
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        Page,
        audit::{self, Action},
        campaigns,
        ids::{GivenCampaign, short},
        keys::{self, Key, Made, New, Scope},
        transaction::{begin, commit},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Makes a key and prints it. It is shown this once.
    Create(Create),
    /// Lists keys, the newest first, with what they are good for and when they were last used.
    Ls(List),
    /// Makes a successor of the same name and scopes, and prints it. The old key holds for some time more.
    Rotate(Rotate),
    /// Refuses a key from now on, within 5 seconds everywhere. A name means all keys that have it.
    Revoke(Which),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Who will show it: letters, digits, `.`, `-` and `_`.
    name: String,
    /// read, enqueue, operate (with read and enqueue), admin (with all), mcp. May be said several times.
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<Scope>,
    /// A campaign that it is bound to: it reaches nothing else. May be said several times. Without one it reaches all campaigns.
    #[arg(long = "campaign", value_name = "ID")]
    campaigns: Vec<GivenCampaign>,
    /// For how long it holds: 90d, 24h. Else until it is revoked.
    #[arg(long, value_name = "TIME", value_parser = period)]
    expires_in: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Rotate {
    #[command(flatten)]
    which: Which,
    /// How long the old key still holds.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = period)]
    overlap: TimeDelta,
}

#[derive(Debug, Args)]
pub(super) struct Which {
    /// Its name, the middle part of its text, or as much of the beginning or end of its id as no other has.
    #[arg(value_name = "NAME|ID")]
    key: String,
}

/// A key with its text.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    key: &'a Key,
    secret: &'a str,
}

pub(super) async fn run(command: &KeyCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(command: &KeyCommand, context: &Context, database: &Database) -> Result<Exit, Failure> {
    let (output, now) = (context.output, SystemClock.now());
    let mut tx = begin(&database.pool).await?;
    match command {
        KeyCommand::Create(create) => {
            let made = self::create(create, context, &mut tx, now).await?;
            commit(tx).await?;
            show(&made, output);
        }
        KeyCommand::Ls(List { limit }) => {
            let keys = keys::list(&mut *tx, Page { after: None, limit: *limit }).await?;
            output.data(&keys, || lines(&keys, now));
        }
        KeyCommand::Rotate(rotate) => {
            let made = self::rotate(rotate, context, &mut tx, now).await?;
            commit(tx).await?;
            show(&made, output);
        }
        KeyCommand::Revoke(Which { key }) => {
            let revoked = revoke(key, context, &mut tx, now).await?;
            commit(tx).await?;
            output.data(&revoked, || {
                let words = |key: &Key| format!("key {} (`{}`) is revoked\n", key.id, key.name);
                revoked.iter().map(words).collect()
            });
        }
    }
    Ok(Exit::Ok)
}

async fn create(
    create: &Create,
    context: &Context,
    conn: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Made, Failure> {
    let who = context.who();
    let mut campaigns = Vec::new();
    for given in &create.campaigns {
        campaigns.push(campaigns::find(&mut *conn, given, None).await?);
    }
    let new = New {
        name: &create.name,
        scopes: &create.scopes,
        campaigns: (!campaigns.is_empty()).then_some(&campaigns[..]),
        created_by: &who.label(),
        expires_at: create.expires_in.map(|life| now + life),
    };
    let made = keys::create(&mut *conn, &new, now).await?;
    let Key { name, scopes, campaigns, .. } = &made.key;
    let data = json!({ "name": name, "scopes": scopes, "campaigns": campaigns });
    audit::write(conn, &who, Action::KeyCreate, made.key.id, data, now).await?;
    Ok(made)
}

/// Of several keys of one name, the latest is rotated: the others have successors already.
async fn rotate(
    Rotate { which, overlap }: &Rotate,
    context: &Context,
    conn: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Made, Failure> {
    let found = keys::find(&mut *conn, &which.key).await?;
    let latest = found.iter().find(|key| key.replaced_by.is_none()).or(found.first());
    let old = latest.ok_or_else(|| keys::Error::Unknown(which.key.clone()))?.id;
    let who = context.who();
    let made = keys::rotate(&mut *conn, old, *overlap, &who.label(), now).await?;
    let data = json!({ "name": made.key.name, "successor": made.key.id, "overlap_secs": overlap.num_seconds() });
    audit::write(conn, &who, Action::KeyRotate, old, data, now).await?;
    Ok(made)
}

async fn revoke(
    key: &str,
    context: &Context,
    conn: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Vec<Key>, Failure> {
    let (who, mut all) = (context.who(), Vec::new());
    for found in keys::find(&mut *conn, key).await? {
        let (key, is_news) = keys::revoke(&mut *conn, found.id, now).await?;
        if is_news {
            let data = json!({ "name": key.name });
            audit::write(&mut *conn, &who, Action::KeyRevoke, key.id, data, now).await?;
        }
        all.push(key);
    }
    Ok(all)
}

/// The text alone goes to stdout, so that a script can take it; the rest is for the person beside it.
fn show(Made { key, text }: &Made, output: Output) {
    let secret = text.expose_secret();
    output.data(&Shown { key, secret }, || secret.to_owned());
    if !output.is_json() {
        let until =
            key.expires_at.map_or_else(String::new, |at| format!(", until {} UTC", time(at)));
        output.note(&format!(
            "key {} (`{}`) for {}, {}{until}; this is the only time that it is shown",
            key.id,
            key.name,
            scopes(key),
            match &key.campaigns {
                Some(_) => format!("bound to {}", campaigns(key)),
                None => "all campaigns".to_owned(),
            }
        ));
    }
}

fn lines(keys: &[Key], now: DateTime<Utc>) -> String {
    let row = |key: &Key| {
        let state = match key {
            Key { revoked_at: Some(_), .. } => "revoked",
            key if !key.is_usable(now) => "expired",
            Key { replaced_by: Some(_), .. } => "replaced",
            _ => "usable",
        };
        [
            short(key.id),
            key.name.clone(),
            key.handle.clone(),
            scopes(key),
            campaigns(key),
            state.to_owned(),
            time_or_dash(key.expires_at),
            time_or_dash(key.last_used_at),
            key.created_by.clone(),
        ]
    };
    let head = [
        "ID",
        "NAME",
        "HANDLE",
        "SCOPES",
        "CAMPAIGNS",
        "STATE",
        "EXPIRES (UTC)",
        "LAST USED (UTC)",
        "MADE BY",
    ];
    table(&head, keys.iter().map(row))
}

fn scopes(key: &Key) -> String {
    key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",")
}

fn campaigns(key: &Key) -> String {
    let ids = key.campaigns.as_ref().map(|ids| ids.iter().map(Uuid::to_string).collect::<Vec<_>>());
    ids.map_or_else(|| "all".to_owned(), |ids| ids.join(","))
}
