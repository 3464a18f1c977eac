//! The pages of the installation in Chromium and over HTTP: widths, themes, hostile texts, secrets, scopes.

use serde_json::{Value, json};

use super::{
    browser::Browser,
    inspection::Inspection,
    sign_in::{HTML, KEYS, form_token, key, open, post, sign_in},
    upkeep_scenery::UpkeepScenery,
};
use crate::{app::TestApp, app::TestDatabase, http::client::send};

/// Pages that a key with `read` may open, and those that need more.
const READ: [&str; 7] =
    ["/work", "/work/jobs", "/work/lanes", "/work/bulk", "/schedules", "/cleanup", "/erasures"];
const OPERATE: [&str; 1] = ["/webhooks"];
const ADMIN: [&str; 4] = ["/keys", "/audit", "/doctor", "/installation"];

#[tokio::test]
async fn every_page_with_rows_is_clean_and_accessible_in_both_themes_and_widths() {
    let Some(mut inspection) = Inspection::start().await else { return };
    let furnished = UpkeepScenery::new().await;
    for (name, path) in furnished.pages() {
        inspection.visit(name, &furnished.scenery.url(&path)).await;
    }
    inspection.finish();
}

#[tokio::test]
async fn pages_and_actions_need_their_scopes() {
    let app = TestApp::start_with(TestDatabase::migrated().await, &KEYS).await;
    let mut cookies = Vec::new();
    for scope in ["read", "operate", "admin"] {
        let (_, secret) = key(&app, scope, scope).await;
        cookies.push(sign_in(&app, &secret).await);
    }
    let [read, operate, admin] = &cookies[..] else { panic!("three keys") };
    for path in READ {
        let page = open(&app, path, read).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(!page.body.contains("/do/"), "{path} offers an action to a key that may only read");
    }
    for path in OPERATE {
        assert_eq!(open(&app, path, read).await.status, 403, "{path}");
        assert_eq!(open(&app, path, operate).await.status, 200, "{path}");
    }
    for path in ADMIN {
        assert_eq!(open(&app, path, operate).await.status, 403, "{path}");
        assert_eq!(open(&app, path, admin).await.status, 200, "{path}");
    }
    assert!(open(&app, "/cleanup", operate).await.body.contains("/do/run_cleanup"));
    let page = open(&app, "/keys", admin).await;
    let fields = [
        ("form_token", form_token(&page.body)),
        ("name", "shop".into()),
        ("scopes", "enqueue".into()),
    ];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(post(&app, "/keys", admin, &fields, &[]).await.status, 200);
    // A name in the place of an id must not give a key, a webhook or an action that reaches all campaigns.
    let token = fields[0];
    for (path, more) in [
        ("/keys", [("name", "wide"), ("scopes", "read"), ("campaigns", "Harbour")]),
        ("/keys", [("name", "wide"), ("scopes", "read"), ("days", "ninety")]),
        (
            "/webhooks",
            [("url", "https://shop.example/x"), ("kinds", ""), ("campaign_id", "Harbour")],
        ),
        ("/work/bulk", [("action", "cancel"), ("expected_count", "0"), ("campaign_id", "Harbour")]),
        ("/work/bulk", [("action", "cancel"), ("expected_count", "0"), ("after", "yesterday")]),
    ] {
        let form = [&[token][..], &more].concat();
        let refused = post(&app, path, admin, &form, &[]).await;
        assert!(refused.status == 422 && refused.body.contains("bad_field"), "{refused:?}");
    }
    let back = [("Referer", "http://127.0.0.1/keys?cursor=")];
    let form = [token, ("name", "wide"), ("campaigns", "Harbour")];
    let refused = post(&app, "/keys", admin, &form, &back).await;
    assert!(refused.body.contains("href=\"/keys?cursor=\">Back"), "{refused:?}");
    let keys = "select count(*) from dalsegno.api_keys where name = 'wide'";
    let keys: i64 = sqlx::query_scalar(keys).fetch_one(&app.pool).await.unwrap();
    assert_eq!(keys, 0);
    let token = form_token(&open(&app, "/work", operate).await.body);
    let refused = post(
        &app,
        "/keys",
        operate,
        &[("form_token", &token), ("name", "mine"), ("scopes", "admin")],
        &[],
    )
    .await;
    assert_eq!(refused.status, 403, "{refused:?}");
}

/// With a script, an error stands above the form, which stays as it is.
#[tokio::test]
async fn every_form_of_the_installation_is_sent_by_the_script() {
    let furnished = UpkeepScenery::new().await;
    let mut n_forms = 0;
    for (name, path) in furnished.pages() {
        let page = furnished.scenery.page(&path).await;
        for form in page.split("<form").skip(1).filter_map(|rest| rest.split('>').next()) {
            let is_own = form.contains("method=\"post\"") && !form.contains("/sign-");
            assert!(!is_own || form.contains(" hx-post=\""), "{name}: {form}");
            n_forms += usize::from(is_own);
        }
    }
    assert!(n_forms > 10, "{n_forms}");
}

#[tokio::test]
async fn a_new_key_is_shown_once() {
    let Some(browser) = Browser::start().await else { return };
    let furnished = UpkeepScenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&furnished.scenery.url("/keys")).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    browser.write("#name", "press").await;
    // A form that is refused keeps what is written.
    browser.click("main aside .primary").await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    assert_eq!(browser.run("return document.getElementById('name').value").await, "press");
    browser.complaints().await;
    browser.click("input[value=read]").await;
    browser.click("main aside .primary").await;
    browser.wait_until("document.querySelector('#secret')").await;
    assert_eq!(browser.text(".copy button").await, "Copy");
    let secret = browser.text("#secret").await;
    assert!(secret.starts_with("dals_"), "{secret}");
    browser.save_picture("key-secret").await;
    browser.click("main .primary").await;
    browser.wait_until("document.querySelector('main table')").await;
    let list = browser.text("main").await;
    assert!(list.contains("press") && !list.contains(&secret), "{list}");
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn the_installation_names_settings_with_their_origin_and_no_secret() {
    let secret = "an-admin-key-of-the-test-000000000000";
    let set = [("http.admin_key", secret), ("http.request_timeout_secs", "31")];
    let app = TestApp::start_with(TestDatabase::migrated().await, &set).await;
    let installation = app.get("/v1/installation").await.body;
    assert!(!installation.contains(secret), "{installation}");
    let installation: Value = serde_json::from_str(&installation).unwrap();
    let settings = installation["settings"].as_array().unwrap();
    let timeout = settings.iter().find(|it| it["key"] == "http.request_timeout_secs").unwrap();
    assert_eq!(timeout["value"], 31, "{timeout}");
    assert_ne!(timeout["origin"], "default", "{timeout}");
    let n_own = settings.iter().filter(|setting| setting["is_default"] == false).count();
    assert!(n_own > 0 && n_own < settings.len() / 2, "{n_own} of {}", settings.len());
    let page = app.get("/installation").await.body;
    assert!(page.contains(&format!("{n_own} of {} are not defaults", settings.len())), "{page}");
    assert!(installation["tables"].as_array().unwrap().len() > 20, "{installation}");
    assert_eq!(installation["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn the_installation_shows_how_its_tables_have_grown() {
    let app = TestApp::start().await;
    let page = async || send(app.address, "GET", "/installation", &[HTML], "").await.body;
    let before = page().await;
    assert!(before.contains("It has not run yet"), "{before}");
    for part in [" of the database", "not known to Postgres", "Growth in rows"] {
        assert!(before.contains(part), "{part} in {before}");
    }
    let sizes = "insert into dalsegno.table_sizes (table_name, day, bytes)
         values ('messages', '2026-11-18', 1000000), ('messages', '2026-11-19', 3500000), ('tasks', '2026-11-19', 500000)";
    sqlx::query(sizes).execute(&app.pool).await.unwrap();
    let grown = page().await;
    for part in ["Size of messages by day", "Sizes by day"] {
        assert!(grown.contains(part), "{part} in {grown}");
    }
    // From the first stored day to now, not to the last stored day.
    let installation: Value =
        serde_json::from_str(&app.get("/v1/installation").await.body).unwrap();
    let tables = installation["tables"].as_array().unwrap();
    let now: i64 = tables.iter().map(|table| table["bytes"].as_i64().unwrap()).sum();
    let (before, _) = grown.split_once(" MB more than on 18 November").unwrap();
    let shown: f64 = before.rsplit('>').next().unwrap().parse().unwrap();
    let expected = (now - 1_000_000) as f64 / 1e6;
    assert!((shown - expected).abs() < 0.2, "{shown} for {expected}");
    assert!(!grown.contains("Size of tasks by day"), "one day is no growth: {grown}");
}

#[tokio::test]
async fn the_doctor_answers_over_http_with_its_findings() {
    let app = TestApp::start().await;
    let findings = app.get("/v1/doctor").await.body;
    let findings: Value = serde_json::from_str(&findings).unwrap();
    let checks: Vec<_> = findings["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["check"].as_str().unwrap())
        .collect();
    assert!(checks.contains(&"config") && checks.contains(&"agents"), "{checks:?}");
}

#[tokio::test]
async fn a_delivery_is_sent_again_or_before_its_next_attempt() {
    let furnished = UpkeepScenery::new().await;
    let scenery = &furnished.scenery;
    let path = format!("/webhooks/{}", furnished.webhook);
    let page = scenery.page(&path).await;
    let count = |page: &str, words: &str| page.matches(&format!("{words}</button>")).count();
    // Three deliveries, and the form for all that failed.
    assert_eq!((count(&page, "Send now"), count(&page, "Replay")), (1, 4), "{page}");
    assert!(page.contains("next attempt "), "{page}");
    let due = "update dalsegno.webhook_deliveries set next_at = null where state = 'waiting'";
    sqlx::query(due).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&path).await;
    assert!(count(&page, "Send now") == 0 && page.contains("why it waits"), "{page}");
}

#[tokio::test]
async fn a_receipt_is_served_as_a_file() {
    let furnished = UpkeepScenery::new().await;
    let listed = furnished.scenery.app.get("/v1/erasures").await.body;
    assert!(listed.contains(&furnished.erased.to_string()), "{listed}");
    let path = format!("/erasures/{}/receipt.json", furnished.erased);
    let receipt: Value = serde_json::from_str(&furnished.scenery.page(&path).await).unwrap();
    assert_eq!(receipt["reason"], "the contract has ended");
}

#[tokio::test]
async fn an_erased_campaign_has_a_link_to_its_receipt_and_no_actions() {
    let furnished = UpkeepScenery::new().await;
    let page = furnished.scenery.page(&format!("/campaigns/{}", furnished.erased)).await;
    let receipt = format!("href=\"/erasures/{}\"", furnished.erased);
    assert!(page.contains(&receipt) && !page.contains("confirm-erase"), "{page}");
    for part in ["Change the hard limit", "board post", "class=\"tabs\"", ">Add a task<"] {
        assert!(!page.contains(part), "{part} in {page}");
    }
    let campaign = furnished.scenery.world.campaign.id;
    let page = furnished.scenery.page(&format!("/campaigns/{campaign}")).await;
    assert!(page.contains("confirm-erase") && !page.contains("Receipt of its erasure"), "{page}");
}

#[tokio::test]
async fn a_campaign_that_a_person_named_like_an_erased_one_is_not_erased() {
    let furnished = UpkeepScenery::new().await;
    let UpkeepScenery { scenery, erased, .. } = &furnished;
    let named = scenery.make("/v1/campaigns", &json!({ "name": "(erased)" })).await;
    let named = named["id"].as_str().unwrap();
    scenery.send("POST", &format!("/v1/campaigns/{named}/close"), &Value::Null).await;
    let page = scenery.page(&format!("/campaigns/{named}")).await;
    assert!(page.contains("class=\"tabs\"") && !page.contains("Receipt of its"), "{page}");
    let flows = scenery.page("/flows").await;
    let offered = |id: &str| flows.contains(&format!("<option value=\"{id}\""));
    assert_eq!((offered(named), offered(&erased.to_string())), (true, false), "{flows}");
    let campaigns = scenery.get_json("/v1/campaigns").await;
    let marked = |id: &str| {
        let campaign = campaigns["items"].as_array().unwrap().iter().find(|it| it["id"] == id);
        campaign.unwrap()["is_erased"].clone()
    };
    assert_eq!((marked(named), marked(&erased.to_string())), (json!(false), json!(true)));
}
