//! `dalsegno login`: the logins of Claude, and those that rest.

use clap::Subcommand;
use serde_json::json;

use super::{Context, Exit, Failure, database::with_database, output::table, words::time};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        audit::{self, Action},
        logins::{self, Login},
        transaction::{begin, commit},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum LoginCommand {
    /// Lists the logins: which of them rest until when and why, and how many open sessions are on them.
    Ls,
    /// Ends the rest of a login before its time, and wakes the tasks that were put off.
    Resume { name: String },
}

pub(super) async fn run(command: &LoginCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &LoginCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (output, now) = (context.output, SystemClock.now());
    let mut tx = begin(&database.pool).await?;
    match command {
        LoginCommand::Ls => {
            let config = context.load()?;
            let configured: Vec<_> = config.logins().collect();
            let logins = logins::list(&mut tx, &configured, now).await?;
            output.data(&logins, || lines(&logins));
        }
        LoginCommand::Resume { name } => {
            let n_woken = logins::resume(&mut tx, name, now).await?;
            let (who, data) = (context.who(), json!({ "woken_tasks": n_woken }));
            audit::write(&mut *tx, &who, Action::LoginResume, name, data, now).await?;
            commit(tx).await?;
            let done = json!({ "login": name, "woken_tasks": n_woken });
            output.data(&done, || {
                format!("`{name}` may be used again; tasks that go on now: {n_woken}")
            });
        }
    }
    Ok(Exit::Ok)
}

fn lines(logins: &[Login]) -> String {
    let row = |login: &Login| {
        let name = match login.is_configured {
            true => login.login.clone(),
            false => format!("{} (not configured here)", login.login),
        };
        [
            login.provider.clone(),
            name,
            login.rests_until.map_or_else(|| "-".to_owned(), time),
            login.sessions.to_string(),
            login.why.clone().unwrap_or_default(),
        ]
    };
    table(&["PROVIDER", "LOGIN", "RESTS UNTIL (UTC)", "SESSIONS", "WHY"], logins.iter().map(row))
}
