//! A conversation with scripted turns and a watched summariser.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dalsegno::{
    clock::ManualClock,
    context::{
        AssembledContext, Budget, Calibration, Parts, Weight, assemble,
        compaction::Policy,
        parts::Task,
        xml::{self, FenceSeed},
    },
    domain::{
        busy_models,
        compactions::{self, Compaction},
        messages,
        prices::Cost,
        sessions::{self, SessionRow},
        turn_phases,
        turn_phases::{AnsweredTurn, StartedTurn, TurnEnd},
        usage,
    },
    jobs::{
        RateLimits,
        compact_session::{
            Claimant, Error, Folder, LoadedView, PreparedCompaction, ShowOutcome, apply, prepare,
        },
    },
    providers::{
        Capabilities, EventSink, Provider, ProviderFuture, Purpose, Request, TurnFuture,
        sim::{Config, Sim, SummaryMode, count_prompt_tokens},
    },
    transcript::{Message, Role},
};
use sqlx::PgConnection;
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use dalsegno::domain::compactions::Cause;

use crate::{
    app::noon,
    context::support,
    conversations::world::{TurnSettings, World, call, done, measured},
};

pub const WINDOW_TOKENS: u64 = 8_192;
pub const OTHER_MODEL: &str = "sim-2";

pub struct Setup {
    pub world: World,
    pub provider: WatchedProvider,
    pub alternate_model: Option<&'static str>,
    pub summariser_window_tokens: u64,
    pub clock: ManualClock,
    pub cancel: CancellationToken,
    pub rate_limits: Arc<RateLimits>,
}

/// A provider of two simulations: the session's own model, and [`OTHER_MODEL`].
#[derive(Debug)]
pub struct WatchedProvider {
    own: Sim,
    other: Sim,
    /// Number of calls for a summary.
    n_summaries: AtomicUsize,
    /// Tokens of the largest call, including the reserve for its answer.
    largest_tokens: AtomicUsize,
    /// If set, makes callers wait for each other.
    meeting: Option<Barrier>,
}

pub fn sim(summary: SummaryMode, faults: &[&str]) -> Sim {
    let config = Config {
        window_tokens: u32::try_from(WINDOW_TOKENS).unwrap(),
        latency_ms: 0,
        chunk_delay_ms: 0,
        chunk_chars: 4000,
        summary,
        facts: Default::default(),
        directives: false,
        faults: faults.iter().map(|fault| (*fault).to_owned()).collect(),
    };
    Sim::new(config).unwrap()
}

impl WatchedProvider {
    pub fn new(own: Sim) -> Self {
        Self {
            own,
            other: sim(SummaryMode::Honest, &[]),
            n_summaries: AtomicUsize::new(0),
            largest_tokens: AtomicUsize::new(0),
            meeting: None,
        }
    }

    pub fn honest() -> Self {
        Self::new(sim(SummaryMode::Honest, &[]))
    }

    /// Returns an honest summariser that blocks calls until there are `n` of them.
    pub fn blocking_until(n: usize) -> Self {
        Self { meeting: Some(Barrier::new(n)), ..Self::honest() }
    }

    pub fn n_summaries(&self) -> usize {
        self.n_summaries.load(Ordering::Relaxed)
    }

    pub fn largest_tokens(&self) -> u64 {
        self.largest_tokens.load(Ordering::Relaxed) as u64
    }

    fn note(&self, request: &Request) {
        let prompt = count_prompt_tokens(&request.system, &request.messages);
        let tokens = (prompt + request.reserve_tokens) as usize;
        self.n_summaries.fetch_add(1, Ordering::Relaxed);
        self.largest_tokens.fetch_max(tokens, Ordering::Relaxed);
    }
}

impl Provider for WatchedProvider {
    fn run(
        &self,
        request: Request,
        events: EventSink,
        cancel: CancellationToken,
    ) -> TurnFuture<'_> {
        Box::pin(async move {
            if request.purpose != Purpose::Turn {
                self.note(&request);
                if let Some(meeting) = &self.meeting {
                    meeting.wait().await;
                }
            }
            let model = if request.model == OTHER_MODEL { &self.other } else { &self.own };
            model.run(request, events, cancel).await
        })
    }

    fn window_tokens<'a>(
        &'a self,
        model: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, u32> {
        self.own.window_tokens(model, cancel)
    }

    fn capabilities(&self) -> Capabilities {
        self.own.capabilities()
    }

    fn telemetry_name(&self) -> &'static str {
        self.own.telemetry_name()
    }
}

/// Backoff of busy models, exact in tests except for its random half.
pub const BUSY: busy_models::Config =
    busy_models::Config { busy_first_secs: 4, busy_max_wait_secs: 60, busy_max_secs: 600 };

impl Setup {
    pub async fn new(provider: WatchedProvider) -> Self {
        Self::with_world(World::new().await, provider)
    }

    pub fn with_world(world: World, provider: WatchedProvider) -> Self {
        Self {
            world,
            provider,
            alternate_model: None,
            summariser_window_tokens: WINDOW_TOKENS,
            clock: ManualClock::at(noon()),
            cancel: CancellationToken::new(),
            rate_limits: Arc::new(RateLimits::new(Default::default())),
        }
    }

    pub fn folder(&self) -> Folder<'_> {
        Folder {
            pool: &self.world.pool,
            clock: &self.clock,
            cancel: &self.cancel,
            claimant: Claimant { job_id: 0, lease: 0 },
            waiting: None,
            waiting_node: None,
            catalogue: &self.world.catalogue,
            provider: &self.provider,
            alternate_model: self.alternate_model,
            window_tokens: WINDOW_TOKENS,
            reserve_tokens: Budget::default_reserve(WINDOW_TOKENS),
            summariser_window_tokens: self.summariser_window_tokens,
            system_weight: Weight::from_millitokens(400_000),
            upcoming_weight: Weight::ZERO,
            policy: Policy::default(),
            timeouts: Default::default(),
            calibration: Calibration::cold(),
            cost: &|_, tokens| Cost { micros: tokens.total() * 3, price: None },
            busy: BUSY,
            rate_limits: &self.rate_limits,
        }
    }

    /// Commits a turn with this prompt and these answers, without a model.
    pub async fn commit_turn(&self, prompt: &str, said: &[Message]) -> Uuid {
        let task = self.world.add(prompt).await;
        let (_, begun) = self.world.begin(&task, self.world.lease(), TurnSettings::default()).await;
        self.end(&begun, said, &done("said", TurnSettings::default())).await;
        begun.session_id
    }

    /// Commits `n_turns` turns of prose, each with an identifier; the last one has the number `n_turns`.
    pub async fn chat(&self, n_turns: usize) -> Uuid {
        let mut id = Uuid::nil();
        for turn in 1..=n_turns {
            let prompt = format!("{} It is INV-{turn:04}.", support::prose(turn, 4));
            let answer = support::prose(turn + 1000, 20);
            id = self.commit_turn(&prompt, &[support::message(Role::Assistant, &answer)]).await;
        }
        id
    }

    pub async fn end(&self, begun: &StartedTurn, said: &[Message], done: &AnsweredTurn<'_>) {
        let messages: Vec<messages::New> =
            said.iter().map(|message| measured(Uuid::new_v4(), message.clone())).collect();
        let calls: [usage::Call<'_>; 1] = [call(begun, None)];
        let ending = TurnEnd {
            turn: begun,
            calls: &calls,
            messages: &messages,
            record: Default::default(),
            now: noon(),
        };
        let mut tx = self.world.pool.begin().await.unwrap();
        turn_phases::commit(&mut tx, &ending, done).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub async fn prepare(&self, id: Uuid, cause: Cause) -> Result<PreparedCompaction, Error> {
        prepare(&self.folder(), id, cause).await
    }

    pub async fn apply(&self, id: Uuid) -> ShowOutcome {
        let mut tx = self.world.pool.begin().await.unwrap();
        let shown = apply(&mut tx, &self.clock, id).await.unwrap();
        tx.commit().await.unwrap();
        shown
    }

    pub async fn revert(&self, id: Uuid) -> Result<i32, compactions::Error> {
        let mut tx = self.world.pool.begin().await.unwrap();
        let parent = compactions::undo(&mut tx, id, noon()).await?;
        tx.commit().await.unwrap();
        Ok(parent)
    }

    pub async fn session(&self, id: Uuid) -> SessionRow {
        sessions::read_live(&self.world.pool, id).await.unwrap()
    }

    pub async fn compactions(&self, id: Uuid) -> Vec<Compaction> {
        compactions::list(&self.world.pool, id).await.unwrap()
    }

    /// Returns the context that the session would send with this task.
    pub async fn assembled(&self, id: Uuid, task: Task<'_>) -> AssembledContext {
        let mut conn = self.world.pool.acquire().await.unwrap();
        assembled_on(&mut conn, id, task).await
    }

    /// Returns the text of a call with a new task, as the model reads it.
    pub async fn context(&self, id: Uuid) -> String {
        let task =
            Task { entry_id: Uuid::max(), prompt: "Go on.", asked_by: None, is_correction: false };
        text_of(&self.assembled(id, task).await)
    }

    /// Returns the ledger's sums for summaries: calls, tokens, money.
    pub async fn ledger(&self) -> (i64, i64, i64) {
        let totals = usage::totals(&self.world.pool, self.world.campaign.id).await.unwrap();
        let summaries = totals.iter().filter(|total| total.purpose == usage::Purpose::Summary);
        summaries.fold((0, 0, 0), |sum, total| {
            let tokens = total.input_tokens + total.output_tokens;
            (sum.0 + total.calls, sum.1 + tokens, sum.2 + total.cost_micros)
        })
    }
}

pub async fn assembled_on(conn: &mut PgConnection, id: Uuid, task: Task<'_>) -> AssembledContext {
    let session = sessions::read_live(&mut *conn, id).await.unwrap();
    let loaded = LoadedView::read(conn, &session).await.unwrap();
    let parts = Parts { task, ..support::parts(loaded.view().unwrap(), "") };
    let seed = FenceSeed::from_bytes(session.fence_seed.clone().try_into().unwrap());
    assemble(&parts, &seed, &calibration(&session))
}

pub fn calibration(session: &SessionRow) -> Calibration {
    session
        .calibration
        .clone()
        .map(|stored| serde_json::from_value(stored).unwrap())
        .unwrap_or_default()
}

pub fn text_of(assembled: &AssembledContext) -> String {
    let mut text = xml::unescape(&assembled.system).into_owned();
    for message in &assembled.messages {
        text.push('\n');
        text.push_str(&xml::unescape(&message.text));
    }
    text
}
