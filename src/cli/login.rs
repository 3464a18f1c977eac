//! `dalsegno login`: the logins of Claude, and those that rest.

use clap::Subcommand;

use super::{
    Context, Exit, Failure,
    output::table,
    server::{Server, with_server},
    words::time,
};
use crate::{
    domain::logins::Login,
    operations::{ListLogins, ResumeLogin},
};

#[derive(Debug, Subcommand)]
pub(super) enum LoginCommand {
    /// Lists the logins: which of them rest until when and why, and how many open sessions are on them.
    Ls,
    /// Ends the rest of a login before its time, and wakes the tasks that were put off.
    Resume {
        /// The name of the login.
        name: String,
    },
}

pub(super) async fn run(command: &LoginCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| on(command, context, server).await).await
}

async fn on(command: &LoginCommand, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        LoginCommand::Ls => {
            let logins = server.call(ListLogins {}).await?.items;
            output.data(&logins, || lines(&logins));
        }
        LoginCommand::Resume { name } => {
            let done = server.call(ResumeLogin { name: name.clone() }).await?;
            let n_woken = done.woken_tasks;
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
