//! `dalsegno login`: the credentials of Claude and their pauses.

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
    /// Lists the credentials, their pauses and their open sessions.
    Ls,
    /// Ends the pause of a credential early, and wakes the tasks that wait for it.
    Resume {
        /// Name of the credential: `dalsegno login ls` lists it.
        name: String,
        /// Its provider, if credentials of several providers with this name are paused.
        #[arg(long)]
        provider: Option<String>,
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
        LoginCommand::Resume { name, provider } => {
            let resume = ResumeLogin { name: name.clone(), provider: provider.clone() };
            let done = server.call(resume).await?;
            let n_woken = done.woken_tasks;
            output.data(&done, || {
                format!("credential `{name}` is resumed; {n_woken} waiting tasks continue")
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
    table(&["PROVIDER", "LOGIN", "PAUSED UNTIL (UTC)", "SESSIONS", "WHY"], logins.iter().map(row))
}
