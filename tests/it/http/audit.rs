//! Audit lines of all changing routes.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use dalsegno::domain::{
    agents::Catalogue,
    audit::{self, Action, Actor},
    budgets::{self, OwnerKind},
    flows, keys, sign_ins, webhooks,
};
use serde_json::{Value, json};

use super::{Fixture, key_setup::KeySetup, routes::registered};
use crate::{
    app::{noon, until_blocked},
    cli::compact,
    conversations::world::{TurnSettings, World, limits, shipped},
    schedules::put_nightly,
};

/// Method, route, path, body, and action of the audit line.
type Step = (&'static str, &'static str, String, Value, &'static str);

/// Starts a flow from a built-in template.
async fn flow(world: &World) -> uuid::Uuid {
    let config = flows::Config { folder: "nowhere".into() };
    let catalogue = Catalogue::load(&shipped()).unwrap();
    let templates = flows::Templates::load(&config, &catalogue).unwrap();
    let new = flows::New {
        campaign_id: world.campaign.id,
        template: templates.get("reviewed-text").unwrap(),
        inputs: &[("task".to_owned(), flows::InputValue::Text("Write.".to_owned()))].into(),
        added_by: None,
        parent_id: None,
    };
    let mut tx = world.pool.begin().await.unwrap();
    let flow = flows::start(&mut tx, &limits(), &catalogue, &new, noon()).await.unwrap();
    tx.commit().await.unwrap();
    flow.id
}

/// Publishes an item that can be revoked.
async fn revocable(world: &World) -> uuid::Uuid {
    let edict = crate::memory::new(dalsegno::domain::memory::Kind::Edict, "third", "Text.");
    crate::memory::publish(world, &edict, &crate::memory::OPERATOR).await.unwrap().item.id
}

/// Signs a browser in with the key of the configuration.
async fn sign_in(world: &World) -> uuid::Uuid {
    let key = sign_ins::ExchangedKey::Admin(keys::digest("the key of the configuration"));
    let new = sign_ins::New { key, peer: None, browser: None };
    let mut conn = world.pool.acquire().await.unwrap();
    sign_ins::create(&mut conn, &new, noon()).await.unwrap().0.id
}

/// States two facts.
async fn facts(world: &World) -> [uuid::Uuid; 2] {
    let city = crate::facts::state(&world.pool, "ann", ("City", "SECRET PROMPT in Bergen.")).await;
    let diet = crate::facts::state(&world.pool, "ann", ("Diet", "SECRET PROMPT, no meat.")).await;
    [city.unwrap().id, diet.unwrap().id]
}

/// Returns each changing route once, in an order in which each has an effect.
async fn steps(world: &World, key: &str) -> Vec<Step> {
    put_nightly(&world.pool, noon()).await;
    world.turn("Part one.", TurnSettings::default()).await;
    let session = world.turn("Part two.", TurnSettings::default()).await.session.id;
    compact(&world.pool, session).await;
    let running = world.add("Part three.").await;
    world.begin(&running, world.lease(), TurnSettings::default()).await;
    world.keep_sessions().await;
    let instance = dalsegno::domain::tasks::New { instance: "second", ..world.ask("Part four.") };
    let waiting = world.add_new(&instance).await.unwrap().task.id;
    let campaign = world.campaign.id;
    let recurring = json!({
        "cron": "0 0 8 * * *",
        "task": { "campaign_id": campaign, "agent": "copywriter", "prompt": "SECRET PROMPT" },
    });
    let why = json!({ "reason": "moving" });
    let session = |verb: &str| format!("/v1/sessions/{session}/{verb}");
    let task = |verb: &str| format!("/v1/tasks/{waiting}/{verb}");
    let schedule = |verb: &str| format!("/v1/schedules/cleanup/{verb}");
    let change = format!("/v1/campaigns/{campaign}");
    let rest = "insert into dalsegno.paused_credentials (provider, credential, until, why)
                values ('claude', 'main', now() + interval '1000 years', 'it is used up')";
    sqlx::query(rest).execute(&world.pool).await.unwrap();
    let third = dalsegno::domain::tasks::New { instance: "third", ..world.ask("Part five.") };
    let job_id = world.add_new(&third).await.unwrap().task.job_id;
    let job = |verb: &str| format!("/v1/jobs/{job_id}/{verb}");
    let lane = |verb: &str| format!("/v1/lanes/{campaign}%2Fcopywriter%2Fthird/{verb}");
    let bulk = json!({ "action": "cancel", "filter": { "agent": "stranger" } });
    let webhook = webhook(world).await;
    let hook = |verb: &str| format!("/v1/webhooks/{}/{verb}", webhook.0);
    let resend = format!("/v1/webhook-deliveries/{}/replay", webhook.1);
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    let url = json!({ "url": "https://example.com/" });
    let new = json!({ "name": "Spring", "brief": "SECRET PROMPT" });
    let brief = json!({ "brief": "SECRET PROMPT" });
    let limit = json!({ "tokens": 9000 });
    let started = json!({ "template": "reviewed-text", "inputs": { "task": "SECRET PROMPT" } });
    let flow_id = flow(world).await;
    let flow = |verb: &str| format!("/v1/flows/{flow_id}/{verb}");
    let board = format!("{change}/blackboard");
    let document = json!({ "document": { "plan": "SECRET PROMPT" }, "expected_version": 0 });
    let patch = json!({ "patch": { "plan": null } });
    let agents = format!("{change}/agents");
    let agent = |verb: &str| format!("{agents}/planner/{verb}");
    let anywhere = |verb: &str| format!("/v1/agents/planner/{verb}");
    let memory = format!("{change}/memory");
    let item = |name: &str| json!({ "kind": "edict", "name": name, "title": "SECRET PROMPT", "body": "SECRET PROMPT" });
    let imported = json!({ "items": [item("second")] });
    let revoked = revocable(world).await;
    let user = json!({ "user": "ann" });
    let eval_run = json!({ "eval": "captions", "run": "abc", "began_at": "2026-11-20T09:00:00Z", "unfinished": 0, "judge_micros": 0,
                           "variants": [], "answers": [] });
    let stated = json!({ "attribute": "Tone", "text": "SECRET PROMPT" });
    let edited = json!({ "text": "SECRET PROMPT, but shorter" });
    let known = facts(world).await;
    let sign_in = sign_in(world).await;
    let fact =
        |verb: &str| format!("/v1/users/ann/facts/{}/{verb}", known[usize::from(verb == "revoke")]);
    let (posts, post) = (format!("{change}/posts"), json!({ "text": "SECRET PROMPT" }));
    vec![
        ("POST", "/v1/campaigns/{id}/flows", format!("{change}/flows"), started, "flow.start"),
        ("POST", "/v1/flows/{id}/pause", flow("pause"), json!({}), "flow.pause"),
        ("POST", "/v1/flows/{id}/resume", flow("resume"), json!({}), "flow.resume"),
        ("POST", "/v1/flows/{id}/retry", flow("retry"), json!({ "from": "write" }), "flow.retry"),
        ("POST", "/v1/flows/{id}/cancel", flow("cancel"), why.clone(), "flow.cancel"),
        ("POST", "/v1/campaigns", "/v1/campaigns".into(), new, "campaign.create"),
        ("PATCH", "/v1/campaigns/{id}", change.clone(), brief, "campaign.edit"),
        ("PATCH", "/v1/campaigns/{id}/budget", format!("{change}/budget"), limit, "campaign.limit"),
        (
            "PATCH",
            "/v1/budgets",
            "/v1/budgets".into(),
            json!({ "owner": "agent", "key": "copywriter", "tokens": 9000 }),
            "budget.set",
        ),
        ("POST", "/v1/campaigns/{id}/memory", memory.clone(), item("first"), "memory.publish"),
        (
            "POST",
            "/v1/campaigns/{id}/memory/import",
            format!("{memory}/import"),
            imported,
            "memory.import",
        ),
        (
            "POST",
            "/v1/campaigns/{id}/memory/{item}/revoke",
            format!("{memory}/{revoked}/revoke"),
            json!({}),
            "memory.revoke",
        ),
        ("PUT", "/v1/campaigns/{id}/user", format!("{change}/user"), user, "campaign.user"),
        ("POST", "/v1/campaigns/{id}/evals", format!("{change}/evals"), eval_run, "eval.record"),
        ("POST", "/v1/users/{name}/facts", "/v1/users/ann/facts".into(), stated, "fact.state"),
        ("POST", "/v1/users/{name}/facts/{fact}/edit", fact("edit"), edited, "fact.edit"),
        ("POST", "/v1/users/{name}/facts/{fact}/revoke", fact("revoke"), json!({}), "fact.revoke"),
        (
            "POST",
            "/v1/users/{name}/forget",
            "/v1/users/ann/forget".into(),
            json!({}),
            "user.forget",
        ),
        ("PUT", "/v1/campaigns/{id}/blackboard", board.clone(), document, "blackboard.set"),
        ("PATCH", "/v1/campaigns/{id}/blackboard", board, patch, "blackboard.patch"),
        (
            "POST",
            "/v1/campaigns/{id}/agents/{name}/pause",
            agent("pause"),
            why.clone(),
            "agent.pause",
        ),
        (
            "POST",
            "/v1/campaigns/{id}/agents/{name}/resume",
            agent("resume"),
            json!({}),
            "agent.resume",
        ),
        ("POST", "/v1/agents/{name}/pause", anywhere("pause"), why.clone(), "agent.pause"),
        ("POST", "/v1/agents/{name}/resume", anywhere("resume"), json!({}), "agent.resume"),
        (
            "POST",
            "/v1/campaigns/{id}/agents/{name}/reset",
            agent("reset"),
            json!({}),
            "agent.reset",
        ),
        (
            "POST",
            "/v1/campaigns/{id}/agents/{name}/interrupt",
            agent("interrupt"),
            why.clone(),
            "agent.interrupt",
        ),
        ("POST", "/v1/campaigns/{id}/posts", posts, post, "campaign.post"),
        ("PUT", "/v1/schedules/{name}", "/v1/schedules/news".into(), recurring, "schedule.put"),
        (
            "DELETE",
            "/v1/schedules/{name}",
            "/v1/schedules/news".into(),
            json!({}),
            "schedule.remove",
        ),
        ("POST", "/v1/schedules/{name}/run", schedule("run"), json!({}), "schedule.run"),
        ("POST", "/v1/schedules/{name}/pause", schedule("pause"), why.clone(), "schedule.pause"),
        ("POST", "/v1/schedules/{name}/resume", schedule("resume"), json!({}), "schedule.resume"),
        (
            "POST",
            "/v1/sessions/{id}/interrupt",
            session("interrupt"),
            why.clone(),
            "session.interrupt",
        ),
        (
            "POST",
            "/v1/sessions/{id}/uncompact",
            session("uncompact"),
            json!({}),
            "session.uncompact",
        ),
        (
            "POST",
            "/v1/credentials/{name}/resume",
            "/v1/credentials/main/resume".into(),
            json!({}),
            "credential.resume",
        ),
        ("POST", "/v1/cleanup/run", "/v1/cleanup/run".into(), json!({}), "cleanup.run"),
        ("POST", "/v1/sessions/{id}/compact", session("compact"), json!({}), "session.compact"),
        ("POST", "/v1/sessions/{id}/reset", session("reset"), json!({}), "session.reset"),
        ("POST", "/v1/sessions/{id}/forks", session("forks"), json!({ "turn": 1 }), "session.fork"),
        (
            "POST",
            "/v1/campaigns/{id}/agents/reset",
            format!("{agents}/reset"),
            json!({ "fresh": true }),
            "agent.reset",
        ),
        ("POST", "/v1/bulk-actions", "/v1/bulk-actions".into(), bulk, "bulk_action.create"),
        (
            "POST",
            "/v1/queues/{name}/pause",
            "/v1/queues/turns/pause".into(),
            why.clone(),
            "queue.pause",
        ),
        (
            "POST",
            "/v1/queues/{name}/resume",
            "/v1/queues/turns/resume".into(),
            json!({}),
            "queue.resume",
        ),
        (
            "POST",
            "/v1/groups/{name}/pause",
            "/v1/groups/some/pause".into(),
            why.clone(),
            "group.pause",
        ),
        (
            "POST",
            "/v1/groups/{name}/resume",
            "/v1/groups/some/resume".into(),
            json!({}),
            "group.resume",
        ),
        ("POST", "/v1/lanes/{name}/hold", lane("hold"), why.clone(), "lane.hold"),
        ("POST", "/v1/lanes/{name}/release", lane("release"), json!({}), "lane.release"),
        ("POST", "/v1/jobs/{id}/hold", job("hold"), why.clone(), "job.hold"),
        ("POST", "/v1/jobs/{id}/release", job("release"), json!({}), "job.release"),
        ("POST", "/v1/jobs/{id}/retry", job("retry"), json!({}), "job.retry"),
        ("POST", "/v1/jobs/{id}/cancel", job("cancel"), why.clone(), "job.cancel"),
        ("POST", "/v1/tasks/{id}/cancel", task("cancel"), why.clone(), "task.cancel"),
        ("POST", "/v1/tasks/{id}/retry", task("retry"), json!({}), "task.retry"),
        (
            "PATCH",
            "/v1/tasks/{id}/priority",
            task("priority"),
            json!({ "priority": 7 }),
            "task.priority",
        ),
        ("PATCH", "/v1/tasks/{id}/budget", task("budget"), json!({ "tokens": 9000 }), "task.limit"),
        ("POST", "/v1/webhooks", "/v1/webhooks".into(), url, "webhook.add"),
        ("POST", "/v1/webhooks/{id}/rotate", hook("rotate"), json!({}), "webhook.rotate"),
        ("POST", "/v1/webhooks/{id}/test", hook("test"), json!({}), "webhook.test"),
        ("POST", "/v1/webhooks/{id}/replay", hook("replay"), since, "webhook.replay"),
        ("POST", "/v1/webhook-deliveries/{id}/replay", resend, json!({}), "webhook.replay"),
        ("POST", "/v1/webhooks/{id}/disable", hook("disable"), why.clone(), "webhook.disable"),
        ("POST", "/v1/webhooks/{id}/enable", hook("enable"), json!({}), "webhook.enable"),
        (
            "DELETE",
            "/v1/webhooks/{id}",
            hook("").trim_end_matches('/').into(),
            json!({}),
            "webhook.remove",
        ),
        (
            "POST",
            "/v1/keys",
            "/v1/keys".into(),
            json!({ "name": "x", "scopes": ["read"] }),
            "key.create",
        ),
        ("POST", "/v1/keys/{id}/rotate", format!("/v1/keys/{key}/rotate"), json!({}), "key.rotate"),
        ("POST", "/v1/keys/{id}/revoke", format!("/v1/keys/{key}/revoke"), json!({}), "key.revoke"),
        (
            "POST",
            "/v1/sign-ins/{id}/end",
            format!("/v1/sign-ins/{sign_in}/end"),
            json!({}),
            "sign_in.end",
        ),
        (
            "POST",
            "/v1/campaigns/{id}/pause",
            format!("{change}/pause"),
            why.clone(),
            "campaign.pause",
        ),
        (
            "POST",
            "/v1/campaigns/{id}/resume",
            format!("{change}/resume"),
            json!({}),
            "campaign.resume",
        ),
        (
            "POST",
            "/v1/campaigns/{id}/close",
            format!("{change}/close"),
            json!({}),
            "campaign.close",
        ),
        (
            "POST",
            "/v1/campaigns/{id}/erasure",
            format!("{change}/erasure"),
            json!({}),
            "campaign.erase",
        ),
    ]
}

/// Adds a webhook with a delivery.
async fn webhook(world: &World) -> (uuid::Uuid, uuid::Uuid) {
    let mut conn = world.pool.acquire().await.unwrap();
    let config = webhooks::Config {
        allow_private: false,
        timeout_secs: 15,
        disable_after_days: 5,
        keep_days: 30,
    };
    let new = webhooks::New { url: "https://example.com/hooks", ..webhooks::New::default() };
    let added = webhooks::add(&mut conn, &config, &new, noon()).await.unwrap();
    let id = added.webhook.id;
    (id, webhooks::send_test(&mut conn, id, noon()).await.unwrap().id)
}

async fn lines(fixture: &Fixture) -> Vec<audit::Entry> {
    let filter = audit::Filter { limit: 1000, ..audit::Filter::default() };
    let mut conn = fixture.app.pool.acquire().await.unwrap();
    audit::search(&mut conn, filter).await.unwrap().entries
}

#[tokio::test]
async fn every_changing_route_writes_an_audit_line() {
    let setup = KeySetup::new().await;
    let fixture = &setup.fixture;
    let (boss, text) = setup.create_key("boss", &["admin"]).await;
    let (other, _) = setup.create_key("other", &["read"]).await;
    let steps = steps(&fixture.world, other["id"].as_str().unwrap()).await;
    let mut walked = BTreeSet::from([
        // The task itself names its caller.
        ("POST", "/v1/campaigns/{id}/tasks".to_owned()),
        ("POST", "/v1/campaigns/{id}/tasks/bulk".to_owned()),
        ("POST", "/v1/tasks/{id}/children".to_owned()),
        // It needs a stored context: tests/it/turns/reruns.rs checks its line.
        ("POST", "/v1/sessions/{id}/turns/{number}/reruns".to_owned()),
        // A preview changes nothing.
        ("POST", "/v1/bulk-actions/preview".to_owned()),
        ("POST", "/v1/campaigns/{id}/context/preview".to_owned()),
        ("POST", "/v1/campaigns/{id}/estimate".to_owned()),
        ("POST", "/v1/campaigns/{id}/flows/estimate".to_owned()),
        ("POST", "/v1/sessions/{id}/estimate".to_owned()),
    ]);
    for (method, template, path, body, action) in steps {
        let before = lines(fixture).await;
        let reply = setup.ask(Some(&text), method, &path, &body).await;
        assert!((200..300).contains(&reply.status), "{method} {path}: {reply:?}");
        let after = lines(fixture).await;
        assert_eq!(after.len(), before.len() + 1, "{method} {path}");
        let line = &after[0];
        assert_eq!((line.action.as_str(), line.actor_kind.as_str()), (action, "key"));
        assert_eq!((line.actor.as_str(), line.peer.as_deref()), ("boss", Some("127.0.0.1")));
        assert_eq!(json!(line.actor_id), boss["id"]);
        assert_eq!(line.subject_kind, action.split('.').next().unwrap());
        assert!(!line.subject.is_empty() && line.at == noon(), "{line:?}");
        if body == json!({ "reason": "moving" }) {
            assert_eq!(line.data["reason"], "moving", "{line:?}");
        }
        walked.insert((method, template.to_owned()));
    }
    // The tool is in the body: tests/it/tools checks the lines of all tools.
    let is_checked =
        |(method, path): &(&str, String)| *method != "GET" && path.as_str() != "/mcp/{id}";
    let changing: BTreeSet<_> =
        registered(&fixture.app.router).into_iter().filter(is_checked).collect();
    let forgotten: Vec<_> = changing.difference(&walked).collect();
    assert!(forgotten.is_empty(), "routes without a step in this test: {forgotten:?}");
    let log = format!("{:?}", lines(fixture).await);
    assert!(!log.contains("SECRET PROMPT") && !log.contains(&text[18..]), "{log}");
}

#[tokio::test]
async fn a_line_about_the_limits_of_a_task_names_all_of_them_and_those_before() {
    let setup = KeySetup::new().await;
    let (_, text) = setup.create_key("boss", &["admin"]).await;
    let fixture = &setup.fixture;
    let task = fixture.world.add_new(&fixture.world.ask("Part four.")).await.unwrap().task;
    let path = format!("/v1/tasks/{}/budget", task.id);
    for change in [json!({ "tokens": 900, "soft_tokens": 700 }), json!({ "soft_tokens": 800 })] {
        let reply = setup.ask(Some(&text), "PATCH", &path, &change).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let limits = |soft: i64| json!({ "micros": null, "tokens": 900, "soft": { "micros": null, "tokens": soft } });
    let mut expected = limits(800);
    expected["before"] = limits(700);
    assert_eq!(lines(fixture).await[0].data, expected);
}

/// The budget has no row that could be locked.
#[tokio::test]
async fn the_first_limits_of_a_budget_that_are_set_at_once_are_one_after_the_other_in_the_log() {
    let fixture = Fixture::new().await;
    let mut first = fixture.app.pool.begin().await.unwrap();
    budgets::hold(&mut first, OwnerKind::Day, "").await.unwrap();
    let change = budgets::Change { tokens: Some(Some(700)), ..Default::default() };
    budgets::change(&mut first, (OwnerKind::Day, ""), change, "UTC", noon()).await.unwrap();
    let ends = async {
        until_blocked(&fixture.app.pool).await;
        first.commit().await.unwrap();
    };
    let second = json!({ "owner": "day", "tokens": 900 });
    let (reply, ()) = tokio::join!(fixture.patch("/v1/budgets", &second), ends);
    assert_eq!(reply.expect(200)["limit"]["tokens"], 900);
    assert_eq!(lines(&fixture).await[0].data["before"]["limit"]["tokens"], 700);
}

#[tokio::test]
async fn a_refused_change_writes_no_audit_line() {
    let fixture = Fixture::new().await;
    let path = format!("/v1/campaigns/{}/budget", fixture.world.campaign.id);
    let reply = fixture.patch(&path, &json!({ "micros": 1, "tokens": 0 })).await;
    assert!((400..500).contains(&reply.status), "{reply:?}");
    fixture.patch(&path, &json!({})).await.expect(200);
    let unknown = "/v1/tasks/00000000-0000-0000-0000-000000000000/cancel";
    fixture.post(unknown, &json!({})).await.problem(404, "unknown_task");
    assert_eq!(lines(&fixture).await, []);
}

#[tokio::test]
async fn a_task_names_its_author() {
    let setup = KeySetup::new().await;
    let (made, text) = setup.create_key("ci", &["enqueue"]).await;
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." });
    let path = setup.fixture.tasks();
    let added = setup.ask(Some(&text), "POST", &path, &ask).await.expect(201);
    let path = format!("/v1/tasks/{}", added["id"].as_str().unwrap());
    let shown = setup.get(&text, &path).await.expect(200);
    assert_eq!(shown["added_by"], format!("key:ci:{}", made["handle"].as_str().unwrap()));
    let of_tasks = audit::Filter { action: Some("task"), limit: 10, ..Default::default() };
    let mut conn = setup.fixture.app.pool.acquire().await.unwrap();
    assert_eq!(audit::search(&mut conn, of_tasks).await.unwrap().entries, []);
}

#[tokio::test]
async fn the_audit_log_is_filtered_and_paged() {
    let setup = KeySetup::new().await;
    let pool = &setup.fixture.app.pool;
    let cli = Actor::cli("ann", "host");
    for n in 0..5 {
        let at = noon() - TimeDelta::hours(n);
        let data = json!({ "n": n });
        audit::write(pool, &cli, Action::LaneHold, format!("lane-{n}"), data, at).await.unwrap();
    }
    let one = Actor::anonymous("10.1.2.3".parse().ok());
    audit::write(pool, &one, Action::TaskRetry, "t", json!({}), noon()).await.unwrap();
    let get = async |query: &str| {
        let path = format!("/v1/audit?{query}");
        let page = setup.admin("GET", &path, &Value::Null).await.expect(200);
        let subject = |line: &Value| line["subject"].as_str().unwrap().to_owned();
        let items: Vec<String> = page["items"].as_array().unwrap().iter().map(subject).collect();
        (items, page["next"].clone())
    };
    assert_eq!(get("actor=ann@host&limit=200").await.0.len(), 5);
    assert_eq!(get("actor=anonymous").await.0, ["t"]);
    assert_eq!(get("action=task").await.0, ["t"]);
    assert_eq!(get("action=lane.hold&subject=lane-3").await.0, ["lane-3"]);
    let after = "created_after=2026-11-20T11:00:00Z&action=lane";
    assert_eq!(get(after).await.0, ["lane-1", "lane-0"]);
    let before = "created_before=2026-11-20T09:00:00Z&action=lane";
    assert_eq!(get(before).await.0, ["lane-4"]);
    let (first, next) = get("action=lane&limit=2").await;
    assert_eq!(first, ["lane-4", "lane-3"]);
    let rest = get(&format!("action=lane&limit=3&cursor={}", next.as_str().unwrap())).await;
    assert_eq!(rest, (vec!["lane-2".into(), "lane-1".into(), "lane-0".into()], Value::Null));
    let wrong = setup.admin("GET", "/v1/audit?created_after=yesterday", &Value::Null).await;
    wrong.problem(400, "bad_query");
}

#[tokio::test]
async fn the_audit_log_is_immutable_and_only_retention_deletes_from_it() {
    let fixture = Fixture::new().await;
    let (pool, cli) = (&fixture.app.pool, Actor::cli("ann", "host"));
    let reason = "long ".repeat(1_000);
    for (subject, days) in [("old", 366), ("older", 400), ("new", 364)] {
        let (at, data) = (noon() - TimeDelta::days(days), json!({ "reason": reason }));
        audit::write(pool, &cli, Action::LaneHold, subject, data, at).await.unwrap();
    }
    for statement in [
        "update dalsegno.audit set actor = 'x'",
        "delete from dalsegno.audit",
        "truncate dalsegno.audit",
    ] {
        let error = sqlx::query(statement).execute(pool).await.unwrap_err();
        assert_eq!(error.as_database_error().unwrap().code().unwrap(), "DS405", "{statement}");
    }
    let moment = noon() - TimeDelta::days(365);
    for left in [1, 1, 0] {
        assert_eq!(audit::remove_before(pool, moment, 1).await.unwrap(), left);
    }
    let kept = lines(&fixture).await;
    assert_eq!((kept.len(), kept[0].subject.as_str()), (1, "new"));
    assert!(kept[0].data["reason"].as_str().unwrap().len() < 320, "{kept:?}");
}
