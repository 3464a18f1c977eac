//! Long transcripts and boards: a small first load, and earlier entries on demand.

use serde_json::json;

use super::{browser::Browser, scenery::Scenery};
use crate::http::client;

const MAX_FIRST_LOAD: usize = 150_000;
const N_MESSAGES: i64 = 5_000;

impl Scenery {
    /// Makes the transcript of the session long, with copies of its last message.
    async fn lengthen_transcript(&self) {
        let copy = "insert into dalsegno.messages
             select (jsonb_populate_record(m, jsonb_build_object('id', gen_random_uuid(), 'seq', g.seq,
                    'text', 'Message ' || g.seq || ': ' || repeat('The lamp was lit at dusk. ', 20)))).*
               from dalsegno.messages as m, generate_series($2 + 1, $3) as g (seq)
              where m.session_id = $1 and m.seq = $2";
        let last: i64 = sqlx::query_scalar("select last_seq from dalsegno.sessions where id = $1")
            .bind(self.session_id)
            .fetch_one(&self.app.pool)
            .await
            .unwrap();
        sqlx::query(copy)
            .bind(self.session_id)
            .bind(last)
            .bind(N_MESSAGES)
            .execute(&self.app.pool)
            .await
            .unwrap();
        sqlx::query("update dalsegno.sessions set last_seq = $2 where id = $1")
            .bind(self.session_id)
            .bind(N_MESSAGES)
            .execute(&self.app.pool)
            .await
            .unwrap();
    }

    /// Returns the bytes that a browser receives for a page and for all files that it loads.
    async fn first_load(&self, path: &str) -> usize {
        let mut n_bytes = self.received(path).await;
        for name in super::assets::files() {
            n_bytes += self.received(&format!("/assets/0/{name}")).await;
        }
        n_bytes
    }

    async fn received(&self, path: &str) -> usize {
        let accept = [("Accept-Encoding", "gzip")];
        let reply = client::send(self.app.address, "HEAD", path, &accept, "").await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        let length = reply.head.split("content-length: ").nth(1).unwrap();
        length.split("\r\n").next().unwrap().parse().unwrap()
    }
}

#[tokio::test]
async fn every_page_loads_at_most_150_kb_at_first() {
    let scenery = Scenery::new().await;
    scenery.lengthen_transcript().await;
    // The form of a brief has the whole text, and so has a version: here 200 KB.
    let whole = ["campaign-brief", "campaign-version", "campaign-versions"];
    let pages = scenery.pages().into_iter().filter(|(name, _)| !whole.contains(name));
    for (name, path) in pages {
        let n_bytes = scenery.first_load(&path).await;
        println!("{name}: {n_bytes} bytes");
        assert!(n_bytes <= MAX_FIRST_LOAD, "{name}: {n_bytes} bytes");
    }
}

#[tokio::test]
async fn a_transcript_of_5000_messages_begins_at_its_end_and_shows_earlier_ones_on_demand() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    scenery.lengthen_transcript().await;
    browser.resize(1440, 900).await;
    let url = scenery.url(&format!("/sessions/{}", scenery.session_id));
    browser.open(&url).await;
    browser.wait_until("window.htmx !== undefined").await;
    assert!(browser.has("#m5000").await);
    let rows = "return [...document.querySelectorAll('article.msg')].map((row) => Number(row.id.slice(1)))";
    let before = browser.run(rows).await;
    browser.click("#earlier a").await;
    browser
        .wait_until(&format!(
            "document.querySelectorAll('article.msg').length > {}",
            before.as_array().unwrap().len()
        ))
        .await;
    let after = browser.run(rows).await;
    let after: Vec<i64> = after.as_array().unwrap().iter().map(|it| it.as_i64().unwrap()).collect();
    let expected: Vec<i64> = (after[0]..=N_MESSAGES).collect();
    assert_eq!(after, expected, "each message once, in order");
    assert!(browser.complaints().await.is_empty());
    // Without a script, the link is another page.
    browser.without_scripts(true).await;
    browser.open(&url).await;
    browser.click("#earlier a").await;
    assert!(browser.url().await.contains("?before="), "{}", browser.url().await);
    assert!(!browser.has("#m5000").await && browser.has("article.msg").await);
}

#[tokio::test]
async fn a_board_shows_its_newest_posts_and_earlier_ones_on_demand() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let path = format!("/v1/campaigns/{}/posts", scenery.world.campaign.id);
    for number in 1..=45 {
        let body = json!({ "text": format!("Post number {number}.") }).to_string();
        client::send(scenery.app.address, "POST", &path, &[], &body).await;
    }
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/campaigns/{}", scenery.world.campaign.id))).await;
    browser.wait_until("window.htmx !== undefined").await;
    // The newest post is in view, and the page has not scrolled to it.
    let newest = "const box = document.getElementById('p46').getBoundingClientRect(); return scrollY === 0 && box.top > 0 && box.bottom < innerHeight";
    assert_eq!(browser.run(newest).await, true);
    browser.save_picture("campaign-board").await;
    for n_posts in [20, 40, 46] {
        browser
            .wait_until(&format!("document.querySelectorAll('.board .post').length === {n_posts}"))
            .await;
        if n_posts < 46 {
            browser.click("#earlier a").await;
        }
    }
    let posts = browser.run("return [...document.querySelectorAll('.board .post')].map((post) => Number(post.id.slice(1)))").await;
    let posts: Vec<i64> = posts.as_array().unwrap().iter().map(|it| it.as_i64().unwrap()).collect();
    assert_eq!(posts, (1..=46).rev().collect::<Vec<_>>());
    assert!(!browser.has("#earlier").await);
}
