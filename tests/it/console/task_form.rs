//! The form for a task: its files, its time for the answer, and what it keeps when it is refused.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{HTML, KEYS, form_token, key, open, sign_in},
};
use crate::http::{
    client::{Reply, send},
    key_setup::ADMIN_KEY,
};

/// A form as a browser sends it: texts, then files with their types. A field for files without any is a file without a name.
fn form(texts: &[(&str, &str)], files: &[(&str, &str, &str)]) -> String {
    let mut body = String::new();
    for (name, text) in texts {
        body.push_str(&format!(
            "--bound\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
        ));
    }
    for (name, media_type, content) in files {
        body.push_str(&format!(
            "--bound\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\nContent-Type: {media_type}\r\n\r\n{content}\r\n"
        ));
    }
    body + "--bound--\r\n"
}

impl Scenery {
    async fn post_files(&self, cookie: &str, path: &str, body: &str) -> Reply {
        let origin = format!("http://{}", self.app.address);
        let headers = [
            ("Cookie", cookie),
            ("Content-Type", "multipart/form-data; boundary=bound"),
            ("Origin", &origin),
            HTML,
        ];
        send(self.app.address, "POST", path, &headers, body).await
    }

    async fn names_of_files(&self, task: &str) -> Vec<String> {
        let files = self.get_json(&format!("/v1/tasks/{task}/files")).await;
        let name = |file: &Value| file["name"].as_str().unwrap().to_owned();
        files["items"].as_array().unwrap().iter().map(name).collect()
    }
}

fn file(folder: &Path, name: &str, content: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_task_is_added_with_files_after_one_was_refused() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    // The brief of the scenery does not fit into the window of the model.
    let campaign = scenery.make("/v1/campaigns", &json!({ "name": "Harbour" })).await;
    let path = format!("/campaigns/{}/tasks/new", campaign["id"].as_str().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let notes = file(folder.path(), "notes.md", "Größe: 7 m".as_bytes());
    let plan = file(folder.path(), "plan.txt", b"Nine parts.");
    let zip = file(folder.path(), "all.zip", b"PK\x03\x04");
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&path)).await;
    browser.wait_until("window.htmx !== undefined").await;
    assert!(browser.text("#files-hint").await.contains("At most 20 files, each of 10.0 MB"));
    browser.write("#agent", "planner").await;
    browser.write("#prompt", "Plan with these.").await;
    browser.run("document.getElementById('within').closest('details').open = true").await;
    browser.write("#within", "24").await;
    browser.write("#files", &format!("{notes}\n{zip}")).await;
    browser.save_picture("task-new-files").await;
    browser.click("main form .primary").await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    let error = browser.text("#outcome").await;
    assert!(error.contains("all.zip") && error.contains("is not accepted"), "{error}");
    let kept = "return [document.getElementById('prompt').value, document.getElementById('within').value, document.getElementById('files').files.length]";
    assert_eq!(browser.run(kept).await, json!(["Plan with these.", "24", 2]));
    // Without an answer the page says what to do: a server closes the connection while it is sent too much.
    let lost = "document.querySelector('main form').dispatchEvent(new CustomEvent('htmx:sendError', { bubbles: true, detail: { requestConfig: { verb: 'post' } } }))";
    browser.run(lost).await;
    let lost = browser.text("#outcome .error").await;
    assert!(lost.contains("files are too large together"), "{lost}");
    browser.run("document.getElementById('files').value = ''").await;
    browser.write("#files", &format!("{notes}\n{plan}")).await;
    browser.click("[formaction]").await;
    browser.wait_until("document.querySelector('#estimate table')").await;
    browser.click("main form .primary").await;
    browser.wait_until("location.pathname.match('^/tasks/[0-9a-f-]{36}$')").await;
    let id = browser.url().await.rsplit('/').next().unwrap().to_owned();
    assert_eq!(scenery.names_of_files(&id).await, ["notes.md", "plan.txt"]);
    let task = scenery.get_json(&format!("/v1/tasks/{id}")).await;
    assert_eq!((&task["within_secs"], &task["agent"]), (&json!(86_400), &json!("planner")));
    let content = scenery.app.get(&format!("/v1/tasks/{id}/files/notes.md")).await;
    assert_eq!(content.body, "Größe: 7 m");
    assert!(browser.complaints().await.iter().all(|it| it.contains("422")), "only the refusal");
}

#[tokio::test]
async fn a_form_that_is_shown_again_has_everything_but_the_files_and_says_so() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.without_scripts(true).await;
    let campaign = scenery.make("/v1/campaigns", &json!({ "name": "Harbour" })).await;
    let path = format!("/campaigns/{}/tasks/new", campaign["id"].as_str().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let fields = [
        ("agent", "planner"),
        ("prompt", "Plan the parts."),
        ("within", "24"),
        ("priority", "7"),
        ("task-limit", "2.50"),
        ("tags", "press, autumn"),
    ];
    browser.open(&scenery.url(&path)).await;
    for (id, text) in fields {
        let script = format!(
            "const it = document.getElementById('{id}'); if (it.closest('details')) it.closest('details').open = true; it.value = {}",
            json!(text)
        );
        browser.run(&script).await;
    }
    browser.write("#files", &file(folder.path(), "notes.md", b"Notes.")).await;
    browser.click("[formaction]").await;
    browser.text("#estimate table").await;
    for (id, text) in fields {
        let value = browser.run(&format!("return document.getElementById('{id}').value")).await;
        assert_eq!(value, text, "{id}");
    }
    let hint = browser.text("#files-hint").await;
    assert!(hint.contains("Choose the files again") && hint.contains("notes.md"), "{hint}");
    let estimate = browser.text("#estimate").await;
    assert!(estimate.contains("With hours to wait"), "{estimate}");
}

#[tokio::test]
async fn a_form_with_files_has_the_checks_and_the_limits_of_the_api() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let admin = sign_in(app, ADMIN_KEY).await;
    let token = form_token(&open(app, "/", &admin).await.body);
    let campaign = scenery.world.campaign.id.to_string();
    let fields = |token: &str| -> Vec<(&'static str, String)> {
        vec![
            ("form_token", token.to_owned()),
            ("then", "/tasks/{id}".to_owned()),
            ("id", campaign.clone()),
            ("agent", "copywriter".to_owned()),
            ("prompt", "Read it.\r\nAll.".to_owned()),
            ("words:tags", "press".to_owned()),
        ]
    };
    let body = |token: &str, files: &[(&str, &str, &str)]| {
        let fields = fields(token);
        let fields: Vec<_> = fields.iter().map(|(name, text)| (*name, text.as_str())).collect();
        form(&fields, files)
    };
    let notes = ("notes.md", "text/markdown", "# Notes");
    let none = ("", "application/octet-stream", "");
    let stale = scenery.post_files(&admin, "/do/add_task", &body("0", &[notes])).await;
    assert!(stale.status == 403 && stale.body.contains("stale_form"), "{stale:?}");
    // Longer than other forms may be.
    let long = "x".repeat(5_000_000);
    let added = body(&token, &[none, notes, ("long.txt", "text/plain", &long)]);
    let added = scenery.post_files(&admin, "/do/add_task", &added).await;
    assert_eq!(added.status, 303, "{added:?}");
    let id = added.head.split("location: /tasks/").nth(1).unwrap()[..36].to_owned();
    assert_eq!(scenery.names_of_files(&id).await, ["notes.md", "long.txt"]);
    let task = scenery.get_json(&format!("/v1/tasks/{id}")).await;
    assert_eq!((&task["prompt"], &task["tags"]), (&json!("Read it.\nAll."), &json!(["press"])));
    let too_long = "x".repeat(10_000_001);
    let too_long = body(&token, &[("long.txt", "text/plain", &too_long)]);
    let refused = scenery.post_files(&admin, "/do/add_task", &too_long).await;
    assert!(refused.status == 413 && refused.body.contains("attachment_too_large"), "{refused:?}");
    // The form is shown again with its texts, and with the reason above it.
    for part in
        ["role=\"alert\"", "value=\"copywriter\"", "Read it.\nAll.</textarea>", "value=\"press\""]
    {
        assert!(refused.body.contains(part), "{part} in {}", refused.body);
    }
    assert!(refused.body.contains("Choose the files again"), "{}", refused.body);
    let empty = scenery.post_files(&admin, "/do/add_task", &body(&token, &[none])).await;
    assert_eq!(empty.status, 303, "{empty:?}");
    // Other operations take no files, and no operation takes them before the sign-in.
    let other = form(&[("form_token", &token), ("id", &id)], &[notes]);
    let refused = scenery.post_files(&admin, "/do/cancel_task", &other).await;
    assert!(refused.status == 422 && refused.body.contains("takes no files"), "{refused:?}");
    let (_, secret) = key(app, "ann", "read").await;
    let reader = sign_in(app, &secret).await;
    let own = form_token(&open(app, "/", &reader).await.body);
    let refused = scenery.post_files(&reader, "/do/add_task", &body(&own, &[notes])).await;
    assert!(refused.status == 403 && refused.body.contains("missing_scope"), "{refused:?}");
    let sign_in = form(&[("form_token", &token), ("key", ADMIN_KEY)], &[notes]);
    let refused = scenery.post_files(&admin, "/sign-in", &sign_in).await;
    assert_eq!(refused.status, 415, "{refused:?}");
}
