//! Transaction A: the session of the task, what the model will see, and the turn.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    CrashPoint, Error, Refused,
    assignment::Assignment,
    board::Board,
    kept, notices,
    outlook::{Outlook, look_ahead},
    room::keep_after,
    said::{Said, Words},
    team, told,
};
use crate::{
    context::{Budget, Calibration, Manifest, Pressure, Weight},
    domain::{
        Amount,
        compactions::Shown,
        conversations::{Decision, Inheritance, Opening, Resolved, Wanted, resolve, succeed},
        facts, feed, messages,
        prices::Price,
        session_summaries::SessionSummary,
        sessions::{Live, Minted, Reason},
        turn_phases,
        turn_phases::{Begin, Begun},
    },
    jobs::{
        Services,
        compact_session::{self, Loaded},
        expired_session,
        folder::Around,
        measure,
        route::Route,
    },
    providers::{Purpose, Request, Timeouts},
    queue::Run,
    traces::Context,
    transcript::Message,
};

/// A turn that has begun.
pub(super) struct Opened {
    pub(super) begun: Begun,
    pub(super) session: Live,
    pub(super) manifest: Manifest,
    /// Of everything that is sent.
    pub(super) weight: Weight,
    pub(super) around: Around,
    pub(super) calibration: Calibration,
    pub(super) budget: Budget,
    pub(super) estimated_tokens: u64,
    /// There is something in front of the prompt that a rebuilt session would not have.
    pub(super) has_history: bool,
    /// For a provider that keeps the conversation itself.
    pub(super) bound: Option<Bound>,
    pub(super) unheard: Option<String>,
    pub(super) words: Words,
    pub(super) team: Vec<team::Seen>,
    /// The place in the transcript that is kept for the posts that it shows.
    pub(super) posts_seq: i64,
    /// The span of the turn before, if spans are wanted.
    pub(super) before: Option<Context>,
}

/// What such a provider calls the conversation, and the login that it runs on.
pub(super) struct Bound {
    pub(super) external_id: Uuid,
    pub(super) login: String,
}

/// What came of the wish to begin.
pub(super) enum Beginning {
    Opened(Box<Opened>, Request),
    /// The conversation has to be made smaller first. Its session is committed, and nothing else.
    NoRoom(NoRoom),
}

pub(super) struct NoRoom {
    pub(super) session: Live,
    pub(super) around: Around,
    pub(super) pressure: Pressure,
}

/// What happened before in this run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    /// How often room was made, or could not be made.
    pub(super) n_rooms: u32,
    /// How often the provider has refused the conversation as too long; it counts more than the estimate.
    pub(super) n_refused: u32,
}

impl Before {
    pub(super) fn was_refused(self) -> bool {
        self.n_refused > 0
    }

    /// A compaction that helps too little is followed by one that keeps less.
    fn wants_room(self, route: &Route<'_>, outlook: &Outlook, calibration: &Calibration) -> bool {
        match self.n_rooms {
            0 => outlook.pressure >= Pressure::Apply,
            n => !fits(route, outlook, calibration) && keep_after(n + 1).is_some(),
        }
    }
}

/// What is sent beside the conversation as it is stored.
pub(super) struct Given<'a> {
    pub(super) calibration: &'a Calibration,
    pub(super) words: &'a Words,
    pub(super) team: &'a [team::Seen],
}

/// Half of what a window holds beside its reserve: a successor must not begin under pressure.
const INHERIT_DIVISOR: u64 = 2;

pub(super) async fn begin(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    before: Before,
) -> Result<Beginning, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    match write(&mut tx, run, services, assignment, before).await {
        Ok(beginning) => {
            tx.commit().await.map_err(Error::undone)?;
            Ok(beginning)
        }
        Err(error) => {
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
    before: Before,
) -> Result<Beginning, Error> {
    let now = services.clock.now();
    let mut resolved = find_session(&mut *conn, run, services, assignment).await?;
    kept::forget_other_counts(&mut resolved.session, assignment);
    services.crash_points.pass(CrashPoint::AfterResolve).map_err(Error::undone)?;
    say_what_was_left_out(&mut *conn, &resolved, now).await?;
    let calibration = calibration(services, &resolved.session);
    let mut said =
        Said::before_call(&mut *conn, &resolved, assignment, &calibration, before, now).await?;
    let team = team::look(&mut *conn, assignment, now).await?;
    let given = Given { calibration: &calibration, words: &said.words, team: &team };
    let mut outlook = look(&mut *conn, services, assignment, &resolved.session, &given).await?;
    if outlook.pressure >= Pressure::Apply || before.was_refused() {
        // What was prepared ahead costs this turn no call.
        let shown = compact_session::apply(&mut *conn, &*services.clock, resolved.session.id).await;
        if let Shown::Applied(compaction) = shown.map_err(Error::undone)? {
            resolved.session.generation = compaction.generation;
            resolved.session.checkpoint = None;
            if assignment.route.rotates && has_answered(&resolved.session) {
                // The compaction was made so that all that follows it fits.
                let lease = run.lease();
                resolved =
                    go_on_anew(&mut *conn, services, assignment, lease, (&resolved, i64::MAX))
                        .await?;
                say_what_was_left_out(&mut *conn, &resolved, now).await?;
                said =
                    Said::before_call(&mut *conn, &resolved, assignment, &calibration, before, now)
                        .await?;
            }
            let given = Given { calibration: &calibration, words: &said.words, team: &team };
            outlook = look(&mut *conn, services, assignment, &resolved.session, &given).await?;
        }
    }
    if before.wants_room(&assignment.route, &outlook, &calibration) {
        feed::append(&mut *conn, &session_events(&resolved, assignment), now).await?;
        return Ok(Beginning::NoRoom(NoRoom {
            around: outlook.around,
            pressure: outlook.pressure,
            session: resolved.session,
        }));
    }
    let is_too_full = outlook.pressure == Pressure::Overflow || before.was_refused();
    if is_too_full && assignment.route.keeps_conversation && resolved.session.head.is_some() {
        // No summary could be made: what the successor takes along is less all the same, and it is told so.
        let recent = (&resolved, inherit_max_weight(services, assignment));
        resolved = go_on_anew(&mut *conn, services, assignment, run.lease(), recent).await?;
        say_what_was_left_out(&mut *conn, &resolved, now).await?;
        said =
            Said::before_call(&mut *conn, &resolved, assignment, &calibration, before, now).await?;
        let given = Given { calibration: &calibration, words: &said.words, team: &team };
        outlook = look(&mut *conn, services, assignment, &resolved.session, &given).await?;
    }
    check_room(assignment, &outlook, &calibration)?;
    open(&mut *conn, run, services, assignment, (resolved, calibration, outlook, said), team).await
}

/// A successor in which no turn has succeeded is made smaller in place.
fn has_answered(session: &Live) -> bool {
    session.context_tokens > 0
}

/// In front of what a successor took over, where what it lacks once stood.
async fn say_what_was_left_out(
    conn: &mut PgConnection,
    resolved: &Resolved,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let Some(left_out) = resolved.inherited.left_out else { return Ok(()) };
    let id = resolved.session.id;
    let (notice, turn) = ([notices::left_out(id, left_out)], left_out.last_turn);
    Ok(messages::append(conn, id, turn, left_out.last_seq, &notice, now).await?)
}

/// A new session begins with the summary and what follows it.
async fn go_on_anew(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    lease: i64,
    (resolved, max_weight): (&Resolved, i64),
) -> Result<Resolved, Error> {
    let opening = opening(services, assignment);
    let full = Reason::ContextFull;
    Ok(succeed(conn, (&resolved.session, full), &opening, lease, max_weight).await?)
}

/// What would be sent now. The session's row is as it was before the turn.
pub(super) async fn look(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    session: &Live,
    given: &Given<'_>,
) -> Result<Outlook, Error> {
    let known = services.histories.take(session.id, session.generation);
    let mut loaded = match known.filter(|known| known.is_of(session)) {
        Some(known) => known,
        None => Loaded::folded(&mut *conn, session).await.map_err(Error::undone)?,
    };
    loaded.catch_up(conn, session.last_seq).await.map_err(Error::undone)?;
    // The prompt is sent as the task, whatever the transcript holds of it; notices are sent from there.
    for (notice, seq) in given.words.notices().iter().zip(session.last_seq + 1..) {
        loaded.add(measure::coming(notice, seq));
    }
    let outlook = look_ahead(assignment, session, &loaded, given);
    services.histories.keep(loaded.stored());
    outlook
}

/// The turn itself, from what is known now.
async fn open(
    conn: &mut PgConnection,
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    (resolved, calibration, outlook, said): (Resolved, Calibration, Outlook, Said<'_>),
    team: Vec<team::Seen>,
) -> Result<Beginning, Error> {
    let now = services.clock.now();
    let bound = kept::bind(&mut *conn, services, assignment, &resolved.session).await?;
    let external_id = bound.as_ref().map(|bound| bound.external_id.to_string());
    let minted = bound
        .as_ref()
        .zip(external_id.as_deref())
        .map(|(bound, external_session_id)| Minted { external_session_id, login: &bound.login });
    let mut events = session_events(&resolved, assignment);
    let arrival = said.arrival.as_ref();
    events.extend(arrival.map(|arrival| arrival.event(&resolved.session, assignment)));
    events.push(started(&resolved.session, assignment));
    let begin = Begin {
        session: &resolved.session,
        task_id: assignment.task.id,
        job_id: run.job_id(),
        lease: run.lease(),
        attempt: run.attempt(),
        reserve: reserve(services, assignment, outlook.estimated_tokens),
        minted,
        messages: &said.words.new,
        shows_posts: said.words.board.as_ref().is_some_and(Board::shows_posts),
        events: &events,
        now,
    };
    let begun = turn_phases::begin(&mut *conn, &begin).await?;
    if let Some(arrival) = arrival {
        arrival.write(&mut *conn, &resolved.session, assignment.task.id, now).await?;
    }
    if let Some(about) = &assignment.facts {
        let shown: Vec<Uuid> = about.facts.iter().map(|fact| fact.id).collect();
        facts::show(&mut *conn, (begun.session_id, begun.campaign_id), &shown, now).await?;
    }
    let before = told::look_back(&mut *conn, services, &begun).await?;
    services.crash_points.pass(CrashPoint::BeforeBeginCommit).map_err(Error::undone)?;
    let Outlook { assembled, around, budget, estimated_tokens, has_history, .. } = outlook;
    let opened = Opened {
        // Behind the notices, in front of the prompt.
        posts_seq: resolved.session.last_seq
            + i64::try_from(said.words.new.len()).unwrap_or(i64::MAX),
        begun,
        session: resolved.session,
        manifest: assembled.manifest,
        weight: assembled.weight,
        around,
        calibration,
        budget,
        estimated_tokens,
        has_history,
        bound,
        unheard: assembled.unheard,
        words: said.words,
        team,
        before,
    };
    let request =
        request(assignment, assembled.system, assembled.messages, expected_tokens(&opened));
    Ok(Beginning::Opened(Box::new(opened), request))
}

async fn find_session(
    conn: &mut PgConnection,
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
) -> Result<Resolved, Error> {
    let Assignment { task, route, .. } = assignment;
    let opening = opening(services, assignment);
    let wanted = Wanted {
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
    Ok(resolve(conn, &opening, &wanted, run.lease(), &inheritance).await?)
}

fn opening<'a>(services: &Services, assignment: &'a Assignment<'_>) -> Opening<'a> {
    let Assignment { task, agent, route, .. } = assignment;
    let now = services.clock.now();
    Opening {
        campaign_id: task.campaign_id,
        agent: &task.agent,
        instance: &task.instance,
        provider: &route.provider_name,
        model: &route.model,
        prompt_hash: &assignment.prompt_hash,
        task_id: task.id,
        fence_seed: rand::random(),
        expires_at: services.sessions.expires_at(&route.provider_name, agent.ttl_days, now),
        now,
    }
}

fn inherit_max_weight(services: &Services, assignment: &Assignment<'_>) -> i64 {
    let route = &assignment.route;
    let room_tokens = route.window_tokens.saturating_sub(route.reserve_tokens) / INHERIT_DIVISOR;
    let known = services.calibrations.of(&route.provider_name, &route.model);
    let max_weight = known.weight_within(room_tokens).millitokens();
    i64::try_from(max_weight).unwrap_or(i64::MAX)
}

/// Whether the call may fit. A cold estimate is too high, and a learnt factor may come from quite another text: where the bare
/// weight fits, the provider has the word.
fn fits(route: &Route<'_>, outlook: &Outlook, calibration: &Calibration) -> bool {
    let within =
        |tokens: u64| tokens.saturating_add(route.reserve_tokens) <= route.model_window_tokens;
    outlook.pressure < Pressure::Overflow
        || calibration.is_cold()
        || within(outlook.estimated_tokens)
        || within(outlook.assembled.weight.millitokens() / 1000)
}

fn check_room(
    Assignment { route, .. }: &Assignment<'_>,
    outlook: &Outlook,
    calibration: &Calibration,
) -> Result<(), Error> {
    if route.refuses_too_long || fits(route, outlook, calibration) {
        return Ok(());
    }
    Err(Error::Refused(Refused::for_good(format!(
        "the task of about {} tokens does not fit into the window of {} with {} left for the answer: shorten the task, or give \
         the agent a larger window",
        outlook.estimated_tokens,
        route.model_window_tokens,
        outlook.budget.reserve_tokens(),
    ))))
}

/// Nothing where nothing is limited: the budget's row is the one that all turns of a campaign share.
///
/// Claude's models have a price without a configured one. Until a turn has told it, nothing of it is set aside: the CLI is told
/// what is left, and stops there by itself.
pub(super) fn reserve(
    services: &Services,
    assignment: &Assignment<'_>,
    estimated_tokens: u64,
) -> Amount {
    if !assignment.is_limited {
        return Amount::ZERO;
    }
    let route = &assignment.route;
    let tokens = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let ceiling =
        Price::ceiling(route.price, tokens(estimated_tokens), tokens(route.reserve_tokens));
    if route.price.is_some() || !route.keeps_conversation {
        return ceiling;
    }
    let claude = services.providers.claude();
    let told = claude.ceiling_micros(&route.model, estimated_tokens, route.reserve_tokens);
    Amount { micros: told.map_or(0, tokens), ..ceiling }
}

/// What the count of an honest server is compared with. A cold estimate is high on purpose, and so is one that would not fit:
/// an honest count would look like that of a cut prompt.
pub(super) fn expected_tokens(opened: &Opened) -> u64 {
    let bare_tokens = opened.weight.millitokens() / 1000;
    let room_tokens = opened.budget.window_tokens() - opened.budget.reserve_tokens();
    match opened.calibration.is_cold() {
        true => bare_tokens,
        false if opened.estimated_tokens > room_tokens => bare_tokens.min(opened.estimated_tokens),
        false => opened.estimated_tokens,
    }
}

fn request(
    assignment: &Assignment<'_>,
    system: String,
    messages: Vec<Arc<Message>>,
    expected_tokens: u64,
) -> Request {
    let route = &assignment.route;
    let tokens = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Request {
        turn: assignment.task.id.to_string(),
        purpose: Purpose::Turn,
        model: route.model.clone(),
        system,
        messages,
        tools: assignment.tools.clone(),
        window_tokens: tokens(route.window_tokens),
        reserve_tokens: tokens(route.reserve_tokens),
        estimated_prompt_tokens: Some(tokens(expected_tokens)),
        options: route.options.clone(),
        timeouts: Timeouts::default(),
        conversation: None,
        login: None,
    }
}

/// What the session has learnt, else what this process has learnt about the model.
fn calibration(services: &Services, session: &Live) -> Calibration {
    let own = session.calibration.clone().and_then(|value| serde_json::from_value(value).ok());
    own.unwrap_or_else(|| services.calibrations.of(&session.provider, &session.model))
}

/// How the task came by its session, where that is news.
fn session_events(resolved: &Resolved, assignment: &Assignment<'_>) -> Vec<feed::New> {
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
    vec![feed::New {
        campaign_id: Some(assignment.task.campaign_id),
        task_id: Some(assignment.task.id),
        session_id: Some(resolved.session.id),
        kind,
        data,
    }]
}

fn started(session: &Live, assignment: &Assignment<'_>) -> feed::New {
    let Assignment { task, route, .. } = assignment;
    let turn = session.turn_count + 1;
    feed::New {
        campaign_id: Some(session.campaign_id),
        task_id: Some(task.id),
        session_id: Some(session.id),
        kind: feed::Kind::TurnStarted,
        data: json!({ "turn": turn, "provider": route.provider_name, "model": route.model }),
    }
}
