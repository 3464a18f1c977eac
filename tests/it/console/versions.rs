//! Texts with versions on the page of a campaign, and its budget.

use super::{browser::Browser, scenery::Scenery};

#[tokio::test]
async fn each_version_of_a_text_is_compared_with_the_one_before() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let campaign = format!("/campaigns/{}", scenery.world.campaign.id);
    browser.open(&scenery.url(&format!("{campaign}?part=brief"))).await;
    browser.click("a[href*='from=1&version=2']").await;
    browser.wait_until("document.querySelector('#compared .diff')").await;
    let compared = browser.text("#compared").await;
    assert!(compared.contains("Ten") && compared.contains("Nine"), "{compared}");
    browser.open(&scenery.url(&format!("{campaign}?part=memory"))).await;
    browser.click("a[href*='item=']").await;
    browser.wait_until("document.querySelector('.diff')").await;
    assert!(browser.text(".diff ins").await.contains("very"), "{}", browser.text(".diff").await);
    browser.open(&scenery.url(&format!("{campaign}?part=blackboard"))).await;
    let changed = browser.text("#compared").await;
    assert!(changed.contains("9") && changed.contains("10"), "{changed}");
    browser.open(&scenery.url(&format!("{campaign}?part=blackboard&version=1"))).await;
    assert!(browser.text("#compared").await.contains("version 0 → 1"));
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn brief_and_context_are_edited_unless_another_edit_came_first() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let campaign = format!("/campaigns/{}", scenery.world.campaign.id);
    let brief = scenery.url(&format!("{campaign}?part=brief"));
    browser.open(&brief).await;
    browser.wait_until("window.htmx !== undefined").await;
    let edit = "document.querySelector('form[action=\"/do/edit_campaign\"]').closest('details').open = true; document.getElementById('brief').value = 'Twelve parts.'; document.getElementById('client-context').value = ''";
    browser.run(edit).await;
    browser.click("form[action='/do/edit_campaign'] .primary").await;
    browser
        .wait_until(
            "document.querySelector('main').textContent.includes('There is no client context')",
        )
        .await;
    let stored = scenery.get_json(&format!("/v1{campaign}")).await;
    assert_eq!(
        (stored["brief"].as_str(), stored["version"].as_i64()),
        (Some("Twelve parts."), Some(3))
    );
    browser.wait_until("window.htmx !== undefined").await;
    let other = serde_json::json!({ "brief": "Another edit." });
    scenery.send("PATCH", &format!("/v1{campaign}"), &other).await;
    browser.run(edit).await;
    browser.click("form[action='/do/edit_campaign'] .primary").await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    let stored = scenery.get_json(&format!("/v1{campaign}")).await;
    assert_eq!(stored["brief"], "Another edit.");
}

#[tokio::test]
async fn limits_are_set_in_units_of_the_currency() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let campaign = format!("/campaigns/{}", scenery.world.campaign.id);
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&campaign)).await;
    browser.wait_until("window.htmx !== undefined").await;
    let set = |field: &str, value: &str| {
        format!(
            "const field = document.getElementById('{field}'); field.closest('details').open = true; field.value = '{value}'; field.form.requestSubmit()"
        )
    };
    assert_eq!(browser.run("return document.getElementById('limit').value").await, "5.00");
    browser.run(&set("limit", "12,50")).await;
    browser.wait_until("document.getElementById('limit').value === '12.50'").await;
    browser.wait_until("window.htmx !== undefined").await;
    browser.run(&set("soft", "10")).await;
    browser.wait_until("document.getElementById('soft').value === '10.00'").await;
    browser.save_picture("campaign-budget").await;
    let stored = scenery.get_json(&format!("/v1{campaign}")).await;
    let limit = |name: &str| stored["budget"][name]["micros"].as_i64();
    assert_eq!((limit("limit"), limit("soft")), (Some(12_500_000), Some(10_000_000)));
    browser.wait_until("window.htmx !== undefined").await;
    browser
        .run(&format!(
            "document.getElementById('limit').removeAttribute('pattern'); {}",
            set("limit", "twelve")
        ))
        .await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    assert!(
        browser.text("#outcome").await.contains("twelve"),
        "{}",
        browser.text("#outcome").await
    );
}
