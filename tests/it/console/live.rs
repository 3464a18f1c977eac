//! Live pages: one stream per browser, announcements in place of moves, and the way back after an interruption.

use std::sync::Arc;

use dalsegno::domain::feed::Hub;
use serde_json::json;

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{KEYS, key, sign_in},
};
use crate::{
    app::eventually,
    http::client::{self, Stream},
};

impl Scenery {
    /// Adds a task over the API, which is an event of the feed.
    async fn add_task(&self, prompt: &str) {
        let path = format!("/v1/campaigns/{}/tasks", self.world.campaign.id);
        let body = json!({ "agent": "copywriter", "prompt": prompt }).to_string();
        client::send(self.app.address, "POST", &path, &[], &body).await.expect(201);
    }

    async fn n_events(&self) -> i64 {
        sqlx::query_scalar("select count(*) from dalsegno.feed")
            .fetch_one(&self.app.pool)
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn new_things_announce_themselves_and_move_nothing() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.open(&scenery.url("/tasks")).await;
    browser.wait_until("!document.getElementById('feed-line').hidden").await;
    let rows = "return document.querySelectorAll('tbody tr').length";
    let n_rows = browser.run(rows).await;
    scenery.add_task("Part 11: The storm.").await;
    browser
        .wait_until("document.querySelector('.fresh:not([hidden])')?.textContent === '1 new'")
        .await;
    assert_eq!(browser.run(rows).await, n_rows, "the list has moved");
    browser.press(&["n"]).await;
    browser.wait_until("document.body.textContent.includes('Part 11: The storm.') && document.querySelector('.fresh[hidden]')").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn a_stream_continues_after_its_last_event_without_gap_or_repetition() {
    let scenery = Scenery::new().await;
    let mut stream = Stream::open(scenery.app.address, "/events", None).await.unwrap();
    let begin = stream.next().await.unwrap();
    assert_eq!(begin.event, "begin");
    scenery.add_task("one").await;
    scenery.add_task("two").await;
    let (one, two) = (stream.next().await.unwrap(), stream.next().await.unwrap());
    drop(stream);
    scenery.add_task("three").await;
    let mut again = Stream::open(scenery.app.address, "/events", Some(&one.id)).await.unwrap();
    assert_eq!(again.next().await.unwrap().event, "begin");
    assert_eq!(again.next().await.unwrap().id, two.id);
    let three = again.next().await.unwrap();
    assert!(three.id.parse::<i64>().unwrap() > two.id.parse().unwrap());
    // From the beginning: those before the reader began come from the database.
    let mut all = Stream::open(scenery.app.address, "/events", Some("0")).await.unwrap();
    assert_eq!(all.next().await.unwrap().event, "begin");
    let mut ids = Vec::new();
    for _ in 0..scenery.n_events().await {
        ids.push(all.next().await.unwrap().id.parse::<i64>().unwrap());
    }
    assert!(ids.is_sorted() && ids.last() == Some(&three.id.parse().unwrap()), "{ids:?}");
}

impl Scenery {
    /// Writes more events than a page may have missed. Returns the id of the last one.
    async fn add_many_events(&self) -> i64 {
        let many = "insert into dalsegno.feed (created_at, kind, data)
                    select now(), 'turn.progress', '{}' from generate_series(1, 5100)";
        sqlx::query(many).execute(&self.app.pool).await.unwrap();
        let newest = "select max(id) from dalsegno.feed";
        sqlx::query_scalar(newest).fetch_one(&self.app.pool).await.unwrap()
    }
}

#[tokio::test]
async fn a_stream_that_missed_too_much_is_told_and_begins_now() {
    let scenery = Scenery::new().await;
    let newest = scenery.add_many_events().await;
    let address = scenery.app.address;
    for path in ["/events?after=0".to_owned(), format!("/events?after={}", newest - 5_001)] {
        let mut stream = Stream::open(address, &path, None).await.unwrap();
        let begin = stream.next().await.unwrap();
        assert_eq!((&*begin.data, begin.id), (r#"{"has_gap":true}"#, newest.to_string()), "{path}");
        drop(stream);
    }
    let mut near =
        Stream::open(address, "/events", Some(&(newest - 5_000).to_string())).await.unwrap();
    let begin = near.next().await.unwrap();
    assert_eq!(begin.data, r#"{"has_gap":false}"#);
    assert_eq!(near.next().await.unwrap().id, (newest - 4_999).to_string());
    let mut far = Stream::open(address, "/events", Some("1")).await.unwrap();
    assert_eq!(far.next().await.unwrap().data, r#"{"has_gap":true}"#);
    scenery.add_task("news").await;
    assert!(far.next().await.unwrap().id.parse::<i64>().unwrap() > newest);
}

#[tokio::test]
async fn a_page_that_missed_too_much_asks_for_a_reload() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    // While another page follows the feed, this one knows up to which event it was read.
    let mut other = Stream::open(scenery.app.address, "/events", None).await.unwrap();
    // A page with its own stream, which ends here and comes back as after an interruption.
    let script = "delete window.SharedWorker;
        const Real = window.EventSource;
        window.EventSource = class extends Real {
          constructor(url) {
            super(url);
            this.addEventListener('begin', () => { window.begun = this; });
          }
        };";
    browser.command("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script })).await;
    browser.open(&scenery.url("/tasks")).await;
    browser.wait_until("document.getElementById('main').dataset.feed && window.begun").await;
    browser.run("window.begun.close()").await;
    let newest = scenery.add_many_events().await.to_string();
    while other.next().await.unwrap().id != newest {}
    browser.run("window.begun.dispatchEvent(new Event('error'))").await;
    browser
        .wait_until("document.querySelector('#banner .banner')?.textContent.includes('missing')")
        .await;
    assert_eq!(browser.text(".fresh").await, "Reload");
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn streams_of_pages_are_limited_per_client() {
    let set = [KEYS[0], KEYS[1], ("http.max_page_streams_per_client", "2")];
    let scenery = Scenery::with(&set).await;
    let app = &scenery.app;
    let (_, ann) = key(app, "ann", "read").await;
    let (_, bob) = key(app, "bob", "read").await;
    // Two browsers of one person share the places of the key.
    let [one, two, other] =
        [sign_in(app, &ann).await, sign_in(app, &ann).await, sign_in(app, &bob).await];
    let open =
        async |cookie: &str| Stream::open_with(app.address, "/events", &[("Cookie", cookie)]).await;
    let (held, kept) = (open(&one).await.ok().unwrap(), open(&two).await.ok().unwrap());
    let refused = open(&one).await.err().unwrap();
    let detail = refused.problem(429, "too_many_waiting_per_client");
    assert!(detail.contains("this API key has 2 page streams open"), "{detail}");
    assert!(detail.contains("http.max_page_streams_per_client"), "{detail}");
    open(&other).await.ok().unwrap();
    drop(held);
    let again = eventually("a closed page frees its place", async || open(&one).await.ok()).await;
    drop((again, kept));
}

#[tokio::test]
async fn streams_of_pages_are_limited_in_total() {
    let set = [KEYS[0], KEYS[1], ("http.max_page_streams", "2")];
    let scenery = Scenery::with(&set).await;
    let app = &scenery.app;
    let mut cookies = Vec::new();
    for name in ["ann", "bob", "cleo"] {
        let (_, secret) = key(app, name, "read").await;
        cookies.push(sign_in(app, &secret).await);
    }
    let open =
        async |cookie: &str| Stream::open_with(app.address, "/events", &[("Cookie", cookie)]).await;
    let (ann, bob) = (open(&cookies[0]).await.ok().unwrap(), open(&cookies[1]).await.ok().unwrap());
    let refused = open(&cookies[2]).await.err().unwrap();
    let detail = refused.problem(503, "too_many_waiting");
    assert!(detail.contains("2 page streams are open"), "{detail}");
    assert!(detail.contains("http.max_page_streams"), "{detail}");
    drop(ann);
    let freed = "a closed page frees its place";
    let cleo = eventually(freed, async || open(&cookies[2]).await.ok()).await;
    drop((cleo, bob));
}

#[tokio::test]
async fn one_reader_serves_all_followers() {
    let scenery = Scenery::new().await;
    let hub = Hub::default();
    let mut followers = Vec::new();
    for _ in 0..20 {
        followers.push(hub.follow(&scenery.app.pool, None).await.unwrap().1);
    }
    scenery.add_task("for all").await;
    let mut received = Vec::new();
    for follower in &mut followers {
        received.push(follower.next().await.unwrap());
    }
    assert_eq!(received[0].kind, "task.queued");
    // The same event in memory, not twenty reads of it.
    assert!(received.iter().all(|event| Arc::ptr_eq(event, &received[0])));
}

#[tokio::test]
async fn an_interruption_is_shown_and_ends_with_the_missed_events() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::with(&[("scheduler.time_zone", "Asia/Tokyo")]).await;
    browser.open(&scenery.url("/tasks")).await;
    browser.wait_until("!document.getElementById('feed-line').hidden").await;
    // The service ends; the page says so, and stays readable.
    let Scenery { app, .. } = scenery;
    app.shutdown.soft.cancel();
    browser
        .wait_until("document.getElementById('feed-line').textContent.includes('Reconnecting')")
        .await;
    // The time of the last event is one of the pages, not of the browser.
    let is_in_zone = "const hour = (ago) => new Date(Date.now() - ago)
            .toLocaleTimeString('en', { hour: '2-digit', hourCycle: 'h23', timeZone: 'Asia/Tokyo' });
        const line = document.getElementById('feed-line').textContent;
        return [0, 60000].some((ago) => line.includes(`last event ${hour(ago)}:`))";
    assert_eq!(browser.run(is_in_zone).await, true);
    browser.wait_until("document.querySelector('#banner .banner')").await;
    assert!(browser.text("#banner").await.contains("interrupted"));
    browser.save_picture("interrupted").await;
}
