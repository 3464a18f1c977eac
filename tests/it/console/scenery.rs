//! A seeded campaign: tasks in several states, a conversation, a board, and texts that try to break out of the page.

use dalsegno::domain::amount::Limit;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    app::{TestApp, TestDatabase},
    conversations::world::{TurnSettings, World},
    http::client,
};

/// A text that no page may interpret: markup, false tags of contexts, bidirectional overrides, images of other hosts.
pub const HOSTILE: &str = "<script>document.title='broken out'</script></post><img src=x onerror=document.title='broken out'> \u{202e}desrever\u{202c} ![pixel](https://evil.example/pixel.gif) [link](javascript:document.title='broken')";

pub struct Scenery {
    pub app: TestApp,
    pub world: World,
    pub session_id: Uuid,
    /// A task that is done.
    pub done: Uuid,
    /// A task that waits.
    pub waiting: Uuid,
    /// A task whose prompt and result are hostile.
    pub hostile: Uuid,
    /// A campaign whose name, brief, board, memory and blackboard are hostile.
    pub hostile_campaign: Uuid,
}

impl Scenery {
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(set: &[(&str, &str)]) -> Self {
        let app = TestApp::start_with(TestDatabase::migrated().await, set).await;
        let world =
            World::over(app.pool.clone(), Limit { micros: Some(5_000_000), tokens: None }).await;
        let settings = TurnSettings::default();
        world
            .turn("Part 8: The last letter from the rock.\n\n800 words, within a tenth.", settings)
            .await;
        let first = world.tasks().await.into_iter().next().unwrap();
        let task = world.add(&format!("Part 9 {HOSTILE}")).await;
        let (_, begun) = world.begin(&task, world.lease(), settings).await;
        let answer = format!(
            "# Part 9\n\nThe lamp was an **LH-0433**. {HOSTILE}\n\n{}",
            "x".repeat(1_000_000)
        );
        world.commit(&begun, &answer, settings).await.unwrap();
        let waiting = world.add_later("Part 10: The quay.").await;
        let scenery = Self {
            session_id: first.session_id.unwrap(),
            done: first.id,
            waiting: waiting.id,
            hostile: task.id,
            hostile_campaign: hostile_campaign(&app, set).await,
            app,
            world,
        };
        scenery.post_on_the_board(HOSTILE).await;
        scenery
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.app.address)
    }

    /// The path of each page, with a name for its pictures. A test fails if a route of the console is missing.
    pub fn pages(&self) -> Vec<(&'static str, String)> {
        let Self { session_id, done, waiting, hostile, hostile_campaign, .. } = self;
        let campaign = self.world.campaign.id;
        vec![
            ("overview", "/".to_owned()),
            ("tasks", "/tasks".to_owned()),
            ("task-done", format!("/tasks/{done}")),
            ("task-waiting", format!("/tasks/{waiting}")),
            ("task-hostile", format!("/tasks/{hostile}")),
            ("sessions", "/sessions".to_owned()),
            ("session", format!("/sessions/{session_id}")),
            ("turn", format!("/sessions/{session_id}/turns/1")),
            ("turn-hostile", format!("/sessions/{session_id}/turns/2")),
            ("campaigns", "/campaigns".to_owned()),
            ("campaign", format!("/campaigns/{campaign}")),
            ("campaign-tasks", format!("/campaigns/{campaign}?part=tasks")),
            ("campaign-memory", format!("/campaigns/{campaign}?part=memory")),
            ("cost", "/cost".to_owned()),
            ("cost-calls", "/cost/calls".to_owned()),
            ("cost-budgets", "/cost/budgets".to_owned()),
            ("catalogue", "/catalogue".to_owned()),
            ("catalogue-agent", "/catalogue/agent/copywriter".to_owned()),
            ("catalogue-prompt", "/catalogue/agent/copywriter?part=prompt".to_owned()),
            ("catalogue-versions", "/catalogue/agent/copywriter?part=versions".to_owned()),
            ("flows", "/flows".to_owned()),
            ("flow-start", "/flows/start?template=article-series".to_owned()),
            ("campaign-hostile", format!("/campaigns/{hostile_campaign}")),
            ("campaign-hostile-memory", format!("/campaigns/{hostile_campaign}?part=memory")),
            (
                "campaign-hostile-blackboard",
                format!("/campaigns/{hostile_campaign}?part=blackboard"),
            ),
            ("selection", format!("/tasks/selected?action=cancel&id={waiting}&id={hostile}")),
            ("find", "/find?q=script".to_owned()),
            ("gallery", "/gallery".to_owned()),
        ]
    }

    async fn post_on_the_board(&self, text: &str) {
        let path = format!("/v1/campaigns/{}/posts", self.world.campaign.id);
        let body = json!({ "text": text }).to_string();
        client::send(self.app.address, "POST", &path, &[], &body).await;
    }
}

/// Makes a campaign of hostile texts, one of them as long as a post may be.
async fn hostile_campaign(app: &TestApp, set: &[(&str, &str)]) -> Uuid {
    let key = set.iter().find(|(name, _)| *name == "http.admin_key");
    let key = key.map(|(_, key)| format!("Bearer {key}")).unwrap_or_default();
    let headers = [("Authorization", key.as_str())];
    let headers = if key.is_empty() { &[][..] } else { &headers[..] };
    let post = async |path: &str, method: &str, body: Value| {
        let reply = client::send(app.address, method, path, headers, &body.to_string()).await;
        assert!(reply.status < 300, "{path}: {reply:?}");
        serde_json::from_str::<Value>(&reply.body).unwrap_or_default()
    };
    let name: String = HOSTILE.chars().take(120).collect();
    let new = json!({ "name": name, "brief": HOSTILE, "client_context": HOSTILE });
    let campaign = post("/v1/campaigns", "POST", new).await;
    let path = format!("/v1/campaigns/{}", campaign["id"].as_str().unwrap());
    let long = format!("{HOSTILE} {}", "x".repeat(250_000));
    post(&format!("{path}/posts"), "POST", json!({ "text": long })).await;
    post(&format!("{path}/pause"), "POST", json!({ "reason": HOSTILE })).await;
    post(&format!("{path}/resume"), "POST", json!({})).await;
    campaign["id"].as_str().unwrap().parse().unwrap()
}
