//! Actions of pages in Chromium: they run, and errors stand where the action was.

use super::{browser::Browser, scenery::Scenery};
use crate::app::eventually;

#[tokio::test]
async fn a_task_is_cancelled_after_its_consequences_were_shown() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.waiting))).await;
    browser.click("[popovertarget=confirm-cancel]").await;
    browser.wait_until("document.querySelector('#confirm-cancel:popover-open')").await;
    assert!(browser.text("#confirm-cancel").await.contains("dalsegno task cancel"));
    browser.save_picture("task-cancel").await;
    browser.write("#reason", "not needed").await;
    browser.click("#confirm-cancel .primary").await;
    eventually("the task is cancelled", async || {
        let task = scenery.world.task(scenery.waiting).await;
        (task.state.as_str() == "cancelled").then_some(())
    })
    .await;
    browser.wait_until("document.querySelector('.explain.cancelled')").await;
    assert!(
        browser.text("#explain").await.contains("not needed"),
        "{}",
        browser.text("#explain").await
    );
    browser.click("form[action='/do/retry_task'] button").await;
    browser.wait_until("document.querySelector('.explain.waiting')").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn an_error_stands_on_the_page_with_the_next_step() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let path = format!("/tasks/{}", scenery.waiting);
    browser.open(&scenery.url(&path)).await;
    browser.wait_until("window.htmx !== undefined").await;
    // The task ends elsewhere, while its page is open.
    let cancel = format!("/v1{path}/cancel");
    crate::http::client::send(scenery.app.address, "POST", &cancel, &[], "{}").await.expect(200);
    browser.click("[popovertarget=confirm-cancel]").await;
    browser.write("#reason", "kept").await;
    browser.click("#confirm-cancel .primary").await;
    browser.wait_until("document.querySelector('#outcome .error')").await;
    assert!(browser.text("#outcome").await.contains("ended"), "{}", browser.text("#outcome").await);
    assert_eq!(browser.run("return document.getElementById('reason').value").await, "kept");
}

#[tokio::test]
async fn a_post_is_written_on_the_board() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let path = format!("/campaigns/{}", scenery.world.campaign.id);
    browser.open(&scenery.url(&path)).await;
    browser.write("#say", "Three more parts before Christmas.").await;
    browser.click(".compose button").await;
    browser.wait_until("document.querySelectorAll('.post').length === 2").await;
    assert!(browser.text(".board").await.contains("Three more parts before Christmas."));
}
