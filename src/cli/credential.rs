//! `dalsegno credential`: the credentials of Claude and their pauses.

use clap::Subcommand;

use super::{
    Context, Exit, Failure,
    output::format_table,
    server::{Server, with_server},
    words::time,
};
use crate::{
    domain::credentials::CredentialStatus,
    operations::{ListCredentials, ResumeCredential},
};

/// Printed below an empty list.
const NO_CREDENTIALS: &str =
    "no credentials: the configuration names them, and `dalsegno config template` shows how";

#[derive(Debug, Subcommand)]
pub(super) enum CredentialCommand {
    /// Lists the credentials, their pauses and their open sessions.
    Ls,
    /// Ends the pause of a credential early, and wakes the tasks that wait for it.
    Resume {
        /// Name of the credential: `dalsegno credential ls` lists it.
        name: String,
        /// Its provider, if credentials of several providers with this name are paused.
        #[arg(long)]
        provider: Option<String>,
    },
}

pub(super) async fn run(command: &CredentialCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &CredentialCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        CredentialCommand::Ls => {
            let credentials = server.call(ListCredentials {}).await?.items;
            output.print_rows(&credentials, false, NO_CREDENTIALS, || {
                format_credentials(&credentials)
            });
        }
        CredentialCommand::Resume { name, provider } => {
            let resume = ResumeCredential { name: name.clone(), provider: provider.clone() };
            let done = server.call(resume).await?;
            let n_woken = done.woken_tasks;
            output.print_data(&done, || {
                format!("credential `{name}` is resumed; {n_woken} waiting tasks continue")
            });
        }
    }
    Ok(Exit::Ok)
}

fn format_credentials(credentials: &[CredentialStatus]) -> String {
    let row = |credential: &CredentialStatus| {
        let name = match credential.is_configured {
            true => credential.name.clone(),
            false => format!("{} (not configured here)", credential.name),
        };
        [
            credential.provider.clone(),
            name,
            credential.paused_until.map_or_else(|| "-".to_owned(), time),
            credential.sessions.to_string(),
            credential.why.clone().unwrap_or_default(),
        ]
    };
    format_table(
        &["PROVIDER", "CREDENTIAL", "PAUSED UNTIL (UTC)", "SESSIONS", "WHY"],
        credentials.iter().map(row),
    )
}
