//! Previews of contexts: what the next turn is sent, without sending it and without a change.

use std::{collections::BTreeMap, sync::Arc};

use dalsegno::{
    domain::{
        agent_pauses::{self, PauseScope},
        class::Classify as _,
        context_previews::{BeginTransaction, ContextPreview, Error, PreviewSubject},
        posts, tasks, transaction,
    },
    jobs::{Services, previews},
    transcript::Role,
};
use uuid::Uuid;

use super::{Fixture, claude};
use crate::{
    app::{eventually, noon},
    memory::edicts_in_context::publish,
    providers::fake_ollama::{FakeOllama, Play},
};

const WRITER: &str = "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\n\
                      tools: mcp__dalsegno__status, mcp__dalsegno__board_post\n---\nYou write.\n";

async fn fixture(fake: &FakeOllama, num_ctx: &str) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let settings = [("ollama.base_url", url.as_str()), ("ollama.num_ctx", num_ctx)];
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("writer", WRITER);
    fixture
}

/// Drafts a preview in the process of the test, on its clock.
pub async fn preview(fixture: &Fixture, subject: PreviewSubject) -> Result<ContextPreview, Error> {
    preview_by(fixture.services(&[]), fixture, subject).await
}

async fn preview_by(
    services: Arc<Services>,
    fixture: &Fixture,
    subject: PreviewSubject,
) -> Result<ContextPreview, Error> {
    let pool = fixture.pool.clone();
    let begin: Arc<BeginTransaction> = Arc::new(move || {
        let pool = pool.clone();
        Box::pin(async move { transaction::begin(&pool).await })
    });
    previews(services).draft(subject, begin).await
}

fn for_agent(fixture: &Fixture, agent: &str, prompt: Option<&str>) -> PreviewSubject {
    PreviewSubject::Agent {
        campaign_id: fixture.campaign.id,
        agent: agent.to_owned(),
        instance: "main".to_owned(),
        prompt: prompt.map(str::to_owned),
        node: None,
        session: None,
        attachments: Vec::new(),
    }
}

/// Replaces the id of the call that a program was given by the zeros that a preview has in its place.
pub fn without_call_id(given: &str) -> String {
    let (_, call) = given.split_once("/run/").unwrap();
    let (call, _) = call.split_once('/').unwrap();
    given.replace(call, &Uuid::nil().to_string())
}

/// Returns a digest of the rows of each table.
async fn digests(fixture: &Fixture) -> BTreeMap<String, String> {
    let digests = "select c.relname::text, (xpath('/row/n/text()', query_to_xml(
                          format('select md5(coalesce(string_agg(t::text, '','' order by t::text), '''')) as n from dalsegno.%I as t', c.relname),
                          false, true, '')))[1]::text
                     from pg_class as c
                    where c.relnamespace = 'dalsegno'::regnamespace and c.relkind in ('r', 'p')";
    let rows: Vec<(String, String)> =
        sqlx::query_as(digests).fetch_all(&fixture.pool).await.unwrap();
    assert!(rows.len() > 30, "{rows:?}");
    rows.into_iter().collect()
}

#[tokio::test]
async fn a_preview_of_a_queued_task_is_what_is_sent_and_changes_no_row() {
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&["Two."])]).await;
    let fixture = fixture(&fake, "16384").await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    worker.stop().await;
    publish(&fixture, "tone", "No exclamation marks.").await;
    let task = fixture.add("Write part two.\n\"Quoted\" \\ </task>").await;
    let before = digests(&fixture).await;
    let services = fixture.services(&[]);
    let subject = PreviewSubject::Task(task.id);
    let shown = preview_by(services.clone(), &fixture, subject.clone()).await.unwrap();
    // The second one finds what the first one has left in memory.
    assert_eq!(
        preview_by(services.clone(), &fixture, subject).await.unwrap().request,
        shown.request
    );
    assert_eq!(digests(&fixture).await, before);
    assert_eq!(fake.bodies().len(), 1, "nothing was sent");
    let worker = fixture.start_worker_on(services, &[]).await;
    let task = fixture.done(&task).await;
    worker.stop().await;
    let request = shown.request.unwrap();
    assert_eq!(request.body.as_bytes(), fake.bodies()[1]);
    assert_eq!(request.url, Some(format!("http://{}/api/chat", fake.addr)));
    let sent = super::contexts::show(&fixture, &fixture.session(&task).await, 2, 1).await;
    assert_eq!(sent.request, Some(request));
    assert_eq!((sent.session_id, sent.turn), (shown.session_id.unwrap(), shown.turn));
    assert_eq!((sent.messages, sent.tools), (shown.messages, shown.tools));
    assert_eq!(sent.estimated_tokens, shown.estimated_tokens);
    let kinds = |parts: &[dalsegno::domain::manifests::Part]| {
        parts.iter().map(|part| (part.kind.clone(), part.why.clone())).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&sent.parts), kinds(&shown.parts));
    assert!(shown.notes.is_empty(), "{:?}", shown.notes);
}

#[tokio::test]
async fn a_preview_with_new_posts_differs_in_their_marks_only_and_says_so() {
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&["Two."])]).await;
    let fixture = fixture(&fake, "16384").await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    worker.stop().await;
    let audience = crate::board::to(&["all"]);
    let post = crate::board::by_operator(fixture.campaign.id, &audience, "The tide is low.");
    posts::add(&fixture.pool, &post, noon()).await.unwrap();
    let task = fixture.add("Write part two.").await;
    let shown = preview(&fixture, PreviewSubject::Task(task.id)).await.unwrap();
    assert!(shown.notes[0].contains("random marks"), "{:?}", shown.notes);
    let worker = fixture.start_worker().await;
    fixture.done(&task).await;
    worker.stop().await;
    let without_mark = |body: &str| {
        let (before, rest) = body.split_once("<posts fence=").unwrap();
        let (_, after) = rest.split_once('>').unwrap();
        format!("{before}{after}")
    };
    let sent = String::from_utf8(fake.bodies()[1].clone()).unwrap();
    assert!(sent.contains("The tide is low."));
    assert_eq!(without_mark(&shown.request.unwrap().body), without_mark(&sent));
}

#[tokio::test]
async fn a_preview_of_an_agent_needs_no_task_and_opens_no_session() {
    let fake = FakeOllama::playing([Play::Says(&["One."])]).await;
    let fixture = fixture(&fake, "16384").await;
    let before = digests(&fixture).await;
    let shown = preview(&fixture, for_agent(&fixture, "writer", Some("Write part one."))).await;
    let shown = shown.unwrap();
    let nameless = preview(&fixture, for_agent(&fixture, "writer", None)).await.unwrap();
    assert_eq!(digests(&fixture).await, before);
    assert_eq!((shown.task_id, shown.session_id, shown.turn), (None, None, 1));
    assert!(shown.notes[0].contains("opens a new session"), "{:?}", shown.notes);
    let is_named = |note: &String| note.contains("no prompt was given");
    assert!(nameless.notes.iter().any(is_named), "{:?}", nameless.notes);
    let prompt = nameless.messages.last().unwrap();
    assert!(prompt.role == Role::User && prompt.text.contains('…'), "{prompt:?}");
    let task = fixture.add("Write part one.").await;
    let worker = fixture.start_worker().await;
    fixture.done(&task).await;
    worker.stop().await;
    // The marks around texts are random and of one length.
    assert_eq!(shown.request.unwrap().body.len(), fake.bodies()[0].len());
}

#[tokio::test]
async fn a_context_without_room_is_shown_as_it_is_before_the_summary() {
    let fake = FakeOllama::playing([Play::Says(&["One."])]).await;
    let fixture = fixture(&fake, "8192").await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add(&"low tide ".repeat(1_000)).await).await;
    worker.stop().await;
    let before = digests(&fixture).await;
    let task = for_agent(&fixture, "writer", Some(&"high tide ".repeat(1_500)));
    let shown = preview(&fixture, task).await.unwrap();
    assert_eq!(digests(&fixture).await, before);
    assert!(shown.notes.iter().any(|it| it.contains("summarised first")), "{:?}", shown.notes);
    assert!(shown.request.unwrap().body.contains("low tide low tide"));
}

#[tokio::test]
async fn turns_that_cannot_begin_have_no_preview() {
    let fake = FakeOllama::playing([Play::Says(&["One."])]).await;
    let fixture = fixture(&fake, "16384").await;
    let code = async |subject| preview(&fixture, subject).await.unwrap_err().class().code;
    assert_eq!(code(for_agent(&fixture, "nobody", None)).await, "unknown_agent");
    assert_eq!(code(for_agent(&fixture, "writer", Some(" "))).await, "empty_text");
    assert_eq!(code(PreviewSubject::Task(Uuid::nil())).await, "unknown_task");
    let task = fixture.add("Write part one.").await;
    let place = PauseScope { campaign_id: Some(fixture.campaign.id), agent: "writer" };
    let mut tx = fixture.pool.begin().await.unwrap();
    agent_pauses::pause(&mut tx, place, "too expensive", "cli:ann@host", noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(code(PreviewSubject::Task(task.id)).await, "agent_paused");
    assert_eq!(code(for_agent(&fixture, "writer", None)).await, "agent_paused");
    let mut tx = fixture.pool.begin().await.unwrap();
    agent_pauses::resume(&mut tx, place, "cli:ann@host", noon()).await.unwrap();
    tx.commit().await.unwrap();
    fixture.cancel(&task).await;
    assert_eq!(code(PreviewSubject::Task(task.id)).await, "task_ended");
}

#[tokio::test]
async fn a_conversation_has_no_preview_during_its_turn() {
    let fixture = Fixture::new(&[("sim.latency_ms", "600000")]).await;
    let (task, next) = (fixture.add("Write part one.").await, fixture.add("Part two.").await);
    let worker = fixture.start_worker().await;
    eventually("the turn runs", async || {
        (fixture.task(&task).await.state == tasks::State::Running).then_some(())
    })
    .await;
    for subject in [
        PreviewSubject::Task(task.id),
        PreviewSubject::Task(next.id),
        for_agent(&fixture, "writer", None),
    ] {
        let refused = preview(&fixture, subject).await.unwrap_err();
        assert_eq!(refused.class().code, "turn_runs", "{refused}");
    }
    let other = PreviewSubject::Agent {
        campaign_id: fixture.campaign.id,
        agent: "writer".to_owned(),
        instance: "second".to_owned(),
        node: None,
        session: None,
        prompt: None,
        attachments: Vec::new(),
    };
    let shown = preview(&fixture, other).await.unwrap();
    assert_eq!((shown.request, shown.problem), (None, None), "the simulation is sent nothing");
    worker.stop_only().await;
}

#[tokio::test]
async fn an_unreachable_server_leaves_the_texts_and_names_the_problem() {
    let fixture = Fixture::new(&[("ollama.base_url", "http://127.0.0.1:9")]).await;
    fixture.write_agent("writer", WRITER);
    let shown = preview(&fixture, for_agent(&fixture, "writer", Some("Write."))).await.unwrap();
    assert!(shown.system.starts_with("You write."));
    assert_eq!(shown.request, None);
    assert!(shown.problem.unwrap().contains("has not described the model qwen3:8b"));
}

#[tokio::test]
async fn the_command_prints_the_preview_in_each_form() {
    let fake = FakeOllama::playing([]).await;
    let fixture = fixture(&fake, "16384").await;
    let run = async |more: &[&str]| {
        let agent = ["context", "preview", "--agent", "writer", "--campaign", "Harbour"];
        let arguments = [&agent[..], &["--prompt", "Write 'part' one."], more].concat();
        let output = fixture.run_configured(&arguments).await;
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = run(&[]).await;
    let has = [
        "agent    writer/main",
        "session  a new one",
        "model    qwen3:8b on ollama",
        "──── system ────\nYou write.",
        "Write 'part' one.",
        "──── tools ────",
    ];
    for part in has {
        assert!(text.contains(part), "{part}: {text}");
    }
    let body: serde_json::Value = serde_json::from_str(&run(&["--raw"]).await).unwrap();
    assert_eq!((&body["model"], &body["stream"]), (&"qwen3:8b".into(), &true.into()));
    assert!(run(&["--curl"]).await.contains(&format!("curl -sS 'http://{}/api/chat'", fake.addr)));
    let json: ContextPreview = serde_json::from_str(&run(&["--json"]).await).unwrap();
    assert_eq!(json.agent, "writer");
    let task = fixture.add("Write part two.").await.id.to_string();
    let output = fixture.run_configured(&["context", "preview", &task]).await;
    assert!(String::from_utf8(output.stdout).unwrap().contains("Write part two."));
    for arguments in [&["context", "preview"][..], &["context", "preview", &task, "--prompt", "x"]]
    {
        let output = fixture.run_configured(arguments).await;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[tokio::test]
async fn a_preview_for_claude_is_what_the_cli_is_given_but_for_the_id_of_the_call() {
    let Some(setup) = claude::Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    worker.stop().await;
    let task = fixture.add("Write part two.").await;
    let before = digests(fixture).await;
    let shown = preview(fixture, PreviewSubject::Task(task.id)).await.unwrap();
    assert_eq!(digests(fixture).await, before);
    let worker = fixture.start_worker().await;
    let task = fixture.done(&task).await;
    worker.stop().await;
    let sent = super::contexts::show(fixture, &fixture.session(&task).await, 2, 1).await;
    assert_eq!(shown.request.unwrap().body, without_call_id(&sent.request.unwrap().body));
}
