//! Forms that other pages do not have: a task with its estimate, children, a schedule, memory, blackboard and facts.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{
    browser::Browser,
    scenery::{Scenery, USER},
    sign_in::{KEYS, form_token, open, post, sign_in},
    upkeep_scenery::UpkeepScenery,
};
use crate::http::{client::send, key_setup::ADMIN_KEY};

#[tokio::test]
async fn a_task_is_estimated_in_place_and_then_added() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    // The brief of the scenery does not fit into the window of the model.
    let campaign = scenery.make("/v1/campaigns", &json!({ "name": "Harbour" })).await;
    let path = format!("/campaigns/{}/tasks/new", campaign["id"].as_str().unwrap());
    browser.open(&scenery.url(&path)).await;
    browser.wait_until("window.htmx !== undefined").await;
    browser.write("#agent", "planner").await;
    browser.write("#prompt", "Plan the parts after the ninth.").await;
    browser.click("[formaction]").await;
    browser.wait_until("document.querySelector('#estimate table')").await;
    let shown = browser.text("#estimate").await;
    assert!(shown.contains("Nothing is sent") && shown.contains("begin a new one"), "{shown}");
    browser.save_picture("task-new-estimate").await;
    let kept = browser.run("return document.getElementById('prompt').value").await;
    assert_eq!(kept, "Plan the parts after the ninth.");
    // A task for an unknown agent is refused where the form is.
    browser.run("document.getElementById('agent').value = 'stranger'").await;
    browser.click("main form .primary").await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    browser.run("document.getElementById('agent').value = 'planner'").await;
    browser.click("main form .primary").await;
    browser.wait_until("location.pathname.match('^/tasks/[0-9a-f-]{36}$')").await;
    assert!(browser.text("main").await.contains("Plan the parts after the ninth."));
    assert!(browser.complaints().await.iter().all(|it| it.contains("404")), "only the refusal");
}

#[tokio::test]
async fn an_estimate_that_is_refused_stays_possible() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    // The brief of the scenery does not fit into the window of the model.
    let campaign = scenery.make("/v1/campaigns", &json!({ "name": "Harbour" })).await;
    let path = format!("/campaigns/{}/tasks/new", campaign["id"].as_str().unwrap());
    browser.open(&scenery.url(&path)).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    browser.write("#agent", "planner").await;
    browser.write("#prompt", "Plan the parts after the ninth.").await;
    // The page is older than the sign-in.
    let field = "document.querySelector('main form [name=form_token]')";
    let token = browser.run(&format!("return {field}.value")).await;
    browser.run(&format!("{field}.value = 'stale'")).await;
    browser.click("[formaction]").await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    assert!(browser.has("#estimate").await, "an answer has its place");
    // The error has brought the present token.
    browser.wait_until(&format!("{field}.value === {token}")).await;
    browser.click("[formaction]").await;
    browser.wait_until("document.querySelector('#estimate table')").await;
}

#[tokio::test]
async fn a_task_is_estimated_without_a_script() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.without_scripts(true).await;
    // The brief of the scenery does not fit into the window of the model.
    let campaign = scenery.make("/v1/campaigns", &json!({ "name": "Harbour" })).await;
    let path = format!("/campaigns/{}/tasks/new", campaign["id"].as_str().unwrap());
    browser.open(&scenery.url(&path)).await;
    browser.write("#agent", "planner").await;
    browser.write("#prompt", "Plan the parts.").await;
    browser.click("[formaction]").await;
    browser.text("#estimate table").await;
    assert!(browser.text("#prompt").await.contains("Plan the parts."), "the form keeps its text");
}

#[tokio::test]
async fn children_are_added_to_a_task_that_is_done() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.done))).await;
    browser.wait_until("window.htmx !== undefined").await;
    browser.run("document.getElementById('child-agent-1').closest('details').open = true").await;
    browser.write("#child-agent-1", "planner").await;
    browser.write("#child-prompt-1", "Part one.").await;
    browser.write("#continuation", "Put them together.").await;
    browser.write("#child-prompt-2", "Part two.").await;
    browser.click("form[action$='/children'] .actions button").await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    assert!(browser.text("#outcome").await.contains("Child 2 has no agent"));
    browser.write("#child-agent-2", "copywriter").await;
    browser.click("form[action$='/children'] .actions button").await;
    browser
        .wait_until(
            "[...document.querySelectorAll('h2')].some(it => it.textContent === 'Children')",
        )
        .await;
    let task = scenery.get_json(&format!("/v1/tasks/{}", scenery.done)).await;
    assert_eq!(task["children"].as_array().unwrap().len(), 2, "{task}");
}

#[tokio::test]
async fn a_schedule_is_changed_on_its_page() {
    let Some(browser) = Browser::start().await else { return };
    let furnished = UpkeepScenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&furnished.scenery.url("/schedules/weekly")).await;
    browser.run("document.getElementById('cron').value = '0 15 9 * * Tue'").await;
    browser.click("form[action='/do/put_schedule'] .primary").await;
    browser.wait_until("location.pathname === '/schedules'").await;
    let schedule = furnished.scenery.get_json("/v1/schedules/weekly").await;
    assert_eq!(schedule["cron"], "0 15 9 * * Tue", "{schedule}");
    assert!(schedule["payload"]["prompt"].as_str().unwrap().contains("Plan the week."));
    let unknown = send(
        furnished.scenery.app.address,
        "GET",
        "/schedules/none",
        &[("Accept", "text/html")],
        "",
    )
    .await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
}

#[tokio::test]
async fn bad_input_of_a_form_is_refused_with_the_field() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let campaign = format!("/campaigns/{}", scenery.world.campaign.id);
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("{campaign}?part=blackboard"))).await;
    browser.wait_until("window.htmx !== undefined").await;
    browser.run("document.getElementById('patch').closest('details').open = true").await;
    browser.write("#patch", "{parts: 9").await;
    browser.click("form[action='/do/patch_blackboard'] button").await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    let error = browser.text("#outcome").await;
    assert!(error.contains("is not valid JSON"), "{error}");
    for path in [
        format!("{campaign}?part=fidelity&cursor=wrong"),
        format!("{campaign}?part=facts&cursor=wrong"),
        format!("/users?name={USER}&fact=wrong"),
        "/cost/evals?cursor=wrong".to_owned(),
    ] {
        let reply = scenery.app.get(&path).await;
        assert_eq!(reply.status, 422, "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn the_memory_is_exported_in_the_form_of_the_import() {
    let scenery = Scenery::new().await;
    let campaign = format!("/campaigns/{}", scenery.world.campaign.id);
    let file = scenery.app.get(&format!("{campaign}/memory.json")).await;
    assert!(file.head.contains("attachment; filename=\"memory-"), "{file:?}");
    let items: Value = serde_json::from_str(&file.body).unwrap();
    assert_eq!(items[0]["name"], "tone", "{items}");
    let import = json!({ "items": items });
    let path = format!("/v1/campaigns/{}/memory/import", scenery.hostile_campaign);
    assert_eq!(scenery.send("POST", &path, &import).await["created"], 1);
}

/// A file of several reads is streamed: its length is not known when it begins.
#[tokio::test]
async fn a_long_memory_is_exported_in_parts() {
    let scenery = Scenery::new().await;
    let create = async |name: &str| {
        let made = scenery.send("POST", "/v1/campaigns", &json!({ "name": name })).await;
        made["id"].as_str().unwrap().to_owned()
    };
    let campaign = create("Long").await;
    let item = |n: usize| json!({ "kind": "record", "name": format!("note-{n}"), "title": "A note", "body": "Ropes are red." });
    let import = json!({ "items": (0..450).map(item).collect::<Vec<_>>() });
    let path = format!("/v1/campaigns/{campaign}/memory/import");
    assert_eq!(scenery.send("POST", &path, &import).await["created"], 450);
    let file = scenery.app.get(&format!("/campaigns/{campaign}/memory.json")).await;
    assert!(!file.head.contains("content-length"), "the file is built in memory: {}", file.head);
    let items: Vec<Value> = serde_json::from_str(&file.body).unwrap();
    let names: BTreeSet<&str> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!((items.len(), names.len()), (450, 450));
    let empty = create("Empty").await;
    let file = scenery.app.get(&format!("/campaigns/{empty}/memory.json")).await;
    assert_eq!(file.body, "[]\n");
    let absent = "/campaigns/00000000-0000-4000-8000-000000000000/memory.json";
    assert_eq!(scenery.app.get(absent).await.status, 404);
}

#[tokio::test]
async fn the_next_version_of_an_item_keeps_its_expiry() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let campaign = scenery.world.campaign.id.to_string();
    let item = json!({ "kind": "record", "name": "offer", "title": "The offer", "body": "Ten per cent.", "expires_at": "2027-03-01T09:30:00Z" });
    let stored = scenery.send("POST", &format!("/v1/campaigns/{campaign}/memory"), &item).await;
    let id = stored["id"].as_str().unwrap();
    let admin = sign_in(app, ADMIN_KEY).await;
    let here = format!("/campaigns/{campaign}?part=memory&item={id}");
    let page = open(app, &here, &admin).await.body;
    let expiry = page.split("name=\"time:expires_at\" value=\"").nth(1).unwrap();
    let expiry = expiry.split('"').next().unwrap().replace(':', "%3A");
    let token = form_token(&page);
    let fields = [
        ("form_token", token.as_str()),
        ("id", &campaign),
        ("kind", "record"),
        ("name", "offer"),
        ("title", "The offer"),
        ("body", "Twenty per cent."),
        ("number:expected_version", "1"),
        ("time:expires_at", &expiry),
    ];
    let reply = post(app, "/do/publish_memory", &admin, &fields, &[]).await;
    assert_eq!(reply.status, 303, "{reply:?}");
    let item = scenery.get_json(&format!("/v1/campaigns/{campaign}/memory/{id}")).await;
    assert_eq!(
        (&item["version"], &item["body"]),
        (&json!(2), &json!("Twenty per cent.")),
        "{item}"
    );
    let end: DateTime<Utc> = item["expires_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(end.to_rfc3339(), "2027-03-01T09:30:00+00:00", "{item}");
}

#[tokio::test]
async fn every_field_for_a_time_names_its_zone() {
    let scenery = Scenery::with(&[("scheduler.time_zone", "Asia/Tokyo")]).await;
    let webhook = json!({ "url": "https://shop.example/hooks" });
    let webhook = scenery.make("/v1/webhooks", &webhook).await;
    let webhook = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let pages = scenery.pages().into_iter().map(|(_, path)| path);
    let more =
        [format!("/users?name={USER}"), webhook, "/audit".to_owned(), "/work/bulk".to_owned()];
    let mut n_fields = 0;
    for path in pages.chain(more) {
        let page = scenery.page(&path).await;
        let pieces: Vec<&str> = page.split("type=\"datetime-local\"").collect();
        for before in &pieces[..pieces.len() - 1] {
            let label = before.rsplit("<label").next().unwrap();
            assert!(label.contains(", in Asia/Tokyo"), "{path}: {label}");
            n_fields += 1;
        }
    }
    assert!(n_fields > 6, "{n_fields}");
}

/// A copied command does the same as the form beside it.
#[tokio::test]
async fn commands_in_dialogs_follow_the_fields() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    let campaign = scenery.world.campaign.id;
    let command = "#confirm-pause [data-command]";
    browser.open(&scenery.url(&format!("/campaigns/{campaign}"))).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    browser.click("[popovertarget='confirm-pause']").await;
    assert_eq!(browser.text(command).await, format!("dalsegno campaign pause {campaign}"));
    browser.write("#pause-reason", "the client's holidays").await;
    let with_reason =
        format!(r"dalsegno campaign pause {campaign} --reason 'the client'\''s holidays'");
    assert_eq!(browser.text(command).await, with_reason);

    let limit = json!({ "owner": "day", "micros": 5_000_000 });
    scenery.send("PATCH", "/v1/budgets", &limit).await;
    browser.open(&scenery.url("/cost/budgets")).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    let script = |value: &str| {
        format!(
            "const ofDay = (it) => it.closest('form').querySelector('[data-command]').dataset.command.startsWith('dalsegno budget set day');
             const field = [...document.querySelectorAll('[data-flag=\"--money\"]')].find(ofDay);
             field.value = '{value}'; field.dispatchEvent(new Event('input', {{ bubbles: true }}));
             return field.closest('form').querySelector('[data-command]').textContent"
        )
    };
    let changed = browser.run(&script("7.50")).await;
    assert_eq!(changed, "dalsegno budget set day --money 7.50 --on-limit wait");
    let removed = browser.run(&script("")).await;
    assert_eq!(removed, "dalsegno budget set day --no-money --on-limit wait");
}
