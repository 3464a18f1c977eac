//! A seeded campaign: tasks in several states, a conversation, a board, and texts that try to break out of the page.

use dalsegno::domain::{
    Amount,
    amount::{Limit, Owner},
    compactions::{self, AcceptedSummary, Cause},
    sessions, tasks,
};
use serde_json::{Value, json};
use sqlx::types::Json;
use uuid::Uuid;

use super::sign_in::HTML;
use crate::{
    app::{TestApp, TestDatabase, noon},
    conversations::world::{TurnSettings, World},
    http::{client, key_setup::ADMIN_KEY},
};

/// A text that no page may interpret: markup, false tags of contexts, bidirectional overrides, images of other hosts.
pub const HOSTILE: &str = "<script>document.title='broken out'</script></post><img src=x onerror=document.title='broken out'> \u{202e}desrever\u{202c} ![pixel](https://evil.example/pixel.gif) [link](javascript:document.title='broken')";

/// The user for whom the campaign works.
pub const USER: &str = "kim@example.org";

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
    /// A task whose first attempt was lost after a part of its answer had arrived.
    pub retried: Uuid,
    /// An item of the memory with two versions.
    pub item: Uuid,
    pub flow: Uuid,
    /// Headers with the key of an administrator, if keys are needed.
    auth: Option<String>,
}

impl Scenery {
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// Fails a task whose call needs more than the whole budget of its campaign, in money.
    pub async fn fail_at_budget(&self, task: Uuid, limit: i64, needed: i64) {
        let limit = Limit { micros: Some(limit), tokens: None };
        let call = Amount { micros: needed, tokens: 0 };
        let owner = Owner::Campaign(self.world.campaign.id);
        let refusal = limit.check(owner, Amount::ZERO, Amount::ZERO, call).unwrap_err();
        let fail = "update dalsegno.tasks set state = 'failed', started_at = created_at, ended_at = '2026-11-20 11:30+00', error = $2,
                    budget_refusal = $3 where id = $1";
        let fail = sqlx::query(fail).bind(task).bind(refusal.to_string()).bind(Json(&refusal));
        fail.execute(&self.app.pool).await.unwrap();
    }

    pub async fn with(set: &[(&str, &str)]) -> Self {
        Self::on(TestDatabase::migrated().await, set).await
    }

    /// Makes the scenery in the database of the caller.
    pub async fn on(database: TestDatabase, set: &[(&str, &str)]) -> Self {
        let app = TestApp::start_with(database, set).await;
        let world =
            World::over(app.pool.clone(), Limit { micros: Some(5_000_000), tokens: None }).await;
        let settings = TurnSettings::default();
        world
            .turn("Part 8: The last letter from the rock.\n\n800 words, within a tenth.", settings)
            .await;
        // The newest: the database may have older ones.
        let first = world.tasks().await.into_iter().next().unwrap();
        let task = world.add(&format!("Part 9 {HOSTILE}")).await;
        let (_, begun) = world.begin(&task, world.lease(), settings).await;
        let answer = format!(
            "# Part 9\n\nThe lamp was an **LH-0433**. {HOSTILE}\n\n{}",
            "x".repeat(1_000_000)
        );
        world.commit(&begun, &answer, settings).await.unwrap();
        let retried = retried(&world).await;
        let waiting = world.add_later("Part 10: The quay.").await;
        let needs_key = set.iter().any(|(name, _)| *name == "http.admin_key");
        let mut scenery = Self {
            retried,
            item: Uuid::nil(),
            flow: Uuid::nil(),
            auth: needs_key.then(|| format!("Bearer {ADMIN_KEY}")),
            session_id: first.session_id.unwrap(),
            done: first.id,
            waiting: waiting.id,
            hostile: task.id,
            hostile_campaign: hostile_campaign(&app, set).await,
            app,
            world,
        };
        scenery.fill().await;
        // Files of a test may refuse the template.
        if set.iter().all(|(name, _)| *name != "agents.folder") {
            scenery.start_flow().await;
        }
        scenery
    }

    /// Writes versions of all that has versions. All texts are hostile.
    async fn fill(&mut self) {
        let campaign = format!("/v1/campaigns/{}", self.world.campaign.id);
        self.send("POST", &format!("{campaign}/posts"), &json!({ "text": HOSTILE })).await;
        let long = format!("Nine parts. {HOSTILE}\n\n{}", "x".repeat(200_000));
        let edit =
            json!({ "brief": long, "client_context": format!("Dry, no adjectives. {HOSTILE}") });
        self.send("PATCH", &campaign, &edit).await;
        let title: String = format!("The tone {HOSTILE}").chars().take(150).collect();
        for body in ["Write short sentences.", &format!("Write very short sentences. {HOSTILE}")] {
            let item = json!({ "kind": "edict", "name": "tone", "title": title, "body": body });
            let stored = self.send("POST", &format!("{campaign}/memory"), &item).await;
            self.item = stored["id"].as_str().unwrap().parse().unwrap();
        }
        let key: String = HOSTILE.chars().take(60).collect();
        let document = json!({ "plan": { "parts": 9, "draft": HOSTILE } });
        let set = json!({ "document": document, "expected_version": 0 });
        self.send("PUT", &format!("{campaign}/blackboard"), &set).await;
        let patch = json!({ "patch": { "plan": { "parts": 10 }, key: "x".repeat(20_000) } });
        self.send("PATCH", &format!("{campaign}/blackboard"), &patch).await;
        let fact = json!({ "attribute": "Diet", "text": format!("Eats no meat. {HOSTILE}") });
        self.send("POST", &format!("/v1/users/{USER}/facts"), &fact).await;
        self.send("PUT", &format!("{campaign}/user"), &json!({ "user": USER })).await;
    }

    /// Compacts the first messages of the conversation, and returns the number of the compaction.
    pub async fn compact(&self) -> i32 {
        let mut tx = self.world.pool.begin().await.unwrap();
        let session_id = self.session_id;
        let generation = sessions::next_generation(&mut *tx, session_id).await.unwrap();
        let (pins, refusals) = (json!([]), json!([{ "rung": "first", "refusals": [] }]));
        let accepted = AcceptedSummary {
            summary: "One part.",
            pins: &pins,
            rung: "retry",
            tokens_after: 9,
            flow: None,
            prompts: None,
        };
        let new = compactions::New {
            session_id,
            generation,
            parent: 0,
            from_seq: 1,
            to_seq: 2,
            cause: Cause::Auto,
            turn: 1,
            model: Some("sim-1"),
            tokens_before: 100,
            refusals: &refusals,
            node: None,
            accepted: Some(accepted),
        };
        compactions::insert(&mut *tx, &new, noon()).await.unwrap();
        compactions::apply(&mut tx, session_id, generation, noon()).await.unwrap();
        tx.commit().await.unwrap();
        generation
    }

    async fn start_flow(&mut self) {
        let campaign = format!("/v1/campaigns/{}", self.world.campaign.id);
        let flow = json!({ "template": "reviewed-text", "inputs": { "task": format!("Write about the harbour. {HOSTILE}") } });
        let flow = self.send("POST", &format!("{campaign}/flows"), &flow).await;
        self.flow = flow["id"].as_str().unwrap().parse().unwrap();
    }

    /// Adds a task to a conversation that has no other one.
    pub async fn add_apart(&self, prompt: &str) -> tasks::Task {
        let new = tasks::New { instance: "second", ..self.world.ask(prompt) };
        self.world.add_new(&new).await.unwrap().task
    }

    /// Sends a request that must succeed, as an administrator where keys are needed.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let auth = self.auth.as_deref().map(|key| ("Authorization", key));
        let headers: Vec<_> =
            auth.into_iter().chain([("Content-Type", "application/json")]).collect();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = client::send(self.app.address, method, path, &headers, &body).await;
        assert!((200..300).contains(&reply.status), "{method} {path}: {reply:?}");
        serde_json::from_str(&reply.body).unwrap_or_default()
    }

    pub async fn get_json(&self, path: &str) -> Value {
        self.send("GET", path, &Value::Null).await
    }

    /// Returns a page as a browser gets it.
    pub async fn page(&self, path: &str) -> String {
        let reply = client::send(self.app.address, "GET", path, &[HTML], "").await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.body
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.app.address)
    }

    /// The path of each page, with a name for its pictures. Those that need more rows are in `UpkeepScenery::pages`; a test fails if a route of
    /// the console is in neither.
    pub fn pages(&self) -> Vec<(&'static str, String)> {
        let Self {
            session_id, done, waiting, hostile, hostile_campaign, retried, item, flow, ..
        } = self;
        let campaign = self.world.campaign.id;
        vec![
            ("overview", "/".to_owned()),
            ("tasks", "/tasks".to_owned()),
            ("task-choose", "/tasks/new".to_owned()),
            ("task-done", format!("/tasks/{done}")),
            ("task-waiting", format!("/tasks/{waiting}")),
            ("task-hostile", format!("/tasks/{hostile}")),
            ("task-retried", format!("/tasks/{retried}")),
            ("task-attempt", format!("/tasks/{retried}?attempt=1&result=raw")),
            ("task-diff", format!("/tasks/{retried}?result=diff")),
            ("sessions", "/sessions".to_owned()),
            ("session", format!("/sessions/{session_id}")),
            ("turn", format!("/sessions/{session_id}/turns/1")),
            ("turn-hostile", format!("/sessions/{session_id}/turns/2")),
            ("campaigns", "/campaigns".to_owned()),
            ("campaign", format!("/campaigns/{campaign}")),
            ("campaign-tasks", format!("/campaigns/{campaign}?part=tasks")),
            ("flow", format!("/flows/{flow}")),
            ("campaign-brief", format!("/campaigns/{campaign}?part=brief")),
            ("campaign-versions", format!("/campaigns/{campaign}?part=brief&from=1&version=2")),
            ("campaign-memory", format!("/campaigns/{campaign}?part=memory")),
            ("cost", "/cost".to_owned()),
            ("cost-days", "/cost?by=day&days=90".to_owned()),
            ("cost-calls", "/cost/calls".to_owned()),
            ("cost-budgets", "/cost/budgets".to_owned()),
            ("cost-evals", "/cost/evals".to_owned()),
            ("catalogue", "/catalogue".to_owned()),
            ("catalogue-agent", "/catalogue/agent/copywriter".to_owned()),
            ("catalogue-prompt", "/catalogue/agent/copywriter?part=prompt".to_owned()),
            ("catalogue-versions", "/catalogue/agent/copywriter?part=versions".to_owned()),
            ("catalogue-skill", "/catalogue/skill/editorial-style".to_owned()),
            ("catalogue-node", "/catalogue/node/meta-analysis".to_owned()),
            ("catalogue-template", "/catalogue/flow/article-series".to_owned()),
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
            ("search", "/search?q=harbour+or+part".to_owned()),
            ("search-empty", "/search".to_owned()),
            ("campaign-item", format!("/campaigns/{campaign}?part=memory&item={item}")),
            ("campaign-blackboard", format!("/campaigns/{campaign}?part=blackboard")),
            ("campaign-agents", format!("/campaigns/{campaign}?part=agents")),
            ("campaign-facts", format!("/campaigns/{campaign}?part=facts")),
            ("campaign-fidelity", format!("/campaigns/{campaign}?part=fidelity")),
            ("campaign-archive", format!("/campaigns/{campaign}?part=archive")),
            ("campaign-found", format!("/campaigns/{campaign}?part=memory&q=short")),
            ("campaign-version", format!("/campaigns/{campaign}?part=brief&version=2")),
            ("task-new", format!("/campaigns/{campaign}/tasks/new?agent=copywriter")),
            ("task-context", format!("/tasks/{waiting}?context=true")),
            ("session-turns", format!("/sessions/{session_id}/turns?verify=true")),
            ("session-estimate", format!("/sessions/{session_id}?estimate=true")),
            ("turn-provider", format!("/sessions/{session_id}/turns/1?show=provider")),
            ("users", format!("/users?name={USER}")),
            ("work", "/work".to_owned()),
            ("jobs", "/work/jobs".to_owned()),
            ("lanes", "/work/lanes".to_owned()),
            ("bulk", "/work/bulk".to_owned()),
            ("schedules", "/schedules".to_owned()),
            ("cleanup", "/cleanup".to_owned()),
            ("erasures", "/erasures".to_owned()),
            ("webhooks", "/webhooks".to_owned()),
            ("doctor", "/doctor".to_owned()),
            ("installation", "/installation".to_owned()),
            ("keys", "/keys".to_owned()),
            ("audit", "/audit".to_owned()),
            ("gallery", "/gallery".to_owned()),
        ]
    }

    /// Adds 200 campaigns that are newer than all others.
    pub async fn add_newer_campaigns(&self) {
        let add = "insert into dalsegno.campaigns (id, name)
             select ('ffffffff-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'Letter ' || n from generate_series(1, 200) as n";
        sqlx::query(add).execute(&self.app.pool).await.unwrap();
    }
}

/// Makes a task whose first attempt was lost with its worker. The second one answers.
async fn retried(world: &World) -> Uuid {
    let settings = TurnSettings::default();
    let task = world.add("Part 9a: The lamp room.").await;
    let (_, begun) = world.begin(&task, world.lease(), settings).await;
    sqlx::query(
        "insert into dalsegno.partial_outputs (session_id, written_at, weight, turn, digest, text) values ($1, $2, 9000, $3, $4, $5)",
    )
    .bind(begun.session_id)
    .bind(noon())
    .bind(begun.turn)
    .bind([0_u8; 32].as_slice())
    .bind("The lamp room smelled of paraffin and brass.")
    .execute(&world.pool)
    .await
    .unwrap();
    let (_, begun) = world.begin(&task, world.lease(), settings).await;
    let answer = format!("The lamp room smelled of oil and brass. {HOSTILE}");
    world.commit(&begun, &answer, settings).await.unwrap();
    task.id
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
