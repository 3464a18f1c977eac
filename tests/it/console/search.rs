//! The search over the texts of all campaigns.

use serde_json::json;

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{HTML, KEYS, open, sign_in},
};
use crate::http::{client::send, key_setup::ADMIN_KEY};

const CONTROL: &str = "\u{e009}";
const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";

impl Scenery {
    async fn post(&self, text: &str) {
        let path = format!("/v1/campaigns/{}/posts", self.world.campaign.id);
        self.send("POST", &path, &json!({ "text": text, "audience": ["operator"] })).await;
    }
}

/// They may come from a link, and the command from the page is run in a shell.
#[tokio::test]
async fn words_of_an_address_are_quoted_in_commands() {
    let scenery = Scenery::new().await;
    let campaign = scenery.world.campaign.id;
    let (words, quoted) = ("%22zanzibar+quux%22+%24(id)", "'&quot;zanzibar quux&quot; $(id)'");
    for (path, command) in [
        (format!("/search?q={words}"), format!("dalsegno search {quoted}")),
        (
            format!("/campaigns/{campaign}?part=memory&q={words}"),
            format!("dalsegno memory search --campaign {campaign} {quoted}"),
        ),
        ("/work?queue=%24(id)".to_owned(), "dalsegno queue pause '$(id)'".to_owned()),
    ] {
        let page = scenery.page(&path).await;
        assert!(page.contains(&command), "{path}: {page}");
    }
    let page = scenery.page("/users?name=%24(id)").await;
    assert!(page.contains("invalid name of a user"), "{page}");
    assert!(!page.contains("data-command"), "{page}");
}

#[tokio::test]
async fn the_search_leads_to_the_exact_place_of_a_text() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    scenery.post("The harbour master keeps an albatross.").await;
    for n in 0..30 {
        scenery.post(&format!("Later post {n}.")).await;
    }
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/")).await;
    browser.wait_until("window.htmx && document.documentElement.dataset.ready !== undefined").await;
    browser.press(&[CONTROL, "k"]).await;
    browser.wait_until("document.activeElement.id === 'q'").await;
    browser.write("#q", "albatros").await;
    let first = "document.querySelector('#found a')?.textContent.includes('Search for “albatros” in texts')";
    browser.wait_until(first).await;
    browser.save_picture("find-everywhere").await;
    browser.press(&[DOWN]).await;
    browser.press(&[ENTER]).await;
    browser
        .wait_until("location.pathname === '/search' && document.querySelector('.hits mark')")
        .await;
    assert_eq!(browser.text(".hits mark").await, "albatross");
    browser.save_in_all_looks("search-hits").await;
    // The board begins with the post, though later ones follow.
    browser.resize(1440, 900).await;
    browser.click(".hits header > a").await;
    browser.wait_until("document.querySelector('.post:target')").await;
    assert!(browser.text(".post:target").await.contains("albatross"));
    let is_in_view = "(() => { const { top } = document.querySelector('.post:target').getBoundingClientRect(); return top >= 0 && top < innerHeight; })()";
    browser.wait_until(is_in_view).await;
    // Answers are found as results of their tasks. This one was interrupted.
    let interrupted = "with session as (
             update dalsegno.sessions as s set last_seq = last_seq + 1 where s.id = $1 returning s.last_seq)
         insert into dalsegno.messages (session_id, seq, turn, created_at, id, role, text, weight, digest, partial)
         select m.session_id, session.last_seq, m.turn, m.created_at, gen_random_uuid(), m.role, m.text, m.weight, m.digest, true
           from dalsegno.messages as m, session
          where m.session_id = $1 and m.role = 'assistant' and m.text like '%LH-0433%'";
    let pool = &scenery.app.pool;
    let added = sqlx::query(interrupted).bind(scenery.session_id).execute(pool).await.unwrap();
    assert_eq!(added.rows_affected(), 1);
    browser.open(&scenery.url("/search?q=LH-0433&kind=message")).await;
    browser.click(".hits header > a").await;
    browser.wait_until("document.querySelector('.msg:target')").await;
    assert!(browser.text(".msg:target").await.contains("LH-0433"));
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn filters_of_the_search_are_in_the_url_and_usable_by_keyboard() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    scenery.post("Part of the board.").await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/search?q=part")).await;
    let n_all = browser.run("return document.querySelectorAll('.hits > li').length").await;
    browser.run("document.querySelector('select[name=kind]').value = 'task'").await;
    browser.run("document.querySelector('input[name=q]').focus()").await;
    browser.press(&[ENTER]).await;
    browser
        .wait_until("location.search.includes('kind=task') && document.querySelector('.hits')")
        .await;
    let n_tasks = browser.run("return document.querySelectorAll('.hits > li').length").await;
    assert!(n_tasks.as_u64() > Some(0) && n_tasks.as_u64() < n_all.as_u64(), "{n_tasks} {n_all}");
    browser.press(&["j"]).await;
    browser.press(&[ENTER]).await;
    browser.wait_until("location.pathname.startsWith('/tasks/')").await;
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn the_search_without_words_or_hits_says_what_to_do() {
    let scenery = Scenery::new().await;
    let page = scenery.page("/search").await;
    assert!(page.contains("class=\"empty\"") && page.contains("dalsegno search"), "{page}");
    let page = scenery.page("/search?q=xylograph&kind=post").await;
    assert!(page.contains("No text has these words") && page.contains("Search without filters"));
    let page = scenery.page("/search?q=LH-0433&kind=message").await;
    assert!(page.contains("but some of these have: tasks"), "{page}");
    assert!(page.contains("Answers are found as the results of their tasks"), "{page}");
    for (path, words) in [
        ("/search?q=quay&kind=poem", "`poem` is not a kind of texts"),
        ("/search?q=quay&range=2d", "`2d` is not a time range"),
        ("/search?q=quay&campaign_id=x", "`x` is not the id of a campaign"),
        ("/search?q=quay&cursor=7", "`7` is not a cursor"),
        ("/tasks?campaign_id=x", "`x` is not the id of a campaign"),
        ("/tasks?state=late", "`late` is not the state of a task"),
        ("/tasks?range=2d", "`2d` is not a time range"),
        ("/sessions?campaign_id=x", "`x` is not the id of a campaign"),
        ("/flows?campaign_id=x", "`x` is not the id of a campaign"),
        ("/work/jobs?campaign_id=x", "`x` is not the id of a campaign"),
        ("/work/jobs?state=late", "`late` is not the state of a job"),
        ("/work/bulk?action=retry&except_campaign_id=x", "`x` is not the id of a campaign"),
        ("/work/bulk?action=retry&text=quay&ended_since=1h", "no parameter `ended_since`"),
        ("/cost?campaign_id=x", "`x` is not the id of a campaign"),
        ("/cost/calls?from=monday", "`monday` is not a day"),
        ("/cost/report.csv?days=0", "`0` is not a number of days"),
        ("/?range=2d", "`2d` is not a time range"),
    ] {
        let reply = send(scenery.app.address, "GET", path, &[HTML], "").await;
        assert!(reply.status == 422 || reply.status == 400, "{path}: {reply:?}");
        // Names in backticks are shown as code.
        let said = reply.body.replace("<code>", "`").replace("</code>", "`");
        assert!(said.contains(words), "{path}: {said}");
    }
}

#[tokio::test]
async fn a_key_of_one_campaign_searches_its_texts_only() {
    let scenery = Scenery::with(&KEYS).await;
    let own = scenery.world.campaign.id;
    let key = json!({ "name": "bound", "scopes": ["read"], "campaigns": [own] });
    let key = scenery.send("POST", "/v1/keys", &key).await;
    let bound = sign_in(&scenery.app, key["secret"].as_str().unwrap()).await;
    let admin = sign_in(&scenery.app, ADMIN_KEY).await;
    let path = "/search?q=desrever&kind=post";
    let n_hits = async |cookie: &str| {
        open(&scenery.app, path, cookie).await.body.matches("class=\"snippet\"").count()
    };
    assert_eq!((n_hits(&bound).await, n_hits(&admin).await), (1, 2));
}
