//! Each page in Chromium: widths, themes, hostile texts, the keyboard, and no script.

use super::{browser::Browser, scenery::Scenery};
use crate::clients::packages;

const WIDTHS: [u32; 2] = [360, 1440];

#[tokio::test]
async fn every_page_is_clean_in_both_themes_and_widths() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    for (name, path) in scenery.pages() {
        browser.open(&scenery.url(&path)).await;
        browser.wait_until("document.readyState === 'complete'").await;
        for width in WIDTHS {
            browser.resize(width, 900).await;
            for theme in ["light", "dark"] {
                browser.prefer(theme).await;
                browser.save_picture(&format!("{name}-{theme}-{width}")).await;
            }
            let fits = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
            let wide = browser.run("return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.wide, pre, .tabs, svg, .sr')).slice(0, 3).map(e => e.outerHTML.slice(0, 120))").await;
            assert_eq!(browser.run(fits).await, true, "{name} is wider than {width} px: {wide}");
        }
        let complaints = browser.complaints().await;
        assert!(complaints.is_empty(), "{name}: {complaints:?}");
        let headings = browser.run("return document.querySelectorAll('h1').length").await;
        assert_eq!(headings, 1, "{name}");
    }
}

#[tokio::test]
async fn hostile_texts_stay_texts() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    for (name, path) in scenery.pages() {
        browser.open(&scenery.url(&path)).await;
        browser.wait_until("document.readyState === 'complete'").await;
        let title = browser.run("return document.title").await;
        assert!(!title.as_str().unwrap().starts_with("broken"), "{name}: {title}");
        let intruders = "return document.querySelectorAll('body script, body img, body iframe, body [onerror], a[href^=javascript]').length";
        assert_eq!(browser.run(intruders).await, 0, "{name}");
        assert!(browser.complaints().await.is_empty(), "{name}");
    }
    // The page shows what was written.
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

#[tokio::test]
async fn no_page_has_serious_findings_of_axe() {
    let (Some(browser), Some(axe)) = (Browser::start().await, packages::axe()) else { return };
    let axe = std::fs::read_to_string(axe).unwrap();
    let scenery = Scenery::new().await;
    let ask = "const done = arguments[arguments.length - 1];
        axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'best-practice'] }).then(({ violations }) => done(violations
            .filter(({ impact }) => impact === 'serious' || impact === 'critical')
            .map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | '))));";
    let mut findings = Vec::new();
    for (name, path) in scenery.pages() {
        browser.open(&scenery.url(&path)).await;
        browser.run(&axe).await;
        for width in WIDTHS {
            browser.resize(width, 900).await;
            for theme in ["light", "dark"] {
                browser.prefer(theme).await;
                let found = browser.run_async(ask).await;
                findings.extend(
                    found
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|it| format!("{name} {theme} {width}: {it}")),
                );
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
