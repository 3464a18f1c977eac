//! The place where each command runs: a server, the database or this host.

use anyhow::anyhow;

use super::{
    Command, Exit, Failure,
    remotes::RemoteCommand,
    target::{RemoteFlags, Target},
};
use crate::settings::Environment;

/// Place where a command can run.
enum ExecutionTarget {
    /// The database, or the server of `--url`.
    AnyServer,
    Database,
    Host,
}

impl Command {
    /// Returns the server for the command. `None`: the command works on the database or on this host.
    pub(super) fn target(
        &self,
        remote: &RemoteFlags,
        environment: &Environment,
    ) -> Result<Option<Target>, Failure> {
        if let Self::Remote(command) = self {
            let takes_key = matches!(command, RemoteCommand::Add { .. });
            if remote.names_server() || (remote.has_key() && !takes_key) {
                let words = "`dalsegno remote` manages the stored servers of this host: leave out --url and --remote; only `add` takes a key";
                return Err(Failure::new(Exit::Usage, anyhow!(words)));
            }
            return Ok(None);
        }
        let place = self.place();
        // The variables are meant for other commands.
        if matches!(place, ExecutionTarget::Host) && !remote.is_given() {
            return Ok(None);
        }
        let Some(target) = remote.target(environment)? else { return Ok(None) };
        let words = match place {
            ExecutionTarget::AnyServer => return Ok(Some(target)),
            ExecutionTarget::Host => {
                "this command works on this host: leave out --url, --remote and --key"
            }
            ExecutionTarget::Database => {
                "this command works on the database only: run it where the database can be reached, with `--remote local` in the place of a server"
            }
        };
        Err(Failure::new(Exit::Usage, anyhow!(words)))
    }

    /// Refuses an idempotency key for commands on this host, which make no change that could be repeated.
    pub(super) fn check_key(&self, idempotency_key: Option<&str>) -> Result<(), Failure> {
        match (self.place(), idempotency_key) {
            (ExecutionTarget::Host, Some(_)) => {
                let words = "this command works on this host: leave out --idempotency-key";
                Err(Failure::new(Exit::Usage, anyhow!(words)))
            }
            _ => Ok(()),
        }
    }

    fn place(&self) -> ExecutionTarget {
        match self {
            Self::Audit(_)
            | Self::Blackboard(_)
            | Self::Board(_)
            | Self::Bulk(_)
            | Self::Cleanup(_)
            | Self::RateLimit(_)
            | Self::Feed(_)
            | Self::Job(_)
            | Self::Key(_)
            | Self::SignIn(_)
            | Self::Overview
            | Self::Installation
            | Self::Lane(_)
            | Self::Credential(_)
            | Self::Memory(_)
            | Self::Queue(_)
            | Self::Schedule(_)
            | Self::Session(_)
            | Self::Task(_)
            | Self::Turn(_)
            | Self::Eval(_)
            | Self::Budget(_)
            | Self::Cost(_)
            | Self::Search(_)
            | Self::Fidelity(_)
            | Self::Context(_)
            | Self::Webhook(_) => ExecutionTarget::AnyServer,
            Self::Campaign(command) if command.is_remote() => ExecutionTarget::AnyServer,
            Self::Agent(command) if command.is_remote() => ExecutionTarget::AnyServer,
            Self::Flow(command) if command.is_remote() => ExecutionTarget::AnyServer,
            Self::Worker(command) if command.is_remote() => ExecutionTarget::AnyServer,
            Self::Erasure(command) if command.is_remote() => ExecutionTarget::AnyServer,
            Self::Serve
            | Self::Demo(_)
            | Self::Worker(_)
            | Self::Migrate(_)
            | Self::Agent(_)
            | Self::Flow(_)
            | Self::Config(_)
            | Self::Erasure(_)
            | Self::Doctor(_)
            | Self::Health(_)
            | Self::Openapi
            | Self::Metrics
            | Self::Remote(_)
            | Self::Completions(_)
            | Self::Man(_) => ExecutionTarget::Host,
            _ => ExecutionTarget::Database,
        }
    }
}
