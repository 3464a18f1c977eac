//! Phones: tables as lists, actions within reach of a thumb. `inspection` looks for sideways scrolling on each page.

use super::{browser::Browser, scenery::Scenery, upkeep_scenery::UpkeepScenery};

#[tokio::test]
async fn navigation_and_actions_are_within_reach_of_a_thumb() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(360, 740).await;
    browser.open(&scenery.url("/tasks")).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    let small = "return [...document.querySelectorAll('.bar a, .bar button, .main .btn, .main select')]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 39).map((e) => e.outerHTML.slice(0, 120))";
    assert_eq!(browser.run(small).await, serde_json::json!([]));
    let at_the_edge =
        "return innerHeight - document.querySelector('.bar').getBoundingClientRect().bottom";
    assert_eq!(browser.run(at_the_edge).await, 0);
    // Cells have the headings of their columns.
    let label = "return getComputedStyle(document.querySelector('td[data-label=Added]'), '::before').content";
    assert_eq!(browser.run(label).await, "\"Added\"");
    browser.click(".bar [popovertarget=rail]").await;
    browser.wait_until("document.querySelector('#rail:popover-open')").await;
    browser
        .save_view(std::path::Path::new(&format!(
            "{}/console/phone-menu.png",
            env!("CARGO_TARGET_TMPDIR")
        )))
        .await;
    browser.click("#rail a[href='/schedules']").await;
    browser.wait_until("location.pathname === '/schedules'").await;
    browser.click(".thumbs a[href='/work']").await;
    browser.wait_until("location.pathname === '/work'").await;
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.waiting))).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    browser.click("[popovertarget=confirm-cancel]").await;
    browser.wait_until("document.querySelector('#confirm-cancel:popover-open')").await;
    let bottom = "return innerHeight - document.querySelector('#confirm-cancel').getBoundingClientRect().bottom";
    assert_eq!(browser.run(bottom).await, 0);
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn the_end_of_a_page_is_not_behind_the_navigation() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(360, 740).await;
    browser.open(&scenery.url("/campaigns")).await;
    let script = "scrollTo(0, document.documentElement.scrollHeight);
        const last = [...document.querySelectorAll('.main *')].filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().bottom);
        return Math.max(...last) <= document.querySelector('.bar').getBoundingClientRect().top";
    assert_eq!(browser.run(script).await, true);
}

/// Rows of tables are cards on a phone. The table has the state in its first column.
#[tokio::test]
async fn cards_begin_with_the_name_and_then_have_the_state() {
    let Some(browser) = Browser::start().await else { return };
    let furnished = UpkeepScenery::new().await;
    browser.resize(390, 844).await;
    for path in ["/schedules", "/webhooks", "/keys", "/catalogue", "/campaigns"] {
        browser.open(&furnished.scenery.url(path)).await;
        browser.wait_until("document.readyState === 'complete'").await;
        let n_rows = "return document.querySelectorAll('tr:has(> td.name)').length > 0";
        assert_eq!(browser.run(n_rows).await, true, "{path}");
        let late = "return [...document.querySelectorAll('tr:has(> td.name)')].filter((row) => {
            const [name, state] = ['td.name', '.state'].map((part) => row.querySelector(part).getBoundingClientRect());
            return name.bottom > state.top + 1;
          }).map((row) => row.innerText)";
        assert_eq!(browser.run(late).await, serde_json::json!([]), "{path}");
    }
    browser.open(&furnished.scenery.url("/schedules")).await;
    browser.wait_until("document.readyState === 'complete'").await;
    let wrapped =
        "return [...document.querySelectorAll('td.moment:not(:empty)')].filter((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        const tops = [...range.getClientRects()].map((it) => it.top);
        return Math.max(...tops) - Math.min(...tops) > 8;
      }).map((cell) => cell.innerText)";
    assert_eq!(browser.run(wrapped).await, serde_json::json!([]));
}
