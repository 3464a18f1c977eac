//! The pages about a conversation beside its transcript: turns, compactions, estimates.

use super::{browser::Browser, scenery::Scenery};

#[tokio::test]
async fn a_compaction_says_where_each_message_is_now() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let number = scenery.compact().await;
    let path = format!("/sessions/{}/compactions/{number}", scenery.session_id);
    browser.open(&scenery.url(&format!("/sessions/{}", scenery.session_id))).await;
    browser.click(&format!("a[href='{path}']")).await;
    browser
        .wait_until("document.querySelector('main h1')?.textContent.startsWith('Compaction')")
        .await;
    browser.save_in_all_looks("compaction").await;
    let shown = browser.text("main").await;
    for part in ["One part.", "Replaced messages", "in use"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn all_turns_are_listed_and_their_contexts_verified() {
    let scenery = Scenery::new().await;
    let turns = format!("/sessions/{}/turns", scenery.session_id);
    let plain = scenery.page(&turns).await;
    assert!(plain.contains("?verify=true") && !plain.contains("<th>Context</th>"), "{plain}");
    let verified = scenery.page(&format!("{turns}?verify=true")).await;
    assert!(verified.contains("<th>Context</th>"), "{verified}");
    let turn = format!("/sessions/{}/turns/1", scenery.session_id);
    let own = scenery.page(&format!("{turn}?show=provider")).await;
    assert!(own.contains("dalsegno context show"), "the simulation keeps no transcript: {own}");
    let none = scenery.page(&format!("{turn}?ledger=999999")).await;
    assert!(none.contains("dalsegno context show --ledger 999999"), "{none}");
}

#[tokio::test]
async fn a_waiting_task_shows_the_context_that_it_would_get() {
    let scenery = Scenery::new().await;
    let task = format!("/tasks/{}", scenery.waiting);
    assert!(scenery.page(&task).await.contains("?context=true#context"));
    let shown = scenery.page(&format!("{task}?context=true")).await;
    let is_shown =
        shown.contains("Context of the next call") || shown.contains("No turn could begin now");
    assert!(is_shown, "{shown}");
    let done = scenery.page(&format!("/tasks/{}?context=true", scenery.done)).await;
    assert!(!done.contains("id=\"context\""), "it has ended: {done}");
    let session = format!("/sessions/{}?estimate=true", scenery.session_id);
    let estimated = scenery.page(&session).await;
    let is_estimated =
        estimated.contains("resume the conversation") || estimated.contains("cannot be estimated");
    assert!(is_estimated, "{estimated}");
}
