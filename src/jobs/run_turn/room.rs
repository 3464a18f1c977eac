//! Making room in a conversation that has grown too long for its window, while a turn waits.

use uuid::Uuid;

use super::{Error, Refused, assignment::Assignment};
use crate::{
    causes::causes,
    context::Pressure,
    domain::{compactions::Cause, sessions},
    jobs::{
        Services,
        compact_session::{self, Error as NotFolded, Folder},
        folder::{self, Around},
    },
    providers::Class,
    queue::Run,
};

/// How much is in the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needed {
    pub(super) around: Around,
    pub(super) pressure: Pressure,
    /// What a provider has refused as too long: its window is really smaller than that.
    pub(super) refused_tokens: Option<u64>,
}

/// Has a summary prepared, which the beginning that follows applies. No transaction is open.
///
/// Where the turn could still go on without one, it goes on.
pub(super) async fn make(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    session_id: Uuid,
    needed: Needed,
) -> Result<(), Error> {
    let Assignment { task, agent, node, route, .. } = assignment;
    let window = folder::summariser_window(services, agent, route, run.cancel()).await;
    let cost = |model: &str, tokens| services.cost(&route.provider_name, model, tokens);
    let refused = needed.refused_tokens.map(|tokens| tokens.saturating_add(route.reserve_tokens));
    let limit = |window: u64| refused.map_or(window, |refused| window.min(refused));
    let catalogue = services.library.current();
    let folder = folder::folder(
        run.pool(),
        services,
        (agent, &catalogue),
        route,
        run.cancel(),
        needed.around,
        limit(window),
        &cost,
    );
    let window_tokens = limit(folder.window_tokens);
    let waiting_node = node.as_deref().map(|node| node.name.as_str());
    let folder = Folder { window_tokens, waiting: Some(task), waiting_node, ..folder };
    let is_overflow = needed.pressure == Pressure::Overflow;
    let cause = if is_overflow { Cause::Overflow } else { Cause::Auto };
    // Where the provider keeps the conversation, a new one can begin without a summary.
    let must = is_overflow && !route.keeps_conversation;
    match compact_session::prepare(&folder, session_id, cause).await {
        Ok(_) => Ok(()),
        Err(error) if run.stop_reason().is_some() => Err(Error::undone(error)),
        Err(error) if must => Err(unmade(error)),
        Err(error) => {
            tracing::warn!(session.id = %session_id, error = causes(&error), "no room was made; the turn goes on without it");
            Ok(())
        }
    }
}

/// What a turn makes of it that cannot go on.
fn unmade(error: NotFolded) -> Error {
    match &error {
        NotFolded::NotAsked(source) => match source.class {
            Class::Snooze { after, .. } => Error::Refused(Refused::later(error.to_string(), after)),
            _ => Error::undone(error),
        },
        NotFolded::Session(sessions::Error::Overtaken(_)) => Error::Overtaken,
        NotFolded::Parked { .. }
        | NotFolded::BreakerOpen { .. }
        | NotFolded::Plan { .. }
        | NotFolded::Budget { .. }
        | NotFolded::View { .. }
        | NotFolded::Stored { .. } => Error::Refused(Refused::for_good(error.to_string())),
        _ => Error::undone(error),
    }
}
