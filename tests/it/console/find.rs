//! The search of `Ctrl K`.

use super::{browser::Browser, scenery::Scenery};

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
