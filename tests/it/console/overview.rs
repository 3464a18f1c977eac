//! The overview: what waits for a person, with its fix.

use dalsegno::domain::tasks;
use serde_json::{Value, json};

use super::{browser::Browser, scenery::Scenery};
use crate::http::client::send;

impl Scenery {
    /// Makes a failed task, a pause of an agent and a held job.
    async fn make_trouble(&self) {
        let failed = "update dalsegno.tasks
             set state = 'failed', started_at = created_at, ended_at = '2026-11-20 11:30+00', error = 'the provider rejected the prompt'
           where id = $1";
        sqlx::query(failed).bind(self.waiting).execute(&self.app.pool).await.unwrap();
        let why = json!({ "reason": "its notes are reviewed" });
        let pause = format!("/v1/campaigns/{}/agents/planner/pause", self.world.campaign.id);
        self.change(&pause, &why).await;
        let other = tasks::New { instance: "second", ..self.world.ask("Part 12: The end.") };
        let job_id = self.world.add_new(&other).await.unwrap().task.job_id;
        self.change(
            &format!("/v1/jobs/{job_id}/hold"),
            &json!({ "reason": "legal reads it first" }),
        )
        .await;
    }

    async fn attention(&self) -> Vec<Value> {
        let overview = self.app.get("/v1/overview").await;
        let mut overview: Value = serde_json::from_str(&overview.body).unwrap();
        serde_json::from_value(overview["attention"].take()).unwrap()
    }

    async fn change(&self, path: &str, body: &Value) {
        let reply = send(self.app.address, "POST", path, &[], &body.to_string()).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn what_waits_for_a_person_is_listed_with_its_fix() {
    let scenery = Scenery::new().await;
    // Tests have no worker, which is a warning of the doctor.
    let before = scenery.attention().await;
    assert_eq!(before.len(), 1, "{before:?}");
    assert_eq!(before[0]["kind"], "deserted_queue");
    assert_eq!(before[0]["command"], "dalsegno worker turns");
    scenery.make_trouble().await;
    let attention = scenery.attention().await;
    let kinds: Vec<_> = attention.iter().map(|it| it["kind"].clone()).collect();
    let expected = ["failed_task", "held_jobs", "paused_agent", "deserted_queue"];
    assert_eq!(kinds, expected, "{attention:?}");
    let failed = &attention[0];
    assert_eq!(failed["because"], "the provider rejected the prompt");
    assert_eq!(failed["command"], format!("dalsegno task retry {}", scenery.waiting));
    let paused = &attention[2];
    assert!(paused["because"].as_str().unwrap().contains("its notes are reviewed"), "{paused}");
}

#[tokio::test]
async fn the_overview_begins_with_what_needs_a_person() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    scenery.make_trouble().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/")).await;
    assert!(
        browser.text("h1").await.starts_with("4 things need you."),
        "{}",
        browser.text("h1").await
    );
    for theme in ["light", "dark"] {
        browser.prefer(theme).await;
        browser.save_picture(&format!("overview-trouble-{theme}")).await;
    }
    assert!(browser.text(".attention").await.contains("dalsegno task retry"));
    browser.click(".attention a[href^='/tasks/']").await;
    browser.wait_until("document.querySelector('.explain.failed')").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn warnings_of_the_doctor_have_a_button_for_their_fix() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let hook = json!({ "url": "https://receiver.example/hooks" }).to_string();
    let hook = send(scenery.app.address, "POST", "/v1/webhooks", &[], &hook).await.expect(201);
    let disable = "update dalsegno.webhooks
         set disabled_at = '2026-11-19 12:00+00', disabled_because = 'the receiver is gone', failing_since = '2026-11-19 12:00+00' where id = $1::uuid";
    sqlx::query(disable).bind(hook["id"].as_str()).execute(&scenery.app.pool).await.unwrap();
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/")).await;
    let warning = browser.text(".attention").await;
    for part in ["disabled", "receiver.example", "the receiver is gone", "dalsegno webhook enable"]
    {
        assert!(warning.contains(part), "{part} in {warning}");
    }
    browser.save_picture("overview-warning").await;
    browser.click("form[action='/do/enable_webhook'] button").await;
    browser.wait_until("!document.querySelector('form[action=\"/do/enable_webhook\"]')").await;
    let kinds: Vec<_> = scenery.attention().await.iter().map(|it| it["kind"].clone()).collect();
    assert!(!kinds.contains(&json!("disabled_webhook")), "{kinds:?}");
}

#[tokio::test]
async fn the_time_range_is_in_the_url() {
    let scenery = Scenery::new().await;
    for (range, words) in
        [("", "last hour"), ("?range=24h", "last 24 hours"), ("?range=7d", "last 7 days")]
    {
        let page = scenery.app.get(&format!("/{range}")).await;
        assert!(page.status == 200 && page.body.contains(words), "{range}: {page:?}");
    }
    let tasks = scenery.app.get("/tasks?range=7d").await;
    assert!(tasks.body.contains("Part 10: The quay."), "{tasks:?}");
    send(scenery.app.address, "GET", "/v1/overview?hours=169", &[], "")
        .await
        .problem(400, "bad_query");
}
