//! The session of a turn: found, opened, or started again with a summary.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::{
    context::Calibration,
    domain::{
        conversations::{
            Decision, Inheritance, NewSession, ResolvedSession, SessionRequest, open_successor,
            resolve,
        },
        feed,
        messages::{self, MaxWeight},
        session_summaries::SessionSummary,
        sessions::{Reason, SessionRow},
    },
    jobs::{
        Services, expired_session,
        run_turn::{error::Error, load::assignment::Assignment, notices},
    },
};

/// Windows without their reserve that a successor inherits whole. What presses is summarised before the call, as in any session. A
/// heavier history, of a model with a much larger window, would take many calls.
const INHERIT_WHOLE_WINDOWS: u64 = 2;
/// Divisor of a window without its reserve: of a heavier history a successor inherits this part, so that it does not begin under pressure.
const INHERIT_DIVISOR: u64 = 2;

pub async fn find_session(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    lease: i64,
) -> Result<ResolvedSession, Error> {
    let Assignment { task, route, .. } = assignment;
    let opening = opening(services, assignment);
    let wanted = SessionRequest {
        task_id: task.id,
        mode: task.session_mode,
        provider: &route.provider_name,
        model: &route.model,
        prompt_hash: &assignment.prompt_hash,
        now: opening.now,
    };
    let known = services.calibrations.of(&route.provider_name, &route.model);
    let render = |kept: &SessionSummary| expired_session::render(kept, route.window_tokens, &known);
    let inheritance = Inheritance {
        max_weight: inherit_max_weight(services, assignment),
        forgotten_until: services.sessions.forgotten_until(opening.now),
        render: &render,
    };
    Ok(resolve(conn, &opening, &wanted, lease, &inheritance).await?)
}

/// Starts a new session with the summary and the messages after it.
pub async fn start_new_session(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    lease: i64,
    (resolved, max_weight): (&ResolvedSession, MaxWeight),
) -> Result<ResolvedSession, Error> {
    let opening = opening(services, assignment);
    let full = Reason::ContextFull;
    Ok(open_successor(conn, (&resolved.session, full), &opening, lease, max_weight).await?)
}

/// Adds a notice to a successor for messages that it lacks, at their place.
pub async fn add_left_out_notice(
    conn: &mut PgConnection,
    resolved: &ResolvedSession,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let Some(left_out) = resolved.inherited.left_out else { return Ok(()) };
    let id = resolved.session.id;
    let (notice, turn) = ([notices::left_out_notice(id, left_out)], left_out.last_turn);
    Ok(messages::append(conn, id, turn, left_out.last_seq, &notice, now).await?)
}

fn opening<'a>(services: &Services, assignment: &'a Assignment<'_>) -> NewSession<'a> {
    let Assignment { task, agent, route, .. } = assignment;
    let now = services.clock.now();
    NewSession {
        campaign_id: task.campaign_id,
        agent: &task.agent,
        instance: &task.instance,
        provider: &route.provider_name,
        model: &route.model,
        prompt_hash: &assignment.prompt_hash,
        task_id: Some(task.id),
        fence_seed: rand::random(),
        expires_at: services.sessions.expires_at(&route.provider_name, agent.ttl_days, now),
        now,
    }
}

pub fn inherit_max_weight(services: &Services, assignment: &Assignment<'_>) -> MaxWeight {
    let route = &assignment.route;
    let room_tokens = route.window_tokens.saturating_sub(route.reserve_tokens);
    let known = services.calibrations.of(&route.provider_name, &route.model);
    let weight =
        |tokens| i64::try_from(known.weight_within(tokens).millitokens()).unwrap_or(i64::MAX);
    MaxWeight {
        whole: weight(room_tokens.saturating_mul(INHERIT_WHOLE_WINDOWS)),
        newest: weight(room_tokens / INHERIT_DIVISOR),
    }
}

/// Builds the feed event of a new session.
pub fn session_events(resolved: &ResolvedSession, assignment: &Assignment<'_>) -> Vec<feed::New> {
    let (kind, data) = match resolved.decision {
        Decision::Resume => return Vec::new(),
        Decision::Create { ephemeral } => {
            (feed::Kind::SessionOpened, json!({ "ephemeral": ephemeral }))
        }
        Decision::Rebuild(reason) => (
            feed::Kind::SessionRebuilt,
            json!({
                "because": reason,
                "inherited_messages": resolved.inherited.messages,
                "inherited_summary": resolved.inherited_summary,
                "left_out": resolved.inherited.left_out,
            }),
        ),
    };
    let event = |(kind, data)| feed::New {
        campaign_id: Some(assignment.task.campaign_id),
        task_id: Some(assignment.task.id),
        session_id: Some(resolved.session.id),
        kind,
        data,
    };
    let moved = moved_data(resolved.decision, assignment);
    let moved = moved.map(|data| (feed::Kind::ConversationMoved, data));
    moved.into_iter().chain([(kind, data)]).map(event).collect()
}

/// Returns the data of the event that the conversation has moved to another entry of the chain.
fn moved_data(decision: Decision, assignment: &Assignment<'_>) -> Option<Value> {
    let chain = assignment.chain.as_ref()?;
    let changed = [Reason::ProviderChanged, Reason::ModelChanged].map(Decision::Rebuild);
    let to = &chain.chosen().name;
    changed.contains(&decision).then(|| json!({ "to": to, "skipped": chain.choice.skipped }))
}

/// Returns the session's own calibration, otherwise this process's for the model.
pub fn calibration(services: &Services, session: &SessionRow) -> Calibration {
    let own = session.calibration.clone().and_then(|value| serde_json::from_value(value).ok());
    own.unwrap_or_else(|| services.calibrations.of(&session.provider, &session.model))
}
