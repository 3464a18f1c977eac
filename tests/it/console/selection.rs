//! Selected rows of the list of tasks, and what is done with them.

use uuid::Uuid;

use super::{browser::Browser, scenery::Scenery};
use crate::app::eventually;

const ENTER: &str = "\u{e007}";

#[tokio::test]
async fn x_selects_rows_and_the_bar_cancels_them_after_a_confirmation() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/tasks?agent=copywriter&state=queued")).await;
    browser.wait_until("document.getElementById('selection').hidden").await;
    for _ in 0..2 {
        browser.press(&["j"]).await;
        browser.press(&["x"]).await;
    }
    browser
        .wait_until("document.getElementById('selection').textContent.includes('2 selected')")
        .await;
    browser.save_picture("tasks-selected").await;
    let checked = "return [...document.querySelectorAll('input[form=selection]:checked')].map((box) => box.value)";
    let selected: Vec<Uuid> = serde_json::from_value(browser.run(checked).await).unwrap();
    assert_eq!(selected.len(), 2);
    browser.run("document.querySelector('#selection [value=cancel]').focus()").await;
    browser.press(&[ENTER]).await;
    browser.wait_until("location.pathname === '/tasks/selected'").await;
    assert_eq!(browser.text("h1").await, "Cancel 2 tasks");
    assert!(browser.text(".confirm").await.contains("Tasks that depend on them"));
    browser.write("#reason", "the series is shorter").await;
    browser.click(".confirm .primary").await;
    browser
        .wait_until("location.pathname === '/tasks' && location.search === '?agent=copywriter&state=queued'")
        .await;
    for id in selected {
        eventually("the task is cancelled", async || {
            (scenery.world.task(id).await.state.as_str() == "cancelled").then_some(())
        })
        .await;
    }
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn without_a_script_the_bar_is_there_and_tasks_that_do_not_fit_are_left_out() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.without_scripts(true).await;
    browser.open(&scenery.url("/tasks")).await;
    for id in [scenery.waiting, scenery.done] {
        browser.click(&format!("input[form=selection][value='{id}']")).await;
    }
    browser.click("#selection [value=cancel]").await;
    assert_eq!(browser.text("h1").await, "Cancel 1 task");
    assert!(browser.text("main").await.contains("Tasks that have ended cannot be cancelled."));
    // The task ends elsewhere, while the confirmation is open.
    let path = format!("/v1/tasks/{}/cancel", scenery.waiting);
    crate::http::client::send(scenery.app.address, "POST", &path, &[], "{}").await.expect(200);
    browser.click(".confirm .primary").await;
    assert_eq!(browser.text("h1").await, "0 tasks cancelled, 1 refused");
    assert!(browser.text(".error").await.contains("ended"));
}
