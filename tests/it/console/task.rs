//! The page of a task: its priority and the answers of its attempts.

use super::{browser::Browser, scenery::Scenery};

#[tokio::test]
async fn the_priority_of_a_waiting_task_is_changed_on_its_page() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.waiting))).await;
    browser.click("[popovertarget=change-priority]").await;
    browser.wait_until("document.querySelector('#change-priority:popover-open')").await;
    browser.save_picture("task-priority").await;
    browser.run("document.getElementById('priority').value = ''").await;
    browser.write("#priority", "7").await;
    browser.click("#change-priority .primary").await;
    browser
        .wait_until(
            "[...document.querySelectorAll('.facts dd')].some(it => it.textContent === '7')",
        )
        .await;
    let task = scenery.get_json(&format!("/v1/tasks/{}", scenery.waiting)).await;
    assert_eq!(task["priority"], 7);
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.done))).await;
    assert!(!browser.has("#change-priority").await, "the task has ended");
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn attempts_are_compared_and_reached_by_keys() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let path = format!("/tasks/{}", scenery.retried);
    browser.open(&scenery.url(&format!("{path}?result=diff"))).await;
    let (old, new) = (browser.text(".diff del").await, browser.text(".diff ins").await);
    assert_eq!((old.trim(), new.trim()), ("paraffin", "oil"));
    browser.wait_until("document.querySelector('[data-theme-switch]:not([hidden])')").await;
    browser.press(&["["]).await;
    browser.wait_until("location.search.includes('attempt=1')").await;
    browser.wait_until("document.querySelector('[data-theme-switch]:not([hidden])')").await;
    assert!(
        browser.text("#result").await.contains("smelled of paraffin"),
        "{}",
        browser.text("#result").await
    );
    browser.press(&["]"]).await;
    browser.wait_until("location.search.includes('attempt=2')").await;
    assert!(browser.text("#result").await.contains("smelled of oil"));
    // A task with one attempt has nothing to compare.
    browser.open(&scenery.url(&format!("/tasks/{}?result=diff&attempt=9", scenery.done))).await;
    assert!(!browser.text("#result .answer-bar").await.contains("Diff"));
    assert!(browser.complaints().await.is_empty());
}
