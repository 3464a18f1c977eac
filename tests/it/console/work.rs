//! The pages of the queue: what waits and why, workers, jobs, lanes, dead letters, bulk actions.

use serde_json::Value;

use super::{browser::Browser, scenery::Scenery, upkeep_scenery::UpkeepScenery};
use crate::{app::eventually, http::client::send};

#[tokio::test]
async fn waiting_jobs_are_counted_by_their_reason() {
    let scenery = Scenery::new().await;
    let waits = scenery.app.get("/v1/waits").await;
    let waits: Value = serde_json::from_str(&waits.body).unwrap();
    let of = |reason: &str| {
        let all = waits["items"].as_array().unwrap().iter();
        all.filter(|wait| wait["reason"] == reason)
            .map(|wait| wait["jobs"].as_i64().unwrap())
            .sum::<i64>()
    };
    assert!(of("slot") + of("lane") + of("later") > 0, "{waits}");
    assert_eq!(of("person"), 0, "{waits}");
    let listed = scenery.app.get("/v1/jobs").await;
    let listed: Value = serde_json::from_str(&listed.body).unwrap();
    let own = listed["items"].as_array().unwrap().iter();
    let job = own.clone().find(|job| job["kind"] == "run_turn" && job["state"] == "ready");
    let job = job.unwrap_or_else(|| panic!("{listed}"))["id"].as_i64().unwrap();
    let hold = format!("/v1/jobs/{job}/hold");
    let why = r#"{ "reason": "legal reads it first" }"#;
    send(scenery.app.address, "POST", &hold, &[], why).await.expect(200);
    let page = scenery.page("/work").await;
    assert!(page.contains("What waits, and why"), "{page}");
    let page = scenery.page(&format!("/work/jobs/{job}")).await;
    assert!(page.contains("legal reads it first") && page.contains("/do/cancel_job"), "{page}");
}

#[tokio::test]
async fn the_activity_of_workers_has_their_slots_and_runs() {
    let furnished = UpkeepScenery::new().await;
    let activity = furnished.scenery.app.get("/v1/workers/activity?minutes=30").await;
    let activity: Value = serde_json::from_str(&activity.body).unwrap();
    assert_eq!(activity["workers"].as_array().unwrap().len(), 2, "{activity}");
    assert_eq!(activity["runs"].as_array().unwrap().len(), 6, "{activity}");
    let refused = furnished.scenery.app.get("/v1/workers/activity?minutes=61").await;
    assert!(refused.body.contains("must be from 1 to 60"), "{}", refused.body);
    let page = furnished.scenery.page("/work").await;
    for part in ["worker-a", "slot 3", "2 of 2 live", "0 of 5 slots", "bar-soft"] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[tokio::test]
async fn empty_pages_name_a_command() {
    let app = crate::app::TestApp::start().await;
    let page = async |path: &str| {
        send(app.address, "GET", path, &[("Accept", "text/html")], "").await.body
    };
    for (path, command) in [
        ("/work", "dalsegno worker turns"),
        ("/work/jobs", "dalsegno task add"),
        ("/work/jobs?state=dead", "dalsegno job ls --state dead"),
        ("/work/jobs?campaign_id=019aa2f4-0000-7000-8000-00000000dead", "Show all jobs"),
        ("/work/lanes", "dalsegno task add"),
        ("/work/lanes?held=true", "dalsegno lane hold"),
        ("/work/bulk", "dalsegno task retry"),
        ("/schedules", "dalsegno worker upkeep"),
        ("/cleanup", "dalsegno cleanup"),
        ("/erasures", "dalsegno campaign erase"),
        ("/webhooks", "dalsegno webhook add"),
        ("/keys", "dalsegno key create"),
        ("/audit", "dalsegno audit ls"),
    ] {
        let page = page(path).await;
        assert!(page.contains("class=\"empty\"") && page.contains(command), "{path}: {page}");
    }
}

#[tokio::test]
async fn a_bulk_action_runs_on_the_tasks_of_its_preview() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/work/bulk")).await;
    browser.write("input[name=text]", "The quay").await;
    browser.run("document.querySelector('select[name=action]').value = 'cancel'").await;
    browser.click(".filters button").await;
    browser.wait_until("document.querySelector('[name=expected_count]')").await;
    assert!(
        browser.text("main").await.contains("Cancel 1 task?"),
        "{}",
        browser.text("main").await
    );
    browser.save_picture("bulk-preview").await;
    browser.write("#reason", "the brief has changed").await;
    browser.click("form.after .primary").await;
    eventually("the action is stored", async || {
        let actions = scenery.app.get("/v1/bulk-actions").await.body;
        actions.contains("the brief has changed").then_some(())
    })
    .await;
    browser.wait_until("document.querySelector('main table')").await;
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn a_lane_is_held_and_released_on_its_page() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/work/lanes")).await;
    browser.click(".lanes a").await;
    browser.wait_until("location.search.startsWith('?name=')").await;
    browser.click("[popovertarget=confirm-hold]").await;
    browser.write("#reason", "legal reads it first").await;
    browser.click("#confirm-hold .primary").await;
    browser.wait_until("document.querySelector('.explain.held')").await;
    assert!(browser.text("#explain").await.contains("legal reads it first"));
    browser.click("form[action='/do/release_lane'] button").await;
    browser.wait_until("!document.querySelector('.explain.held')").await;
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn jobs_and_bulk_actions_are_narrowed_by_a_campaign() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let (own, hostile) = (scenery.world.campaign.id, scenery.hostile_campaign);
    let other = format!("/v1/campaigns/{hostile}/tasks");
    let task = serde_json::json!({ "agent": "copywriter", "prompt": "Part 1: Another quay." });
    scenery.send("POST", &other, &task).await;
    let page = scenery.page(&format!("/work/jobs?campaign_id={hostile}")).await;
    assert!(page.contains("Another quay") && !page.contains("Part 10: The quay."), "{page}");
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/work/bulk")).await;
    browser.write("input[name=text]", "quay").await;
    let choose = format!(
        "document.querySelector('select[name=action]').value = 'cancel'; document.querySelector('select[name=except_campaign_id]').value = '{own}'"
    );
    browser.run(&choose).await;
    browser.click(".filters button").await;
    browser.wait_until("document.querySelector('[name=expected_count]')").await;
    let main = browser.text("main").await;
    assert!(main.contains("Cancel 1 task?") && main.contains("Another quay"), "{main}");
    browser.click("form.after .primary").await;
    browser
        .wait_until("document.querySelector('main table')?.textContent.includes('except in')")
        .await;
    browser.save_in_all_looks("bulk-except").await;
    assert!(browser.complaints().await.is_empty());
}
