//! `dalsegno turn rerun` and `turn reruns`.

use std::{path::PathBuf, time::Duration};

use chrono::TimeDelta;
use clap::Args;
use serde_json::Map;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::InSession;
use crate::{
    cli::{
        Context, Exit, Failure,
        server::Server,
        words::{parse_period, read_text},
    },
    domain::reruns::{Rerun, State},
    operations::{ListReruns, Noun, RerunTurn, TurnReruns},
};

/// Wait between two looks at reruns that have not ended.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Sends a call of a turn again, without a change of the conversation, and compares the answers.
///
/// The call gets the context that it had, byte for byte unless an option below changes it. One call is made: tool calls in the answer are
/// stored and shown, and never executed. A model with a price is paid from the budget for reruns: `dalsegno campaign budget --experiments 5`.
#[derive(Debug, Args)]
pub(in crate::cli) struct RerunFlags {
    #[command(flatten)]
    place: Place,
    /// Another model of the same provider.
    #[arg(long)]
    model: Option<String>,
    /// An agent file: its prompt, skills, tools, model and options replace those of the call. `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// The temperature, from 0 to 2. Only Ollama has this option.
    #[arg(long)]
    temperature: Option<f32>,
    /// Number of reruns, up to 20.
    #[arg(long, value_name = "N", default_value_t = 1)]
    times: i32,
    /// Returns at once; `dalsegno turn reruns` shows the answers later.
    #[arg(long)]
    no_wait: bool,
    /// Longest wait for the answers, for example 30s or 10m. The reruns go on after it.
    #[arg(long, value_name = "DURATION", value_parser = parse_period, conflicts_with = "no_wait")]
    timeout: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Place {
    #[command(flatten)]
    session: InSession,
    /// The turn: `dalsegno turn ls` lists them.
    #[arg(long, value_name = "TURN")]
    turn: i32,
    /// The call of the turn, from 1. By default the first; for `turn reruns`, the one of the newest rerun.
    #[arg(long, value_name = "CALL", value_parser = clap::value_parser!(i32).range(1..))]
    call: Option<i32>,
}

/// Requests the reruns, and waits for their ends.
pub(super) async fn rerun(
    flags: &RerunFlags,
    context: &Context,
    server: &Server,
) -> Result<(TurnReruns, Exit), Failure> {
    let Place { turn, call, session } = &flags.place;
    let id = server.id(Noun::Session, &session.session).await?;
    let requested = server
        .call(RerunTurn {
            id,
            number: *turn,
            call: *call,
            times: Some(flags.times),
            model: flags.model.clone(),
            temperature: flags.temperature,
            agent_file: read_text(None, flags.agent.as_ref())?,
            metadata: Map::new(),
        })
        .await?;
    if flags.no_wait {
        return Ok((requested, Exit::Ok));
    }
    let limit = flags.timeout.and_then(|limit| limit.to_std().ok());
    let end = limit.map(|limit| Instant::now() + limit);
    let known: Vec<Uuid> = requested.reruns.iter().map(|rerun| rerun.id).collect();
    let list = || ListReruns { id, number: *turn, call: Some(requested.original.call) };
    let now = wait(server, list, |rerun| known.contains(&rerun.id), end).await?;
    let exit = exit_of(&now.reruns);
    if exit == Exit::TimedOut {
        context.output.print_note(&format!(
            "not all reruns have ended: `dalsegno turn reruns {id} --turn {turn}` shows them later"
        ));
    }
    Ok((now, exit))
}

/// Waits until these reruns have ended, at most until `end`. Returns them.
pub(in crate::cli) async fn wait(
    server: &Server,
    list: impl Fn() -> ListReruns,
    is_wanted: impl Fn(&Rerun) -> bool,
    end: Option<Instant>,
) -> Result<TurnReruns, Failure> {
    loop {
        let mut now = server.call(list()).await?;
        now.reruns.retain(&is_wanted);
        let has_ended = now.reruns.iter().all(|rerun| rerun.state != State::Queued);
        if has_ended || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(now);
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Lists the reruns of a turn.
pub(super) async fn list(place: &Place, server: &Server) -> Result<TurnReruns, Failure> {
    let id = server.id(Noun::Session, &place.session.session).await?;
    server.call(ListReruns { id, number: place.turn, call: place.call }).await
}

fn exit_of(reruns: &[Rerun]) -> Exit {
    let any = |state| reruns.iter().any(|rerun| rerun.state == state);
    match (any(State::Queued), any(State::Failed)) {
        (true, _) => Exit::TimedOut,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Ok,
    }
}
