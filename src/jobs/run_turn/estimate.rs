//! Estimates: the turn is drafted in each way in which it could begin, in transactions that are always rolled back. The rest of its charge
//! follows from earlier turns.

use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use super::{
    load::{assignment::Assignment, tools::max_rounds},
    preview::{assign, chain_note, check_idle, prompt_note, too_dear_entry, turn_error, undone},
    prompt_cache,
    sketch::{Sketch, sketch},
};
use crate::{
    context::compaction::plan,
    domain::{
        context_previews::{BeginTransaction, Error, PreviewSubject},
        conversations::Decision,
        estimates::{
            Assumption, CompactionSize, Estimate, EstimateHistory, Forecast, PromptCache,
            TURNS_WANTED, TurnPart, Way, WayEstimate, WaySize,
        },
        failovers::SkippedEntry,
        sessions::{self, AlikeQuery, Reason},
    },
    jobs::{
        Services,
        compact_session::{self, NodeReader, Outline, OutlineParams, ShowOutcome, setup},
        earlier_turns::{self, EarlierTurns},
        price_basis,
    },
};

/// Assumed output of a turn without earlier turns: an answer of some paragraphs.
const ASSUMED_OUTPUT_TOKENS: i64 = 400;
/// Assumed calls of a turn with tools, at most.
const ASSUMED_MAX_CALLS: i64 = 4;
/// Divisor of the window: assumed growth of the input from call to call, at most.
const GROWTH_DIVISOR: u64 = 16;

/// Estimates the charge of the turn that would begin now. Calls no model.
pub(super) async fn estimate(
    services: &Services,
    subject: PreviewSubject,
    begin: &BeginTransaction,
) -> Result<Estimate, Error> {
    let note = prompt_note(&subject);
    let mut refused = Vec::new();
    loop {
        let assignment = assign(services, subject.clone(), &refused, begin).await?;
        let estimated = Box::pin(estimate_entry(services, &assignment, begin)).await?;
        match estimated {
            Ok(mut estimate) => {
                estimate.notes.extend(note);
                return Ok(estimate);
            }
            Err(skipped) => refused.push(skipped),
        }
    }
}

/// Estimates the turn on the chosen entry of the agent's chain. The inner error: the turn skips it because of its charge.
async fn estimate_entry(
    services: &Services,
    assignment: &Assignment<'_>,
    begin: &BeginTransaction,
) -> Result<Result<Estimate, SkippedEntry>, Error> {
    let (agent, route) = (&assignment.agent, &assignment.route);
    let window = setup::summariser_window(agent, route, &CancellationToken::new()).await;
    let mut transaction = begin().await.map_err(undone)?;
    let next = read_next(&mut transaction, services, assignment, window).await;
    transaction.rollback().await.map_err(undone)?;
    let next = next?;
    if let Some(skipped) = too_dear_entry(assignment, next.sketch.estimated_tokens)? {
        return Ok(Err(skipped));
    }
    let fresh = match next.sketch.decision {
        Decision::Resume => {
            let mut transaction = begin().await.map_err(undone)?;
            let fresh = sketch_fresh(&mut transaction, services, assignment, &next).await;
            transaction.rollback().await.map_err(undone)?;
            Some(fresh?.size)
        }
        Decision::Create { .. } | Decision::Rebuild(_) => None,
    };
    let mut estimate = next.into_estimate(services, assignment, fresh);
    estimate.notes.extend(assignment.busy.as_ref().map(|busy| busy.describe()));
    estimate.notes.extend(chain_note(assignment));
    Ok(Ok(estimate))
}

/// The next turn, and what is known about it.
struct NextTurn {
    sketch: Sketch,
    /// The compaction that a person could ask for, or that the turn needs. `None`: the turn opens a new session.
    outline: Option<Result<Outline, plan::Error>>,
    /// The turn after a compaction that is ready: it costs no call.
    prepared: Option<WaySize>,
    earlier: EarlierTurns,
    cache: PromptCache,
}

async fn read_next(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    summariser_window_tokens: u64,
) -> Result<NextTurn, Error> {
    let Assignment { task, route, node, .. } = assignment;
    check_idle(&mut *conn, task).await?;
    let query = AlikeQuery {
        campaign_id: task.campaign_id,
        agent: &task.agent,
        instance: &task.instance,
        provider: &route.provider_name,
        model: &route.model,
    };
    let earlier = earlier_turns::read(&mut *conn, &query).await.map_err(undone)?;
    // Limits of what a new session takes over follow from it, in every process that has called the model.
    let known = services.calibrations.of(&route.provider_name, &route.model);
    if let Some(learnt) = earlier.calibration.filter(|_| known.is_cold()) {
        services.calibrations.learn(&route.provider_name, &route.model, learnt);
    }
    let sketched = sketch(&mut *conn, services, assignment, earlier.calibration).await;
    let sketch = sketched.map_err(turn_error)?;
    if sketch.decision != Decision::Resume {
        let cache = prompt_cache::of_new_session(route.provider);
        return Ok(NextTurn { sketch, outline: None, prepared: None, earlier, cache });
    }
    let reader = NodeReader {
        catalogue: &assignment.catalogue,
        waiting: Some(task),
        waiting_node: node.as_deref().map(|node| node.name.as_str()),
    };
    let params = OutlineParams {
        session: &sketch.session,
        calibration: &sketch.calibration,
        reader,
        window_tokens: route.window_tokens,
        reserve_tokens: route.reserve_tokens,
        summariser_window_tokens,
        around: sketch.around,
        policy: setup::policy(services, route),
    };
    let outline = compact_session::outline(&mut *conn, &params).await.map_err(undone)?;
    let own = earlier.n_of_conversation > 0;
    let last_output = earlier.turns.first().filter(|_| own).map_or(0, |turn| turn.output_tokens);
    let now = services.clock.now();
    let cache =
        prompt_cache::of_session(&mut *conn, route.provider, &sketch, last_output, now).await?;
    // Last, because it changes what the transaction shows.
    let id = sketch.session.id;
    let applied = compact_session::apply(&mut *conn, &*services.clock, id).await.map_err(undone)?;
    let prepared = match applied {
        ShowOutcome::Applied(_) => {
            let compacted = self::sketch(conn, services, assignment, earlier.calibration);
            Some(Box::pin(compacted).await.map_err(turn_error)?.size)
        }
        ShowOutcome::Stale => None,
    };
    Ok(NextTurn { sketch, outline: Some(outline), prepared, earlier, cache })
}

/// Drafts the turn as if a new session without a memory was asked for.
async fn sketch_fresh(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    next: &NextTurn,
) -> Result<Sketch, Error> {
    let id = next.sketch.session.id;
    sessions::ask_rebuild(&mut *conn, id, Reason::Fresh).await.map_err(undone)?;
    let learnt = Some(next.sketch.calibration).filter(|learnt| !learnt.is_cold());
    sketch(conn, services, assignment, learnt).await.map_err(turn_error)
}

impl NextTurn {
    fn into_estimate(
        self,
        services: &Services,
        assignment: &Assignment<'_>,
        fresh: Option<WaySize>,
    ) -> Estimate {
        let Assignment { task, route, .. } = assignment;
        let named = (route.provider_name.as_str(), route.model.as_str());
        let EarlierTurns { turns, n_of_conversation, .. } = &self.earlier;
        let found = price_basis::find(services, route.provider, named, turns);
        let (pricing, price) = found.unzip();
        let forecast = Forecast {
            earlier: turns.clone(),
            assumption: assumption(services, assignment),
            caches: route.provider.prompt_cache().is_some(),
            pricing,
        };
        let is_resumed = self.sketch.decision == Decision::Resume;
        Estimate {
            campaign_id: task.campaign_id,
            agent: task.agent.clone(),
            instance: task.instance.clone(),
            session_id: is_resumed.then_some(self.sketch.session.id),
            turn: self.sketch.session.turn_count + 1,
            provider: route.provider_name.clone(),
            model: route.model.clone(),
            currency: services.prices.currency.clone(),
            price,
            history: EstimateHistory {
                conversation_turns: *n_of_conversation,
                agent_turns: turns.len() - n_of_conversation,
                turns_wanted: TURNS_WANTED,
                assumed_output_tokens: turns
                    .is_empty()
                    .then_some(forecast.assumption.output_tokens),
            },
            cache: self.cache,
            ways: self.ways(&forecast, fresh),
            notes: Vec::new(),
        }
    }

    fn ways(&self, forecast: &Forecast, fresh: Option<WaySize>) -> Vec<WayEstimate> {
        let Self { sketch, outline, prepared, cache, .. } = self;
        let resumed = WaySize { cached_tokens: cache.tokens, ..sketch.size.clone() };
        let compacted = outline.as_ref().map(|outline| match (prepared, outline) {
            (Some(prepared), _) => Ok(prepared.clone()),
            (None, Ok(outline)) => Ok(compacted(&sketch.size, outline)),
            (None, Err(error)) => Err(error.to_string()),
        });
        let next = match (&compacted, sketch.needs_space) {
            (None, _) => Way::NewSession,
            (Some(Ok(_)), true) => Way::CompactFirst,
            (Some(_), _) => Way::Resume,
        };
        let reason = why_not_resumed(sketch.decision);
        let resume = match next {
            Way::NewSession => Err(reason.clone()),
            Way::CompactFirst => Err(
                "the context exceeds the threshold of the agent, so older messages are summarised first"
                    .to_owned(),
            ),
            Way::Resume => Ok(resumed),
        };
        let compact = compacted.unwrap_or(Err(reason));
        let new = Ok(fresh.unwrap_or_else(|| sketch.size.clone()));
        [(Way::Resume, resume), (Way::CompactFirst, compact), (Way::NewSession, new)]
            .map(|(way, size)| way_estimate(way, way == next, size, forecast))
            .into()
    }
}

fn way_estimate(
    way: Way,
    is_next: bool,
    size: Result<WaySize, String>,
    forecast: &Forecast,
) -> WayEstimate {
    match size {
        Ok(size) => WayEstimate {
            way,
            is_next,
            impossible: None,
            charge: Some(forecast.charge(&size)),
            first_call_tokens: Some(size.first_tokens),
            further_call_tokens: Some(forecast.growth_tokens()),
            parts: forecast.parts(&size),
        },
        Err(why) => WayEstimate {
            way,
            is_next,
            impossible: Some(why),
            charge: None,
            first_call_tokens: None,
            further_call_tokens: None,
            parts: Vec::new(),
        },
    }
}

fn why_not_resumed(decision: Decision) -> String {
    let why = match decision {
        Decision::Resume => "the session is resumed",
        Decision::Create { ephemeral: true } => "the task has a session of its own",
        Decision::Create { ephemeral: false } | Decision::Rebuild(Reason::New) => {
            "the conversation has no open session"
        }
        Decision::Rebuild(reason) => match reason {
            Reason::PromptChanged => "the prompt of the agent has changed",
            Reason::ModelChanged => "the model of the agent has changed",
            Reason::ProviderChanged => "the provider of the agent has changed",
            Reason::ContextFull => "a summary is ready, and a new session begins with it",
            Reason::Expired => "the session has expired",
            Reason::Lost => "the provider has lost the session",
            Reason::Poisoned => "the provider rejects the conversation",
            Reason::Fresh => "a session without a memory was requested",
            Reason::New | Reason::Reset | Reason::Ended | Reason::CampaignClosed => {
                "a new session was requested"
            }
        },
    };
    why.to_owned()
}

/// Replaces the folded messages. The rest stays as it was counted.
fn compacted(size: &WaySize, outline: &Outline) -> WaySize {
    let tokens = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let kept = tokens(outline.tail_tokens + outline.replacement_tokens);
    let first_tokens = size.first_tokens - tokens(outline.tokens_before) + kept;
    let others = size.parts.iter().copied();
    let others = others.filter(|(part, _)| !matches!(part, TurnPart::Summary | TurnPart::Messages));
    let new = [
        (TurnPart::Summary, tokens(outline.replacement_tokens)),
        (TurnPart::Messages, tokens(outline.tail_tokens)),
    ];
    let mut parts: Vec<_> = others.chain(new).collect();
    parts.sort_by_key(|(part, _)| *part);
    WaySize {
        first_tokens: first_tokens.max(kept),
        parts,
        compaction: (outline.calls > 0).then(|| CompactionSize {
            calls: tokens(outline.calls),
            input_tokens: tokens(outline.input_tokens),
            output_tokens: tokens(outline.summary_tokens),
            max_output_tokens: tokens(outline.max_output_tokens),
        }),
        ..size.clone()
    }
}

fn assumption(services: &Services, assignment: &Assignment<'_>) -> Assumption {
    let Assignment { agent, route, tools, .. } = assignment;
    let max_output_tokens = i64::try_from(route.reserve_tokens).unwrap_or(i64::MAX);
    let has_tools = !tools.is_empty() || route.provider.holds_session();
    let max_calls = if has_tools { ASSUMED_MAX_CALLS } else { 1 };
    Assumption {
        output_tokens: ASSUMED_OUTPUT_TOKENS.min(max_output_tokens),
        max_output_tokens,
        max_calls: max_calls.min(max_rounds(services, agent).max(1).into()),
        max_growth_tokens: i64::try_from(route.window_tokens / GROWTH_DIVISOR).unwrap_or(i64::MAX),
    }
}
