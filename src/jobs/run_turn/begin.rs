//! Transaction A: the session of the task, what the model will see, and the turn.

use serde_json::json;
use sqlx::{Acquire as _, PgConnection};

use super::{
    CrashPoint, Error, Refused,
    assignment::{Assignment, Route},
    notices,
};
use crate::{
    context::{
        Assembled, Budget, Calibration, Checkpoint, Manifest, Parts, Pressure, Weight, assemble,
        parts::{Campaign, Skill, Task},
        xml::FenceSeed,
    },
    domain::{
        Amount, feed, ids, messages,
        prices::Price,
        sessions::{
            Live,
            resolve::{Decision, Opening, Resolved, Wanted, resolve},
        },
        turns::{self, Begin, Begun},
    },
    jobs::{
        Services,
        view::{self, Conversation},
    },
    providers::{Purpose, Request, Timeouts},
    queue::Run,
    transcript::Role,
};

/// A turn that has begun, with what is to be sent.
pub(super) struct Opened {
    pub(super) begun: Begun,
    pub(super) session: Live,
    pub(super) manifest: Manifest,
    /// Of everything that is sent.
    pub(super) weight: Weight,
    pub(super) calibration: Calibration,
    pub(super) estimated_tokens: u64,
    /// There is something in front of the prompt that a rebuilt session would not have.
    pub(super) has_history: bool,
}

/// Half of what a window holds beside its reserve: a successor must not begin under pressure.
const INHERIT_DIVISOR: u64 = 2;

pub(super) async fn begin(
    conn: &mut PgConnection,
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
) -> Result<(Opened, Request), Error> {
    let mut tx = conn.begin().await.map_err(Error::undone)?;
    match write(&mut tx, run, services, assignment).await {
        Ok(opened) => {
            tx.commit().await.map_err(Error::undone)?;
            Ok(opened)
        }
        Err(error) => {
            // Here and not by dropping: the connection goes on to be used.
            tx.rollback().await.map_err(Error::undone)?;
            Err(error)
        }
    }
}

async fn write(
    conn: &mut PgConnection,
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
) -> Result<(Opened, Request), Error> {
    let Assignment { task, route, .. } = assignment;
    let now = services.clock.now();
    let resolved = find_session(&mut *conn, run, services, assignment).await?;
    services.crash_points.pass(CrashPoint::AfterResolve).map_err(Error::undone)?;
    let session = &resolved.session;
    let calibration = calibration(services, session);
    let mut conversation = Conversation::load(&mut *conn, session).await.map_err(Error::undone)?;
    let has_history = conversation.has_history(task.id);
    let new = messages_before_call(&resolved, assignment, &mut conversation, now);
    let assembled = assemble_call(assignment, session, &conversation, &calibration)?;
    let estimated_tokens = calibration.project(checkpoint(session).as_ref(), assembled.weight);
    check_room(route, &assembled, &calibration, estimated_tokens)?;
    let begin = Begin {
        session,
        task_id: task.id,
        job_id: run.job_id(),
        lease: run.lease(),
        attempt: run.attempt(),
        reserve: reserve(assignment, estimated_tokens),
        messages: &new,
        now,
    };
    let begun = turns::begin(&mut *conn, &begin).await?;
    let events = events(&resolved, &begun, route);
    feed::append(&mut *conn, &events, now).await?;
    services.crash_points.pass(CrashPoint::BeforeBeginCommit).map_err(Error::undone)?;
    let opened = Opened {
        begun,
        session: resolved.session,
        manifest: assembled.manifest.clone(),
        weight: assembled.weight,
        calibration,
        estimated_tokens,
        has_history,
    };
    let request = request(assignment, assembled, expected_tokens(&opened));
    Ok((opened, request))
}

async fn find_session(
    conn: &mut PgConnection,
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
) -> Result<Resolved, Error> {
    let Assignment { task, agent, route, .. } = assignment;
    let now = services.clock.now();
    let opening = Opening {
        campaign_id: task.campaign_id,
        agent: &task.agent,
        instance: &task.instance,
        provider: route.provider_name,
        model: &route.model,
        prompt_hash: &agent.prompt_hash,
        task_id: task.id,
        fence_seed: rand::random(),
        expires_at: services.sessions.expires_at(route.provider_name, agent.ttl_days, now),
        now,
    };
    let wanted = Wanted {
        task_id: task.id,
        mode: task.session_mode,
        provider: route.provider_name,
        model: &route.model,
        prompt_hash: &agent.prompt_hash,
        rotate_at_tokens: agent.rotate_at_tokens,
        now,
    };
    let room_tokens = route.window_tokens.saturating_sub(route.reserve_tokens) / INHERIT_DIVISOR;
    let known = services.calibrations.of(route.provider_name, &route.model);
    let inherit_max_weight = known.weight_within(room_tokens).millitokens();
    let inherit_max_weight = i64::try_from(inherit_max_weight).unwrap_or(i64::MAX);
    Ok(resolve(conn, &opening, &wanted, run.lease(), inherit_max_weight).await?)
}

/// The notice of an interrupted turn, if there was one, and the prompt. The notice is part of what is sent.
fn messages_before_call(
    resolved: &Resolved,
    assignment: &Assignment<'_>,
    conversation: &mut Conversation,
    now: chrono::DateTime<chrono::Utc>,
) -> Vec<messages::New> {
    let mut new = Vec::with_capacity(2);
    if resolved.interrupted {
        let notice = notices::interrupted(ids::at(now));
        conversation.tail.push(view::coming(&notice, resolved.session.last_seq + 1));
        new.push(notice);
    }
    let task = &assignment.task;
    new.push(notices::message(task.id, Role::User, task.prompt.clone()));
    new
}

fn assemble_call(
    assignment: &Assignment<'_>,
    session: &Live,
    conversation: &Conversation,
    calibration: &Calibration,
) -> Result<Assembled, Error> {
    let Assignment { task, agent, campaign, .. } = assignment;
    let skills: Vec<Skill<'_>> = assignment
        .skills
        .iter()
        .map(|skill| Skill { name: &skill.name, text: &skill.text })
        .collect();
    let notice = notices::restored(session, conversation, task.id);
    let parts = Parts {
        agent_prompt: &agent.prompt,
        skills: &skills,
        campaign: Campaign {
            id: campaign.id,
            name: &campaign.name,
            brief: &campaign.brief,
            client_context: campaign.client_context.as_deref(),
        },
        edicts: &[],
        roster: &[],
        view: conversation.view(),
        notice: notice.as_deref(),
        posts: &[],
        statuses: &[],
        task: Task { entry_id: task.id, prompt: &task.prompt },
    };
    let seed = session.fence_seed.as_slice().try_into();
    let seed = seed.map_err(|_| Error::undone("the fence seed of the session has not 32 bytes"))?;
    Ok(assemble(&parts, &FenceSeed::from_bytes(seed), calibration))
}

fn check_room(
    route: &Route<'_>,
    assembled: &Assembled,
    calibration: &Calibration,
    estimated_tokens: u64,
) -> Result<(), Error> {
    let refused = |why: String| Error::Refused(Refused::for_good(why));
    let system_tokens = calibration.tokens(assembled.system_weight);
    let budget = Budget::new(route.window_tokens, route.reserve_tokens, system_tokens)
        .map_err(|error| refused(error.to_string()))?;
    // A cold estimate is too high: then the provider has the word.
    match budget.pressure(estimated_tokens, &route.thresholds) {
        Pressure::Overflow if !calibration.is_cold() => Err(refused(format!(
            "the conversation of about {estimated_tokens} tokens does not fit into the window of {} with {} left for the \
             answer: compact it, reset it, or give the agent a larger window",
            route.window_tokens, route.reserve_tokens
        ))),
        _ => Ok(()),
    }
}

/// Nothing where nothing is limited: the budget's row is the one that all turns of a campaign share.
fn reserve(assignment: &Assignment<'_>, estimated_tokens: u64) -> Amount {
    if !assignment.is_limited {
        return Amount::ZERO;
    }
    let route = &assignment.route;
    let tokens = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Price::ceiling(route.price, tokens(estimated_tokens), tokens(route.reserve_tokens))
}

/// What the count of an honest server is compared with. A cold estimate is high on purpose, so that an honest count would
/// look like that of a cut prompt.
fn expected_tokens(opened: &Opened) -> u64 {
    match opened.calibration.is_cold() {
        true => opened.weight.millitokens() / 1000,
        false => opened.estimated_tokens,
    }
}

fn request(assignment: &Assignment<'_>, assembled: Assembled, expected_tokens: u64) -> Request {
    let route = &assignment.route;
    let tokens = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Request {
        turn: assignment.task.id.to_string(),
        purpose: Purpose::Turn,
        model: route.model.clone(),
        system: assembled.system,
        messages: assembled.messages,
        window_tokens: tokens(route.window_tokens),
        reserve_tokens: tokens(route.reserve_tokens),
        estimated_prompt_tokens: Some(tokens(expected_tokens)),
        options: route.options.clone(),
        timeouts: Timeouts::default(),
    }
}

/// What the session has learnt, else what this process has learnt about the model.
fn calibration(services: &Services, session: &Live) -> Calibration {
    let own = session.calibration.clone().and_then(|value| serde_json::from_value(value).ok());
    own.unwrap_or_else(|| services.calibrations.of(&session.provider, &session.model))
}

fn checkpoint(session: &Live) -> Option<Checkpoint> {
    serde_json::from_value(session.checkpoint.clone()?).ok()
}

fn events(resolved: &Resolved, begun: &Begun, route: &Route<'_>) -> Vec<feed::New> {
    let event = |kind, data| feed::New {
        campaign_id: Some(begun.campaign_id),
        task_id: Some(begun.task_id),
        session_id: Some(begun.session_id),
        kind,
        data,
    };
    let mut events = Vec::with_capacity(2);
    match resolved.decision {
        Decision::Resume => {}
        Decision::Create { ephemeral } => {
            events.push(event(feed::Kind::SessionOpened, json!({ "ephemeral": ephemeral })));
        }
        Decision::Rebuild(reason) => events.push(event(
            feed::Kind::SessionRebuilt,
            json!({
                "because": reason,
                "inherited_messages": resolved.inherited_messages,
                "inherited_summary": resolved.inherited_summary,
            }),
        )),
    }
    let started =
        json!({ "turn": begun.turn, "provider": route.provider_name, "model": route.model });
    events.push(event(feed::Kind::TurnStarted, started));
    events
}
