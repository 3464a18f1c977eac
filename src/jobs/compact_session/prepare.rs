//! The preparation of a compaction, from the session's row to a stored result.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Cause, Error, Folder, PreparedCompaction, attempts, claim,
    fold::{FoldResult, Summariser, run_cpu_bound},
    foldable,
    node_context::{self, NodeContext, NodeReader},
    store::Store,
    view::LoadedView,
};
use crate::{
    causes::causes,
    context::{
        Budget, Calibration,
        compaction::{
            FoldDraft,
            ladder::{Breaker, CompactionSteps},
            plan::{CompactionInput, Node},
        },
        xml::FenceSeed,
    },
    domain::{
        compactions, messages,
        sessions::{self, SessionRow, State},
        tasks,
    },
};

/// Makes a summary of the session's view and stores it as prepared. Returns a prepared one that exists already.
///
/// If another run makes one, this run waits for it, except a job that prepares ahead: it fails with
/// [`Error::InProgress`].
///
/// [`Cause::Overflow`] is a turn that cannot continue: it alone gets an extract after the last attempt.
pub async fn prepare(
    folder: &Folder<'_>,
    session_id: Uuid,
    cause: Cause,
) -> Result<PreparedCompaction, Error> {
    while !claim::take(folder, session_id).await? {
        if folder.waiting.is_none() && cause == Cause::Auto {
            return Err(Error::InProgress(session_id));
        }
        claim::wait(folder).await?;
    }
    let prepared = prepare_claimed(folder, session_id, cause).await;
    if let Err(error) = claim::release(folder, session_id).await {
        tracing::debug!(session.id = %session_id, error = causes(&error), "cannot release the claim of a compaction");
    }
    prepared
}

async fn prepare_claimed(
    folder: &Folder<'_>,
    session_id: Uuid,
    cause: Cause,
) -> Result<PreparedCompaction, Error> {
    let session = sessions::read_live(folder.pool, session_id).await?;
    if session.state == State::Closed {
        return Err(sessions::Error::Closed(session_id).into());
    }
    if let Some(prepared) = find_prepared(folder, &session).await? {
        return Ok(prepared);
    }
    let breaker = attempts::read(session_id, session.compaction_breaker.clone())?;
    let attempts_left = breaker.attempts_left(session.turn_count.into());
    if attempts_left == 0 && cause != Cause::Overflow {
        return Err(open(&breaker, &session));
    }
    let ladder = CompactionSteps::new(attempts_left, folder.alternate_model.is_some());
    let reader = NodeReader {
        catalogue: folder.catalogue,
        waiting: folder.waiting,
        waiting_node: folder.waiting_node,
    };
    let ((loaded, place), ended_to_seq) = {
        let mut conn = folder.pool.acquire().await.map_err(Error::Connection)?;
        (load(&mut conn, &reader, &session).await?, ended_to_seq(&mut conn, &session).await?)
    };
    let calibration = calibration(folder, &session)?;
    let scene = CompactionInput {
        node: place.as_ref().map(node),
        ..scene(folder, &loaded, ended_to_seq, &calibration)?
    };
    let seed = seed(&session)?;
    let scribe = Summariser { folder, session: &session, calibration: &calibration };
    let folded = fold(&scribe, scene, &seed, ladder).await?;
    let node = place.as_ref().map(|place| place.flow.node.as_str());
    Store { folder, session: &session, cause, node }.store(folded).await
}

async fn fold(
    scribe: &Summariser<'_>,
    scene: CompactionInput<'_>,
    seed: &FenceSeed,
    ladder: CompactionSteps,
) -> Result<FoldResult, Error> {
    // Its number is assigned when it is stored, so that a failed attempt uses none up.
    let number = scene.view.generation() + 1;
    let (mut folding, step) = run_cpu_bound(|| FoldDraft::begin(scene, seed, number, ladder))
        .map_err(|source| Error::Plan { session_id: scribe.session.id, source })?;
    scribe.fold(&mut folding, step).await
}

/// Finds a prepared compaction that still applies: the job's end was lost, or it was requested twice.
async fn find_prepared(
    folder: &Folder<'_>,
    session: &SessionRow,
) -> Result<Option<PreparedCompaction>, Error> {
    let id = session.id;
    let Some(generation) =
        compactions::newest_prepared(folder.pool, id, session.generation).await?
    else {
        return Ok(None);
    };
    let stored = compactions::get(folder.pool, id, generation).await?;
    Ok(stored.map(|stored| PreparedCompaction {
        generation,
        rung: None,
        tokens_before: stored.tokens_before,
        tokens_after: stored.tokens_after.unwrap_or(stored.tokens_before),
        refused: Vec::new(),
        pins_dropped: 0,
        is_earlier: true,
    }))
}

fn open(breaker: &Breaker, session: &SessionRow) -> Error {
    let from_turn = breaker.opens_again(session.turn_count.into());
    Error::BreakerOpen {
        session_id: session.id,
        from_turn: i32::try_from(from_turn).unwrap_or(i32::MAX),
    }
}

/// Reads the view to summarise, and the session's node.
pub(super) async fn load(
    conn: &mut PgConnection,
    reader: &NodeReader<'_>,
    session: &SessionRow,
) -> Result<(LoadedView, Option<NodeContext>), Error> {
    let mut loaded = LoadedView::read_unsummarised(&mut *conn, session).await?;
    loaded.mark_as_by_agents(&tasks::added_by_agents(&mut *conn, &loaded.prompt_tasks()).await?);
    let place = node_context::of(conn, reader, session, loaded.view()?).await?;
    Ok((loaded, place))
}

/// Returns the last place before the running turn. `None`: no turn runs.
async fn ended_to_seq(conn: &mut PgConnection, session: &SessionRow) -> Result<Option<i64>, Error> {
    if session.state != State::Running {
        return Ok(None);
    }
    let last_ended = session.turn_count - 1;
    Ok(Some(messages::last_seq_of_turn(conn, session.id, last_ended).await?))
}

pub(super) fn node(place: &NodeContext) -> Node<'_> {
    let NodeContext { flow, is_continued, entry_seq } = place;
    let (is_continued, entry_seq) = (*is_continued, *entry_seq);
    Node { first_seq: flow.first_seq, is_continued, flow, entry_seq }
}

fn calibration(folder: &Folder<'_>, session: &SessionRow) -> Result<Calibration, Error> {
    let stored = session.calibration.clone().map(serde_json::from_value).transpose();
    let session_id = session.id;
    let stored =
        stored.map_err(|source| Error::Stored { session_id, what: "the calibration", source })?;
    Ok(stored.unwrap_or(folder.calibration))
}

fn scene<'a>(
    folder: &Folder<'_>,
    loaded: &'a LoadedView,
    ended_to_seq: Option<i64>,
    calibration: &'a Calibration,
) -> Result<CompactionInput<'a>, Error> {
    let system_tokens = calibration.tokens(folder.system_weight);
    let budget = Budget::of_narrow(folder.window_tokens, folder.reserve_tokens, system_tokens);
    let room = calibration.weight_within(budget.room_tokens());
    let waiting = folder.waiting.map(|task| task.id);
    let (view, running) =
        foldable::exclude_running_turn(loaded.view()?, ended_to_seq, waiting, room);
    let (view, beside) = foldable::exclude_own_turn(view, waiting, room);
    Ok(CompactionInput {
        view,
        budget,
        calibration,
        upcoming_tokens: calibration.tokens(folder.upcoming_weight + running + beside),
        summariser_window_tokens: folder.summariser_window_tokens,
        policy: folder.policy,
        node: None,
    })
}

pub(super) fn seed(session: &SessionRow) -> Result<FenceSeed, Error> {
    let bytes = session.fence_seed.as_slice().try_into();
    bytes.map(FenceSeed::from_bytes).map_err(|_| Error::FenceSeed(session.id))
}
