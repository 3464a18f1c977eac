//! Each page by keyboard alone.

use serde_json::json;

use super::{browser::Browser, scenery::Scenery, upkeep_scenery::UpkeepScenery};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const CONTROL: &str = "\u{e009}";

/// Defines everything that a person can act on, as far as it is visible, and notes what has the focus from now on.
const CONTROLS: &str = "window.controls = () => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex=\"0\"]')]
    .filter((it) => it.checkVisibility({ visibilityProperty: true }) && !it.disabled && it.type !== 'hidden' && it.tabIndex >= 0);
    window.reached = new Set();
    document.addEventListener('focusin', (event) => window.reached.add(event.target));";

/// The controls that have not had the focus since then.
const MISSED: &str = "return controls().filter((it) => !window.reached.has(it)).map((it) => it.outerHTML.slice(0, 160))";

async fn open(browser: &Browser, scenery: &Scenery, path: &str) {
    browser.open(&scenery.url(path)).await;
    // The last thing that the scripts of a page do.
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
}

#[tokio::test]
async fn tab_reaches_every_control_of_every_page() {
    let Some(browser) = Browser::start().await else { return };
    let furnished = UpkeepScenery::new().await;
    browser.resize(1440, 900).await;
    for (name, path) in furnished.all_pages() {
        open(&browser, &furnished.scenery, &path).await;
        browser.run(CONTROLS).await;
        browser.press(&[TAB]).await;
        // The form for the key is all that its page has.
        let first = browser.run("return document.activeElement.className").await;
        assert!(first == "skip" || name == "sign-in", "{name}: the first stop is the skip link");
        let n_controls = browser.run("return controls().length").await.as_u64().unwrap();
        let n_controls = usize::try_from(n_controls).unwrap();
        let mut missed = json!(null);
        // Some stops are no controls, for example areas that scroll: most pages need one round, and a few the next ones.
        for _ in 0..3 {
            browser.press_often(TAB, n_controls + 14).await;
            missed = browser.run(MISSED).await;
            if missed == json!([]) {
                break;
            }
        }
        assert_eq!(missed, json!([]), "{name}");
    }
}

#[tokio::test]
async fn focus_is_visible_and_the_skip_link_leads_to_the_content() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    open(&browser, &scenery, "/tasks").await;
    browser.press(&[TAB]).await;
    let outline = "return getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(browser.run(outline).await, "solid");
    browser.press(&[ENTER]).await;
    browser.wait_until("location.hash === '#main'").await;
    browser.press(&[TAB]).await;
    assert_eq!(
        browser.run("return document.activeElement.closest('main') !== null").await,
        true,
        "the next stop is in the content"
    );
}

#[tokio::test]
async fn sheets_open_and_close_by_keys_and_give_the_focus_back() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    open(&browser, &scenery, "/tasks").await;
    browser.press(&["j"]).await;
    browser.wait_until("document.activeElement.closest('tbody tr') !== null").await;
    browser.run("window.before = document.activeElement").await;
    for keys in [&[CONTROL, "k"][..], &["?"]] {
        browser.press(keys).await;
        browser.wait_until("document.querySelector('.sheet:popover-open')").await;
        browser.press(&[ESCAPE]).await;
        browser.wait_until("!document.querySelector('.sheet:popover-open')").await;
        browser.wait_until("document.activeElement === window.before").await;
    }
    browser.press(&["k"]).await;
    browser.press(&["j"]).await;
    browser.press(&["j"]).await;
    browser.press(&[ENTER]).await;
    browser.wait_until("/^.tasks.[0-9a-f-]{36}$/.test(location.pathname)").await;
}

/// German and French keyboards write brackets with AltGr, which Windows reports as Ctrl and Alt; those of a Mac with Option.
#[tokio::test]
async fn brackets_count_on_keyboards_that_write_them_with_alt() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let turn = |number: i32| format!("/sessions/{}/turns/{number}", scenery.session_id);
    let press = async |key: &str, modifiers: &str| {
        let event = format!("{{ key: '{key}', {modifiers}, bubbles: true, cancelable: true }}");
        let script =
            format!("return document.body.dispatchEvent(new KeyboardEvent('keydown', {event}))");
        browser.run(&script).await
    };
    open(&browser, &scenery, &turn(1)).await;
    assert_eq!(press("]", "ctrlKey: true").await, true, "a shortcut of the browser is taken");
    assert_eq!(press("j", "altKey: true").await, true, "a shortcut of the browser is taken");
    for (key, modifiers, number) in
        [("]", "altKey: true", 2), ("[", "ctrlKey: true, altKey: true", 1)]
    {
        press(key, modifiers).await;
        let is_open = format!("location.pathname === '{}'", turn(number));
        browser.wait_until(&is_open).await;
        browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    }
}
