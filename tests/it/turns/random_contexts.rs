//! Random conversations with compactions, rollovers, failovers, faults, retries, tools, posts, edicts, facts and edited files:
//! every stored call is assembled again byte for byte. With the feature `chaos`, 10,000 turns.

use std::collections::HashSet;

use dalsegno::{
    domain::contexts::{self, StoredContext, StoredSideCall},
    operations::{ContextState, SentContext, VerifiedCall},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    board::setup::BoardSetup,
    context::support::prose,
    facts::{setup::set_user, state},
    memory::edicts_in_context::publish as publish_edict,
    providers::fake_ollama::Play,
};

const AGENTS: [&str; 4] = ["ann", "bob", "eve", "lea"];
/// Turns at once.
const READERS: [&str; 8] = ["ann", "bob", "eve", "lea", "ann/a", "bob/a", "eve/a", "lea/a"];
const WINDOW: u64 = 8192;
const USER: &str = "ann@example.org";

struct Case {
    setup: BoardSetup,
    random: StdRng,
    n_texts: usize,
}

impl Case {
    async fn new(seed: u64) -> Self {
        let setup = BoardSetup::with_window(&[], "", WINDOW).await;
        setup.fake.summarises();
        let mut case = Self { setup, random: StdRng::seed_from_u64(seed), n_texts: 0 };
        AGENTS.iter().for_each(|agent| case.write(agent));
        case
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn text(&mut self) -> String {
        self.n_texts += 1;
        let n_sentences = self.random.random_range(1..8);
        let odd = ["", " <task>&amp;</task>", " \u{202e}\u{0}\u{1}😀", "\n\n\"quoted\" \\"];
        let odd = odd.choose(&mut self.random).unwrap().replace('\0', "");
        format!("{}{odd}", prose(self.n_texts, n_sentences))
    }

    /// Writes the file of an agent. `ann` fails over to the simulation, `bob` rolls over, `lea` is the lead.
    fn write(&mut self, agent: &str) {
        let own = match agent {
            "ann" => "fallback_provider: sim\nfallback_model: sim-1\n",
            "bob" => "rotate_at_tokens: 4000\n",
            "lea" => "lead: true\n",
            _ => "told_facts: true\n",
        };
        let tools =
            "tools: mcp__dalsegno__status, mcp__dalsegno__board_post, mcp__dalsegno__board_read\n";
        let words = self.text();
        self.setup.write(agent, &format!("{own}{tools}history_window: 5\n"), &words);
    }

    fn play(&mut self) -> Play {
        const CUT: &str =
            r#"{"error":"the prompt is longer than the context length currently available"}"#;
        match self.random.random_range(0..100) {
            0..15 => Play::Calls(vec![("status", json!({}))]),
            15..25 => Play::Calls(vec![
                ("board_post", json!({ "text": self.text() })),
                ("board_read", json!({ "limit": 20 })),
            ]),
            25..28 => Play::Status(500, "", r#"{"error":"boom"}"#),
            28..30 => Play::HangsUp,
            30..31 => Play::Status(400, "", CUT),
            31..34 => Play::Calls(vec![("no_such_tool", json!({ "n": 0.1 }))]),
            _ => Play::Says(&["A part of the ", "answer <&>."]),
        }
    }

    /// Changes what later calls are sent.
    async fn change(&mut self) {
        let fixture = &self.setup.fixture;
        match self.random.random_range(0..10) {
            0..5 => {
                let text = self.text();
                self.setup.post(&["all"], &text).await;
            }
            5..7 => {
                let name = *["tone", "length"].choose(&mut self.random).unwrap();
                let text = self.text();
                publish_edict(&self.setup.fixture, name, &text).await;
            }
            7..8 => {
                let pool = fixture.pool.clone();
                let text = self.text();
                _ = state(&pool, USER, ("city", &text)).await;
            }
            8..9 => {
                let brief = self.text();
                let change = "update dalsegno.campaigns set brief = $1";
                let pool = &self.setup.fixture.pool;
                sqlx::query(change).bind(brief).execute(pool).await.unwrap();
            }
            _ => {
                let agent = *AGENTS.choose(&mut self.random).unwrap();
                self.write(agent);
            }
        }
    }

    async fn round(&mut self) {
        for _ in 0..12 {
            let play = self.play();
            self.setup.fake.state.plays.lock().unwrap().push_back(play);
        }
        if self.chance(60) {
            self.change().await;
        }
        let mut tasks = Vec::new();
        for reader in READERS {
            let text = self.text();
            tasks.push(self.setup.ask(reader, &text, None).await);
        }
        for task in &tasks {
            self.setup.fixture.ended_after_waits(task).await;
        }
    }

    /// Assembles every stored call again. Returns the number of turns, of their requests, and of requests for summaries.
    async fn verify(&self) -> (usize, usize, usize) {
        let fixture = &self.setup.fixture;
        let mut n_turns = 0;
        let (mut requests, mut side_requests) = (Vec::new(), Vec::new());
        for session in fixture.sessions().await {
            let mut conn = fixture.pool.acquire().await.unwrap();
            let mut turns = HashSet::new();
            let mut visit = |stored: StoredContext| {
                turns.insert(stored.turn);
                let call = VerifiedCall::of(&stored)?;
                let is_exact = matches!(call.state, ContextState::Exact | ContextState::NoRequest);
                assert!(is_exact, "session {}: {call:?}", session.id);
                if let Some(request) = SentContext::of(stored)?.request {
                    requests.push((request.sha256, call));
                }
                Ok(())
            };
            contexts::visit(&mut conn, session.id, 0, 100_000, &mut visit).await.unwrap();
            n_turns += turns.len();
            let mut visit = |stored: StoredSideCall| {
                let call = VerifiedCall::of_side_call(&stored)?;
                let is_exact = matches!(call.state, ContextState::Exact | ContextState::NoRequest);
                assert!(is_exact, "session {}: {call:?}", session.id);
                if let Some(request) = SentContext::of_side_call(stored)?.request {
                    side_requests.push((request.sha256, call));
                }
                Ok(())
            };
            contexts::visit_side_calls(&mut conn, session.id, (0, None), &mut visit).await.unwrap();
        }
        // After the ledger: summaries are made in the background, also while it is read.
        let bodies = self.setup.fake.bodies();
        let sent: HashSet<String> =
            bodies.iter().map(|body| hex::encode(Sha256::digest(body))).collect();
        for (sha256, call) in requests.iter().chain(&side_requests) {
            assert!(sent.contains(sha256), "{call:?}");
        }
        (n_turns, requests.len(), side_requests.len())
    }
}

async fn run(seed: u64, min_turns: usize) {
    let mut case = Case::new(seed).await;
    set_user(&case.setup.fixture, USER).await;
    let worker = case.setup.fixture.start_worker().await;
    let (mut n_turns, mut n_requests, mut n_side_requests) = (0, 0, 0);
    while n_turns < min_turns {
        for _ in 0..(min_turns - n_turns).div_ceil(READERS.len()).clamp(1, 200) {
            case.round().await;
        }
        (n_turns, n_requests, n_side_requests) = case.verify().await;
    }
    worker.stop_only().await;
    let count = |sql| case.setup.fixture.count(sql);
    let n_compactions =
        count("select count(*) from dalsegno.compactions where applied_at is not null");
    let n_rounds = count("select count(*) from dalsegno.manifests where call > 0");
    let n_failed = count("select count(*) from dalsegno.turns where state <> 'done'");
    let n_texts = count("select count(*) from dalsegno.context_texts");
    let (n_compactions, n_rounds, n_failed, n_texts) =
        tokio::join!(n_compactions, n_rounds, n_failed, n_texts);
    println!(
        "seed {seed}: {n_turns} of {n_turns} turns with {n_requests} requests, and {n_side_requests} requests for summaries, are byte for byte what was sent; \
         {n_rounds} further calls, {n_failed} turns without an answer, {n_compactions} compactions, {n_texts} texts"
    );
    // Every row of the ledger whose session is there has a context.
    let without = "select count(*) from dalsegno.usage as u where u.purpose <> 'turn' and dalsegno.has_session(u.session_id)
                   and not exists (select from dalsegno.usage_contexts as c where c.usage_id = u.id)";
    assert_eq!(count(without).await, 0);
    assert!(n_side_requests > 0, "the run made no summary");
    assert!(n_compactions > 0 && n_rounds > 0 && n_failed > 0, "the run did not meet every case");
}

/// Conversations wait for retries most of the time, so several installations run at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_conversations_are_assembled_again_byte_for_byte() {
    let (n_seeds, n_turns) = if cfg!(feature = "chaos") { (8, 1_250) } else { (1, 250) };
    let runs = (20..20 + n_seeds).map(|seed| run(seed, n_turns));
    futures_util::future::join_all(runs).await;
}
