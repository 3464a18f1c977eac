//! Each page in Chromium: widths, themes, axe, hostile texts, the keyboard, and no script.

use super::{browser::Browser, inspection::Inspection, scenery::Scenery};

#[tokio::test]
async fn every_page_is_clean_and_accessible_in_both_themes_and_widths() {
    let Some(mut inspection) = Inspection::start().await else { return };
    let scenery = Scenery::new().await;
    for (name, path) in scenery.pages() {
        inspection.visit(name, &scenery.url(&path)).await;
    }
    inspection.finish();
}

#[tokio::test]
async fn hostile_texts_stay_texts() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    // The page shows what was written. The test above looks for intruders on every page.
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.hostile))).await;
    assert!(browser.text("h1").await.contains("<script>"), "{}", browser.text("h1").await);
    assert!(browser.text("main").await.contains("Show the whole text"));
}

#[tokio::test]
async fn pages_can_be_read_without_a_script() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.without_scripts(true).await;
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.waiting))).await;
    let text = browser.text("main").await;
    for part in ["Part 10: The quay.", "Waits and attempts", "dalsegno task"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(browser.text("time").await.contains(':'), "times are absolute");
}

#[tokio::test]
async fn the_keyboard_reaches_pages_rows_and_themes() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/")).await;
    browser.wait_until("document.querySelector('[data-theme-switch]:not([hidden])')").await;
    browser.press(&["?"]).await;
    browser.wait_until("document.querySelector('#keys:popover-open')").await;
    browser.press(&["\u{e00c}"]).await;
    browser.wait_until("!document.querySelector('#keys:popover-open')").await;
    browser.press(&["t"]).await;
    browser.wait_until("document.documentElement.dataset.theme === 'dark'").await;
    browser.press(&["g"]).await;
    browser.press(&["t"]).await;
    browser
        .wait_until("location.pathname === '/tasks' && document.readyState === 'complete'")
        .await;
    // The chosen theme is rendered by the server.
    assert_eq!(browser.run("return document.documentElement.dataset.theme").await, "dark");
    browser.wait_until("document.querySelector('[data-theme-switch]:not([hidden])')").await;
    browser.press(&["j"]).await;
    browser.wait_until("document.activeElement.closest('tbody tr') !== null").await;
    browser.press(&["\u{e007}"]).await;
    browser.wait_until("location.pathname.startsWith('/tasks/')").await;
}
