//! Two keys with the scope `enqueue`: all routes that they may call, all parts of a request that name a task.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{KeySetup, count, id, request_parts, without_names};
use crate::http::client::Reply;

/// Parts that name a task, by operation. Each has a probe in [`Probe::of`].
const PARTS_WITH_TASK: &[(&str, &str)] = &[
    ("add_many_tasks", "body [].attachments[].task"),
    ("add_many_tasks", "body [].depends_on[]"),
    ("add_many_tasks", "body [].depends_on[].key"),
    ("add_many_tasks", "body [].idempotency_key"),
    ("add_many_tasks", "header Idempotency-Key"),
    ("add_task", "body attachments[].task"),
    ("add_task", "body depends_on[]"),
    ("add_task", "body depends_on[].key"),
    ("add_task", "header Idempotency-Key"),
    ("download_task_file", "path id"),
    ("explain_task", "path id"),
    ("follow_task", "path id"),
    ("hand_out", "body children[].attachments[].task"),
    ("hand_out", "body children[].depends_on[]"),
    ("hand_out", "body children[].depends_on[].key"),
    ("hand_out", "body children[].idempotency_key"),
    ("hand_out", "header Idempotency-Key"),
    ("hand_out", "path id"),
    ("list_task_files", "path id"),
    ("show_task", "path id"),
];
/// Fields of a task that name no other task.
const TASK_FIELDS: &[&str] = &[
    "agent",
    "budget.micros",
    "budget.tokens",
    "depends_on[].item",
    "flow_templates[]",
    "instance",
    "metadata",
    "node",
    "on_failure",
    "parameters",
    "priority",
    "prompt",
    "result_schema",
    "run_at",
    "session",
    "tags[]",
    "within_secs",
];
/// Other parts that name no task, by operation: campaigns, templates, waits, texts.
const PARTS_WITHOUT_TASK: &[(&str, &[&str])] = &[
    (
        "add_many_tasks",
        &[
            "path id",
            "body ",
            "body [].attachments[].content",
            "body [].attachments[].file",
            "body [].attachments[].media_type",
            "body [].attachments[].name",
        ],
    ),
    (
        "add_task",
        &[
            "path id",
            "body attachments[].content",
            "body attachments[].file",
            "body attachments[].media_type",
            "body attachments[].name",
        ],
    ),
    ("download_task_file", &["path name", "query direction"]),
    ("explain_task", &[]),
    // Of its texts only names of campaigns are looked up.
    ("find_id", &["query newest", "query noun", "query text"]),
    ("follow_task", &["header Last-Event-ID"]),
    (
        "hand_out",
        &[
            "body continuation.prompt",
            "body children[].attachments[].content",
            "body children[].attachments[].file",
            "body children[].attachments[].media_type",
            "body children[].attachments[].name",
        ],
    ),
    ("list_task_files", &[]),
    ("show_task", &["query wait"]),
    (
        "start_flow",
        &["path id", "header Idempotency-Key", "body template", "body inputs{}", "body inputs{}[]"],
    ),
];
/// Places of task fields in requests.
const TASK_PLACES: &[(&str, &str)] =
    &[("add_many_tasks", "body []."), ("add_task", "body "), ("hand_out", "body children[].")];

#[test]
fn every_part_of_every_enqueue_request_has_a_case() {
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    let mut know = |operation: &str, part: String| {
        assert!(known.insert((operation.to_owned(), part.clone())), "{operation}: {part} twice");
    };
    for (operation, part) in PARTS_WITH_TASK {
        know(operation, (*part).to_owned());
    }
    for (operation, parts) in PARTS_WITHOUT_TASK {
        for part in *parts {
            know(operation, (*part).to_owned());
        }
    }
    for (operation, at) in TASK_PLACES {
        for field in TASK_FIELDS {
            know(operation, format!("{at}{field}"));
        }
    }
    let operations = request_parts::of_enqueue();
    let cased: BTreeSet<&str> =
        PARTS_WITHOUT_TASK.iter().map(|(operation, _)| *operation).collect();
    let there: BTreeSet<&str> = operations.iter().map(|operation| operation.id.as_str()).collect();
    assert_eq!(there, cased, "an operation of `enqueue` keys without a case");
    let parts: BTreeSet<(String, String)> = operations
        .iter()
        .flat_map(|operation| {
            operation.parts.iter().map(|part| (operation.id.clone(), part.clone()))
        })
        .collect();
    let new: Vec<_> = parts.difference(&known).collect();
    assert!(new.is_empty(), "add a case for each part that may name a task: {new:?}");
    let gone: Vec<_> = known.difference(&parts).collect();
    assert!(gone.is_empty(), "cases of parts that do not exist: {gone:?}");
}

/// A way to name a task.
struct Probe<'a> {
    setup: &'a KeySetup,
    key: &'a str,
    /// Task of the key, which may have children.
    parent: &'a str,
}

impl Probe<'_> {
    async fn of(
        &self,
        operation: &str,
        part: &str,
        (task, name): (&str, &str),
        words: &str,
    ) -> Reply {
        let tasks = self.setup.fixture.tasks();
        let child = |more: Value| {
            let mut child = json!({ "agent": "copywriter", "instance": "child", "prompt": words });
            child.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            child
        };
        let children =
            |child: Value| json!({ "children": [child], "continuation": { "prompt": "x" } });
        let hand_out = format!("/v1/tasks/{}/children", self.parent);
        let post = async |path: String, body: Value| {
            self.setup.ask(Some(self.key), "POST", &path, &body).await
        };
        let get = async |path: String| self.setup.get(self.key, &path).await;
        match (operation, part) {
            ("show_task", "path id") => get(format!("/v1/tasks/{task}")).await,
            ("list_task_files", "path id") => get(format!("/v1/tasks/{task}/files")).await,
            ("download_task_file", "path id") => {
                get(format!("/v1/tasks/{task}/files/report.txt")).await
            }
            ("explain_task", "path id") => get(format!("/v1/tasks/{task}/explain")).await,
            ("follow_task", "path id") => get(format!("/v1/tasks/{task}/events")).await,
            ("hand_out", "path id") => {
                post(format!("/v1/tasks/{task}/children"), children(child(json!({})))).await
            }
            ("add_task", "body depends_on[]") => {
                post(tasks, child(json!({ "depends_on": [task] }))).await
            }
            ("add_task", "body attachments[].task") => {
                let file = json!({ "task": task, "file": "report.txt" });
                post(tasks, child(json!({ "attachments": [file] }))).await
            }
            ("add_many_tasks", "body [].attachments[].task") => {
                let file = json!({ "task": task, "file": "report.txt" });
                let child = child(json!({ "attachments": [file] }));
                post(format!("{tasks}/bulk"), json!([child])).await
            }
            ("add_task", "body depends_on[].key") => {
                post(tasks, child(json!({ "depends_on": [{ "key": name }] }))).await
            }
            ("add_task", "header Idempotency-Key") => {
                self.setup.add(self.key, &tasks, &child(json!({})), name).await
            }
            ("add_many_tasks", "body [].depends_on[]") => {
                post(format!("{tasks}/bulk"), json!([child(json!({ "depends_on": [task] }))])).await
            }
            ("add_many_tasks", "body [].depends_on[].key") => {
                let waits = child(json!({ "depends_on": [{ "key": name }] }));
                post(format!("{tasks}/bulk"), json!([waits])).await
            }
            ("add_many_tasks", "body [].idempotency_key") => {
                post(format!("{tasks}/bulk"), json!([child(json!({ "idempotency_key": name }))]))
                    .await
            }
            ("add_many_tasks", "header Idempotency-Key") => {
                let path = format!("{tasks}/bulk");
                self.setup.add(self.key, &path, &json!([child(json!({}))]), name).await
            }
            ("hand_out", "body children[].attachments[].task") => {
                let file = json!({ "task": task, "file": "report.txt" });
                post(hand_out, children(child(json!({ "attachments": [file] })))).await
            }
            ("hand_out", "body children[].depends_on[]") => {
                post(hand_out, children(child(json!({ "depends_on": [task] })))).await
            }
            ("hand_out", "body children[].depends_on[].key") => {
                post(hand_out, children(child(json!({ "depends_on": [{ "key": name }] })))).await
            }
            ("hand_out", "body children[].idempotency_key") => {
                post(hand_out, children(child(json!({ "idempotency_key": name })))).await
            }
            ("hand_out", "header Idempotency-Key") => {
                self.setup.add(self.key, &hand_out, &children(child(json!({}))), name).await
            }
            _ => panic!("{operation}: {part} has no probe"),
        }
    }
}

#[tokio::test]
async fn an_enqueue_key_finds_no_task_of_another_key_through_any_request() {
    let setup = KeySetup::new().await;
    let (_, shop) = setup.create_key("shop", &["enqueue"]).await;
    let (_, stock) = setup.create_key("stock", &["enqueue"]).await;
    let theirs = setup.add_done_task(&shop, "order-17", "The secret of the harbour.").await;
    let mine = setup.add_done_task(&stock, "delivery-5", "Count the boxes.").await;
    let files = "with content as (
           insert into dalsegno.file_contents (n_bytes, stored_at, sha256, media_type, content)
           values (4, now(), sha256('text'), 'text/plain', 'text') returning sha256)
         insert into dalsegno.task_files (stored_at, turn, task_id, sha256, name)
         select now(), 1, t.id, c.sha256, 'report.txt' from dalsegno.tasks as t, content as c";
    sqlx::query(files).execute(&setup.fixture.app.pool).await.unwrap();
    let unknown = "019aa2f4-0000-7000-8000-00000000dead";
    let names = [theirs.as_str(), unknown, "order-17", "order-404"];
    let probe = Probe { setup: &setup, key: &stock, parent: &mine };
    for (operation, part) in PARTS_WITH_TASK.iter().filter(|(_, part)| !is_idempotency_key(part)) {
        let their = probe.of(operation, part, (&theirs, "order-17"), "x").await;
        let nothing = probe.of(operation, part, (unknown, "order-404"), "x").await;
        assert!([404, 422].contains(&their.status), "{operation} {part}: {their:?}");
        assert_eq!(
            without_names(&their, &names),
            without_names(&nothing, &names),
            "{operation} {part}: another key's task is not treated as unknown"
        );
        let own = probe.of(operation, part, (&mine, "delivery-5"), "x").await;
        assert!([200, 201].contains(&own.status), "{operation} {part}: {own:?}");
    }
    let children = "select count(*) from dalsegno.tasks as t join dalsegno.tasks as p on p.id in (t.parent_id, t.continues_id)
                     where dalsegno.caller_of(p.added_by) = 'shop'";
    assert_eq!(count(&setup.fixture, children).await, 0);
    // A key that may read sees all tasks, as does the key that added them.
    let (_, eyes) = setup.create_key("eyes", &["enqueue", "read"]).await;
    for key in [&shop, &eyes] {
        setup.get(key, &format!("/v1/tasks/{theirs}")).await.expect(200);
    }
    let reader = Probe { setup: &setup, key: &eyes, parent: &theirs };
    reader.of("add_task", "body depends_on[]", (&theirs, ""), "x").await.expect(201);
    reader.of("hand_out", "path id", (&theirs, ""), "x").await.expect(201);
}

fn is_idempotency_key(part: &str) -> bool {
    part.ends_with("Idempotency-Key") || part.ends_with("idempotency_key")
}

#[tokio::test]
async fn an_idempotency_key_of_another_key_is_available() {
    let setup = KeySetup::new().await;
    let (_, shop) = setup.create_key("shop", &["enqueue"]).await;
    let (made, stock) = setup.create_key("stock", &["enqueue"]).await;
    let (theirs, mine) = (
        setup.add_done_task(&shop, "a", "Plan.").await,
        setup.add_done_task(&stock, "a", "Plan.").await,
    );
    let of_shop = Probe { setup: &setup, key: &shop, parent: &theirs };
    let of_stock = Probe { setup: &setup, key: &stock, parent: &mine };
    let rotate = format!("/v1/keys/{}/rotate", made["id"].as_str().unwrap());
    let successor = setup.admin("POST", &rotate, &json!({})).await.expect(201);
    let successor = successor["secret"].as_str().unwrap();
    let of_successor = Probe { setup: &setup, key: successor, parent: &mine };
    for (n, (operation, part)) in
        PARTS_WITH_TASK.iter().filter(|(_, part)| is_idempotency_key(part)).enumerate()
    {
        let name = format!("order-{n}");
        let named = ("", name.as_str());
        let first = of_shop.of(operation, part, named, "Ours.").await.expect(201);
        // Another caller's input is no conflict, and creates another task.
        let other = of_stock.of(operation, part, named, "Something else.").await.expect(201);
        assert_ne!(first, other);
        let again = of_shop.of(operation, part, named, "Ours.").await;
        assert!([200, 201].contains(&again.status), "{again:?}");
        assert_eq!(task_of(&again.json()), task_of(&first), "{operation} {part}");
        // Rotation keeps the caller.
        let after = of_successor.of(operation, part, named, "Something else.").await;
        assert_eq!(task_of(&after.json()), task_of(&other), "{operation} {part}");
        let name = format!("{name}-same");
        let named = ("", name.as_str());
        let first = of_shop.of(operation, part, named, "Ours.").await.expect(201);
        let same = of_stock.of(operation, part, named, "Ours.").await.expect(201);
        assert_ne!(task_of(&first), task_of(&same), "{operation} {part}");
    }
}

/// Returns the first task that was made under the key.
fn task_of(answer: &Value) -> String {
    let first = ["items", "children"].iter().find_map(|list| answer[*list].get(0));
    id(first.unwrap_or(answer))
}

#[tokio::test]
async fn an_enqueue_key_sees_only_the_number_of_earlier_jobs_of_others() {
    let setup = KeySetup::new().await;
    let (_, shop) = setup.create_key("shop", &["enqueue"]).await;
    let (_, stock) = setup.create_key("stock", &["enqueue"]).await;
    let ask = json!({ "agent": "copywriter", "prompt": "Plan." });
    let path = setup.fixture.tasks();
    let theirs = setup.add(&shop, &path, &ask, "a").await.expect(201);
    let mine = setup.add(&stock, &path, &ask, "b").await.expect(201);
    let hold = format!("/v1/jobs/{}/hold", theirs["job_id"]);
    setup.admin("POST", &hold, &json!({ "reason": "the harbour" })).await.expect(200);
    let path = format!("/v1/tasks/{}/explain", id(&mine));
    let told = setup.get(&stock, &path).await.expect(200);
    assert_eq!(told["because"], "Its lane runs one job at a time. 1 job is in line before it.");
    assert_eq!(
        told["next"],
        "The jobs before it have to end first. Then the lane continues by itself."
    );
    let all = setup.admin("GET", &path, &Value::Null).await.expect(200);
    assert!(all["because"].as_str().unwrap().contains("the harbour"), "{all}");
}
