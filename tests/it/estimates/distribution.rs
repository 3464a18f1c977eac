//! Estimates of random turns, on the simulation and on a fake Ollama, with tools, posts, edicts, compactions, rollovers, refused calls,
//! retries and expired sessions. `cargo test --features chaos -- chaos` makes 2,000 turns.

use std::{collections::BTreeMap, sync::Arc};

use chrono::TimeDelta;
use dalsegno::{
    domain::{
        estimates::{Charge, ChargeRange, Way},
        tasks::Task,
    },
    jobs::Services,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::json;
use sqlx::Row as _;

use super::{estimate_by, next, subject};
use crate::{
    board::setup::BoardSetup, context::support::prose, memory::edicts_in_context::publish,
    providers::fake_ollama::Play,
};

/// Agents on Ollama, and on the simulation. Two instances of each have conversations of their own.
const READERS: [&str; 8] = ["ann", "bob", "sue", "tom", "ann/b", "bob/b", "sue/b", "tom/b"];
const WINDOW: u64 = 8192;
const PRICES: &str = "[{ provider = \"ollama\", model = \"qwen3:8b\", input = 500000, output = 1500000, cache_read = 50000 }, \
                       { provider = \"sim\", model = \"sim-1\", input = 3000000, output = 15000000 }]";
const TOOLS: &str =
    "tools: mcp__dalsegno__status, mcp__dalsegno__board_post, mcp__dalsegno__board_read\n";

/// An estimate, with the task that followed it.
struct Case {
    task: Task,
    provider: String,
    way: Way,
    charge: ChargeRange,
    first_call_tokens: i64,
    further_call_tokens: i64,
}

/// Charged in relation to estimated, in per cent of the estimate.
type Errors = Vec<f64>;

#[derive(Default)]
struct Distribution {
    /// Of the input of each call.
    calls: Errors,
    /// Of the input of all calls of a turn.
    turns: Errors,
    /// Of the cost of a turn.
    costs: Errors,
    n_below: usize,
    n_above: usize,
    n_tokens_outside: usize,
    by_group: BTreeMap<String, (usize, usize)>,
}

struct Run {
    setup: BoardSetup,
    services: Arc<Services>,
    random: StdRng,
    n_texts: usize,
}

impl Run {
    async fn new(seed: u64) -> Self {
        let more = [("prices.models", PRICES), ("sim.window_tokens", "8192")];
        let setup = BoardSetup::with_settings(&[], "", WINDOW, &more).await;
        setup.fake.summarises();
        // Another process than the worker: it knows what is in the database.
        let services = setup.fixture.services(&[]);
        let run = Self { setup, services, random: StdRng::seed_from_u64(seed), n_texts: 0 };
        run.setup.write("ann", TOOLS, "");
        run.setup.write("bob", &format!("rotate_at_tokens: 4000\n{TOOLS}"), "");
        for agent in ["sue", "tom"] {
            let tools = if agent == "sue" { TOOLS } else { "" };
            run.setup.fixture.write_agent(
                agent,
                &format!(
                    "---\nname: {agent}\ndescription: d\nprovider: sim\nmodel: sim-1\n{tools}---\nYou are one.\n"
                ),
            );
        }
        run
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn text(&mut self) -> String {
        self.n_texts += 1;
        let n_sentences = self.random.random_range(1..8);
        prose(self.n_texts, n_sentences)
    }

    /// Writes a prompt. The simulation obeys its directives.
    fn prompt(&mut self, reader: &str) -> String {
        let text = self.text();
        let n_words = self.random.random_range(20..160);
        match (reader.starts_with("sue"), self.random.random_range(0..100)) {
            (true, 0..20) => format!("{text} [[sim: call status {{}}]] [[sim: words {n_words}]]"),
            (true, 20..22) => format!("{text} [[sim: call board_read {{\"limit\": 5}}]]"),
            (_, 25..29) => format!("{text} [[sim: error 500 once]]"),
            (_, 29..31) => format!("{text} [[sim: overflow once]]"),
            _ => format!("{text} [[sim: words {n_words}]]"),
        }
    }

    /// Chooses the next answer of Ollama.
    fn play(&mut self) -> Play {
        match self.random.random_range(0..100) {
            0..12 => Play::Calls(vec![("status", json!({}))]),
            12..18 => Play::Calls(vec![
                ("board_post", json!({ "text": self.text() })),
                ("board_read", json!({ "limit": 5 })),
            ]),
            18..20 => Play::Status(500, "", r#"{"error":"boom"}"#),
            20..22 => Play::HangsUp,
            22..60 => Play::Says(&["A short answer."]),
            60..85 => Play::Says(&[
                "The harbour lies at the mouth of the river. ",
                "Ships came from far away, and merchants with them, who stayed for a season or two.",
            ]),
            _ => Play::Says(&[
                "A part of the history that is rather long, because it tells of the quay, ",
                "of the crane that stood there for a hundred years, of the fire in the warehouse, ",
                "of the families who rebuilt it, and of the day when the last ship left the harbour. ",
                "After that the town forgot about the sea, until the railway brought visitors.",
            ]),
        }
    }

    /// Changes what later calls are sent.
    async fn change(&mut self) {
        let text = self.text();
        match self.random.random_range(0..12) {
            0..8 => _ = self.setup.post(&["all"], &text).await,
            8..10 => _ = publish(&self.setup.fixture, "tone", &text).await,
            // Prompt caches and sessions expire.
            _ => {
                let days = *[1, 10].choose(&mut self.random).unwrap();
                self.setup.fixture.advance(TimeDelta::days(days));
            }
        }
    }

    /// Estimates a task of each reader, then adds and runs all of them.
    async fn round(&mut self) -> Vec<Case> {
        for _ in 0..8 {
            let play = self.play();
            self.setup.fake.state.plays.lock().unwrap().push_back(play);
        }
        if self.chance(40) {
            self.change().await;
        }
        let mut estimated = Vec::new();
        for reader in READERS {
            let prompt = self.prompt(reader);
            let fixture = &self.setup.fixture;
            let asked = subject(fixture, reader, &prompt);
            let estimate = estimate_by(self.services.clone(), fixture, asked).await.unwrap();
            estimated.push((reader, prompt, estimate));
        }
        let mut cases = Vec::new();
        for (reader, prompt, estimate) in estimated {
            let way = next(&estimate).clone();
            cases.push(Case {
                task: self.setup.ask(reader, &prompt, None).await,
                provider: estimate.provider,
                way: way.way,
                charge: way.charge.unwrap(),
                first_call_tokens: way.first_call_tokens.unwrap(),
                further_call_tokens: way.further_call_tokens.unwrap(),
            });
        }
        for case in &cases {
            self.setup.fixture.ended_after_waits(&case.task).await;
        }
        cases
    }

    /// Compares a case with the ledger.
    async fn compare(&self, case: &Case, all: &mut Distribution) {
        let lines = "select session_id, turn, purpose, cost_micros, input_tokens + coalesce(cache_read_tokens, 0) as input,
                            coalesce(output_tokens, 0) as output
                       from dalsegno.usage where task_id = $1 order by id";
        let pool = &self.setup.fixture.pool;
        let lines = sqlx::query(lines).bind(case.task.id).fetch_all(pool).await.unwrap();
        let mut charged = Charge { cost_micros: Some(0), ..Charge::default() };
        let mut calls_of_turn = BTreeMap::new();
        for line in &lines {
            let Some(input) = line.get::<Option<i64>, _>("input") else { continue };
            charged.input_tokens += input;
            charged.output_tokens += line.get::<i64, _>("output");
            charged.cost_micros =
                charged.cost_micros.map(|sum| sum + line.get::<i64, _>("cost_micros"));
            if line.get::<String, _>("purpose") != "turn" {
                continue;
            }
            let turn = (line.get::<uuid::Uuid, _>("session_id"), line.get::<i32, _>("turn"));
            let n_before = calls_of_turn.entry(turn).or_insert(0);
            let likely = case.first_call_tokens + case.further_call_tokens * *n_before;
            *n_before += 1;
            all.calls.push(percent(input, likely));
            let group = match n_before {
                1 => format!("{} {:?}, first calls", case.provider, case.way),
                _ => format!("{} {:?}, further calls", case.provider, case.way),
            };
            let (n, n_near) = all.by_group.entry(group).or_default();
            (*n, *n_near) = (*n + 1, *n_near + usize::from(is_near(percent(input, likely))));
        }
        let ChargeRange { low, likely, high } = case.charge;
        let cost = |charge: Charge| charge.cost_micros.unwrap();
        all.turns.push(percent(charged.input_tokens, likely.input_tokens));
        all.costs.push(percent(cost(charged), cost(likely)));
        all.n_below += usize::from(cost(charged) < cost(low));
        all.n_above += usize::from(cost(charged) > cost(high));
        let is_inside = (low.tokens()..=high.tokens()).contains(&charged.tokens());
        all.n_tokens_outside += usize::from(!is_inside);
    }
}

fn percent(charged: i64, estimated: i64) -> f64 {
    (charged - estimated) as f64 * 100.0 / estimated.max(1) as f64
}

fn is_near(error: f64) -> bool {
    error.abs() <= 10.0
}

/// Returns the share of errors of ten per cent at most.
fn near(errors: &Errors) -> f64 {
    errors.iter().filter(|error| is_near(**error)).count() as f64 / errors.len() as f64
}

fn print(name: &str, errors: &Errors) {
    let mut sorted = errors.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    println!(
        "{name:30} {:5} · within 10 %: {:5.1} % · 5 % {:+6.1} · 25 % {:+6.1} · median {:+6.1} · 75 % {:+6.1} · 95 % {:+6.1}",
        sorted.len(),
        near(errors) * 100.0,
        at(0.05),
        at(0.25),
        at(0.5),
        at(0.75),
        at(0.95),
    );
}

async fn run(seed: u64, n_turns: usize, least: f64) {
    let mut run = Run::new(seed).await;
    let worker = run.setup.fixture.start_worker().await;
    let mut cases = Vec::new();
    while cases.len() < n_turns {
        cases.extend(run.round().await);
    }
    worker.stop_only().await;
    let mut all = Distribution::default();
    for case in &cases {
        run.compare(case, &mut all).await;
    }
    let n = cases.len();
    println!(
        "seed {seed}: {n} estimates of {} calls; errors in per cent of the estimate",
        all.calls.len()
    );
    print("input of calls", &all.calls);
    print("input of turns", &all.turns);
    print("cost of turns", &all.costs);
    for (group, (n, n_near)) in &all.by_group {
        println!("  {group:38} {n:5} · within 10 %: {:5.1} %", *n_near as f64 * 100.0 / *n as f64);
    }
    let inside = 1.0 - (all.n_below + all.n_above) as f64 / n as f64;
    println!(
        "cost between low and high: {:.1} % ({} below, {} above); tokens: {:.1} %",
        inside * 100.0,
        all.n_below,
        all.n_above,
        100.0 - all.n_tokens_outside as f64 * 100.0 / n as f64
    );
    let has = |way: Way| cases.iter().any(|case| case.way == way);
    assert!(has(Way::CompactFirst) && has(Way::NewSession), "the run did not meet every case");
    assert!(near(&all.calls) >= least, "{}", near(&all.calls));
    assert!(inside >= least, "{inside}");
    let wrong = "select count(*) from dalsegno.sessions as s where s.id = $1 and $2 <> (
                   select coalesce(sum(u.cost_micros), 0) from dalsegno.usage as u where u.session_id = s.id)";
    for session in run.setup.fixture.sessions().await {
        let wrong = sqlx::query_scalar::<_, i64>(wrong).bind(session.id).bind(session.cost_micros);
        assert_eq!(wrong.fetch_one(&run.setup.fixture.pool).await.unwrap(), 0, "{session:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nine_of_ten_random_turns_are_charged_as_estimated() {
    // The order of turns at once is random, so the share of a short run varies by some per cent.
    let (n_turns, least) = if cfg!(feature = "chaos") { (2_000, 0.9) } else { (500, 0.87) };
    run(21, n_turns, least).await;
}
