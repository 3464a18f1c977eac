//! Four hundred turns through a small window: no planted text is lost, with each kind of summariser.

use std::collections::BTreeMap;

use dalsegno::{
    context::{
        AssembledContext, Budget, Calibration, Checkpoint, Pressure, Thresholds,
        parts::Task as AssembledTask,
    },
    domain::{
        compactions::{self, Outcome},
        tasks::Task,
        turn_phases::{AnsweredTurn, StartedTurn},
    },
    jobs::compact_session::{Cause, Error, ShowOutcome, apply},
    providers::{EventSink, Options, Provider, Purpose, Request, Timeouts, sim::SummaryMode},
    transcript::{Message, Role},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Setup, WatchedProvider,
    setup::{OTHER_MODEL, WINDOW_TOKENS, assembled_on, calibration, text_of},
    sim,
};
use crate::{
    app::noon,
    context::{
        script::{
            has_tool_identifier, identifier, is_requirement, mention, planted, prompt, reply,
        },
        support::{calling, message, prose, result},
    },
    conversations::world::{TurnSettings, done},
};

const TURNS: usize = 400;

struct ScriptedConversation {
    setup: Setup,
    planted: Vec<String>,
    report: Report,
}

#[derive(Default)]
struct Report {
    n_applied: usize,
    n_undone: usize,
    n_look_ups: usize,
    n_kept: usize,
    n_turns_while_open: usize,
    largest_call_tokens: u64,
    by_rung: BTreeMap<String, usize>,
    n_refused: usize,
    /// Turn of each attempt at a summary.
    attempts: Vec<i32>,
    n_calls: usize,
}

impl ScriptedConversation {
    async fn run_script(provider: WatchedProvider, alternate_model: Option<&'static str>) -> Self {
        let setup = Setup { alternate_model, ..Setup::new(provider).await };
        let mut series = Self { setup, planted: Vec::new(), report: Report::default() };
        let mut id = Uuid::nil();
        for turn in 0..TURNS {
            id = series.turn(turn).await;
        }
        series.count(id).await;
        series
    }

    async fn turn(&mut self, turn: usize) -> Uuid {
        let world = &self.setup.world;
        let task = world.add(&prompt(turn)).await;
        let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
        let assembled = self.prepare_turn(begun.session_id, &task).await;
        let checkpoint = self.call(&begun, assembled).await;
        self.end(turn, &begun, checkpoint).await;
        self.planted.extend(planted(turn));
        begun.session_id
    }

    /// Prepares a turn: compacts if the context is near its limit.
    async fn prepare_turn(&mut self, id: Uuid, task: &Task) -> AssembledContext {
        let spoken = AssembledTask {
            entry_id: task.id,
            prompt: &task.prompt,
            asked_by: None,
            is_correction: false,
        };
        for _ in 0..3 {
            let assembled = self.setup.assembled(id, spoken).await;
            let cause = match self.pressure(id, &assembled).await {
                Pressure::Calm => return assembled,
                Pressure::Prepare => {
                    self.prepare(id, Cause::Auto).await;
                    return assembled;
                }
                Pressure::Apply => Cause::Auto,
                Pressure::Overflow => Cause::Overflow,
            };
            if self.show(id, spoken, &assembled).await {
                continue;
            }
            if !self.prepare(id, cause).await {
                assert_eq!(cause, Cause::Auto, "an overflow always gets its summary");
                self.report.n_turns_while_open += 1;
                return assembled;
            }
        }
        panic!("three compactions freed no space");
    }

    async fn pressure(&self, id: Uuid, assembled: &AssembledContext) -> Pressure {
        let session = self.setup.session(id).await;
        let calibration = calibration(&session);
        let anchor: Option<Checkpoint> =
            session.checkpoint.map(|stored| serde_json::from_value(stored).unwrap());
        let system_tokens = calibration.tokens(assembled.system_weight);
        let reserve_tokens = Budget::default_reserve(WINDOW_TOKENS);
        let budget = Budget::new(WINDOW_TOKENS, reserve_tokens, system_tokens).unwrap();
        let projected = calibration.project(anchor.as_ref(), assembled.weight);
        budget.pressure(projected, &Thresholds::default())
    }

    /// Prepares a compaction. False: the breaker is open.
    async fn prepare(&mut self, id: Uuid, cause: Cause) -> bool {
        match self.setup.prepare(id, cause).await {
            Ok(prepared) => {
                assert_eq!(prepared.pins_dropped, 0);
                assert!(prepared.tokens_after * 4 <= prepared.tokens_before * 3);
                true
            }
            Err(error @ Error::BreakerOpen { .. }) => {
                assert!(error.to_string().contains("is tried from turn"), "{error}");
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Applies the prepared compaction, after a check that undoing it restores the previous view. False: none was
    /// prepared.
    async fn show(&mut self, id: Uuid, task: AssembledTask<'_>, before: &AssembledContext) -> bool {
        let mut tx = self.setup.world.pool.begin().await.unwrap();
        if apply(&mut tx, &self.setup.clock, id).await.unwrap() == ShowOutcome::Stale {
            return false;
        }
        let after = assembled_on(&mut tx, id, task).await;
        assert_ne!(after.manifest.sha256, before.manifest.sha256);
        compactions::undo(&mut tx, id, noon()).await.unwrap();
        let back = assembled_on(&mut tx, id, task).await;
        assert_eq!(back.manifest.sha256, before.manifest.sha256);
        assert_eq!((&back.system, &back.messages), (&before.system, &before.messages));
        tx.rollback().await.unwrap();
        self.report.n_undone += 1;
        assert!(matches!(self.setup.apply(id).await, ShowOutcome::Applied(_)));
        self.report.n_applied += 1;
        self.check_planted(&self.setup.assembled(id, task).await);
        true
    }

    fn check_planted(&mut self, assembled: &AssembledContext) {
        let context = text_of(assembled);
        for text in &self.planted {
            assert!(context.contains(text), "{text} is lost");
        }
        self.report.n_look_ups += self.planted.len();
        self.report.n_kept = self.planted.len();
    }

    async fn call(
        &mut self,
        begun: &StartedTurn,
        assembled: AssembledContext,
    ) -> (Checkpoint, Calibration) {
        let request = Request {
            turn: begun.turn.to_string(),
            purpose: Purpose::Turn,
            model: "sim-1".to_owned(),
            system: assembled.system,
            messages: assembled.messages,
            tools: Vec::new(),
            window_tokens: u32::try_from(WINDOW_TOKENS).unwrap(),
            reserve_tokens: u32::try_from(Budget::default_reserve(WINDOW_TOKENS)).unwrap(),
            estimated_prompt_tokens: None,
            options: Options::default(),
            timeouts: Timeouts::default(),
            conversation: None,
            credential: None,
        };
        let provider = &self.setup.provider;
        let outcome = provider.run(request, EventSink::discard(), CancellationToken::new()).await;
        let real_tokens = outcome.unwrap().usage.prompt().unwrap();
        let room = WINDOW_TOKENS - Budget::default_reserve(WINDOW_TOKENS);
        assert!(real_tokens <= room, "turn {}: {real_tokens}", begun.turn);
        self.report.largest_call_tokens = self.report.largest_call_tokens.max(real_tokens);
        let checkpoint = Checkpoint { weight: assembled.weight, real_tokens };
        let mut calibration = calibration(&self.setup.session(begun.session_id).await);
        calibration.observe(checkpoint);
        (checkpoint, calibration)
    }

    async fn end(&self, turn: usize, begun: &StartedTurn, learnt: (Checkpoint, Calibration)) {
        let (checkpoint, calibration) = (json!(learnt.0), json!(learnt.1));
        let done = AnsweredTurn {
            calibration: Some(&calibration),
            checkpoint: Some(&checkpoint),
            ..done("said", TurnSettings::default())
        };
        self.setup.end(begun, &said(turn), &done).await;
    }

    async fn count(&mut self, id: Uuid) {
        for made in self.setup.compactions(id).await {
            let refused = made.refusals.as_array().unwrap();
            self.report.n_refused += refused.len();
            let rung = made.rung.unwrap();
            let refused = refused.iter().map(|attempt| attempt["rung"].as_str().unwrap());
            let asked = refused.chain([rung.as_str()]).filter(|rung| *rung != "extract");
            self.report.attempts.extend(asked.map(|_| made.turn));
            if made.outcome == Outcome::Applied {
                *self.report.by_rung.entry(rung).or_default() += 1;
            }
        }
        self.report.n_calls = self.setup.provider.n_summaries();
    }

    fn check(&self) {
        let report = &self.report;
        let identifiers = self.planted.iter().filter(|text| !is_requirement(text)).count();
        assert_eq!((identifiers, self.planted.len()), (60, 70));
        assert!(report.n_applied >= 10 && report.n_undone == report.n_applied);
        for first in 0..TURNS as i32 {
            let recent = report.attempts.iter().filter(|turn| (first..first + 10).contains(*turn));
            let n_recent = recent.count();
            assert!(n_recent <= 3, "{n_recent} attempts in ten turns from {first}");
        }
    }

    async fn print(&self, summariser: &str) {
        let Report { n_applied, n_refused, n_calls, .. } = self.report;
        println!(
            "fidelity, {summariser}: planted {} (60 identifiers, 10 requirements), kept {} after each of {n_applied} \
             compactions ({} look-ups, {} views given back); rungs {:?}; attempts {}, refused summaries {n_refused}, \
             calls {n_calls}; turns that went on with an open breaker {}; largest call {} of {WINDOW_TOKENS} tokens",
            self.planted.len(),
            self.report.n_kept,
            self.report.n_look_ups,
            self.report.n_undone,
            self.report.by_rung,
            self.report.attempts.len(),
            self.report.n_turns_while_open,
            self.report.largest_call_tokens,
        );
        let (calls, tokens, _) = self.setup.ledger().await;
        assert_eq!(calls, i64::try_from(n_calls).unwrap(), "each call is in the ledger");
        assert!(tokens > 0);
    }

    fn rungs(&self) -> Vec<&str> {
        self.report.by_rung.keys().map(String::as_str).collect()
    }
}

fn said(turn: usize) -> Vec<Message> {
    let mut said = Vec::new();
    if turn % 5 == 2 {
        let mut found = prose(turn, 4);
        if has_tool_identifier(turn) {
            found.push_str(&format!(" Found {}.", mention(&identifier(turn, 1))));
        }
        said.push(calling("I look it up.", &["call_0", "call_1"]));
        said.push(result("call_0", &found));
        said.push(result("call_1", &prose(turn + 1, 4)));
    }
    said.push(message(Role::Assistant, &reply(turn)));
    said
}

#[tokio::test]
async fn an_honest_summariser_keeps_every_planted_detail() {
    let series = ScriptedConversation::run_script(WatchedProvider::honest(), None).await;
    series.print("honest").await;
    series.check();
    assert_eq!(series.report.n_refused, 0);
    assert_eq!(series.rungs(), ["first"]);
}

#[tokio::test]
async fn a_summariser_that_drops_identifiers_is_refused_and_every_turn_succeeds() {
    check_refused(SummaryMode::DropsIdentifiers, "drops identifiers").await;
}

#[tokio::test]
async fn a_summariser_that_returns_nothing_is_refused_and_every_turn_succeeds() {
    check_refused(SummaryMode::Empty, "returns nothing").await;
}

#[tokio::test]
async fn a_summariser_that_returns_more_than_its_input_is_refused_and_every_turn_succeeds() {
    check_refused(SummaryMode::Bloated, "returns more than it got").await;
}

async fn check_refused(mode: SummaryMode, name: &str) {
    let series = ScriptedConversation::run_script(WatchedProvider::new(sim(mode, &[])), None).await;
    series.print(name).await;
    series.check();
    assert_eq!(series.report.n_refused, series.report.attempts.len());
    assert!(series.report.n_refused > 10);
    assert_eq!(series.rungs(), ["extract"]);
}

#[tokio::test]
async fn an_honest_alternate_replaces_a_dishonest_summariser() {
    let provider = WatchedProvider::new(sim(SummaryMode::DropsIdentifiers, &[]));
    let series = ScriptedConversation::run_script(provider, Some(OTHER_MODEL)).await;
    series.print("honest alternate").await;
    series.check();
    assert!(series.report.by_rung["alternate"] > 0);
    assert!(!series.report.by_rung.contains_key("first"));
}
