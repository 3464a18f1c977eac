//! Two tabs of one browser while a worker is killed and Postgres restarts.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::PgPool;

use super::browser::Browser;
use crate::{
    app::eventually, cluster::scratch_folder, embedded::orphaned_server::OrphanedServer,
    http::client, service::Service,
};

/// Slow answers that are read while they arrive, and short leases.
const SETTINGS: [(&str, &str); 8] = [
    ("DALSEGNO_AGENTS__PROVIDER", "sim"),
    ("DALSEGNO_AGENTS__MODEL", "sim-1"),
    ("DALSEGNO_SIM__DIRECTIVES", "true"),
    ("DALSEGNO_SIM__CHUNK_DELAY_MS", "100"),
    ("DALSEGNO_QUEUE__LEASE_SECS", "3"),
    ("DALSEGNO_QUEUE__HEARTBEAT_SECS", "1"),
    ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "1"),
    ("DALSEGNO_QUEUE__CANCEL_GRACE_SECS", "1"),
];
const LIVE: &str =
    "document.querySelector('#feed-line:not([hidden])')?.textContent.trim() === 'Live'";

fn settings<'a>(url: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [("DATABASE_URL", url)].iter().chain(&SETTINGS).chain(more).copied().collect()
}

async fn worker(folder: &Path, url: &str) -> Service {
    Service::worker(folder, &settings(url, &[])).await
}

/// Counts the events that a page announces: all but the progress of turns.
async fn announced_since(pool: &PgPool, mark: i64) -> i64 {
    let count = "select count(*) from dalsegno.feed where id > $1 and kind <> 'turn.progress'";
    sqlx::query_scalar(count).bind(mark).fetch_one(pool).await.unwrap()
}

async fn task_state(service: &Service, id: &str) -> String {
    let path = format!("/v1/tasks/{id}");
    let reply = client::send(service.address, "GET", &path, &[], "").await.expect(200);
    reply["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn two_tabs_survive_a_killed_worker_and_a_restart_of_postgres_without_a_gap() {
    let Some(browser) = Browser::start().await else { return };
    let server = OrphanedServer::start().await;
    let (folder, url) = (scratch_folder(), server.url());
    let no_turns = [("DALSEGNO_WORKER__TURNS_SLOTS", "0")];
    let service = Service::start(folder.path(), &settings(&url, &no_turns)).await;
    service.ready().await;
    let mut first = worker(folder.path(), &url).await;
    let post = async |path: &str, body: Value| {
        client::send(service.address, "POST", path, &[], &body.to_string()).await.expect(201)
    };
    let campaign = post("/v1/campaigns", json!({ "name": "Harbour" })).await;
    let page = |path: &str| format!("http://{}{path}", service.address);

    // Both tabs are read while the stream runs, so each knows the event up to which it was read.
    browser.open(&page("/tasks")).await;
    browser.wait_until(LIVE).await;
    let tasks = browser.tab().await;
    browser.open(&page("/tasks")).await;
    let overview = browser.new_tab().await;
    browser.open(&page("/")).await;
    let mut marks = Vec::new();
    for tab in [&tasks, &overview] {
        browser.switch_to(tab).await;
        browser.wait_until(LIVE).await;
        let mark = browser.run("return Number(document.getElementById('main').dataset.feed)").await;
        marks.push((tab.as_str(), mark.as_i64().unwrap()));
    }

    let path = format!("/v1/campaigns/{}/tasks", campaign["id"].as_str().unwrap());
    let task = json!({ "agent": "copywriter", "prompt": "Part one. [[sim: words 300]]" });
    let task = post(&path, task).await;
    let id = task["id"].as_str().unwrap().to_owned();
    let pool = PgPool::connect_with(server.options.clone()).await.unwrap();
    let progress = "select exists (select from dalsegno.feed where kind = 'turn.progress')";
    eventually("a part of the answer has arrived", async || {
        let has_begun: bool = sqlx::query_scalar(progress).fetch_one(&pool).await.unwrap();
        has_begun.then_some(())
    })
    .await;
    pool.close().await;
    first.signal("KILL");
    first.ended().await;

    server.kill();
    for tab in [&tasks, &overview] {
        browser.switch_to(tab).await;
        browser
            .wait_until("document.getElementById('feed-line').textContent.includes('Reconnecting')")
            .await;
        browser.wait_until("document.querySelector('#banner .banner')").await;
        assert!(browser.text("#banner").await.contains("interrupted"));
        assert!(browser.has("h1").await, "the page can still be read");
    }
    browser.save_picture("interrupted-overview").await;
    let postgres = server.restart().await;
    let second = worker(folder.path(), &url).await;
    for tab in [&tasks, &overview] {
        browser.switch_to(tab).await;
        browser.wait_until(LIVE).await;
        browser
            .wait_until("document.getElementById('banner').textContent.startsWith('Back since')")
            .await;
    }
    eventually("the task is done by the second worker", async || {
        (task_state(&service, &id).await == "done").then_some(())
    })
    .await;

    let pool = PgPool::connect_with(server.options.clone()).await.unwrap();
    for (tab, mark) in marks {
        browser.switch_to(tab).await;
        eventually("nothing is missing or repeated", async || {
            let n_events = announced_since(&pool, mark).await;
            let shown = browser.run("return document.querySelector('.fresh').textContent").await;
            (n_events >= 3 && shown == format!("{n_events} new")).then_some(())
        })
        .await;
    }
    browser.save_picture("back-overview").await;
    pool.close().await;
    drop((second, service));
    postgres.stop().await.unwrap();
}
