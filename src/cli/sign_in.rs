//! `dalsegno sign-in`: browsers that have signed in to the console.

use chrono::{DateTime, Utc};
use clap::Subcommand;

use super::{
    Context, Exit, Failure,
    args::{Id, Paging},
    output::{Table, short_id, time_cell},
    server::{Server, with_server},
};
use crate::{
    clock::{Clock as _, SystemClock},
    domain::{ids::PartialId, sign_ins::SignIn},
    operations::{EndSignIn, ListSignIns},
};

/// Printed below an empty list.
const NO_SIGN_INS: &str = "no sign-ins within 30 days: a browser signs in with an API key at the address that `dalsegno serve` prints; `dalsegno key create NAME --scope read` makes a key";

#[derive(Debug, Subcommand)]
pub(super) enum SignInCommand {
    /// Lists sign-ins of the last 30 days, the newest first.
    Ls(Paging),
    /// Ends a sign-in: the browser has to sign in again.
    End(Id),
}

pub(super) async fn run(command: &SignInCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &SignInCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    match command {
        SignInCommand::Ls(Paging { after, limit }) => {
            let after = match after {
                Some(given) => find(given, server).await?,
                None => None,
            };
            let page = |cursor: Option<String>, limit| ListSignIns {
                cursor: cursor.map_or(after, |cursor| cursor.parse().ok()),
                limit: Some(limit),
            };
            let sign_ins = server.items(*limit, page).await?;
            context.output.print_rows(&sign_ins, after.is_some(), NO_SIGN_INS, || {
                format_sign_ins(&sign_ins, SystemClock.now())
            });
        }
        SignInCommand::End(Id { id }) => {
            let id = match find(id, server).await? {
                Some(id) => id,
                None => {
                    let text = id.text();
                    let words = format!(
                        "no single sign-in has an id like `{text}`: `dalsegno sign-in ls` lists them"
                    );
                    return Err(Failure::new(Exit::Usage, anyhow::anyhow!(words)));
                }
            };
            let ended = server.call(EndSignIn { id }).await?;
            context.output.print_data(&ended, || format!("sign-in {id} is ended\n"));
        }
    }
    Ok(Exit::Ok)
}

/// Resolves an id among the newest 200 sign-ins.
async fn find(given: &PartialId, server: &Server) -> Result<Option<uuid::Uuid>, Failure> {
    if let Some(id) = given.whole() {
        return Ok(Some(id));
    }
    let page = server.call(ListSignIns { cursor: None, limit: Some(200) }).await?;
    let text = given.text().replace('-', "");
    let fits = |sign_in: &&SignIn| {
        let id = sign_in.id.simple().to_string();
        id.starts_with(&text) || id.ends_with(&text)
    };
    let mut found = page.items.iter().filter(fits);
    Ok(match (found.next(), found.next()) {
        (Some(only), None) => Some(only.id),
        _ => None,
    })
}

fn format_sign_ins(sign_ins: &[SignIn], now: DateTime<Utc>) -> String {
    let row = |sign_in: &SignIn| {
        let state = match sign_in {
            SignIn { ended_at: Some(_), .. } => "ended",
            sign_in if !sign_in.is_open(now) => "expired",
            _ => "open",
        };
        [
            short_id(sign_in.id),
            sign_in.key_id.map_or_else(|| "admin key".to_owned(), short_id),
            state.to_owned(),
            time_cell(sign_in.created_at),
            time_cell(sign_in.expires_at),
            sign_in.peer.clone().unwrap_or_else(|| "-".to_owned()),
            sign_in.browser.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let head = ["ID", "KEY", "STATE", "SINCE (UTC)", "EXPIRES (UTC)", "FROM", "BROWSER"];
    Table::new(&head).leaves_out(&["EXPIRES (UTC)", "FROM"]).format(sign_ins.iter().map(row))
}
