//! Forks: conversations that begin as another one was after a turn.

use dalsegno::{
    clock::Clock as _,
    domain::{
        agents::Library,
        campaign_control,
        class::Classify as _,
        compactions,
        conversations::{self, ForkError, ForkRequest},
        posts,
        sessions::{self, Reason, Session},
        tasks::Task,
        turn_phases::{self, StartedTurn},
    },
};
use serde_json::Value;
use uuid::Uuid;

use super::Fixture;
use crate::{
    app::{eventually, noon},
    board,
    cli::compact,
    providers::fake_ollama::{FakeOllama, Play},
};

const WRITER: &str =
    "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\n---\nYou write.\n";

/// Sets up a writer on Ollama.
async fn on_ollama(fake: &FakeOllama) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "16384")]).await;
    fixture.write_agent("writer", WRITER);
    fixture
}

pub async fn try_fork(
    fixture: &Fixture,
    session_id: Uuid,
    turn: Option<i32>,
    instance: Option<&str>,
) -> Result<Session, ForkError> {
    let config = fixture.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    let request =
        ForkRequest { session_id, turn, instance, catalogue: &catalogue, config: &config.sessions };
    let mut tx = fixture.pool.begin().await.unwrap();
    let fork = conversations::fork(&mut tx, &request, fixture.clock.now()).await?;
    tx.commit().await.unwrap();
    Ok(fork)
}

pub async fn fork(fixture: &Fixture, session_id: Uuid, turn: i32) -> Session {
    try_fork(fixture, session_id, Some(turn), None).await.unwrap()
}

/// Runs a task of an instance of the writer.
pub async fn run(fixture: &Fixture, instance: &str, prompt: &str) -> Task {
    fixture.done(&fixture.add_for("writer", instance, prompt).await).await
}

/// Runs these prompts. Returns their session.
async fn converse(fixture: &Fixture, instance: &str, prompts: &[&str]) -> Uuid {
    let mut session_id = None;
    for prompt in prompts {
        session_id = run(fixture, instance, prompt).await.session_id;
    }
    session_id.unwrap()
}

/// Returns the rows of a session: its own, its messages, turns, compactions and contexts.
pub async fn rows(fixture: &Fixture, id: Uuid) -> Value {
    let sql = "select jsonb_build_array(
        (select to_jsonb(s) from dalsegno.sessions as s where s.id = $1),
        (select jsonb_agg(to_jsonb(m) order by m.seq) from dalsegno.messages as m where m.session_id = $1),
        (select jsonb_agg(to_jsonb(t) order by t.number) from dalsegno.turns as t where t.session_id = $1),
        (select jsonb_agg(to_jsonb(c) order by c.id) from dalsegno.compactions as c where c.session_id = $1),
        (select jsonb_agg(to_jsonb(m) order by m.turn, m.call) from dalsegno.manifests as m where m.session_id = $1))";
    sqlx::query_scalar(sql).bind(id).fetch_one(&fixture.pool).await.unwrap()
}

/// Removes a session, as the cleanup does after its expiry.
async fn remove(fixture: &Fixture, id: Uuid) {
    let mut conn = fixture.pool.acquire().await.unwrap();
    sessions::expire(&mut conn, id, noon()).await.unwrap();
    drop(conn);
    assert_eq!(fixture.clean_up().await, 1);
}

/// Returns the requests, each with its fences made equal: each session has its own.
fn without_fences(fake: &FakeOllama) -> Vec<String> {
    let bodies = fake.bodies();
    bodies.iter().map(|body| equal_fences(&String::from_utf8(body.clone()).unwrap())).collect()
}

/// Replaces runs of 12 or more hexadecimal digits.
fn equal_fences(text: &str) -> String {
    let mut equal = String::new();
    let mut digits = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() || ('a'..='f').contains(&c) {
            digits.push(c);
            continue;
        }
        equal.push_str(if digits.len() >= 12 { "FENCE" } else { &digits });
        digits.clear();
        equal.push(c);
    }
    equal
}

fn says(answers: &[&'static str]) -> Vec<Play> {
    answers.iter().map(|answer| Play::Says(Box::leak(Box::new([*answer])))).collect()
}

#[tokio::test]
async fn a_fork_begins_with_the_turns_up_to_its_own_and_the_other_session_stays_as_it_is() {
    let fake = FakeOllama::playing(says(&["1", "2", "3", "4", "1", "2", "3", "4"])).await;
    let fixture = on_ollama(&fake).await;
    let worker = fixture.start_worker().await;
    let prompts = ["Part one.", "Part two.", "Part three.", "Part four."];
    let parent = converse(&fixture, "main", &prompts).await;
    // The same conversation, which is not forked.
    converse(&fixture, "twin", &prompts).await;
    let before = rows(&fixture, parent).await;
    let fork = fork(&fixture, parent, 2).await;
    assert_eq!(rows(&fixture, parent).await, before);
    assert_eq!((fork.instance.as_str(), fork.turns), ("main-fork-1", 2));
    assert_eq!((fork.forked_from_session, fork.forked_at_turn), (Some(parent), Some(2)));
    assert_eq!((fork.opened_because, fork.predecessor_id), (Reason::New, None));
    assert_eq!(
        fixture.transcript(fork.id).await,
        ["User: Part one.", "Assistant: 1", "User: Part two.", "Assistant: 2"]
    );
    // The fork is asked what the session was asked in its third turn, and is sent the same.
    let third = run(&fixture, "main-fork-1", "Part three.").await;
    let fifth = run(&fixture, "main", "Part five.").await;
    run(&fixture, "twin", "Part five.").await;
    worker.stop().await;
    assert_eq!((third.session_id, third.turn), (Some(fork.id), Some(3)));
    assert_eq!((fifth.session_id, fifth.turn), (Some(parent), Some(5)));
    let sent = without_fences(&fake);
    assert_eq!(sent.len(), 11);
    assert_eq!(sent[8], sent[2]);
    assert_eq!(sent[9], sent[10]);
    assert!(!sent[8].contains("Part four.") && sent[9].contains("Part four."), "{sent:?}");

    let events = fixture.feed().await;
    let forked: Vec<_> = events.iter().filter(|event| event.kind == "session.forked").collect();
    let [forked] = forked[..] else { panic!("{forked:?}") };
    assert_eq!((forked.session_id, &forked.data["forked_at_turn"]), (Some(fork.id), &2.into()));
    assert_eq!(forked.data["inherited_messages"], 4);
    // No notice and no event tells of a restored conversation.
    assert!(events.iter().all(|event| event.kind != "session.rebuilt"));
}

#[tokio::test]
async fn a_fork_outlives_its_session_and_the_session_its_fork() {
    let fake = FakeOllama::playing([]).await;
    let fixture = on_ollama(&fake).await;
    let worker = fixture.start_worker().await;
    let parent = converse(&fixture, "main", &["Part one.", "Part two."]).await;
    let first = fork(&fixture, parent, 1).await;
    let second = fork(&fixture, parent, 2).await;
    run(&fixture, &first.instance, "One more.").await;
    remove(&fixture, first.id).await;
    assert_eq!(run(&fixture, "main", "Part three.").await.session_id, Some(parent));
    remove(&fixture, parent).await;
    let task = run(&fixture, &second.instance, "Part three, again.").await;
    worker.stop().await;
    assert_eq!((task.session_id, task.turn), (Some(second.id), Some(3)));
    let said = fake.chats().pop().unwrap()["messages"].to_string();
    assert!(said.contains("Part one.") && said.contains("Part two."), "{said}");
    assert!(!said.contains("One more.") && !said.contains("Part three.\""), "{said}");
    assert_eq!(fixture.session(&task).await.forked_from_session, Some(parent));
}

#[tokio::test]
async fn a_fork_has_the_summary_that_its_turn_was_sent() {
    let fake = FakeOllama::playing([]).await;
    let fixture = on_ollama(&fake).await;
    let worker = fixture.start_worker().await;
    let parent = converse(&fixture, "main", &["Part one.", "Part two.", "Part three."]).await;
    // A summary of the first turn, from the fourth turn on.
    compact(&fixture.pool, parent).await;
    run(&fixture, "main", "Part four.").await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    compactions::undo(&mut conn, parent, noon()).await.unwrap();
    drop(conn);
    run(&fixture, "main", "Part five.").await;
    let shown = async |turn: i32, prompt: &str| {
        let fork = fork(&fixture, parent, turn).await;
        run(&fixture, &fork.instance, prompt).await;
        (fork.generation, fake.chats().pop().unwrap()["messages"].to_string())
    };
    let summary = "The first part is written.";
    let (generation, sent) = shown(4, "Part five, again.").await;
    assert_eq!(generation, 1);
    assert!(sent.contains(summary) && !sent.contains("Part one."), "{sent}");
    assert!(sent.contains("Part two.") && sent.contains("Part four."), "{sent}");
    // Before it was applied, and after it was undone.
    for turn in [3, 5] {
        let (generation, sent) = shown(turn, "And now?").await;
        assert_eq!(generation, 0);
        assert!(!sent.contains(summary) && sent.contains("Part one."), "{sent}");
        assert_eq!(sent.contains("Part five."), turn == 5, "{sent}");
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_fork_continues_on_another_provider() {
    let fake = FakeOllama::playing(says(&["Two, again."])).await;
    let fixture = on_ollama(&fake).await;
    fixture.write_agent("writer", super::fixture::WRITER);
    let worker = fixture.start_worker().await;
    let parent = converse(&fixture, "main", &["Part one. [[sim: say 1]]", "Part two."]).await;
    let fork = fork(&fixture, parent, 1).await;
    fixture.write_agent("writer", WRITER);
    let task = run(&fixture, &fork.instance, "Part two, again.").await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Two, again."));
    let session = fixture.session(&task).await;
    assert_eq!(
        (session.opened_because, session.predecessor_id, session.turns),
        (Reason::ProviderChanged, Some(fork.id), 2)
    );
    let said = fake.chats()[0]["messages"].to_string();
    assert!(said.contains("Part one.") && !said.contains("Part two.\""), "{said}");
}

#[tokio::test]
async fn a_fork_sees_the_posts_that_followed_its_turn() {
    let fake = FakeOllama::playing([]).await;
    let fixture = on_ollama(&fake).await;
    let worker = fixture.start_worker().await;
    let post = async |text: &str| {
        let audience = board::to(&["all"]);
        let post = board::by_operator(fixture.campaign.id, &audience, text);
        posts::add(&fixture.pool, &post, noon()).await.unwrap();
    };
    post("The tide is low.").await;
    run(&fixture, "main", "Part one.").await;
    post("The tide is high.").await;
    let parent = converse(&fixture, "main", &["Part two."]).await;
    let sent = async |turn: i32| {
        let fork = fork(&fixture, parent, turn).await;
        run(&fixture, &fork.instance, "And now?").await;
        let said = fake.chats().pop().unwrap()["messages"].to_string();
        ["The tide is low.", "The tide is high."].map(|text| said.matches(text).count())
    };
    assert_eq!(sent(1).await, [1, 1]);
    assert_eq!(sent(2).await, [1, 1]);
    let forks: Vec<_> =
        fixture.sessions().await.into_iter().filter(|it| it.forked_at_turn.is_some()).collect();
    let mut n_new = Vec::new();
    for fork in &forks {
        let said = fixture.messages(fork.id).await;
        n_new.push(said.iter().filter(|it| it.turn > fork.forked_at_turn.unwrap()).count());
    }
    // The first fork has an entry with the second post, beside prompt and answer.
    assert_eq!(n_new, [3, 2]);
    // Only the first turn of the session is told so.
    let begins =
        fake.chats().into_iter().filter(|it| it.to_string().contains("conversation begins here"));
    assert_eq!(begins.count(), 1);
    worker.stop().await;
}

#[tokio::test]
async fn the_conversation_of_a_fork_ends_at_its_turn() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let parent = converse(&fixture, "main", &["Part one.", "Part two.", "Part three."]).await;
    let first = fork(&fixture, parent, 2).await;
    run(&fixture, &first.instance, "Part three, again.").await;
    let second = fork(&fixture, first.id, 3).await;
    worker.stop().await;
    let lineage = sessions::lineage(&fixture.pool, second.id).await.unwrap();
    assert_eq!(lineage, [(second.id, i32::MAX), (first.id, 3), (parent, 2)]);
    let before = async |id: Uuid, turn: i32| {
        let begun = StartedTurn {
            session_id: id,
            campaign_id: fixture.campaign.id,
            task_id: Uuid::nil(),
            turn,
            lease: 0,
            reserved: Default::default(),
            ephemeral: false,
        };
        turn_phases::session_before(&fixture.pool, &begun).await.unwrap()
    };
    assert_eq!(before(first.id, 3).await, Some(parent));
    assert_eq!(before(second.id, 4).await, Some(first.id));
    // The third turn of the session is not that of the fork.
    let third = fork(&fixture, parent, 2).await;
    assert_eq!(before(third.id, 4).await, None);
}

#[tokio::test]
async fn a_turn_of_an_earlier_session_of_the_conversation_is_forked_from_there() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let earlier = converse(&fixture, "main", &["Part one.", "Part two."]).await;
    fixture.write_agent("writer", &super::fixture::WRITER.replace("You write", "You now write"));
    let later = converse(&fixture, "main", &["Part three."]).await;
    worker.stop().await;
    assert_ne!(later, earlier);
    let fork = fork(&fixture, later, 1).await;
    assert_eq!((fork.forked_from_session, fork.forked_at_turn), (Some(earlier), Some(1)));
    let refused = try_fork(&fixture, later, Some(0), None).await.unwrap_err();
    let advice = "--agent writer --instance NAME PROMPT` begins a conversation without any";
    assert!(refused.to_string().contains(advice), "{refused}");
}

#[tokio::test]
async fn a_turn_that_a_fork_has_taken_over_is_forked_under_the_name_of_the_fork() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let parent = converse(&fixture, "main", &["Part one.", "Part two."]).await;
    let first = try_fork(&fixture, parent, Some(2), Some("draft")).await.unwrap();
    run(&fixture, "draft", "Part three.").await;
    worker.stop().await;
    let second = fork(&fixture, first.id, 1).await;
    assert_eq!(second.instance, "draft-fork-1");
    assert_eq!((second.forked_from_session, second.forked_at_turn), (Some(parent), Some(1)));
    assert_eq!(fixture.transcript(second.id).await, fixture.transcript(parent).await[..2]);
}

#[tokio::test]
async fn forks_are_refused_with_reasons_and_named_without_collisions() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let parent = converse(&fixture, "main", &["Part one.", "Part two."]).await;
    let code = async |id, turn, instance: Option<&str>| {
        let refused = try_fork(&fixture, id, turn, instance).await.unwrap_err();
        refused.class().code
    };
    assert_eq!(code(Uuid::nil(), None, None).await, "unknown_session");
    for turn in [0, 3] {
        assert_eq!(code(parent, Some(turn), None).await, "unknown_turn");
    }
    assert_eq!(code(parent, None, Some("main")).await, "instance_taken");
    let named = try_fork(&fixture, parent, None, Some("other-end")).await.unwrap();
    assert_eq!((named.instance.as_str(), named.turns), ("other-end", 2));
    assert_eq!(code(parent, None, Some("other-end")).await, "instance_taken");
    // A fork has no turn of its own yet.
    assert_eq!(code(named.id, None, None).await, "turn_not_done");
    let both = [try_fork(&fixture, parent, None, None), try_fork(&fixture, parent, Some(1), None)];
    let mut names: Vec<_> = futures_util::future::join_all(both)
        .await
        .into_iter()
        .map(|fork| fork.unwrap().instance)
        .collect();
    names.sort();
    assert_eq!(names, ["main-fork-1", "main-fork-2"]);

    let running = fixture.add("Part three. [[sim: slow 600000]]").await;
    eventually("the turn runs", async || (fixture.turns(&running).await.len() == 1).then_some(()))
        .await;
    assert_eq!(code(parent, Some(3), None).await, "turn_not_done");
    // The running turn is not in the way of one before it.
    let fork = try_fork(&fixture, parent, None, None).await.unwrap();
    assert_eq!((fork.instance.as_str(), fork.turns), ("main-fork-3", 2));
    fixture.cancel(&running).await;
    fixture.ended(&running).await;
    fixture.settled().await;
    assert_eq!(code(parent, Some(3), None).await, "turn_not_done");
    worker.stop().await;

    fixture.write_agent("editor", &super::fixture::WRITER.replace("name: writer", "name: editor"));
    fixture.remove_agent("writer");
    assert_eq!(code(parent, Some(1), None).await, "unknown_agent");
    let mut conn = fixture.pool.acquire().await.unwrap();
    sessions::expire(&mut conn, parent, noon()).await.unwrap();
    assert_eq!(code(parent, Some(1), None).await, "session_expired");
    campaign_control::close(&mut conn, fixture.campaign.id, noon()).await.unwrap();
    assert_eq!(code(parent, Some(1), None).await, "campaign_closed");
}
