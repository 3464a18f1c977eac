//! The lead's knowledge of other agents, which those agents do not have.

use chrono::TimeDelta;
use dalsegno::{
    clock::Clock as _,
    context::xml::{FenceSeed, Scope, parse},
    domain::{
        agents::Library,
        amount::Limit,
        contexts,
        sessions::Reason,
        statuses::{self, AgentWaitCause},
        tasks::{self, State, Task},
        turns,
    },
    queue::admin,
};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::{Fixture, fixture::WRITER};
use crate::{app::eventually, providers::fake_ollama::FakeOllama};

const LEAD: &str = "---\nname: planner\ndescription: Plans & leads\nlead: true\n---\nYou lead.\n";

fn sim(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Is the {name}\n---\nYou work.\n")
}

async fn states(fixture: &Fixture) -> Vec<(String, &'static str)> {
    let catalogue = Library::open(&fixture.config().agents).unwrap().current();
    let at = fixture.clock.now();
    let statuses = statuses::of_campaign(&fixture.pool, fixture.campaign.id, &catalogue, at).await;
    statuses
        .unwrap()
        .iter()
        .map(|status| (status.name(&catalogue), status.state.as_str()))
        .collect()
}

async fn hold(pool: &PgPool, task: &Task) {
    admin::hold_job(pool, task.job_id, "a person looks at it").await.unwrap();
}

/// Moves the job of a task that a limit has postponed by a day, so that it stays postponed.
async fn keep_postponed(fixture: &Fixture, task: &Task) {
    eventually("the task is postponed", async || {
        let stays = "update dalsegno.jobs set run_at = now() + interval '1 day' where id = $1 and wait_reason = 'snooze'";
        let hit = sqlx::query(stays).bind(task.job_id).execute(&fixture.pool).await.unwrap();
        (hit.rows_affected() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_agent_refused_before_its_turn_has_the_status_error_until_it_answers() {
    let fixture = Fixture::new(&[]).await;
    let of_writer = async |expected: &str| {
        let states = states(&fixture).await;
        let writer = states.iter().find(|(name, _)| name == "writer").unwrap();
        assert_eq!(writer.1, expected);
    };
    let refused = async || {
        let limit = Limit { tokens: Some(1), micros: None };
        let task = fixture.add_as("writer", "main", "Write.", None, limit).await;
        assert_eq!(fixture.ended(&task).await.state, State::Failed);
        assert!(fixture.turns(&task).await.is_empty(), "the turn began");
    };
    let worker = fixture.start_worker().await;
    refused().await;
    assert!(fixture.sessions().await.is_empty());
    of_writer("error").await;
    fixture.advance(TimeDelta::seconds(1));
    fixture.done(&fixture.add("Write.").await).await;
    of_writer("idle").await;
    fixture.advance(TimeDelta::seconds(1));
    refused().await;
    of_writer("error").await;
    worker.stop().await;
}

#[tokio::test]
async fn only_the_first_open_tasks_of_a_conversation_are_read() {
    let fixture = Fixture::new(&[]).await;
    let mut expected = Vec::new();
    for (instance, n) in [("2", 1), ("main", 3)] {
        for at in 0..n {
            let task = fixture.add_for("writer", instance, "Write.").await;
            if at < 2 {
                expected.push(task.id);
            }
        }
    }
    let all = [("writer", "main"), ("writer", "2"), ("planner", "main")];
    let campaign = fixture.campaign.id;
    let open = tasks::open_of_conversations(&fixture.pool, campaign, &all, 2).await.unwrap();
    assert_eq!(open.iter().map(|task| task.id).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_lead_gets_the_roster_with_every_agents_status() {
    let fake = FakeOllama::start().await;
    let url = format!("http://{}", fake.addr);
    let fixture =
        Fixture::new(&[("ollama.base_url", url.as_str()), ("ollama.num_ctx", "32768")]).await;
    let own = "lead: true\nprovider: ollama\nmodel: qwen3:8b";
    fixture.write_agent("planner", &LEAD.replace("lead: true", own));
    for name in ["busy", "failed", "held", "idle", "limited"] {
        fixture.write_agent(name, &sim(name));
    }
    // It has its own model, because all tasks of a busy model wait.
    fixture.write_agent(
        "limited",
        &sim("limited").replace("---\nYou", "provider: sim\nmodel: sim-2\n---\nYou"),
    );
    for (agent, instance) in [("held", "main"), ("held", "2")] {
        hold(&fixture.pool, &fixture.add_for(agent, instance, "Wait.").await).await;
    }
    let worker = fixture.start_worker().await;
    fixture.add_for("busy", "main", "Work. [[sim: slow 60000]]").await;
    fixture.add_for("failed", "main", "Fail. [[sim: error 404]]").await;
    keep_postponed(
        &fixture,
        &fixture.add_for("limited", "main", "Hurry. [[sim: error 503]]").await,
    )
    .await;
    let expected = [
        ("busy", "working"),
        ("failed", "error"),
        ("held", "waiting"),
        ("held_2", "waiting"),
        ("idle", "idle"),
        ("limited", "limited"),
        ("planner", "idle"),
        ("writer", "idle"),
    ];
    let mut expected = expected.map(|(name, state)| (name.to_owned(), state));
    eventually("each agent runs its task", async || {
        (states(&fixture).await == expected).then_some(())
    })
    .await;
    let catalogue = Library::open(&fixture.config().agents).unwrap().current();
    let (campaign, now) = (fixture.campaign.id, fixture.clock.now());
    let agents = {
        let mut conn = fixture.pool.acquire().await.unwrap();
        statuses::list_with_pauses(&mut conn, campaign, &catalogue, now).await.unwrap()
    };
    for agent in &agents {
        let subject = agent.wait.as_ref().map(|wait| (wait.cause, wait.subject.as_deref()));
        let is_limited = agent.status.agent == "limited";
        let expected = is_limited.then_some((AgentWaitCause::Provider, Some("sim")));
        assert_eq!(subject, expected, "{}", agent.status.agent);
    }
    let task = fixture.done(&fixture.add_for("planner", "main", "How is it going?").await).await;
    worker.stop().await;

    let seed: Vec<u8> =
        sqlx::query_scalar("select fence_seed from dalsegno.sessions where id = $1")
            .bind(task.session_id)
            .fetch_one(&fixture.pool)
            .await
            .unwrap();
    let seed = FenceSeed::from_bytes(seed.try_into().unwrap());
    let chat = fake.chats().pop().unwrap();
    let of = |role: &str, name: &str, scope: Scope| -> Vec<(String, String)> {
        let message = chat["messages"].as_array().unwrap().iter().find(|m| m["role"] == role);
        let text = message.unwrap()["content"].as_str().unwrap();
        let pieces = parse::parse(text, &[seed.fence(scope)]).unwrap().into_iter();
        let nodes = pieces.filter_map(|piece| match piece {
            parse::Piece::Fenced(node) => Some(node),
            parse::Piece::Outside(_) => None,
        });
        let children = nodes.filter(|node| node.name == name).flat_map(|node| node.children);
        let named = |node: &parse::Node| {
            node.attribute("name").or(node.attribute("agent")).map(str::to_owned)
        };
        children.map(|node| (named(&node).unwrap(), node.text)).collect()
    };
    let roster = of("system", "roster", Scope::System);
    let names: Vec<_> = roster.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["busy", "failed", "held", "idle", "limited", "planner", "writer"]);
    assert_eq!(roster[5].1, "Plans & leads");
    assert_eq!(roster[0].1, "Is the busy");
    // It is working while it gets this list.
    expected[6].1 = "working";
    let told = of("user", "statuses", Scope::Turn(task.id));
    assert_eq!(told, expected.map(|(name, state)| (name, state.to_owned())));
    let manifest = fixture.manifests(task.session_id.unwrap()).await.pop().unwrap().manifest;
    let kinds: Vec<_> =
        manifest["parts"].as_array().unwrap().iter().map(|part| &part["kind"]).collect();
    assert!(kinds.contains(&&json!("roster")) && kinds.contains(&&json!("statuses")), "{kinds:?}");
}

#[tokio::test]
async fn another_instance_of_the_lead_is_listed_like_any_agent() {
    let fixture = Fixture::new(&[]).await;
    fixture.write_agent("planner", LEAD);
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add_for("planner", "2", "Go on.").await).await;
    let manifest = fixture.manifests(task.session_id.unwrap()).await.pop().unwrap().manifest;
    let kinds: Vec<_> =
        manifest["parts"].as_array().unwrap().iter().map(|part| part["kind"].clone()).collect();
    assert!(!kinds.contains(&json!("roster")) && !kinds.contains(&json!("statuses")), "{kinds:?}");
    // So its session does not depend on the other agents.
    fixture.write_agent("editor", &sim("editor"));
    let later = fixture.done(&fixture.add_for("planner", "2", "Go on.").await).await;
    assert_eq!(later.session_id, task.session_id);
    worker.stop().await;
}

/// Returns the texts of all messages that a turn was sent.
async fn messages_sent(fixture: &Fixture, session_id: Uuid, turn: i32) -> String {
    let mut conn = fixture.pool.acquire().await.unwrap();
    let context = contexts::find(&mut conn, session_id, Some(turn), 1).await.unwrap();
    let messages = context.replayed.unwrap().messages;
    messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// A new agent changes the roster. The lead's next session begins with the whole conversation, of which a summary replaces what would press.
#[tokio::test]
async fn a_changed_roster_loses_nothing_of_the_lead_s_conversation() {
    for window in ["3000", "6000"] {
        let fixture = Fixture::new(&[("sim.window_tokens", window)]).await;
        fixture
            .write_agent("planner", &LEAD.replace("lead: true", "lead: true\nreserve_tokens: 600"));
        let worker = fixture.start_worker().await;
        let ask = async |prompt: &str| {
            fixture.done(&fixture.add_for("planner", "main", prompt).await).await
        };
        let first = ask("Must: keep INV-2291 and HX-77 in all plans. [[sim: words 100]]").await;
        let n_turns = if window == "3000" { 6 } else { 20 };
        for number in 2..=n_turns {
            ask(&format!("Plan part {number} of the harbour. [[sim: words 120]]")).await;
        }
        fixture.write_agent("editor", &sim("editor"));
        let task = ask("What must you keep? [[sim: words 5]]").await;
        worker.stop().await;
        let session = fixture.session(&task).await;
        assert_eq!(session.opened_because, Reason::PromptChanged);
        let sent = messages_sent(&fixture, session.id, task.turn.unwrap()).await;
        assert!(sent.contains("INV-2291") && sent.contains("HX-77"), "{window}: {sent}");
        assert!(!sent.contains("too long to keep"), "{window}: {sent}");

        // The numbers of turns go on, so the turns before are found by way of the successor, and the other way round.
        let mut conn = fixture.pool.acquire().await.unwrap();
        let find = turns::find_session(&mut conn, session.id, 1).await;
        assert_eq!(find.unwrap(), first.session_id.unwrap());
        let find =
            turns::find_session(&mut conn, first.session_id.unwrap(), task.turn.unwrap()).await;
        assert_eq!(find.unwrap(), session.id);
        let unknown = turns::find_session(&mut conn, session.id, 99).await.unwrap_err().to_string();
        assert!(unknown.contains("another one of its conversation has a turn 99"), "{unknown}");
    }
}

#[tokio::test]
async fn a_changed_roster_rebuilds_only_the_session_of_the_lead() {
    let fixture = Fixture::new(&[]).await;
    fixture.write_agent("planner", LEAD);
    let worker = fixture.start_worker().await;
    let turn = async |agent: &str| {
        let task = fixture.done(&fixture.add_for(agent, "main", "Go on.").await).await;
        let session = fixture.session(&task).await;
        (session.id, session.opened_because, task)
    };
    let (planner, _, _) = turn("planner").await;
    let (writer, _, task) = turn("writer").await;
    let manifest = fixture.manifests(task.session_id.unwrap()).await.pop().unwrap().manifest;
    let kinds: Vec<_> =
        manifest["parts"].as_array().unwrap().iter().map(|part| part["kind"].clone()).collect();
    assert!(!kinds.contains(&json!("roster")) && !kinds.contains(&json!("statuses")), "{kinds:?}");

    // The roster contains an agent's description, not its instructions.
    fixture.write_agent("writer", &WRITER.replace("You write.", "You write well."));
    assert_eq!(turn("planner").await.0, planner);
    fixture.write_agent("editor", &sim("editor"));
    let (after_new, because, _) = turn("planner").await;
    assert_ne!(after_new, planner);
    assert_eq!(because, Reason::PromptChanged);
    fixture.write_agent("editor", &sim("editor").replace("Is the", "Was the"));
    let (after_change, because, _) = turn("planner").await;
    assert_ne!(after_change, after_new);
    assert_eq!(because, Reason::PromptChanged);
    assert_eq!(turn("planner").await.0, after_change);
    fixture.remove_agent("editor");
    assert_ne!(turn("planner").await.0, after_change);
    let (own_prompt, because, _) = turn("writer").await;
    assert_ne!(own_prompt, writer);
    assert_eq!(because, Reason::PromptChanged);
    fixture.write_agent("editor", &sim("editor"));
    assert_eq!(turn("writer").await.0, own_prompt);
    worker.stop().await;
}
