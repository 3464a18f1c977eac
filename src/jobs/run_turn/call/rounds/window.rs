//! Keeps a turn's conversation within its window while the turn grows.
//!
//! ```text
//! all of it ─▶ results of earlier rounds shortened ─▶ older history folded ─▶ every result shortened ─▶ the turn fails
//! ```
//! A step is taken only if the one before leaves too much pressure to begin a turn. The last step is taken only if the
//! call would not fit at all, or the provider has refused it.
//!
//! A turn is stored as its last call has sent it. Otherwise a conversation that has outgrown its window in the middle
//! of a turn would be too long for every later turn.

use std::sync::Arc;

use crate::{
    causes::causes,
    context::{
        Checkpoint, Entry, Pressure, Weight,
        compaction::Keep,
        rounds::{FirstCall, FurtherCall, Last, LaterRounds, shorten_result},
        xml::FenceSeed,
    },
    domain::{compactions::ShowOutcome, messages},
    jobs::{
        Services, compact_session,
        compact_session::setup::FixedWeight,
        measure,
        route::Route,
        run_turn::{
            begin::{
                make_space::{self, SpaceRequest},
                open_turn::{CallRecord, OpenTurn},
                outlook::{self, Additions},
                request,
                window::{describe_size, suggest_settings},
            },
            error::Error,
            load::assignment::Assignment,
        },
    },
    providers::{self, Class, Origin, Request},
    queue::Run,
    transcript::Message,
};

pub struct Window {
    first: FirstCall,
    /// The request of each call, without messages.
    template: Request,
    /// Last count of the provider.
    pub anchor: Option<Checkpoint>,
    stage: Stage,
    /// True after folding. It happens once in a turn at most: its result stays.
    has_folded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Whole,
    /// Results of all rounds but the last are shortened.
    Older,
    /// Like `Older`, with a shorter history.
    Folded,
    All,
}

/// Messages since the first call, and the index of the last round.
type LaterMessages<'a> = (&'a [Entry], usize);
type RoundParams<'a> = (&'a Run, &'a Services, &'a Assignment<'a>);

const NO_ROOM: &str = "turn.no_room";
/// Divisor of the room: a stopped turn leaves at most this part, so that later turns have space.
const STOPPED_ROOM_DIVISOR: u64 = 2;

impl Window {
    pub fn of(opened: &OpenTurn, request: &Request) -> Self {
        let anchor = opened.session.checkpoint.clone();
        Self {
            first: FirstCall {
                messages: request.messages.clone(),
                manifest: opened.context.manifest.clone(),
                texts: opened.context.texts.clone(),
                weight: opened.weight,
            },
            template: Request { messages: Vec::new(), ..request.clone() },
            anchor: anchor.and_then(|anchor| serde_json::from_value(anchor).ok()),
            stage: Stage::Whole,
            has_folded: false,
        }
    }

    /// Builds the next call, as much of it as fits. Updates `opened` to what it sends.
    pub async fn fit(
        &mut self,
        turn: RoundParams<'_>,
        opened: &mut OpenTurn,
        said: LaterMessages<'_>,
        last: Option<Last<'_>>,
        refusal: Option<&str>,
    ) -> Result<Request, providers::Error> {
        let (run, _, assignment) = turn;
        let Route { ref thresholds, reserve_tokens, model_window_tokens, .. } = assignment.route;
        let refused_tokens = refusal.map(|_| opened.estimated_tokens);
        let mut stage = match (refusal.is_some(), self.stage) {
            (true, stage) => {
                stage.next().ok_or_else(|| no_space_error(opened, assignment, refusal))?
            }
            (false, Stage::Whole) => Stage::Whole,
            (false, _) => Stage::Older,
        };
        let is_last = last.is_some();
        let seed = seed(opened)?;
        loop {
            if stage == Stage::Folded && !self.has_folded {
                self.has_folded = true;
                let grown = self.extended(opened, &seed, said, last, stage).weight;
                let grown = grown.saturating_sub(self.first.weight);
                self.fold(turn, opened, grown, refused_tokens).await;
                if run.stop_reason().is_some() {
                    let why = "the turn was stopped during a compaction";
                    return Err(
                        providers::Error::new("turn.stopped", Class::Cancelled, why).before_call()
                    );
                }
            }
            let sent = self.extended(opened, &seed, said, last, stage);
            let calibration = opened.calibration;
            let estimated_tokens = calibration.project(self.anchor.as_ref(), sent.weight);
            let pressure = opened.budget.pressure(estimated_tokens, thresholds);
            opened.estimated_tokens = estimated_tokens;
            let fits = match stage {
                Stage::Whole | Stage::Older => pressure < Pressure::Apply,
                // A cold estimate is too high, so the provider decides. A limit below the window stops no turn.
                Stage::Folded | Stage::All => {
                    let needed_tokens = estimated_tokens.saturating_add(reserve_tokens);
                    let is_cold = calibration.is_cold();
                    pressure < Pressure::Overflow || is_cold || needed_tokens <= model_window_tokens
                }
            };
            if fits {
                self.stage = stage;
                opened.weight = sent.weight;
                opened.context = CallRecord {
                    manifest: sent.manifest,
                    texts: self.first.texts.iter().cloned().chain(sent.texts).collect(),
                    rounds: sent.entries,
                };
                return Ok(self.request(opened, sent.messages, is_last));
            }
            stage = stage.next().ok_or_else(|| no_space_error(opened, assignment, refusal))?;
        }
    }

    /// Returns the number of entries that are stored shortened, after an answer.
    pub fn n_shortened(&self, (entries, last_round_at): LaterMessages<'_>) -> usize {
        self.stage.n_shortened(entries.len(), last_round_at)
    }

    /// The same for a stopped turn, of which only part may fit. `None`: nothing of it can be stored.
    pub fn n_shortened_of_stopped(
        opened: &OpenTurn,
        (entries, last_round_at): LaterMessages<'_>,
    ) -> Option<usize> {
        let most = opened.budget.room_tokens() / STOPPED_ROOM_DIVISOR;
        [0, last_round_at, entries.len()].into_iter().find(|n_shortened| {
            let weight = |(at, entry): (usize, &Entry)| match at < *n_shortened {
                true => shorten_result(&entry.message)
                    .map_or(entry.weight, |it| Weight::of_message(&it)),
                false => entry.weight,
            };
            let weight = entries.iter().enumerate().map(weight).sum();
            opened.calibration.tokens(weight) <= most
        })
    }

    fn request(&self, opened: &OpenTurn, messages: Vec<Arc<Message>>, is_last: bool) -> Request {
        let expected_tokens = request::expected_tokens(opened);
        let mut request = Request {
            messages,
            estimated_prompt_tokens: Some(u32::try_from(expected_tokens).unwrap_or(u32::MAX)),
            ..self.template.clone()
        };
        if is_last {
            request.tools.clear();
        }
        request
    }

    fn extended(
        &self,
        opened: &OpenTurn,
        seed: &FenceSeed,
        (entries, last_round_at): LaterMessages<'_>,
        last: Option<Last<'_>>,
        stage: Stage,
    ) -> FurtherCall {
        let n_shortened = stage.n_shortened(entries.len(), last_round_at);
        let since = LaterRounds { entries, n_shortened, last };
        self.first.extended(&since, seed, &opened.calibration)
    }

    /// Folds older history. A failure is only logged, because the turn may fit without it.
    async fn fold(
        &mut self,
        (run, services, assignment): RoundParams<'_>,
        opened: &mut OpenTurn,
        grown: Weight,
        refused_tokens: Option<u64>,
    ) {
        let around =
            FixedWeight { upcoming: opened.around.upcoming + grown, system: opened.around.system };
        let estimated =
            opened.budget.pressure(opened.estimated_tokens, &assignment.route.thresholds);
        let pressure = if refused_tokens.is_some() { Pressure::Overflow } else { estimated };
        let needed = SpaceRequest { around, pressure, refused_tokens, keep: Keep::Turns };
        let session_id = opened.session.id;
        let folded = async {
            make_space::make(run, services, assignment, session_id, needed).await?;
            self.show(run, services, assignment, opened).await
        };
        if let Err(error) = folded.await {
            let error = causes(&error);
            tracing::warn!(session.id = %session_id, error, "cannot compact the session during a turn");
        }
    }

    /// Applies the prepared summary, and assembles the turn's first call again after it.
    async fn show(
        &mut self,
        run: &Run,
        services: &Services,
        assignment: &Assignment<'_>,
        opened: &mut OpenTurn,
    ) -> Result<(), Error> {
        let mut tx = run.pool().begin().await.map_err(Error::undone)?;
        let session_id = opened.session.id;
        let shown = compact_session::apply(&mut tx, &*services.clock, session_id).await;
        let ShowOutcome::Applied(compaction) = shown.map_err(Error::undone)? else {
            return tx.rollback().await.map_err(Error::undone);
        };
        tx.commit().await.map_err(Error::undone)?;
        opened.session.generation = compaction.generation;
        opened.session.checkpoint = None;
        let mut conn = run.pool().acquire().await.map_err(Error::undone)?;
        let OpenTurn { session, words, team, calibration, .. } = &*opened;
        let given = Additions { calibration, words, team };
        let outlook =
            outlook::load_outlook(&mut conn, services, assignment, session, &given).await?;
        opened.budget = outlook.budget;
        self.first = outlook.assembled.into();
        Ok(())
    }
}

/// Shortens the messages of a stopped turn whose provider has made all its calls.
pub fn fit_stopped(opened: &OpenTurn, mut said: Vec<messages::New>) -> Vec<messages::New> {
    let entries: Vec<Entry> = said.iter().map(|new| measure::to_entry(new, 0)).collect();
    let has_calls = |new: &messages::New| !new.message.tool_calls.is_empty();
    let last_round_at = said.iter().rposition(has_calls).unwrap_or(0);
    match Window::n_shortened_of_stopped(opened, (&entries, last_round_at)) {
        Some(n_shortened) => shorten(&mut said, n_shortened),
        None => said.clear(),
    }
    said
}

pub fn shorten(said: &mut [messages::New], n_shortened: usize) {
    for new in said.iter_mut().take(n_shortened) {
        if let Some(message) = shorten_result(&new.message) {
            *new = measure::measure_message(new.id, message);
        }
    }
}

impl Stage {
    fn n_shortened(self, n_entries: usize, last_round_at: usize) -> usize {
        match self {
            Self::Whole => 0,
            Self::Older | Self::Folded => last_round_at,
            Self::All => n_entries,
        }
    }

    fn next(self) -> Option<Self> {
        match self {
            Self::Whole => Some(Self::Older),
            Self::Older => Some(Self::Folded),
            Self::Folded => Some(Self::All),
            Self::All => None,
        }
    }
}

fn seed(opened: &OpenTurn) -> Result<FenceSeed, providers::Error> {
    let bytes = opened.session.fence_seed.as_slice().try_into();
    bytes.map(FenceSeed::from_bytes).map_err(|_| {
        let why = "the fence seed of the session does not have 32 bytes";
        providers::Error::new("transcript.not_read", Class::Fail, why)
            .of(Origin::Host)
            .before_call()
    })
}

fn no_space_error(
    opened: &OpenTurn,
    assignment: &Assignment<'_>,
    refusal: Option<&str>,
) -> providers::Error {
    let mut why = format!(
        "the calls and results of the turn no longer fit: {}; ask for less at a time, or {}",
        describe_size(&opened.context.manifest, &assignment.route, opened.estimated_tokens),
        suggest_settings(&opened.context.manifest),
    );
    if let Some(refusal) = refusal {
        why.push_str(&format!("; the provider refused the last call: {refusal}"));
    }
    providers::Error::new(NO_ROOM, Class::Fail, why).before_call()
}
