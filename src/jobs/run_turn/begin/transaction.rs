//! Transaction A: the session of the task, the call, and the turn.

use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    context::{Calibration, Pressure},
    domain::{
        conversations::ResolvedSession,
        facts, feed,
        messages::MaxWeight,
        sessions::{ProviderSession, SessionRow},
        turn_phases::{self, Begin},
    },
    jobs::{
        Services,
        run_turn::{
            begin::{
                board::Board,
                draft::{Draft, DraftParams},
                open_turn::{BeginResult, CallRecord, NoRoom, OpenTurn},
                outlook::Outlook,
                permit, provider_session,
                request::{check_charge, first_request, reserve},
                session::{inherit_max_weight, session_events},
                team, trace,
                window::{EarlierBegins, check_space},
            },
            crash_points::CrashPoint,
            error::Error,
            load::{assignment::Assignment, chain::Chain},
        },
    },
    queue::Run,
};

pub async fn begin(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    before: EarlierBegins,
) -> Result<BeginResult, Error> {
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
    before: EarlierBegins,
) -> Result<BeginResult, Error> {
    let now = services.clock.now();
    let was_refused = before.was_refused();
    let found = DraftParams::find(&mut *conn, services, assignment, run.lease(), before);
    let (setting, resolved) = found.await?;
    let mut draft = Draft::with_prepared(&mut *conn, &setting, resolved).await?;
    check_charge(assignment, draft.outlook.estimated_tokens)?;
    if before.needs_space(&assignment.route, &draft.outlook, &setting.calibration) {
        feed::append(&mut *conn, &session_events(&draft.resolved, assignment), now).await?;
        let Draft { resolved: ResolvedSession { session, .. }, outlook, .. } = draft;
        let request = first_request(assignment, &outlook, &setting.calibration);
        let Outlook { around, pressure, has_history, assembled, .. } = outlook;
        let weight = assembled.weight;
        let no_room = NoRoom { session, around, pressure, has_history, weight, request };
        return Ok(BeginResult::NoRoom(Box::new(no_room)));
    }
    let is_too_full = draft.outlook.pressure == Pressure::Overflow || was_refused;
    let has_head = draft.resolved.session.head.is_some();
    let can_shrink = has_head && !draft.is_smallest;
    if is_too_full && assignment.route.provider.holds_session() && can_shrink {
        // No summary could be made. The successor takes over less, and a notice tells it so.
        let max_weight = inherit_max_weight(services, assignment).newest;
        let max_weight = MaxWeight::of_newest(max_weight);
        draft = draft.into_new_session(&mut *conn, &setting, max_weight).await?;
    }
    check_space(assignment, &draft.outlook, &setting.calibration)?;
    let DraftParams { calibration, team, .. } = setting;
    open(&mut *conn, run, services, assignment, (draft, calibration), team).await
}

/// Begins the turn itself.
async fn open(
    conn: &mut PgConnection,
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    (Draft { resolved, entries, outlook, .. }, calibration): (Draft<'_>, Calibration),
    team: Vec<team::ColleagueStatus>,
) -> Result<BeginResult, Error> {
    let now = services.clock.now();
    let bound = provider_session::bind(&mut *conn, services, assignment, &resolved.session).await?;
    let permit = permit::admit(services, assignment, bound.as_ref(), outlook.estimated_tokens)?;
    let external_id = bound.as_ref().map(|bound| bound.external_id.to_string());
    let minted = bound.as_ref().zip(external_id.as_deref()).map(|(bound, external_session_id)| {
        ProviderSession { external_session_id, credential: &bound.credential }
    });
    let mut events = session_events(&resolved, assignment);
    let arrival = entries.arrival.as_ref();
    events.extend(arrival.map(|arrival| arrival.event(&resolved.session, assignment)));
    events.push(started(&resolved.session, assignment));
    let begin = Begin {
        session: &resolved.session,
        task_id: assignment.task.id,
        job_id: run.job_id(),
        lease: run.lease(),
        attempt: run.attempt(),
        reserve: reserve(assignment, outlook.estimated_tokens),
        chain: assignment.chain.as_ref().map(Chain::to_record),
        budgets: &assignment.budgets,
        minted,
        messages: entries.words.to_store(),
        shows_posts: entries.words.board.as_ref().is_some_and(Board::shows_posts),
        events: &events,
        now,
    };
    let begun = turn_phases::begin(&mut *conn, &begin).await?;
    if let Some(arrival) = arrival {
        arrival.write(&mut *conn, &resolved.session, assignment.task.id, now).await?;
    }
    if let Some(about) = &assignment.facts {
        let shown: Vec<Uuid> = about.facts.iter().map(|fact| fact.id).collect();
        facts::record_showings(&mut *conn, (begun.session_id, begun.campaign_id), &shown, now)
            .await?;
    }
    let before = trace::previous_turn_span(&mut *conn, services, &begun).await?;
    services.crash_points.pass(CrashPoint::BeforeBeginCommit).map_err(Error::undone)?;
    let request = first_request(assignment, &outlook, &calibration);
    let Outlook { assembled, around, budget, estimated_tokens, has_history, .. } = outlook;
    let opened = OpenTurn {
        // After the notices, before the prompt.
        posts_seq: resolved.session.last_seq
            + i64::try_from(entries.words.new.len()).unwrap_or(i64::MAX),
        begun,
        session: resolved.session,
        context: CallRecord {
            manifest: assembled.manifest,
            texts: assembled.texts,
            rounds: Vec::new(),
        },
        weight: assembled.weight,
        files_weight: assembled.files_weight,
        task_files_weight: assembled.task_files_weight,
        around,
        calibration,
        budget,
        estimated_tokens,
        has_history,
        bound,
        unheard: assembled.unheard,
        words: entries.words,
        team,
        permit,
        before,
        batch_call: None,
        has_unbatched_files: false,
    };
    Ok(BeginResult::Opened(Box::new(opened), Box::new(request)))
}

fn started(session: &SessionRow, assignment: &Assignment<'_>) -> feed::New {
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
