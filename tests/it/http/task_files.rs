//! `/v1/tasks/{id}/files`.

use dalsegno::domain::task_files::{self, NewFiles};
use serde_json::json;

use super::Fixture;
use crate::app::noon;

#[tokio::test]
async fn files_are_listed_and_downloaded_as_attachments() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let mut new = NewFiles::default();
    new.add("charts/über a.html", b"<script>alert(1)</script>");
    new.add("a.png", b"\x89PNG\r\n\x1a\n");
    new.add_problem(b"long", "it is too long".to_owned());
    task_files::store_contents(&fixture.app.pool, &new, noon()).await.unwrap();
    task_files::record(&fixture.app.pool, (task.id, 1), &new, noon()).await.unwrap();
    let path = format!("/v1/tasks/{}/files", task.id);
    let listed = fixture.get(&path).await.expect(200);
    let column = |name: &str| -> Vec<_> {
        listed["items"].as_array().unwrap().iter().map(|file| file[name].clone()).collect()
    };
    assert_eq!(column("name"), [json!("a.png"), json!("charts/über a.html"), json!("long")]);
    assert_eq!(column("media_type"), [json!("image/png"), json!("text/plain"), json!(null)]);
    assert_eq!(column("n_bytes"), [json!(8), json!(25), json!(null)]);
    assert_eq!(column("problem")[2], "it is too long");
    let detail = fixture.get(&format!("/v1/tasks/{}", task.id)).await.expect(200);
    assert_eq!(detail["files"], listed["items"]);

    let page = fixture.get(&format!("{path}/charts%2F%C3%BCber%20a.html")).await;
    assert_eq!((page.status, page.body.as_str()), (200, "<script>alert(1)</script>"));
    let disposition = "attachment; filename=\"_ber a.html\"; filename*=UTF-8''%C3%BCber%20a.html";
    for line in [
        &format!("content-disposition: {disposition}"),
        "content-type: text/plain; charset=utf-8",
        "x-content-type-options: nosniff",
    ] {
        assert!(page.head.contains(line), "{line} in {page:?}");
    }
    for name in ["none", "..%2Fa.png", "charts"] {
        let words = fixture.get(&format!("{path}/{name}")).await.problem(404, "unknown_task_file");
        assert!(words.contains("dalsegno task files"), "{words}");
    }
    fixture.get(&format!("{path}/%00")).await.problem(400, "bad_name");
    let words = fixture.get(&format!("{path}/long")).await.problem(404, "unknown_task_file");
    assert!(words.contains("is not stored: it is too long"), "{words}");
    let unknown = "/v1/tasks/019aa2f4-0000-7000-8000-00000000dead/files";
    fixture.get(unknown).await.problem(404, "unknown_task");
    fixture.get(&format!("{unknown}/a.png")).await.problem(404, "unknown_task");
}
