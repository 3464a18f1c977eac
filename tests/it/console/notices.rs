//! The icon and the notifications of the browser for what needs a person.

use serde_json::{Value, json};

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{KEYS, open, sign_in},
};

/// Records notifications in place of the desktop, which a test cannot see.
const RECORDER: &str = "window.Notification = class {
  static permission = localStorage.permission ?? 'default';
  static async requestPermission() {
    localStorage.permission = Notification.permission = 'granted';
    return 'granted';
  }
  constructor(title, { body }) {
    localStorage.raised = JSON.stringify([...JSON.parse(localStorage.raised ?? '[]'), `${title} | ${body}`]);
  }
};";

impl Browser {
    async fn record_notifications(&self) {
        let script = json!({ "source": RECORDER });
        self.command("Page.addScriptToEvaluateOnNewDocument", script).await;
    }

    async fn raised(&self) -> Vec<String> {
        let raised = self.run("return JSON.parse(localStorage.raised ?? '[]')").await;
        serde_json::from_value(raised).unwrap()
    }
}

impl Scenery {
    async fn pause(&self, agent: &str) {
        let path = format!("/v1/campaigns/{}/agents/{agent}/pause", self.world.campaign.id);
        self.send("POST", &path, &json!({ "reason": "its notes are reviewed" })).await;
    }

    async fn cancel_jobs(&self) {
        let cancel = "select dalsegno.cancel(id, 'not needed here') from dalsegno.jobs";
        sqlx::query(cancel).execute(&self.app.pool).await.unwrap();
    }

    async fn resume(&self, agent: &str) {
        let path = format!("/v1/campaigns/{}/agents/{agent}/resume", self.world.campaign.id);
        self.send("POST", &path, &json!({})).await;
    }
}

const ATTENTION: &str =
    "document.querySelector('link[rel=icon]').href.includes('favicon-attention')";

#[tokio::test]
async fn six_tabs_raise_one_notification_for_a_new_thing() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    // Ready jobs without a worker need a person only after some seconds: that would be a third thing, at any moment.
    scenery.cancel_jobs().await;
    scenery.pause("reviewer").await;
    browser.resize(1440, 900).await;
    browser.record_notifications().await;
    browser.open(&scenery.url("/")).await;
    browser.wait_until("!document.querySelector('[data-notify]').hidden").await;
    browser.wait_until(ATTENTION).await;
    browser.save_picture("notify-off").await;
    browser.run("document.querySelector('[data-notify] button').focus()").await;
    browser.press(&["\u{e007}"]).await;
    browser.wait_until("document.querySelector('[data-notify] [aria-pressed=true]')").await;
    assert!(browser.text("[data-notify]").await.contains("Notifications are on"));
    assert!(browser.raised().await.is_empty(), "what was open before is on the page");
    for path in ["/tasks", "/campaigns", "/sessions", "/work", "/search"] {
        browser.new_tab().await;
        browser.record_notifications().await;
        browser.open(&scenery.url(path)).await;
        browser.wait_until(ATTENTION).await;
    }
    scenery.pause("planner").await;
    browser.wait_until("(localStorage.raised ?? '') !== ''").await;
    scenery.pause("copywriter").await;
    browser.wait_until("JSON.parse(localStorage.raised).length > 1").await;
    let raised = browser.raised().await;
    let expected = |agent: &str, it: &str| it.starts_with(&format!("paused: {agent} | paused by"));
    assert!(
        raised.len() == 2 && expected("planner", &raised[0]) && expected("copywriter", &raised[1]),
        "{raised:?}"
    );
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn the_icon_shows_what_needs_a_person_and_goes_back() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    // Without a worker, ready jobs need a person.
    scenery.cancel_jobs().await;
    assert_eq!(scenery.get_json("/attention").await, json!({ "items": [] }));
    let calm = scenery.page("/").await;
    assert!(calm.contains("/favicon.svg\" data-calm"), "{calm}");
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/audit")).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    assert_eq!(browser.run(&format!("return {ATTENTION}")).await, false);
    scenery.pause("planner").await;
    browser.wait_until(ATTENTION).await;
    // Without a script, the overview has the right icon.
    assert!(scenery.page("/").await.contains("/favicon-attention.svg\" data-calm"));
    scenery.resume("planner").await;
    browser.wait_until(&format!("!({ATTENTION})")).await;
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn a_key_without_the_overview_gets_no_notices() {
    let scenery = Scenery::with(&KEYS).await;
    scenery.pause("planner").await;
    let key =
        json!({ "name": "bound", "scopes": ["read"], "campaigns": [scenery.world.campaign.id] });
    let key = scenery.send("POST", "/v1/keys", &key).await;
    let bound = sign_in(&scenery.app, key["secret"].as_str().unwrap()).await;
    let notices = open(&scenery.app, "/attention", &bound).await;
    let notices: Value = serde_json::from_str(&notices.body).unwrap();
    assert_eq!(notices, json!({ "items": [] }));
    let overview = open(&scenery.app, "/", &bound).await.body;
    assert!(!overview.contains("data-notify"));
    // Pages about the whole installation are not offered, and those that are can be opened.
    let rail = overview.split("id=\"rail\"").nth(1).unwrap().split("</nav>").next().unwrap();
    for refused in ["/work", "/work/jobs", "/work/lanes", "/cost/budgets", "/erasures", "/users"] {
        assert!(!rail.contains(&format!("href=\"{refused}\"")), "{refused} in {rail}");
    }
    for target in ["/work/bulk", "/cost", "/cost/evals", "/tasks", "/sessions", "/flows"] {
        assert!(rail.contains(&format!("href=\"{target}\"")), "{target} in {rail}");
        assert_eq!(open(&scenery.app, target, &bound).await.status, 200, "{target}");
    }
}
