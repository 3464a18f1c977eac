//! Files that tasks are given over HTTP.

use serde_json::{Value, json};

use super::{
    Fixture,
    client::{self, Reply},
};

/// A form with the fields of a task, and files with their types.
fn form(task: &Value, files: &[(&str, &str, &str)]) -> String {
    let mut body = format!(
        "--bound\r\nContent-Disposition: form-data; name=\"task\"\r\nContent-Type: application/json\r\n\r\n{task}\r\n"
    );
    for (name, media_type, content) in files {
        body.push_str(&format!(
            "--bound\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {media_type}\r\n\r\n{content}\r\n"
        ));
    }
    body + "--bound--\r\n"
}

fn task(more: &Value) -> Value {
    let mut task = json!({ "agent": "copywriter", "prompt": "Describe them." });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

impl Fixture {
    async fn post_form(&self, body: &str, key: Option<&str>) -> Reply {
        let mut headers = vec![("Content-Type", "multipart/form-data; boundary=bound")];
        headers.extend(key.map(|key| ("Idempotency-Key", key)));
        client::send(self.app.address, "POST", &self.tasks(), &headers, body).await
    }

    async fn count(&self, table: &str) -> i64 {
        let sql = format!("select count(*) from dalsegno.{table}");
        let sql = sqlx::AssertSqlSafe(sql);
        sqlx::query_scalar(sql).fetch_one(&self.app.pool).await.unwrap()
    }
}

/// The head of a GIF of 320 by 112 pixels.
const GIF: &str = "GIF89a@\u{1}p\0\0\0\0";

#[tokio::test]
async fn a_form_json_and_references_give_the_same_files_and_contents_are_stored_once() {
    let fixture = Fixture::new().await;
    let files = [("a.gif", "image/gif", GIF), ("data.csv", "text/csv", "a,b\r\n1,2")];
    let first = fixture.post_form(&form(&task(&json!({})), &files), None).await.expect(201);
    let first = first["id"].as_str().unwrap().to_owned();
    let list = async |id: &str| fixture.get(&format!("/v1/tasks/{id}/files")).await.expect(200);
    let listed = list(&first).await;
    let column = |listed: &Value, name: &str| -> Vec<Value> {
        listed["items"].as_array().unwrap().iter().map(|file| file[name].clone()).collect()
    };
    assert_eq!(column(&listed, "name"), ["a.gif", "data.csv"]);
    assert_eq!(column(&listed, "direction"), ["in", "in"]);
    assert_eq!(column(&listed, "media_type"), ["image/gif", "text/plain"]);
    assert_eq!(column(&listed, "turn"), [json!(null), json!(null)]);
    let page = fixture.get(&format!("/v1/tasks/{first}/files/data.csv")).await;
    assert_eq!((page.status, page.body.as_str()), (200, "a,b\r\n1,2"));
    let other = "/files/data.csv?direction=out";
    fixture.get(&format!("/v1/tasks/{first}{other}")).await.problem(404, "unknown_task_file");

    let base64 = json!({ "name": "copy.csv", "content": "YSxiDQoxLDI=" });
    let reference = json!({ "task": first, "file": "a.gif" });
    let body = task(&json!({ "attachments": [base64, reference] }));
    let second = fixture.post(&fixture.tasks(), &body).await.expect(201);
    let listed_again = list(second["id"].as_str().unwrap()).await;
    assert_eq!(column(&listed_again, "name"), ["copy.csv", "a.gif"]);
    let digests = column(&listed, "sha256");
    assert_eq!(column(&listed_again, "sha256"), [digests[1].clone(), digests[0].clone()]);
    let bulk = json!([task(
        &json!({ "attachments": [{ "task": first, "file": "data.csv", "name": "b" }] })
    )]);
    fixture.post(&format!("{}/bulk", fixture.tasks()), &bulk).await.expect(201);
    assert_eq!(fixture.count("file_contents").await, 2);
    assert_eq!(fixture.count("task_attachments").await, 5);
}

#[tokio::test]
async fn an_idempotency_key_compares_fields_and_contents() {
    let fixture = Fixture::new().await;
    let body = |content| form(&task(&json!({})), &[("a.txt", "text/plain", content)]);
    let first = fixture.post_form(&body("one"), Some("k")).await.expect(201);
    let again = fixture.post_form(&body("one"), Some("k")).await.expect(200);
    assert_eq!(first["id"], again["id"]);
    // The same file as Base64 is the same request.
    let json = task(&json!({ "attachments": [{ "name": "a.txt", "content": "b25l" }] }));
    let key = [("Idempotency-Key", "k")];
    let same = fixture.post_with(&fixture.tasks(), &json, &key).await.expect(200);
    assert_eq!(first["id"], same["id"]);
    fixture.post_form(&body("two"), Some("k")).await.problem(409, "idempotency_conflict");
    let without = task(&json!({}));
    let refused = fixture.post_with(&fixture.tasks(), &without, &key).await;
    refused.problem(409, "idempotency_conflict");
    assert_eq!(fixture.count("task_attachments").await, 1);
    assert_eq!(fixture.count("tasks").await, 1);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_refused_and_nothing_is_stored() {
    let limits = [
        ("tasks.max_attachments", "2"),
        ("tasks.max_attachment_bytes", "20"),
        ("tasks.max_attachments_bytes", "30"),
        ("http.max_bulk_bytes", "100000"),
    ];
    let fixture = Fixture::with(&limits).await;
    let send = async |files: &[(&str, &str, &str)]| {
        fixture.post_form(&form(&task(&json!({})), files), None).await
    };
    let text = "text/plain";
    let refused = [
        (
            send(&[("a.png", "image/png", "%PDF-1.7")]).await,
            422,
            "bad_attachment",
            "`a.png` seems to be application/pdf, but its name says image/png",
        ),
        (
            send(&[("a", "image/png", GIF)]).await,
            422,
            "bad_attachment",
            "seems to be image/gif, but its type says image/png",
        ),
        (
            send(&[("a.bin", "", "x\0y")]).await,
            422,
            "bad_attachment",
            "seems to be of an unknown type",
        ),
        (
            send(&[("a", text, "1"), ("b", text, "2"), ("c", text, "3")]).await,
            422,
            "bad_attachment",
            "tasks.max_attachments allows 2",
        ),
        (
            send(&[("a", text, &"x".repeat(21))]).await,
            413,
            "attachment_too_large",
            "has 21 bytes: tasks.max_attachment_bytes allows 20",
        ),
        (
            send(&[("a", text, &"x".repeat(20)), ("b", text, &"y".repeat(11))]).await,
            413,
            "attachment_too_large",
            "31 bytes of attachments",
        ),
        (
            send(&[("a", text, &"x".repeat(200_000))]).await,
            413,
            "body_too_large",
            "http.max_bulk_bytes",
        ),
    ];
    for (reply, status, code, words) in refused {
        let detail = reply.problem(status, code);
        assert!(detail.contains(words), "{words}: {detail}");
    }
    let attach = async |attachment: Value| {
        let body = task(&json!({ "attachments": [attachment] }));
        fixture.post(&fixture.tasks(), &body).await
    };
    let unknown = "019aa2f4-0000-7000-8000-00000000dead";
    let refused = attach(json!({ "task": unknown, "file": "a.txt" })).await;
    assert!(refused.problem(404, "unknown_attachment").contains("has no file `a.txt` to attach"));
    attach(json!({ "name": "a", "content": "?" })).await.problem(422, "bad_field");
    attach(json!({ "name": "a" })).await.problem(422, "bad_attachment");
    fixture.post_form("--bound--\r\n", None).await.problem(400, "bad_body");
    // A client that declares a gigabyte is refused before it sends any of it.
    let headers =
        [("Content-Type", "multipart/form-data; boundary=bound"), ("Content-Length", "1073741824")];
    let huge = client::send(fixture.app.address, "POST", &fixture.tasks(), &headers, "").await;
    huge.problem(413, "body_too_large");
    for table in ["tasks", "task_attachments", "file_contents"] {
        assert_eq!(fixture.count(table).await, 0, "{table}");
    }
}
