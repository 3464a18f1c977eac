//! The search of `Ctrl K`.

use serde_json::json;

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{KEYS, open, sign_in},
};

const CONTROL: &str = "\u{e009}";
const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";

#[tokio::test]
async fn ctrl_k_finds_tasks_by_words_and_by_the_end_of_their_id() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/")).await;
    browser
        .wait_until("window.htmx && document.querySelector('[data-theme-switch]:not([hidden])')")
        .await;
    browser.press(&[CONTROL, "k"]).await;
    browser.wait_until("document.activeElement.id === 'q'").await;
    browser.write("#q", "quay").await;
    browser.wait_until("[...document.querySelectorAll('#found a')].some(a => a.textContent.includes('The quay'))").await;
    browser.save_picture("find").await;
    browser.press(&[DOWN]).await;
    browser.press(&[ENTER]).await;
    browser.wait_until("document.querySelector('#explain')").await;
    assert!(browser.url().await.ends_with(&scenery.waiting.to_string()));
    let id = scenery.session_id.to_string();
    browser.open(&scenery.url(&format!("/find?q={}", &id[id.len() - 8..]))).await;
    assert!(browser.has(&format!("main a[href='/sessions/{id}']")).await);
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn ctrl_k_finds_the_actions_of_the_page_and_opens_their_confirmation() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.waiting))).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    browser.press(&[CONTROL, "k"]).await;
    browser.wait_until("document.activeElement.id === 'q'").await;
    browser.write("#q", "cancel").await;
    browser.wait_until("document.querySelector('#page-actions button')").await;
    browser.press(&[DOWN]).await;
    browser.press(&[ENTER]).await;
    browser.wait_until("document.querySelector('#confirm-cancel:popover-open')").await;
    assert_eq!(scenery.world.task(scenery.waiting).await.state.as_str(), "queued");
}

#[tokio::test]
async fn hits_for_tasks_have_agent_campaign_state_and_time_and_sessions_one_name() {
    let scenery = Scenery::new().await;
    let page = scenery.page("/find?q=quay").await;
    let hit = page.split(&format!("<a href=\"/tasks/{}\"", scenery.waiting)).nth(1).unwrap();
    let hit = hit.split("</a>").next().unwrap();
    let task = scenery.world.task(scenery.waiting).await;
    let campaign = &scenery.world.campaign.name;
    let time = format!("queued · <time datetime=\"{}\"", task.created_at.to_rfc3339());
    for part in [task.agent.as_str(), campaign.as_str(), time.as_str()] {
        assert!(hit.contains(part), "{part} in {hit}");
    }
    let list = scenery.page("/sessions").await;
    assert!(list.matches(">Sessions<").count() >= 4, "rail, thumbs, path and title: {list}");
    assert!(!list.contains("Conversation"), "{list}");
}

/// Returns the addresses of the results, in order, and the words of the first one.
async fn results(scenery: &Scenery, words: &str) -> Vec<String> {
    let page = scenery.page(&format!("/find?q={}", words.replace(' ', "+"))).await;
    let list = page.split("class=\"rows found\"").nth(1).unwrap();
    let list = list.split("data-hits").nth(1).unwrap().split("</ul>").next().unwrap();
    list.split("<a href=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn words_of_actions_lead_to_the_place_where_they_are_done() {
    let scenery = Scenery::new().await;
    let campaign = scenery.world.campaign.id;
    let pause = format!("/campaigns/{campaign}#confirm-pause");
    let pause = pause.as_str();
    for (words, target) in [
        ("rate limits", "/work#rate-limits"),
        ("limits", "/work#rate-limits"),
        ("budgets", "/cost/budgets"),
        ("raise a limit", "/cost/budgets"),
        ("bulk", "/work/bulk"),
        ("lanes", "/work/lanes"),
        ("users", "/users"),
        ("api keys", "/keys"),
        ("doctor", "/doctor"),
        ("health", "/doctor"),
        ("cleanup", "/cleanup"),
        ("prompt versions", "/catalogue"),
        ("pause a queue", "/work"),
        ("pause harbour", pause),
        ("pause reviewer", "/catalogue/agent/reviewer#pause-everywhere"),
    ] {
        let found = results(&scenery, words).await;
        assert_eq!(found.first().map(String::as_str), Some(target), "{words}: {found:?}");
    }
    // Each address with an anchor is a page that has this part.
    let entries = include_str!("../../../src/console/find/destinations.rs");
    let entries = entries.split("#[cfg(test)]").next().unwrap();
    let targets = entries.split('"').filter(|text| text.starts_with('/') && !text.contains(' '));
    let anchors: Vec<_> = targets.filter_map(|target| target.split_once('#')).collect();
    for expected in ["name", "schedule-name", "confirm-run", "credentials", "rate-limits"] {
        assert!(anchors.iter().any(|(_, part)| *part == expected), "{expected} in {anchors:?}");
    }
    for (path, part) in anchors {
        let page = scenery.page(path).await;
        assert!(page.contains(&format!("id=\"{part}\"")), "{path}#{part}: {page}");
    }
    scenery.send("POST", &format!("/v1/campaigns/{campaign}/pause"), &serde_json::json!({})).await;
    assert_eq!(results(&scenery, "resume harbour").await[0], format!("/campaigns/{campaign}"));
    let near = results(&scenery, "who changed the nightly thing").await;
    assert!(near.contains(&"/audit".to_owned()), "{near:?}");
}

#[tokio::test]
async fn ctrl_k_opens_the_confirmation_of_a_pause_by_the_name_of_an_agent() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/tasks")).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    browser.press(&[CONTROL, "k"]).await;
    browser.wait_until("document.activeElement.id === 'q'").await;
    browser.write("#q", "pause reviewer").await;
    browser.wait_until("document.querySelector('#found a[href$=pause-everywhere]')").await;
    browser.save_picture("find-pause").await;
    browser.press(&[ENTER]).await;
    browser.wait_until("document.querySelector('#pause-everywhere:popover-open')").await;
    assert!(browser.url().await.contains("/catalogue/agent/reviewer"));
    // The first field has the focus, and the same result opens the sheet again.
    let has_focus = "document.activeElement.closest('#pause-everywhere') && document.activeElement.matches('input, textarea, select, button')";
    browser.wait_until(has_focus).await;
    assert!(!browser.url().await.contains('#'), "the hash is gone");
    browser.run("document.getElementById('pause-everywhere').hidePopover()").await;
    browser.run("location.hash = 'pause-everywhere'").await;
    browser.wait_until("document.querySelector('#pause-everywhere:popover-open')").await;
    // Nothing is done before the confirmation.
    let paused: i64 = sqlx::query_scalar("select count(*) from dalsegno.agent_pauses")
        .fetch_one(&scenery.app.pool)
        .await
        .unwrap();
    assert_eq!(paused, 0);
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn a_campaign_is_found_by_its_name_beside_many_newer_ones() {
    let scenery = Scenery::new().await;
    scenery.add_newer_campaigns().await;
    let campaign = scenery.world.campaign.id;
    let name = &scenery.world.campaign.name;
    let own = format!("/campaigns/{campaign}");
    assert!(results(&scenery, &name.to_uppercase()).await.contains(&own));
    assert!(results(&scenery, "pause harbour").await.contains(&format!("{own}#confirm-pause")));
    assert!(!results(&scenery, "resume harbour").await.contains(&own), "it is not paused");
    let letters = results(&scenery, "letter 20").await;
    let n_campaigns = letters.iter().filter(|target| target.starts_with("/campaigns/")).count();
    assert_eq!(n_campaigns, 2, "20 and 200: {letters:?}");
    let hits = scenery.page("/find?q=quay").await;
    let hit = hits.split(&format!("<a href=\"/tasks/{}\"", scenery.waiting)).nth(1).unwrap();
    let hit = hit.split("</a>").next().unwrap();
    assert!(hit.contains(name.as_str()), "{hit}");
    let answer = scenery.app.get("/find?q=%00letter").await;
    assert!(answer.status < 500, "{answer:?}");
}

#[tokio::test]
async fn a_bound_key_finds_its_own_campaigns_only() {
    let scenery = Scenery::with(&KEYS).await;
    let name = "update dalsegno.campaigns set name = 'Harbour letters' where id = $1";
    let name = sqlx::query(name).bind(scenery.hostile_campaign);
    name.execute(&scenery.app.pool).await.unwrap();
    let key =
        json!({ "name": "bound", "scopes": ["read"], "campaigns": [scenery.hostile_campaign] });
    let key = scenery.send("POST", "/v1/keys", &key).await;
    let bound = sign_in(&scenery.app, key["secret"].as_str().unwrap()).await;
    let found = open(&scenery.app, "/find?q=harbour", &bound).await.body;
    let list = found.split("class=\"rows found\"").nth(1).unwrap().split("</ul>").next().unwrap();
    assert!(list.contains(&format!("/campaigns/{}\"", scenery.hostile_campaign)), "{list}");
    assert!(!list.contains(&format!("/campaigns/{}\"", scenery.world.campaign.id)), "{list}");
}
