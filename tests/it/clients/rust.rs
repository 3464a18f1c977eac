//! The Rust client.

use dalsegno::domain::{agents::SessionMode, tasks};
use dalsegno_client::{
    Attachment, Client, EnqueueError, Error, Mode, NewTask, State, WebhookError, enqueue,
    verify_webhook,
};
use uuid::Uuid;

use super::ExternalSystem;
use crate::webhooks::receiver::Receiver;

const NOTES: &str = "The tide, \u{e9}bb: TIDE-4711.";

#[tokio::test]
async fn a_task_is_added_followed_awaited_and_cancelled_over_http() {
    let external = ExternalSystem::new().await;
    let client = Client::new(&external.url()).unwrap();
    let new = NewTask {
        idempotency_key: Some("order-1"),
        ..NewTask::of("copywriter", "Write part one.")
    };
    let task = client.add_task(external.campaign_id, &new).await.unwrap();
    assert_eq!(client.add_task(external.campaign_id, &new).await.unwrap().id, task.id);
    let mut events = client.events(task.id, None).await.unwrap();
    let mut kinds = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        kinds.push(event);
    }
    assert_eq!(kinds.first().unwrap().kind, "task.queued");
    let end = kinds.last().unwrap();
    assert_eq!((end.kind.as_str(), &end.data["state"]), ("end", &"done".into()));
    let mut rest = client.events(task.id, Some(&kinds[0].id)).await.unwrap();
    assert_eq!(rest.next().await.unwrap().unwrap().id, kinds[1].id);
    let done = client.wait(task.id).await.unwrap();
    assert_eq!(done.state, State::Done);
    assert_eq!(client.task(task.id).await.unwrap(), done);
    assert!(!done.result.unwrap().is_empty());

    let later = NewTask {
        run_at: Some(chrono::Utc::now() + chrono::TimeDelta::days(1)),
        session: Some(Mode::Fresh),
        ..NewTask::of("reviewer", "Read it.")
    };
    let later = client.add_task(external.campaign_id, &later).await.unwrap();
    client.cancel(later.id, "not wanted").await.unwrap();
    assert_eq!(client.wait(later.id).await.unwrap().state, State::Cancelled);
}

/// The client has its own types, so that it does not depend on the service.
#[test]
fn types_of_the_client_match_the_service() {
    let known = |state| match state {
        tasks::State::Queued => State::Queued,
        tasks::State::Running => State::Running,
        tasks::State::Done => State::Done,
        tasks::State::Failed => State::Failed,
        tasks::State::Cancelled => State::Cancelled,
    };
    for word in ["queued", "running", "done", "failed", "cancelled"] {
        let service = serde_json::from_value(word.into()).unwrap();
        assert_eq!(serde_json::from_value::<State>(word.into()).unwrap(), known(service));
    }
    let known = |mode| match mode {
        SessionMode::Continue => Mode::Continue,
        SessionMode::Fresh => Mode::Fresh,
        SessionMode::None => Mode::None,
    };
    for mode in [Mode::Continue, Mode::Fresh, Mode::None] {
        let service = serde_json::from_value(serde_json::to_value(mode).unwrap()).unwrap();
        assert_eq!(mode, known(service));
    }
}

#[tokio::test]
async fn an_enqueue_key_adds_tasks_and_waits_for_them() {
    let external = ExternalSystem::with(&[("DALSEGNO_HTTP__REQUIRE_KEY", "true")]).await;
    let key = external.run_operator_command(&["key", "create", "shop", "--scope", "enqueue"]).await;
    let client = Client::new(&external.url()).unwrap();
    let new = NewTask::of("copywriter", "Write part one.");
    let refused = client.add_task(external.campaign_id, &new).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { status: 401, .. }), "{refused:?}");
    let client = client.with_key(key["secret"].as_str().unwrap());
    assert!(!format!("{client:?}").contains(key["secret"].as_str().unwrap()), "{client:?}");
    let task = client.add_task(external.campaign_id, &new).await.unwrap();
    assert_eq!(client.wait(task.id).await.unwrap().state, State::Done);
    let refused = client.cancel(task.id, "x").await.unwrap_err();
    assert!(matches!(refused, Error::Refused { status: 403, .. }), "{refused:?}");
}

#[tokio::test]
async fn a_task_gets_attachments_over_http_and_in_sql() {
    let external = ExternalSystem::with(&[("DALSEGNO_SIM__DIRECTIVES", "true")]).await;
    let client = Client::new(&external.url()).unwrap();
    let notes = Attachment::content("notes.md", NOTES.as_bytes());
    let new = NewTask { attachments: &[notes], ..NewTask::of("copywriter", "Describe it.") };
    let first = client.add_task(external.campaign_id, &new).await.unwrap();
    let file = Attachment::file(first.id, "notes.md").named("tide.md");
    let again = NewTask { attachments: &[file], ..new };
    let second = client.add_task(external.campaign_id, &again).await.unwrap();
    for (task, name) in [(&first, "notes.md"), (&second, "tide.md")] {
        let sql = "select a.name, c.content from dalsegno.task_attachments as a
                     join dalsegno.file_contents as c on c.sha256 = a.sha256 where a.task_id = $1";
        let stored: (String, Vec<u8>) =
            sqlx::query_as(sql).bind(task.id).fetch_one(&external.pool).await.unwrap();
        assert_eq!(stored, (name.to_owned(), NOTES.as_bytes().to_vec()));
    }
    let content = NOTES.as_bytes();
    for wrong in [
        Attachment::content("chart.png", b"not an image"),
        Attachment::Content { name: "notes.md", content, media_type: Some("application/pdf") },
    ] {
        let wrong = NewTask { attachments: &[wrong], ..new };
        let refused = client.add_task(external.campaign_id, &wrong).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Refused { code, .. } if code == "bad_attachment"),
            "{refused:?}"
        );
    }

    // Answers with the words of its file.
    let quoting = NewTask {
        session: Some(Mode::None),
        within_secs: Some(86_400),
        attachments: &[file],
        ..NewTask::of("copywriter", "[[sim: quote TIDE-]]")
    };
    let mut tx = external.pool.begin().await.unwrap();
    let undone = enqueue(&mut tx, external.campaign_id, &quoting).await.unwrap().task_id;
    tx.rollback().await.unwrap();
    let mut tx = external.pool.begin().await.unwrap();
    let added = enqueue(&mut tx, external.campaign_id, &quoting).await.unwrap().task_id;
    tx.commit().await.unwrap();
    let http = client.add_task(external.campaign_id, &quoting).await.unwrap().id;
    for (task, expected) in [(undone, None), (added, Some(86_400)), (http, Some(86_400))] {
        let sql = "select t.within_secs from dalsegno.task_attachments as a
                     left join dalsegno.tasks as t on t.id = a.task_id where a.task_id = $1";
        let stored: Option<i32> =
            sqlx::query_scalar(sql).bind(task).fetch_optional(&external.pool).await.unwrap();
        assert_eq!(stored, expected);
    }
    let missing = tasks::get(&external.pool, undone).await;
    assert!(matches!(missing, Err(tasks::Error::Unknown(_))), "{missing:?}");
    for task in [added, http] {
        let sql = "select name from dalsegno.task_attachments where task_id = $1";
        let name: String =
            sqlx::query_scalar(sql).bind(task).fetch_one(&external.pool).await.unwrap();
        assert_eq!(name, "tide.md");
        let answer = client.wait(task).await.unwrap().result.unwrap();
        assert!(answer.contains("TIDE-4711"), "{answer}");
    }

    // A refusal aborts the transaction, so each has its own.
    let missing = [Attachment::file(first.id, "none.md")];
    for (wrong, expected, words) in [
        (NewTask { attachments: &missing, ..quoting }, "DS404", "has no file `none.md`"),
        (new, "DS400", "does not name a file"),
        (NewTask { within_secs: Some(60), ..quoting }, "DS400", "may not take 60 s"),
    ] {
        let mut tx = external.pool.begin().await.unwrap();
        let refused = enqueue(&mut tx, external.campaign_id, &wrong).await.unwrap_err();
        let EnqueueError::Refused { code, message, hint } = &refused else { panic!("{refused:?}") };
        assert_eq!((code.as_str(), hint.is_empty()), (expected, false), "{refused}");
        assert!(message.contains(words), "{refused}");
    }
}

#[tokio::test]
async fn many_tasks_are_added_once_with_their_number_in_all_requests() {
    let external = ExternalSystem::new().await;
    let client = Client::new(&external.url()).unwrap();
    let prompts: Vec<String> = (1..=1_001).map(|n| format!("Part {n}.")).collect();
    let run_at = Some("2999-01-01T00:00:00Z".parse().unwrap());
    let tasks = prompts.iter().map(|it| NewTask { run_at, ..NewTask::of("copywriter", it) });
    let tasks: Vec<NewTask<'_>> = tasks.collect();
    let add = async || client.add_tasks(external.campaign_id, &tasks, Some("import-1")).await;
    let (first, again) = (add().await.unwrap(), add().await.unwrap());
    assert!(first.iter().all(|item| item.created) && again.iter().all(|item| !item.created));
    let ids = |items: &[dalsegno_client::BulkItem]| -> Vec<Uuid> {
        items.iter().map(|item| item.id).collect()
    };
    assert_eq!((first.len(), ids(&first)), (1_001, ids(&again)));
    let last = NewTask { idempotency_key: Some("import-1/1001"), ..tasks[1_000] };
    let last = client.add_task(external.campaign_id, &last).await.unwrap();
    assert_eq!(last.id, first[1_000].id);
}

#[tokio::test]
async fn messages_of_webhooks_are_verified() {
    let external = ExternalSystem::new().await;
    let receiver = Receiver::start().await;
    let webhook = external.run_operator_command(&["webhook", "add", &receiver.url()]).await;
    let secret = webhook["secret"].as_str().unwrap();
    let client = Client::new(&external.url()).unwrap();
    let new = NewTask::of("copywriter", "Write part one.");
    let task = client.add_task(external.campaign_id, &new).await.unwrap();
    let received = receiver.has_received(1).await.remove(0);
    let event =
        verify_webhook(received.body.as_bytes(), &received.headers, &["whsec_b3RoZXI=", secret]);
    let event = event.unwrap();
    assert_eq!((event.kind.as_str(), &event.data["state"]), ("task.done", &"done".into()));
    assert_eq!(event.data["task_id"], task.id.to_string());
    assert_eq!(event.id, received.header("webhook-id"));
    let changed = received.body.replace("task.done", "task.fail");
    let refused = verify_webhook(changed.as_bytes(), &received.headers, &[secret]).unwrap_err();
    assert!(matches!(refused, WebhookError::Signature), "{refused:?}");
}

#[tokio::test]
async fn errors_of_the_service_keep_their_message() {
    let external = ExternalSystem::new().await;
    let client = Client::new(&external.url()).unwrap();
    let unknown = client.add_task(Uuid::nil(), &NewTask::of("copywriter", "x")).await.unwrap_err();
    let Error::Refused { status, code, retryable, .. } = &unknown else { panic!("{unknown:?}") };
    assert_eq!((*status, code.as_str(), *retryable), (404, "unknown_campaign", false));
    assert!(unknown.to_string().contains("campaign ls"), "{unknown}");
    for address in ["", "localhost", "ftp://x"] {
        assert!(matches!(Client::new(address), Err(Error::Address(_))), "{address}");
    }
}

#[tokio::test]
async fn a_task_is_part_of_the_callers_transaction() {
    let external = ExternalSystem::new().await;
    let new = NewTask { idempotency_key: Some("order-1"), ..NewTask::of("copywriter", "Write.") };
    let mut tx = external.pool.begin().await.unwrap();
    let lost = enqueue(&mut tx, external.campaign_id, &new).await.unwrap();
    tx.rollback().await.unwrap();
    let missing = tasks::get(&external.pool, lost.task_id).await;
    assert!(matches!(missing, Err(tasks::Error::Unknown(_))), "{missing:?}");

    let mut tx = external.pool.begin().await.unwrap();
    let made = enqueue(&mut tx, external.campaign_id, &new).await.unwrap();
    let found = enqueue(&mut tx, external.campaign_id, &new).await.unwrap();
    tx.commit().await.unwrap();
    assert!(made.created && !found.created);
    assert_eq!(made.task_id, found.task_id);
    let client = Client::new(&external.url()).unwrap();
    assert_eq!(client.wait(made.task_id).await.unwrap().state, State::Done);

    let mut conn = external.pool.acquire().await.unwrap();
    let refused = enqueue(&mut conn, Uuid::nil(), &new).await.unwrap_err();
    // The key is valid in its campaign only.
    let EnqueueError::Refused { code, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(code, "DS404");
}

/// Readers copy from the pages, so their code has to be the code of this test.
#[tokio::test]
async fn the_rust_code_of_the_pages_runs() -> Result<(), Box<dyn std::error::Error>> {
    let external = ExternalSystem::new().await;
    let (pool, campaign_id, address) = (&external.pool, external.campaign_id, &external.url());

    let new = NewTask {
        idempotency_key: Some("order-17"),
        ..NewTask::of("copywriter", "Write part one.")
    };

    // In your own transaction ...
    let mut tx = pool.begin().await?;
    let made = enqueue(&mut tx, campaign_id, &new).await?;
    tx.commit().await?;

    // ... or over HTTP.
    let client = Client::new(address)?;
    let task = client.add_task(campaign_id, &new).await?;
    println!("{:?}", client.wait(task.id).await?.result);

    assert_eq!(task.id, made.task_id);
    let here = without_comments(include_str!("rust.rs"));
    let pages = [
        include_str!("../../../docs/how-to/enqueue.md"),
        include_str!("../../../crates/client/README.md"),
    ];
    for page in pages {
        let shown = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
        let (imports, code) = shown.split_once("\n\n").unwrap();
        assert_eq!(imports, "use dalsegno_client::{Client, NewTask, enqueue};");
        let code = without_comments(&code.replace("\"http://127.0.0.1:7770\"", "address"));
        assert!(here.contains(&code), "{code}");
    }
    Ok(())
}

/// Returns the words of a code, with one blank between them.
fn without_comments(code: &str) -> String {
    let lines = code.lines().filter_map(|line| line.split("//").next());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}
