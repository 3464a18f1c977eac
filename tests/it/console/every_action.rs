//! Every action that the console knows, with and without its scope.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use dalsegno::{
    domain::{
        credentials::{self, PausedCredential},
        keys::Scope,
        tasks,
    },
    operations::{self, Spec},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    scenery::Scenery,
    sign_in::{HTML, KEYS, form_token, key, open, sign_in},
    source,
};
use crate::{
    app::noon,
    conversations::world::TurnSettings,
    http::{
        client::{Reply, send},
        key_setup::ADMIN_KEY,
    },
};

/// An action with the page that offers it.
struct Case {
    operation: &'static str,
    page: String,
    /// Fields that a person fills in.
    fields: Vec<(&'static str, String)>,
}

fn case(operation: &'static str, page: &str, fields: &[(&'static str, &str)]) -> Case {
    let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Case { operation, page: page.to_owned(), fields }
}

/// Each action in an order in which the state of the scenery offers it.
fn cases(scenery: &Scenery, more: &More) -> Vec<Case> {
    let campaign = format!("/campaigns/{}", scenery.world.campaign.id);
    let mut all = of_campaign(&campaign, more);
    all.extend(of_tasks(scenery, &campaign));
    all.extend(of_conversations(scenery, &campaign, more));
    all.extend(of_memory(scenery, &campaign, more));
    all.extend(of_queue(scenery, more));
    all.extend(of_schedules(scenery));
    all.extend(of_installation(more));
    all
}

fn of_campaign(campaign: &str, more: &More) -> Vec<Case> {
    let (brief, other) = (format!("{campaign}?part=brief"), format!("/campaigns/{}", more.spare));
    vec![
        case("create_campaign", "/campaigns", &[("name", "Winter"), ("money:budget.micros", "5")]),
        case("change_budget", campaign, &[("money:micros", "12.50"), ("number:tokens", "")]),
        case("add_post", campaign, &[("text", "Three more parts.")]),
        case("edit_campaign", &brief, &[("brief", "Nine parts."), ("text:client_context", "")]),
        case("pause_campaign", campaign, &[("reason", "lunch")]),
        case("resume_campaign", campaign, &[]),
        case("close_campaign", &other, &[]),
        case("erase_campaign", &other, &[("reason", "the contract has ended")]),
    ]
}

fn of_tasks(scenery: &Scenery, campaign: &str) -> Vec<Case> {
    let (task, flow) = (format!("/tasks/{}", scenery.waiting), format!("/flows/{}", scenery.flow));
    let id = scenery.world.campaign.id.to_string();
    let new =
        [("agent", "copywriter"), ("prompt", "Part 14."), ("time:run_at", "2026-11-28T09:00")];
    vec![
        case("add_task", &format!("{campaign}/tasks/new"), &new),
        case("pause_flow", &flow, &[]),
        case("resume_flow", &flow, &[]),
        case("cancel_flow", &flow, &[("reason", "late")]),
        case("retry_flow", &flow, &[("from", "write")]),
        case(
            "start_flow",
            "/flows/start?template=reviewed-text",
            &[("id", &id), ("inputs.task", "Write.")],
        ),
        case("change_task_priority", &task, &[("priority", "7")]),
        case("change_task_budget", &task, &[("money:micros", "2.50")]),
        case("cancel_task", &task, &[("reason", "late")]),
        case("retry_task", &task, &[]),
    ]
}

fn of_conversations(scenery: &Scenery, campaign: &str, more: &More) -> Vec<Case> {
    let session = format!("/sessions/{}", scenery.session_id);
    let agents = format!("{campaign}?part=agents");
    let everywhere = "/catalogue/agent/copywriter";
    vec![
        case("interrupt_session", &format!("/sessions/{}", more.running), &[("reason", "late")]),
        case("interrupt_agent", &agents, &[("reason", "late")]),
        case("uncompact_session", &session, &[]),
        case("compact_session", &session, &[]),
        case("fork_session", &session, &[("instance", "second")]),
        case("rerun_turn", &format!("{session}/turns/1"), &[("times", "1")]),
        case("reset_session", &session, &[]),
        case("pause_agent", &agents, &[("reason", "lunch")]),
        case("resume_agent", &agents, &[]),
        case("reset_agent", &agents, &[("flag:fresh", "true")]),
        case("reset_agents", &agents, &[]),
        case("pause_agent_everywhere", everywhere, &[("reason", "lunch")]),
        case("resume_agent_everywhere", everywhere, &[]),
    ]
}

fn of_memory(scenery: &Scenery, campaign: &str, more: &More) -> Vec<Case> {
    let (memory, board) =
        (format!("{campaign}?part=memory"), format!("{campaign}?part=blackboard"));
    let fact = |n: usize| format!("/users?name=ann%40example.org&fact={}", more.facts[n]);
    let items = r#"[{"kind": "edict", "name": "units", "title": "Units", "body": "Metric."}]"#;
    let item = [("kind", "record"), ("name", "pier"), ("title", "The pier"), ("body", "Of 1887.")];
    let stated = [("attribute", "Diet"), ("text", "Eats no meat.")];
    vec![
        case("publish_memory", &memory, &item),
        case("import_memory", &memory, &[("json:items", items)]),
        case("revoke_memory", &format!("{memory}&item={}", scenery.item), &[]),
        case("set_blackboard", &board, &[("json:document", r#"{"parts": 9}"#)]),
        case("patch_blackboard", &board, &[("json:patch", r#"{"parts": null}"#)]),
        case("put_campaign_user", &format!("{campaign}?part=facts"), &[("text:user", "ann")]),
        case("state_fact", "/users?name=ann%40example.org", &stated),
        case("edit_fact", &fact(0), &[("text", "Lives in Kiel.")]),
        case("revoke_fact", &fact(1), &[]),
        case("forget_user", "/users?name=ann%40example.org", &[]),
    ]
}

fn of_queue(scenery: &Scenery, more: &More) -> Vec<Case> {
    let (job, dead) = (format!("/work/jobs/{}", more.job), format!("/work/jobs/{}", more.dead));
    let world = &scenery.world;
    let lane = format!("/work/lanes?name={}%2F{}%2Fmain", world.campaign.id, world.agent().name);
    let reason = [("reason", "legal reads it first")];
    vec![
        case("resume_queue", "/", &[]),
        case("pause_queue", "/work", &reason),
        case("resume_credential", "/", &[]),
        case("hold_job", &job, &reason),
        case("release_job", &job, &[]),
        case("cancel_job", &job, &reason),
        case("retry_job", &dead, &[]),
        case("hold_lane", &lane, &reason),
        case("release_lane", &lane, &[]),
        case("run_cleanup", "/cleanup", &[]),
    ]
}

fn of_schedules(scenery: &Scenery) -> Vec<Case> {
    let id = scenery.world.campaign.id.to_string();
    let weekly = "/schedules/weekly";
    let fields = [
        ("name", "weekly"),
        ("cron", "0 30 7 * * Mon"),
        ("time_zone", "Europe/Berlin"),
        ("number:catch_up_secs", "600"),
        ("task.campaign_id", &id),
        ("task.agent", "copywriter"),
        ("task.prompt", "Plan the week."),
    ];
    vec![
        case("put_schedule", "/schedules", &fields),
        case("run_schedule", weekly, &[]),
        case("pause_schedule", weekly, &[("reason", "lunch")]),
        case("resume_schedule", weekly, &[]),
        case("remove_schedule", weekly, &[]),
    ]
}

fn of_installation(more: &More) -> Vec<Case> {
    let webhook = format!("/webhooks/{}", more.webhook);
    let budget = [("owner", "agent"), ("key", "copywriter"), ("money:micros", "2.50")];
    vec![
        case("set_budget", "/cost/budgets", &budget),
        case("test_webhook", &webhook, &[]),
        case("replay_webhook", "/", &[]),
        case("replay_delivery", &webhook, &[]),
        case("disable_webhook", &webhook, &[("reason", "moves")]),
        case("enable_webhook", &webhook, &[]),
        case("remove_webhook", &webhook, &[]),
        // These end a key and a sign-in, perhaps those of the test.
        case("revoke_key", "/keys", &[]),
        case("end_sign_in", "/sign-ins", &[]),
    ]
}

/// Things that only actions of this test need.
struct More {
    /// A session whose turn runs.
    running: Uuid,
    /// A campaign without tasks.
    spare: Uuid,
    webhook: Uuid,
    /// Facts about one user.
    facts: [Uuid; 2],
    /// The job of a waiting task.
    job: i64,
    /// A dead letter.
    dead: i64,
}

impl More {
    async fn of(scenery: &Scenery) -> Self {
        let world = &scenery.world;
        let new = tasks::New { instance: "other", ..world.ask("Part 12.") };
        let task = world.add_new(&new).await.unwrap().task;
        let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
        let new = tasks::New { instance: "third", ..world.ask("Part 13.") };
        let task = world.add_new(&new).await.unwrap().task;
        world.begin(&task, world.lease(), TurnSettings::default()).await;
        scenery.compact().await;
        let mut tx = world.pool.begin().await.unwrap();
        let paused = PausedCredential {
            name: "spare".to_owned(),
            until: noon() + TimeDelta::hours(1),
            why: "used up".to_owned(),
        };
        credentials::pause(&mut *tx, "claude", &paused).await.unwrap();
        tx.commit().await.unwrap();
        let path = "/v1/queues/turns/pause";
        scenery.send("POST", path, &json!({ "reason": "maintenance" })).await;
        let webhook = scenery
            .send("POST", "/v1/webhooks", &json!({ "url": "https://shop.example/hooks" }))
            .await;
        let webhook = id_of(&webhook);
        write_rows(scenery, webhook).await;
        let spare = scenery.send("POST", "/v1/campaigns", &json!({ "name": "Spare" })).await;
        let new = tasks::New { instance: "fourth", ..world.ask("Part 15: The fog horn.") };
        let job = world.add_new(&new).await.unwrap().task.job_id;
        Self {
            running: begun.session_id,
            spare: id_of(&spare),
            webhook,
            facts: [fact(scenery, "Home").await, fact(scenery, "Car").await],
            job,
            dead: DEAD,
        }
    }
}

const DEAD: i64 = 9_000_001;

fn id_of(made: &Value) -> Uuid {
    made["id"].as_str().unwrap().parse().unwrap()
}

async fn fact(scenery: &Scenery, attribute: &str) -> Uuid {
    let stated = json!({ "attribute": attribute, "text": format!("{attribute} is in Flensburg.") });
    id_of(&scenery.send("POST", "/v1/users/ann@example.org/facts", &stated).await)
}

/// Writes a dead letter and a delivery that has failed.
async fn write_rows(scenery: &Scenery, webhook: Uuid) {
    let dead = "insert into dalsegno.dead_jobs (id, enqueued_at, died_at, lease, priority, attempt, max_attempts, crash_count, queue, kind, reason, error, payload)
         values ($1, '2026-11-20 10:00+00', '2026-11-20 11:30+00', 1, 100, 20, 20, 0, 'upkeep', 'send_webhook', 'exhausted', 'timeout', '{}')";
    sqlx::query(dead).bind(DEAD).execute(&scenery.app.pool).await.unwrap();
    let counted = "insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) values ('upkeep', 'send_webhook', 'fail', 'new', 'dead', 1)";
    sqlx::query(counted).execute(&scenery.app.pool).await.unwrap();
    let delivery = "insert into dalsegno.webhook_deliveries (id, webhook_id, task_id, created_at, ended_at, attempts, last_status, kind, state, body)
         values (gen_random_uuid(), $1, $2, '2026-11-20 11:00+00', '2026-11-20 11:01+00', 12, 503, 'task.done', 'failed', '{}')";
    let delivery = sqlx::query(delivery).bind(webhook).bind(scenery.done);
    delivery.execute(&scenery.app.pool).await.unwrap();
}

fn spec(operation: &str) -> &'static Spec {
    let found = operations::ALL.iter().find(|entry| entry.spec.id == operation);
    &found.unwrap_or_else(|| panic!("no operation {operation}")).spec
}

/// The hidden fields of the form that runs an operation; `None` if the page has no such form.
fn form<'a>(page: &'a str, operation: &str) -> Option<Vec<(&'a str, String)>> {
    let (_, form) = page.split_once(&format!("action=\"/do/{operation}\""))?;
    let form = form.split("</form>").next()?;
    let value = |tag: &'a str, name: &str| -> Option<&'a str> {
        tag.split_once(&format!("{name}=\""))?.1.split('"').next()
    };
    let hidden = form.split("<input").skip(1).filter(|tag| tag.contains("type=\"hidden\""));
    Some(
        hidden
            .filter_map(|tag| {
                Some((value(tag, "name")?, value(tag, "value")?.replace("&amp;", "&")))
            })
            .collect(),
    )
}

fn encoded(fields: &[(&str, String)]) -> String {
    let text = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let pair = |(name, value): &(&str, String)| format!("{}={}", text(name), text(value));
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

impl Scenery {
    /// Sends a form of a page, with these fields in place of those of the same name.
    async fn send_form(&self, cookie: &str, operation: &str, fields: &[(&str, String)]) -> Reply {
        self.post_form(cookie, &format!("/do/{operation}"), fields).await
    }

    async fn post_form(&self, cookie: &str, path: &str, fields: &[(&str, String)]) -> Reply {
        let origin = format!("http://{}", self.app.address);
        let headers = [
            ("Cookie", cookie),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Origin", &origin),
            HTML,
        ];
        send(self.app.address, "POST", path, &headers, &encoded(fields)).await
    }
}

#[tokio::test]
async fn every_action_is_offered_and_run_with_its_scope_alone() {
    let scenery = Scenery::with(&KEYS).await;
    let more = More::of(&scenery).await;
    let app = &scenery.app;
    let (_, secret) = key(app, "ann", "read").await;
    let reader = sign_in(app, &secret).await;
    let admin = sign_in(app, ADMIN_KEY).await;
    let (_, secret) = key(app, "bob", "operate").await;
    let operator = sign_in(app, &secret).await;
    let cases = cases(&scenery, &more);
    let named: BTreeSet<String> = cases.iter().map(|case| case.operation.to_owned()).collect();
    assert_eq!(named, source::of_forms(), "each action has a case");
    for Case { operation, page, fields } in cases {
        let is_for_admins = spec(operation).scopes == [Scope::Admin];
        let caller = if is_for_admins { &admin } else { &operator };
        let offered = open(app, &page, caller).await;
        let hidden = form(&offered.body, operation);
        let hidden = hidden.unwrap_or_else(|| panic!("{page} does not offer {operation}"));
        let sent: Vec<_> = hidden.into_iter().chain(fields).collect();
        // Without the scope: the page has no form, and the request is refused.
        let seen = open(app, &page, &reader).await;
        assert!(form(&seen.body, operation).is_none(), "{page} offers {operation} to a reader");
        let token = form_token(&open(app, "/", &reader).await.body);
        let mut stolen = sent.clone();
        for (name, value) in &mut stolen {
            if *name == "form_token" {
                value.clone_from(&token);
            }
        }
        let refused = scenery.send_form(&reader, operation, &stolen).await;
        assert!(
            refused.status == 403 && refused.body.contains("missing_scope"),
            "{operation}: {refused:?}"
        );
        assert!(!spec(operation).scopes.is_empty(), "{operation} needs a scope");
        let done = scenery.send_form(caller, operation, &sent).await;
        // The turn was made without a worker, so its call cannot be made again.
        let expected: &[u16] =
            if operation == "rerun_turn" { &[303, 404, 409, 422] } else { &[303] };
        assert!(expected.contains(&done.status), "{operation}: {done:?}");
        if done.status == 303 {
            let cookies = format!("{caller}; done={operation}");
            let next = open(app, "/", &cookies).await;
            let named = format!("Done: {}", operation.split('_').next().unwrap());
            let is_said = next.body.contains("Done: ") && !next.body.contains(&named);
            assert!(is_said, "{operation}: {next:?}");
        }
    }
    let audit = scenery.get_json("/v1/audit?limit=200").await;
    let actions: BTreeSet<&str> =
        audit["items"].as_array().unwrap().iter().filter_map(|it| it["action"].as_str()).collect();
    for action in ["task.priority", "campaign.edit", "campaign.limit", "flow.retry"] {
        assert!(actions.contains(action), "{action} in {actions:?}");
    }
    let budget = scenery.get_json(&format!("/v1/campaigns/{}", scenery.world.campaign.id)).await;
    assert_eq!(budget["budget"]["limit"], json!({ "micros": 12_500_000, "tokens": null }));
    assert_eq!(budget["client_context"], Value::Null);
}

/// A form with a route of its own, because its answer is a page, or its fields need more than to be read.
struct OwnRoute {
    /// As the router names it.
    route: &'static str,
    path: String,
    fields: Vec<(&'static str, String)>,
    /// Of the answer to a caller with the scope.
    status: u16,
}

fn own_routes(scenery: &Scenery, webhook: Uuid, key: &str) -> Vec<OwnRoute> {
    let route = |route, path: String, status, fields: &[(&'static str, &str)]| OwnRoute {
        route,
        path,
        fields: fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        status,
    };
    let fixed =
        |path: &'static str, status, fields: &[_]| route(path, path.to_owned(), status, fields);
    let waiting = scenery.waiting.to_string();
    let campaign = scenery.world.campaign.id.to_string();
    let bulk = [
        ("action", "retry"),
        ("campaign_id", &*campaign),
        ("agent", "copywriter"),
        ("text", "no such words"),
        ("expected_count", "0"),
        ("reason", "late"),
    ];
    let children = [
        ("agent-1", "copywriter"),
        ("prompt-1", "Part one."),
        ("continuation", "Put them together."),
    ];
    let new = format!("/campaigns/{campaign}/tasks/new");
    vec![
        route(
            "/campaigns/{id}/tasks/new",
            new,
            200,
            &[("agent", "copywriter"), ("prompt", "Part 16.")],
        ),
        fixed(
            "/flows/start",
            200,
            &[("template", "reviewed-text"), ("id", &campaign), ("inputs.task", "Write.")],
        ),
        route("/tasks/{id}/children", format!("/tasks/{}/children", scenery.done), 303, &children),
        fixed(
            "/tasks/selected",
            303,
            &[("action", "cancel"), ("id", &waiting), ("back", "/tasks")],
        ),
        fixed("/work/bulk", 303, &bulk),
        fixed("/webhooks", 200, &[("url", "https://shop.example/second")]),
        route("/webhooks/{id}/rotate", format!("/webhooks/{webhook}/rotate"), 200, &[]),
        route(
            "/webhooks/{id}/replay",
            format!("/webhooks/{webhook}/replay"),
            303,
            &[("since", "")],
        ),
        fixed("/keys", 200, &[("name", "shop"), ("scopes", "enqueue")]),
        route("/keys/{id}/rotate", format!("/keys/{key}/rotate"), 200, &[]),
    ]
}

#[tokio::test]
async fn forms_with_a_route_of_their_own_run_with_their_scope_alone() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let webhook =
        scenery.send("POST", "/v1/webhooks", &json!({ "url": "https://shop.example/hooks" })).await;
    let (key_id, _) = key(app, "press", "read").await;
    let (_, secret) = key(app, "ann", "read").await;
    let reader = sign_in(app, &secret).await;
    let admin = sign_in(app, ADMIN_KEY).await;
    let cases = own_routes(&scenery, id_of(&webhook), &key_id);
    let routes = include_str!("../../../src/console/mod.rs").split(".route(").skip(1);
    let routes = routes.filter(|rest| rest.contains("post(") && !rest.contains("/do/"));
    let routes: BTreeSet<&str> = routes.filter_map(|rest| rest.split('"').nth(1)).collect();
    assert_eq!(routes, cases.iter().map(|case| case.route).collect(), "each route has a case");
    for OwnRoute { route, path, fields, status } in cases {
        for (cookie, has_scope) in [(&reader, false), (&admin, true)] {
            let token = form_token(&open(app, "/", cookie).await.body);
            let sent: Vec<_> = [("form_token", token)].into_iter().chain(fields.clone()).collect();
            let reply = scenery.post_form(cookie, &path, &sent).await;
            // An estimate is a read. The selection names what was refused, one by one.
            let refused = match route {
                "/campaigns/{id}/tasks/new" | "/flows/start" => reply.status == 200,
                "/tasks/selected" => reply.body.contains("missing_scope"),
                _ => reply.status == 403 && reply.body.contains("missing_scope"),
            };
            assert!(if has_scope { reply.status == status } else { refused }, "{path}: {reply:?}");
        }
    }
    assert_eq!(scenery.world.task(scenery.waiting).await.state.as_str(), "cancelled");
}
