//! The life of a role: nodes that are entered repeatedly, a compaction at one of them, a worker that is killed in a
//! turn, a search in the role's own session, and an agent that must not remember. Checked by the messages of each model
//! call.

use chrono::TimeDelta;
use dalsegno::{
    clock::Clock as _,
    context::{
        compaction::sections::SECTIONS,
        xml::{FenceSeed, Scope, parse},
    },
    domain::{
        agents::SessionMode as Mode,
        amount::Limit,
        compactions::{self, Cause, Outcome},
        conversations, nodes, sessions,
        tasks::Task,
        turns,
    },
};
use rustix::process::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Fixture;
use crate::{
    app::eventually,
    providers::fake_ollama::{FakeOllama, Play, Step, line},
};

const CURATOR: &str =
    "---\nname: curator\ndescription: Keeps\nprovider: ollama\nmodel: qwen3:8b\n---\nYou keep.\n";
const ROLE: (&str, &str) = ("curator", "2");

fn node(name: &str) -> String {
    format!("---\nname: {name}\ndescription: d\n---\nThe contract of {name}.\n")
}

async fn fixture(fake: &FakeOllama) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let settings = [
        ("ollama.base_url", url.as_str()),
        ("ollama.num_ctx", "8192"),
        ("ollama.idle_timeout_secs", "120"),
        // A process of a worker uses the real clock.
        ("sessions.ttl_days.ollama", "36500"),
    ];
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("curator", CURATOR);
    fixture.write_agent("feedback", &CURATOR.replace("curator", "feedback"));
    for name in ["intake", "review", "meta-analysis"] {
        fixture.write_node(name, &node(name));
    }
    std::fs::write(fixture.folder().join("nodes/style.txt"), "Short sentences.\n").unwrap();
    let draft = node("draft").replace("description: d", "description: d\nreadings: [style.txt]");
    fixture.write_node("draft", &draft);
    fixture
}

/// Returns an answer of some 700 tokens that begins with these words.
fn long(words: &str) -> Play {
    let text = format!("{words} {}", "The mole shields the basin from the swell. ".repeat(55));
    Play::Says(Box::leak(Box::new([&*Box::leak(text.into_boxed_str())])))
}

fn record() -> Play {
    let text: String =
        SECTIONS.iter().map(|(title, _)| format!("## {title}\nOf the draft.\n")).collect();
    Play::Says(Box::leak(Box::new([&*Box::leak(text.into_boxed_str())])))
}

fn half() -> Play {
    let message = json!({ "role": "assistant", "content": "Half an answer" });
    let piece = line(&json!({ "model": "qwen3:8b", "message": message, "done": false }));
    Play::Stream(vec![Step::Bytes(piece), Step::Stall])
}

/// Reads the messages of a call as `role: element(text) element(text)`, with the beginnings of long texts. The system
/// part is left out.
struct Reader {
    fences: Vec<dalsegno::context::xml::Fence>,
}

impl Reader {
    async fn of(fixture: &Fixture, session_id: Uuid) -> Self {
        let live = sessions::read_live(&fixture.pool, session_id).await.unwrap();
        let seed = FenceSeed::from_bytes(live.fence_seed.try_into().unwrap());
        let entries = fixture.messages(session_id).await.into_iter().map(|it| Scope::Entry(it.id));
        let scopes = entries.chain([Scope::Summary { generation: 1 }]);
        Self { fences: scopes.map(|scope| seed.fence(scope)).collect() }
    }

    fn read(&self, chat: &Value) -> Vec<String> {
        let messages = chat["messages"].as_array().unwrap().iter();
        let said = messages.filter(|message| message["role"] != "system");
        said.map(|message| {
            let content = message["content"].as_str().unwrap();
            let role = message["role"].as_str().unwrap();
            if role != "user" {
                return format!("{role}: {}", start(content));
            }
            let pieces = parse::parse(content, &self.fences).unwrap();
            let elements = pieces.iter().filter_map(|piece| match piece {
                parse::Piece::Fenced(element) if element.name == "flow" => Some("flow".to_owned()),
                parse::Piece::Fenced(element) => {
                    Some(format!("{}({})", element.name, start(&element.text)))
                }
                parse::Piece::Outside(_) => None,
            });
            format!("user: {}", elements.collect::<Vec<_>>().join(" "))
        })
        .collect()
    }
}

/// Returns the first words of a text, by which long texts differ.
fn start(text: &str) -> String {
    match text {
        text if text.starts_with("The turn before this one was interrupted") => {
            "interrupted".into()
        }
        text => text.split(" The mole").next().unwrap().replace('\n', " ").trim_end().to_owned(),
    }
}

fn entry(name: &str) -> String {
    let reading = match name {
        "draft" => "  Required reading `style.txt`:  Short sentences.",
        _ => "",
    };
    format!(
        "notice(You are at the node `{name}` now. What it asks for:  The contract of {name}.{reading})"
    )
}

async fn ask(fixture: &Fixture, node: Option<&str>, prompt: &str) -> Task {
    fixture.advance(TimeDelta::seconds(1));
    fixture.add_at_node(ROLE, node, prompt, None, Limit::default()).await
}

async fn run_task(fixture: &Fixture, node: Option<&str>, prompt: &str) -> Task {
    let task = ask(fixture, node, prompt).await;
    fixture.done(&task).await
}

async fn compact(fixture: &Fixture, session_id: Uuid) -> compactions::Compaction {
    let applied = async || {
        let made = compactions::list(&fixture.pool, session_id).await.unwrap();
        let applied = made.into_iter().filter(|made| made.outcome == Outcome::Applied);
        applied.max_by_key(|made| made.generation)
    };
    let known = applied().await.map(|made| made.generation);
    let mut tx = fixture.pool.begin().await.unwrap();
    compactions::request(&mut tx, session_id, Cause::Manual).await.unwrap();
    tx.commit().await.unwrap();
    eventually("the compaction is shown", async || {
        applied().await.filter(|made| Some(made.generation) > known)
    })
    .await
}

#[tokio::test]
async fn a_role_keeps_its_session_through_nodes_a_compaction_and_a_killed_worker() {
    let plays = ["A1.", "A2.", "A3.", "A4.", "A5."].map(long).into_iter();
    let short = |text| Play::Says(text);
    let plays = plays.chain([record(), short(&["A6."]), half(), short(&["A7."]), short(&["A8."])]);
    let fake = FakeOllama::playing(plays).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;

    // Two nodes are entered. A task that names none stays at the session's node.
    let first = run_task(&fixture, Some("intake"), "T1.").await;
    let second = run_task(&fixture, Some("draft"), "T2.").await;
    run_task(&fixture, Some("draft"), "T3.").await;
    let fourth = run_task(&fixture, Some("draft"), "T4.").await;
    run_task(&fixture, None, "T5.").await;
    let id = fixture.session(&first).await.id;
    let reader = Reader::of(&fixture, id).await;
    let chats = fake.chats();
    assert_eq!(reader.read(&chats[0]), [format!("user: {} task(T1.)", entry("intake"))]);
    let into_draft = format!("user: {} task(T2.)", entry("draft"));
    let begun = [format!("user: {} task(T1.)", entry("intake")), "assistant: A1.".into()];
    assert_eq!(reader.read(&chats[1]), [&begun[..], std::slice::from_ref(&into_draft)].concat());
    let whole: Vec<String> = begun
        .into_iter()
        .chain([into_draft, "assistant: A2.".into(), "user: task(T3.)".into()])
        .chain(["assistant: A3.".into(), "user: task(T4.)".into()])
        .chain(["assistant: A4.".into(), "user: task(T5.)".into()])
        .collect();
    assert_eq!(reader.read(&chats[4]), whole);

    // The compaction reads only the second node.
    let made = compact(&fixture, id).await;
    assert_eq!((made.node.as_deref(), made.cause), (Some("draft"), Cause::Manual));
    assert!(made.tokens_after.unwrap() * 4 <= made.tokens_before * 3, "{made:?}");
    let chats = fake.chats();
    let asked = chats[5]["messages"].to_string();
    assert!(asked.contains("T2.") && asked.contains("A3."), "{asked}");
    assert!(!asked.contains("T1.") && !asked.contains("A1."), "{asked}");
    assert!(!asked.contains("T4."), "the last two turns stay word for word: {asked}");

    // Back to the first node, whose prompt is sent again.
    let sixth = run_task(&fixture, Some("intake"), "T6.").await;
    let chats = fake.chats();
    let reader = Reader::of(&fixture, id).await;
    let compacted: Vec<String> = [
        format!(
            "user: flow written_by_people() summary({}) task(T4.)",
            start(made.summary.as_deref().unwrap())
        ),
        "assistant: A4.".into(),
        "user: task(T5.)".into(),
        "assistant: A5.".into(),
        format!("user: {} task(T6.)", entry("intake")),
    ]
    .into();
    assert_eq!(reader.read(&chats[6]), compacted);
    let flow = chats[6]["messages"][1]["content"].as_str().unwrap();
    let summary = flow.find("<summary").unwrap();
    for told in [
        format!("campaign=\"{}\"", fixture.campaign.id),
        "role=\"curator_2\" node=\"draft\"".to_owned(),
        "The contract of draft.".to_owned(),
        "Short sentences.".to_owned(),
        format!("<asked_here task=\"{}\">", second.id),
        format!("<asked_here task=\"{}\">", fourth.id),
        format!("<handoff node=\"intake\" role=\"curator_2\" task=\"{}\"", first.id),
        format!("<handoff node=\"draft\" role=\"curator_2\" task=\"{}\"", second.id),
    ] {
        assert!(flow.find(&told).is_some_and(|at| at < summary), "{told} comes before {flow}");
    }

    // A third node, in whose turn the worker is killed.
    worker.stop().await;
    let victim = fixture.process(&[]);
    let seventh = ask(&fixture, Some("review"), "T7.").await;
    eventually("half of the answer has arrived", async || (fake.chats().len() == 8).then_some(()))
        .await;
    victim.signal(Signal::KILL);
    let heir = fixture.process(&[]);
    fixture.ended_after_pause(&seventh).await;
    let states: Vec<_> = fixture.turns(&seventh).await.iter().map(|turn| turn.state).collect();
    assert_eq!(states, [turns::State::Interrupted, turns::State::Done]);
    let chats = fake.chats();
    let reader = Reader::of(&fixture, id).await;
    let before = [&compacted[..], &["assistant: A6.".to_owned()]].concat();
    let review = [&before[..], &[format!("user: {} task(T7.)", entry("review"))]].concat();
    assert_eq!(reader.read(&chats[7]), review);
    let again = format!("user: {} notice(interrupted) task(T7.)", entry("review"));
    assert_eq!(reader.read(&chats[8]), [&before[..], &[again]].concat());

    // The role searches its own session.
    let eighth = ask(&fixture, Some("meta-analysis"), "T8.").await;
    fixture.ended_after_pause(&eighth).await;
    drop(heir);
    drop(victim);
    let chats = fake.chats();
    let reader = Reader::of(&fixture, id).await;
    let reviewed = format!("user: {} task(T7.) notice(interrupted)", entry("review"));
    let looks_back = format!("user: {} task(T8.)", entry("meta-analysis"));
    assert_eq!(
        reader.read(&chats[9]),
        [&before[..], &[reviewed, "assistant: A7.".into(), looks_back]].concat()
    );
    assert_eq!(fixture.session(&eighth).await.id, id);
    check_stays(&fixture, id, [&first, &second, &sixth, &seventh, &eighth]).await;
    check_archive(&fixture, id).await;

    // The compaction is undone.
    let mut tx = fixture.pool.begin().await.unwrap();
    conversations::uncompact(&mut tx, id, fixture.clock.now()).await.unwrap();
    tx.commit().await.unwrap();
    let worker = fixture.start_worker().await;
    run_task(&fixture, None, "T9.").await;
    worker.stop().await;
    let sent = Reader::of(&fixture, id).await.read(fake.chats().last().unwrap());
    assert_eq!(sent[..whole.len()], whole);
    assert!(!sent.iter().any(|message| message.contains("flow")), "{sent:?}");
    fixture.session(&first).await;
}

/// The messages that were folded first reach the second summary through the first.
#[tokio::test]
async fn a_node_compacted_twice_continues_from_its_own_summary() {
    let plays = ["A1.", "A2.", "A3.", "A4."].map(long).into_iter().chain([record()]);
    let plays = plays.chain(["A5.", "A6."].map(long)).chain([record()]);
    let fake = FakeOllama::playing(plays).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    let first = run_task(&fixture, Some("draft"), "T1.").await;
    for prompt in ["T2.", "T3.", "T4."] {
        run_task(&fixture, Some("draft"), prompt).await;
    }
    let id = fixture.session(&first).await.id;
    let made = compact(&fixture, id).await;
    for prompt in ["T5.", "T6."] {
        run_task(&fixture, Some("draft"), prompt).await;
    }
    let again = compact(&fixture, id).await;
    worker.stop().await;
    assert_eq!((again.node.as_deref(), again.generation), (Some("draft"), made.generation + 1));
    let asked = fake.chats().pop().unwrap()["messages"].to_string();
    assert!(asked.contains("Of the draft.") && asked.contains("T3."), "{asked}");
    assert!(!asked.contains("T1.") && !asked.contains("T5."), "{asked}");
    let second = json!({ "number": again.generation, "parent": made.generation });
    check_archives(
        &fixture,
        id,
        [&["T1.", "A1.", "T2.", "A2."], &["T3.", "A3.", "T4.", "A4."]],
        &second,
    )
    .await;
    let flow = again.flow.unwrap();
    let entry = flow["entry"].as_str().unwrap();
    assert!(entry.contains("The contract of draft."), "the entry is already compacted: {flow}");
    assert_eq!(flow["tasks"][0], json!(first.id));
}

/// Checks that each compaction has archived the messages left by the one before, and that they stay the same after the
/// next.
async fn check_archives(fixture: &Fixture, id: Uuid, said: [&[&str]; 2], second: &Value) {
    let archives = compactions::archives(&fixture.pool, id).await.unwrap();
    assert_eq!(archives.len(), 2, "{archives:?}");
    assert_eq!(archives[0].to_seq + 1, archives[1].from_seq, "{archives:?}");
    let told = json!({ "number": archives[1].number, "parent": archives[1].parent });
    assert_eq!(told, *second);
    let mut conn = fixture.pool.acquire().await.unwrap();
    for (archive, said) in archives.iter().zip(said) {
        assert_eq!(archive.node.as_deref(), Some("draft"));
        let read = compactions::open_archive(&mut conn, id, archive.number, 0, 100).await.unwrap();
        let spoken = read.messages.iter().map(|stored| start(&stored.message.text));
        let spoken: Vec<_> = spoken.filter(|text| !text.starts_with("You are at")).collect();
        assert_eq!(spoken, said);
        let replacement = read.replacement;
        assert!(replacement.summary.contains("Of the draft."), "{replacement:?}");
        assert_eq!(replacement.flow.unwrap()["node"], "draft");
        assert_eq!(read.next, None);
    }
}

/// The compaction belongs to the old node, because the waiting task is about to leave it.
#[tokio::test]
async fn a_compaction_at_the_arrival_summarises_only_the_previous_node() {
    let plays = ["A1.", "A2.", "A3.", "A4.", "A5."].map(long).into_iter().chain([record()]);
    let fake = FakeOllama::playing(plays.chain([Play::Says(&["A6."])])).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    for prompt in ["T1.", "T2.", "T3.", "T4.", "T5."] {
        run_task(&fixture, Some("draft"), prompt).await;
    }
    let much = format!("T6. {}", "The mole shields the basin. ".repeat(380));
    run_task(&fixture, Some("review"), &much).await;
    worker.stop().await;
    let sent = fake.chats().pop().unwrap();
    let first = sent["messages"][1]["content"].as_str().unwrap();
    let Some((flow, _)) = first.split_once("<summary") else {
        panic!("nothing was compacted: {sent}")
    };
    assert!(flow.starts_with("Where you stood in the work when earlier messages"), "{flow}");
    assert!(flow.contains("node=\"draft\"") && flow.contains("The contract of draft."), "{flow}");
    assert!(!flow.contains("unresolved") && !flow.contains("T6."), "{flow}");
    assert!(sent.to_string().contains("You are at the node `review` now."));
}

/// Checks that the stays have no gap and follow the order of the tasks that entered.
async fn check_stays(fixture: &Fixture, id: Uuid, entered: [&Task; 5]) {
    let stays = nodes::of_session(&fixture.pool, id).await.unwrap();
    let named: Vec<_> = stays.iter().map(|stay| stay.node.as_str()).collect();
    assert_eq!(named, ["intake", "draft", "intake", "review", "meta-analysis"]);
    let tasks: Vec<_> = stays.iter().map(|stay| stay.task_id).collect();
    assert_eq!(tasks, entered.map(|task| task.id));
    assert_eq!(stays[0].first_seq, 1);
    for pair in stays.windows(2) {
        assert_eq!(pair[0].last_seq, Some(pair[1].first_seq - 1), "{stays:?}");
        assert!(pair[0].left_at.is_some());
    }
    assert_eq!(stays.last().unwrap().left_at, None);
    let entries = fixture.feed().await.into_iter().filter(|event| event.kind == "node.entered");
    assert_eq!(entries.count(), 5);
}

async fn check_archive(fixture: &Fixture, id: Uuid) {
    let archives = compactions::archives(&fixture.pool, id).await.unwrap();
    let [archive] = archives.as_slice() else { panic!("{archives:?}") };
    assert_eq!((archive.trigger, archive.node.as_deref()), (Cause::Manual, Some("draft")));
    let mut conn = fixture.pool.acquire().await.unwrap();
    let mut said = Vec::new();
    let mut after = 0;
    loop {
        let page =
            compactions::open_archive(&mut conn, id, archive.number, after, 3).await.unwrap();
        said.extend(page.messages.iter().map(|stored| start(&stored.message.text)));
        assert_eq!(page.replacement.flow.unwrap()["node"], "draft");
        match page.next {
            Some(next) => after = next.parse().unwrap(),
            None => break,
        }
    }
    let spoken: Vec<_> = said.iter().filter(|text| !text.starts_with("You are at")).collect();
    assert_eq!(spoken, ["T1.", "A1.", "T2.", "A2.", "T3.", "A3."]);
    assert_eq!(said.len(), 8, "{said:?}");
}

#[tokio::test]
async fn a_fresh_task_at_a_node_begins_without_history() {
    let fake = FakeOllama::playing(["A1.", "A2.", "A3."].map(long)).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    run_task(&fixture, Some("draft"), "T1.").await;
    let feedback = ("feedback", "main");
    let at = Some("meta-analysis");
    let before = fixture.add_at_node(feedback, at, "T2.", None, Limit::default()).await;
    fixture.done(&before).await;
    let fresh = fixture.add_at_node(feedback, at, "T3.", Some(Mode::Fresh), Limit::default()).await;
    fixture.done(&fresh).await;
    worker.stop().await;
    let session = fixture.session(&fresh).await;
    assert_ne!(session.id, fixture.session(&before).await.id);
    let reader = Reader::of(&fixture, session.id).await;
    let sent = fake.chats().pop().unwrap();
    assert_eq!(reader.read(&sent), [format!("user: {} task(T3.)", entry("meta-analysis"))]);
    let everything = sent.to_string();
    assert!(!["T1.", "A1.", "T2.", "A2."].iter().any(|text| everything.contains(text)));
}

#[tokio::test]
async fn a_rebuilt_session_stays_at_its_node_and_repeats_lost_requirements() {
    let fake = FakeOllama::playing(["A1.", "A2."].map(long)).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    run_task(&fixture, Some("draft"), "T1.").await;
    run_task(&fixture, Some("draft"), "T2.").await;
    fixture.write_agent("curator", &CURATOR.replace("You keep.", "You keep, and tell."));
    let third = run_task(&fixture, Some("draft"), "T3.").await;
    let id = fixture.session(&third).await.id;
    // The whole conversation came along, so nothing is repeated.
    let sent = Reader::of(&fixture, id).await.read(fake.chats().last().unwrap());
    let entries = sent.iter().filter(|message| message.contains("You are at the node")).count();
    assert_eq!(entries, 1, "{sent:?}");
    let stays = nodes::of_session(&fixture.pool, id).await.unwrap();
    assert_eq!((stays.len(), stays[0].first_seq, stays[0].left_at), (1, 1, None));
    // Of a long conversation, only the end comes along.
    let much = "The mole shields the basin. ".repeat(450);
    fixture.write_agent(
        "curator",
        &CURATOR
            .replace("qwen3:8b", "qwen3:14b")
            .replace("---\nYou", "window_tokens: 16384\n---\nYou"),
    );
    run_task(&fixture, Some("draft"), &much).await;
    fixture.write_agent("curator", CURATOR);
    // A task that names no node is at its node just like one that does.
    let last = run_task(&fixture, None, "T5.").await;
    worker.stop().await;
    let id = fixture.session(&last).await.id;
    // The node's prompt came along in front of the summary, so it occurs once.
    let sent = fake.chats().last().unwrap().to_string();
    assert_eq!(sent.matches("The contract of draft.").count(), 1, "{sent}");
    let stays = nodes::of_session(&fixture.pool, id).await.unwrap();
    assert_eq!((stays.len(), stays[0].first_seq), (1, 1));
    let handoffs = nodes::handoffs(&fixture.pool, fixture.campaign.id, 10).await.unwrap();
    assert_eq!(handoffs.len(), 1, "one entry for each session: {handoffs:?}");
}

#[tokio::test]
async fn a_task_of_a_node_without_a_file_fails_with_a_reason() {
    let fake = FakeOllama::start().await;
    let fixture = fixture(&fake).await;
    let task = ask(&fixture, Some("draft"), "T1.").await;
    std::fs::remove_file(fixture.folder().join("nodes/draft.md")).unwrap();
    let worker = fixture.start_worker().await;
    let task = fixture.ended(&task).await;
    worker.stop().await;
    assert!(task.error.as_ref().unwrap().contains("there is no node `draft`"), "{task:?}");
    assert!(fake.chats().is_empty());
}
