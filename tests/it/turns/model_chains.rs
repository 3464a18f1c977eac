//! Chains of models: conversations that move between all providers while their servers fail, and the conditions of a chain.

use chrono::TimeDelta;
use dalsegno::domain::{
    explanations,
    failovers::ChainChoice,
    tasks::{State, Task},
};

use super::{Fixture, claude::Setup, contexts, each_provider::servers};
use crate::{
    app::eventually,
    providers::{
        claude::api::{Api, Play as CliPlay},
        conformance::{
            dialects::{Anthropic, OpenAi},
            server::{Play, ScriptedServer},
        },
        fake_ollama::{FakeOllama, Play as OllamaPlay},
    },
};

const MODELS: [&str; 5] = [
    "claude/claude-sonnet-5",
    "ollama/qwen3:8b",
    "local/org/model:8b",
    "anthropic/claude-of-the-test",
    "sim/sim-1",
];
/// Agents, each of which begins with the model of its place.
const AGENTS: [&str; 5] = ["ann", "bob", "cid", "dan", "eve"];
const ERROR: &str = r#"{"error":{"message":"boom","type":"api_error"}}"#;

impl Fixture {
    async fn choice(&self, task: &Task) -> ChainChoice {
        self.turns(task).await.pop().unwrap().chain.unwrap().0
    }

    async fn reason(&self, task: &Task) -> String {
        let mut conn = self.pool.acquire().await.unwrap();
        explanations::explain(&mut conn, task.id).await.unwrap().because
    }
}

/// The servers of all providers but the simulation.
struct Servers {
    cli: Api,
    ollama: FakeOllama,
    local: ScriptedServer,
    anthropic: ScriptedServer,
}

impl Servers {
    /// Lets the next call of a model fail. Returns what the prompt has to contain for it.
    fn fail_next(&self, model: usize) -> &'static str {
        match model {
            0 => self.cli.plays([CliPlay::Fails(500, "", "api_error", "Overloaded")]),
            1 => self.ollama.play(OllamaPlay::Status(500, "", r#"{"error":"boom"}"#)),
            2 => self.local.play(Play::status(500, ERROR)),
            3 => self.anthropic.play(Play::status(500, ERROR)),
            _ => return " [[sim: error 500]]",
        }
        ""
    }

    /// Returns the context of the last call of a model. The simulation is sent the transcript of the session.
    async fn last_context(&self, model: usize, fixture: &Fixture, task: &Task) -> String {
        match model {
            0 => self.cli.last_messages().join("\n"),
            1 => self.ollama.chats().pop().unwrap().to_string(),
            2 => self.local.calls().pop().unwrap().to_string(),
            3 => self.anthropic.calls().pop().unwrap().to_string(),
            _ => fixture.transcript(fixture.session(task).await.id).await.join("\n"),
        }
    }
}

async fn setup() -> Option<(Fixture, Servers)> {
    let ollama = FakeOllama::start().await;
    let local = ScriptedServer::playing(&OpenAi, []).await;
    let anthropic = ScriptedServer::playing(&Anthropic, []).await;
    let settings = [
        servers::ollama_settings(&ollama),
        servers::local_settings(&local),
        servers::anthropic_settings(&anthropic),
    ]
    .concat();
    let Setup { api: cli, fixture } = Setup::new(&servers::borrowed(&settings)).await?;
    let (name, key) = servers::KEY_VARIABLE;
    let fixture = fixture.with_variable(name, key);
    for (first, agent) in AGENTS.iter().enumerate() {
        let models = (first..first + MODELS.len())
            .map(|at| format!("  - {{ model: \"{}\", errors: 1 }}\n", MODELS[at % MODELS.len()]));
        let models: String = models.collect();
        let front = format!("---\nname: {agent}\ndescription: Writes\nmodel:\n{models}---\n");
        fixture.write_agent(agent, &format!("{front}You write.\n"));
    }
    Some((fixture, Servers { cli, ollama, local, anthropic }))
}

#[tokio::test]
async fn a_campaign_moves_between_all_five_providers_while_servers_fail_and_keeps_every_fact() {
    let Some((fixture, servers)) = setup().await else { return };
    let worker = fixture.start_worker().await;
    let berth = |agent: &str, step: usize| format!("BERTH-{agent}-{step}");
    for step in 0..MODELS.len() {
        for (first, agent) in AGENTS.iter().enumerate() {
            let failing = (step > 0).then(|| servers.fail_next((first + step - 1) % MODELS.len()));
            let directive = failing.unwrap_or_default();
            let prompt = format!("The ferry is at {}.{directive}", berth(agent, step));
            let task = fixture.add_for(agent, "main", &prompt).await;
            let task = fixture.ended_without_pauses(&task).await;
            assert_eq!(task.state, State::Done, "{agent} {step}: {:?}", task.error);
            let answers = (first + step) % MODELS.len();
            let choice = fixture.choice(&task).await;
            assert_eq!((choice.entry.as_str(), choice.skipped.len()), (MODELS[answers], step));
            // The calls that moved the conversation used up no more attempts than they failed.
            assert_eq!(fixture.turns(&task).await.len(), 1 + usize::from(step > 0));
            let sent = servers.last_context(answers, &fixture, &task).await;
            for earlier in 0..=step {
                let fact = berth(agent, earlier);
                assert!(sent.contains(&fact), "{fact} on {}: {sent}", MODELS[answers]);
            }
        }
    }
    // Each returns to its first model when the rest of that one is over, and goes on there.
    fixture.advance(TimeDelta::seconds(901));
    for (first, agent) in AGENTS.iter().enumerate() {
        let task = fixture.add_for(agent, "main", "Where has the ferry been?").await;
        let task = fixture.ended_without_pauses(&task).await;
        let choice = fixture.choice(&task).await;
        assert_eq!((choice.entry.as_str(), choice.skipped.len()), (MODELS[first], 0));
        let sent = servers.last_context(first, &fixture, &task).await;
        for step in 0..MODELS.len() {
            let fact = berth(agent, step);
            assert!(sent.contains(&fact), "{fact} on {}: {sent}", MODELS[first]);
        }
        let next = fixture.add_for(agent, "main", "Thanks.").await;
        let next = fixture.ended_without_pauses(&next).await;
        assert_eq!(next.session_id, task.session_id, "{agent} stays on {}", MODELS[first]);
    }
    // Five answers before the return and two after it, each charged to the model that gave it.
    let charged: Vec<(String, i64)> = sqlx::query_as(
        "select provider || '/' || model, count(*) from dalsegno.usage where outcome = 'done' and purpose = 'turn' group by 1",
    )
    .fetch_all(&fixture.pool)
    .await
    .unwrap();
    assert_eq!(charged.len(), MODELS.len(), "{charged:?}");
    for (model, n_calls) in charged {
        assert!(MODELS.contains(&model.as_str()), "{model}");
        assert_eq!(n_calls, 7, "{model}");
    }
    let not_seen = "select count(*) from dalsegno.turns where history_check = 'not_seen'";
    assert_eq!(fixture.count(not_seen).await, 0);
    fixture.settled().await;
    worker.stop().await;
    contexts::assert_exact(&fixture.pool).await;
}

/// A fixture whose writer has an endpoint with conditions, then the simulation.
async fn local_first(
    server: &ScriptedServer,
    conditions: &str,
    settings: &[(&str, &str)],
) -> Fixture {
    let url = format!("{}/v1", server.base_url());
    let usual = [
        ("providers.local.base_url", url.as_str()),
        (
            "providers.local.models",
            "[{ name = \"m\", window_tokens = 16384 }, { name = \"n\", window_tokens = 16384 }]",
        ),
    ];
    let fixture = Fixture::new(&[&usual, settings].concat()).await;
    let models = format!("model:\n  - {{ model: local/m, {conditions} }}\n  - sim\n");
    let file = format!("---\nname: writer\ndescription: Writes\n{models}---\nYou write.\n");
    fixture.write_agent("writer", &file);
    fixture
}

const ONE_PER_MINUTE: (&str, &str) =
    ("rate_limits.rules", "[{ provider = \"local\", requests_per_minute = 1 }]");

#[tokio::test]
async fn a_turn_moves_on_if_a_rate_limit_would_keep_it_longer_and_returns_with_the_next_slot() {
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let fixture = local_first(&server, "limit_secs: 10", &[ONE_PER_MINUTE]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("One.").await).await;
    assert_eq!(fixture.choice(&first).await.entry, "local/m");
    let second = fixture.done(&fixture.add("Two.").await).await;
    assert_eq!(fixture.choice(&second).await.entry, "sim/sim-1");
    let told = fixture.reason(&second).await;
    let words = "waiting for the provider `local`: 1 requests per minute, next slot in ";
    assert!(told.contains(words), "{told}");
    assert_eq!(fixture.turns(&second).await[0].attempt, 1);
    assert_eq!(fixture.moves().await, ["sim/sim-1"]);
    fixture.advance(TimeDelta::seconds(61));
    let third = fixture.done(&fixture.add("Three.").await).await;
    assert_eq!(fixture.choice(&third).await.entry, "local/m");
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_turn_waits_for_a_rate_limit_whose_next_slot_is_near_enough() {
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let fixture = local_first(&server, "limit_secs: 120", &[ONE_PER_MINUTE]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("One.").await).await;
    let second = fixture.add("Two.").await;
    let waits = "select count(*) from dalsegno.rate_limit_waits";
    eventually("it waits", async || (fixture.count(waits).await == 1).then_some(())).await;
    fixture.advance(TimeDelta::seconds(61));
    let second = fixture.done(&second).await;
    assert_eq!(fixture.choice(&second).await.entry, "local/m");
    worker.stop().await;
}

#[tokio::test]
async fn a_turn_moves_on_from_a_model_that_costs_too_much_or_that_a_budget_cannot_pay() {
    let prices = (
        "prices.models",
        "[{ provider = \"local\", model = \"m\", input = 1000000, output = 10000000 }, { provider = \"local\", model = \"n\", input = 1000000, output = 10000000 }]",
    );
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let fixture = local_first(&server, "max_charge: 0.001", &[prices]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("One.").await).await;
    let choice = fixture.choice(&task).await;
    assert_eq!(choice.entry, "sim/sim-1");
    assert!(choice.skipped[0].because.contains("above max_charge (0.001)"), "{choice:?}");
    assert!(server.calls().is_empty());
    let campaign = fixture.campaign.id.to_string();
    let estimate =
        ["task", "add", "--estimate", "--campaign", &campaign, "--agent", "writer", "Two."];
    let estimate = fixture.run_configured(&estimate).await;
    let said = String::from_utf8(estimate.stdout).unwrap();
    assert!(
        said.contains("sim-1") && said.contains("`local/m` is skipped"),
        "{said} {:?}",
        estimate.stderr
    );

    // With a limit that is high enough, the budget of the task decides.
    let models = "model:\n  - { model: local/m, max_charge: 100 }\n  - sim\ntask_budget: 0.001\n";
    let file = format!("---\nname: writer\ndescription: Writes\n{models}---\nYou write.\n");
    fixture.write_agent("writer", &file);
    let task = fixture.done(&fixture.add("Two.").await).await;
    let choice = fixture.choice(&task).await;
    assert_eq!(choice.entry, "sim/sim-1");
    assert!(choice.skipped[0].because.contains("budget"), "{choice:?}");

    // Where no entry may take the turn, it fails with the limit.
    let models =
        "model: [{ model: local/m, max_charge: 0.001 }, { model: local/n, max_charge: 0.002 }]\n";
    let file = format!("---\nname: writer\ndescription: Writes\n{models}---\nYou write.\n");
    fixture.write_agent("writer", &file);
    let task = fixture.ended(&fixture.add("Three.").await).await;
    let error = task.error.unwrap();
    assert!(error.contains("above max_charge"), "{error}");
    assert!(error.contains("`local/n` is skipped: its first call may be charged"), "{error}");
    worker.stop().await;
}

#[tokio::test]
async fn a_turn_moves_on_from_a_slow_model_until_its_slow_calls_are_old() {
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let fixture = local_first(&server, "latency_secs: 2", &[]).await;
    let slow = "insert into dalsegno.usage (called_at, campaign_id, agent, model, provider, purpose, outcome, cost_micros, first_byte_ms, total_ms)
        select $1, $2, 'writer', 'm', 'local', 'turn', 'done', 0, n, 9000 from unnest($3::integer[]) as n";
    let insert = async |millis: &[i32]| {
        let insert = sqlx::query(slow).bind(fixture.clock_now()).bind(fixture.campaign.id);
        insert.bind(millis).execute(&fixture.pool).await.unwrap();
    };
    let worker = fixture.start_worker().await;
    insert(&[4000, 3000]).await;
    let one = fixture.done(&fixture.add("One.").await).await;
    assert_eq!(fixture.choice(&one).await.entry, "local/m", "two calls are too few");
    insert(&[5000, 5000, 5000, 5000]).await;
    let two = fixture.done(&fixture.add("Two.").await).await;
    let choice = fixture.choice(&two).await;
    assert_eq!(choice.entry, "sim/sim-1");
    let words = "the median time to its first token is 5.0 s, above latency_secs (2 s)";
    assert_eq!(choice.skipped[0].because, words);
    fixture.advance(TimeDelta::seconds(901));
    let three = fixture.done(&fixture.add("Three.").await).await;
    assert_eq!(fixture.choice(&three).await.entry, "local/m");
    worker.stop().await;
}

#[tokio::test]
async fn a_task_whose_models_are_all_busy_waits_for_the_first_one_and_says_which() {
    let busy = || Play::Status(503, "retry-after: 60\r\n".to_owned(), "{}".to_owned());
    let server = ScriptedServer::playing(&OpenAi, [busy(), busy()]).await;
    let fixture = local_first(&server, "errors: 1", &[]).await;
    let models = "model: [{ model: local/m, errors: 1 }, { model: local/n, errors: 1 }]\n";
    let file = format!("---\nname: writer\ndescription: Writes\n{models}---\nYou write.\n");
    fixture.write_agent("writer", &file);
    let worker = fixture.start_worker().await;
    let task = fixture.add("One.").await;
    let told = eventually("it waits for both", async || {
        let told = fixture.reason(&task).await;
        told.contains("is the first usable model").then_some(told)
    })
    .await;
    assert!(told.contains("`local/m` is the first usable model of the chain"), "{told}");
    assert!(told.contains("`local/n` is skipped until"), "{told}");
    assert_eq!(server.calls().len(), 2, "neither is called again before its wait is over");
    let task = fixture.ended_after_waits(&task).await;
    assert_eq!(task.state, State::Done, "{task:?}");
    assert!(fixture.turns(&task).await.iter().all(|turn| turn.attempt == 1));
    worker.stop().await;
}
