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

    async fn change(&self, path: &str, body: &Value) {
        let reply = send(self.app.address, "POST", path, &[], &body.to_string()).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn what_waits_for_a_person_is_listed_with_its_fix() {
    let scenery = Scenery::new().await;
    let before = scenery.app.get("/v1/overview").await;
    let before: Value = serde_json::from_str(&before.body).unwrap();
    assert_eq!(before["attention"], json!([]), "{before}");
    scenery.make_trouble().await;
    let overview = scenery.app.get("/v1/overview").await;
    let overview: Value = serde_json::from_str(&overview.body).unwrap();
    let kinds: Vec<_> =
        overview["attention"].as_array().unwrap().iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["failed_task", "held_jobs", "paused_agent"], "{overview}");
    let failed = &overview["attention"][0];
    assert_eq!(failed["because"], "the provider rejected the prompt");
    assert_eq!(failed["command"], format!("dalsegno task retry {}", scenery.waiting));
    let paused = &overview["attention"][2];
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
        browser.text("h1").await.starts_with("3 things need you."),
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
