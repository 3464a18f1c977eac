//! `dalsegno key`: API keys.

use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    args::Paging,
    output::{Output, Table, short_id, time_cell_or_dash},
    server::{Server, with_server},
    words::{parse_period, secs, time},
};
use crate::{
    clock::{Clock as _, SystemClock},
    domain::{
        audit::describe_label,
        ids::{GivenCampaign, PartialId},
        keys::{self, Key, Scope},
    },
    operations::{CreateKey, KeyWithSecret, ListKeys, RevokeKey, RotateKey},
};

/// Printed below an empty list.
const NO_KEYS: &str = "no API keys: `dalsegno key create NAME --scope read` makes one";

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Creates a key and prints it once.
    Create(Create),
    /// Lists keys with their scopes and last use, the newest first.
    Ls(Paging),
    /// Creates a successor with the same name and scopes; the old key stays valid for some time.
    Rotate(Rotate),
    /// Revokes a key, within 5 seconds everywhere; a name revokes all keys of that name.
    Revoke(KeyArgs),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Name of the caller: letters, digits, `.`, `-` and `_`.
    name: String,
    /// Right of the key: read, enqueue, operate (includes both), admin (includes all), mcp; may be repeated.
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<Scope>,
    /// Campaign that the key is bound to; may be repeated. Default: all campaigns.
    #[arg(long = "campaign", value_name = "CAMPAIGN")]
    campaigns: Vec<GivenCampaign>,
    /// Lifetime: 24h, 90d. Default: until it is revoked.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    expires_in: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(super) struct Rotate {
    #[command(flatten)]
    which: KeyArgs,
    /// Time for which the old key stays valid.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_period)]
    overlap: TimeDelta,
}

#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    /// Name of the key, its handle (the middle part of its text), or a unique beginning or end of its id.
    #[arg(value_name = "NAME|ID")]
    key: String,
}

pub(super) async fn run(command: &KeyCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &KeyCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        KeyCommand::Create(create) => show(&self::create(create, server).await?, output),
        KeyCommand::Ls(Paging { after, limit }) => {
            let after = match after {
                Some(given) if given.whole().is_none() => {
                    let found = KeyArgs { key: given.text().to_owned() }.find(server).await?;
                    found.first().map(|key| key.id)
                }
                given => given.as_ref().and_then(PartialId::whole),
            };
            let page = |cursor: Option<String>, limit| ListKeys {
                named: None,
                cursor: cursor.map_or(after, |cursor| cursor.parse().ok()),
                limit: Some(limit),
            };
            let keys = server.items(*limit, page).await?;
            output.print_rows(&keys, after.is_some(), NO_KEYS, || {
                format_keys(&keys, SystemClock.now())
            });
        }
        KeyCommand::Rotate(rotate) => show(&self::rotate(rotate, server).await?, output),
        KeyCommand::Revoke(which) => {
            let mut revoked = Vec::new();
            for key in which.find(server).await? {
                revoked.push(server.call_part(key.id, RevokeKey { id: key.id }).await?);
            }
            output.print_data(&revoked, || {
                let words = |key: &Key| format!("key {} (`{}`) is revoked\n", key.id, key.name);
                revoked.iter().map(words).collect()
            });
        }
    }
    Ok(Exit::Ok)
}

async fn create(create: &Create, server: &Server) -> Result<KeyWithSecret, Failure> {
    let mut campaigns = Vec::new();
    for given in &create.campaigns {
        campaigns.push(server.campaign(given).await?);
    }
    let key = CreateKey {
        name: create.name.clone(),
        scopes: create.scopes.clone(),
        campaigns: (!campaigns.is_empty()).then_some(campaigns),
        expires_in_secs: create.expires_in.map(secs),
    };
    server.call(key).await
}

/// Rotates the latest of several keys of one name: the others have successors already.
async fn rotate(
    Rotate { which, overlap }: &Rotate,
    server: &Server,
) -> Result<KeyWithSecret, Failure> {
    let found = which.find(server).await?;
    let latest = found.iter().find(|key| key.replaced_by.is_none()).or(found.first());
    let id = latest.ok_or_else(|| keys::Error::Unknown(which.key.clone()))?.id;
    server.call(RotateKey { id, overlap_secs: secs(*overlap) }).await
}

impl KeyArgs {
    async fn find(&self, server: &Server) -> Result<Vec<Key>, Failure> {
        let named = Some(self.key.clone());
        let found = server.call(ListKeys { named, cursor: None, limit: None }).await?.items;
        Ok(keys::select_named(&self.key, found)?)
    }
}

/// Prints the key. Its text alone goes to stdout, so that scripts can read it; the explanation goes to stderr.
fn show(shown: &KeyWithSecret, output: Output) {
    let KeyWithSecret { key, secret } = shown;
    output.print_data(shown, || secret.clone());
    if !output.is_structured() {
        let until =
            key.expires_at.map_or_else(String::new, |at| format!(", until {} UTC", time(at)));
        output.print_note(&format!(
            "key {} (`{}`) for {}, {}{until}; this is the only time that it is shown",
            key.id,
            key.name,
            scopes(key),
            match &key.campaigns {
                Some(ids) => {
                    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                    format!("bound to {}", ids.join(", "))
                }
                None => "all campaigns".to_owned(),
            }
        ));
    }
}

fn format_keys(keys: &[Key], now: DateTime<Utc>) -> String {
    let row = |key: &Key| {
        let state = match key {
            Key { revoked_at: Some(_), .. } => "revoked",
            key if !key.is_usable(now) => "expired",
            Key { replaced_by: Some(_), .. } => "replaced",
            _ => "usable",
        };
        [
            short_id(key.id),
            key.name.clone(),
            key.handle.clone(),
            scopes(key),
            campaigns(key),
            state.to_owned(),
            time_cell_or_dash(key.expires_at),
            time_cell_or_dash(key.last_used_at),
            describe_label(&key.created_by),
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
    let least = ["MADE BY", "HANDLE", "EXPIRES (UTC)"];
    Table::new(&head).leaves_out(&least).format(keys.iter().map(row))
}

fn scopes(key: &Key) -> String {
    key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",")
}

fn campaigns(key: &Key) -> String {
    let ids =
        key.campaigns.as_ref().map(|ids| ids.iter().copied().map(short_id).collect::<Vec<_>>());
    ids.map_or_else(|| "all".to_owned(), |ids| ids.join(","))
}
