//! The page of a session: the transcript beside what the model sees.

use serde_json::{Value, json};

use super::{browser::Browser, scenery::Scenery};
use crate::conversations::world::TurnSettings;

impl Scenery {
    /// Appends a message to the transcript of the session, with the properties of its last one. `posts` are their places on the board.
    async fn append(&self, role: &str, text: &str, posts: Option<&[i64]>) {
        let copy = "insert into dalsegno.messages
             select (jsonb_populate_record(m, jsonb_build_object('id', gen_random_uuid(), 'seq', m.seq + 1, 'role', $2::text, 'text', $3::text,
                                                                 'posts', $4::bigint[]))).*
               from dalsegno.messages as m where m.session_id = $1 order by m.seq desc limit 1";
        let copy = sqlx::query(copy).bind(self.session_id).bind(role).bind(text).bind(posts);
        copy.execute(&self.app.pool).await.unwrap();
        let last = "update dalsegno.sessions set last_seq = last_seq + 1 where id = $1";
        sqlx::query(last).bind(self.session_id).execute(&self.app.pool).await.unwrap();
    }

    /// Stores a context of these parts as the last one of the session.
    pub async fn store_context(&self, parts: Value) {
        let store = "insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, sha256, manifest)
             select $1, max(number), 9, '2026-11-20 12:00+00', 900, decode(repeat('00', 32), 'hex'), $2
               from dalsegno.turns where session_id = $1 and ended_at is not null";
        sqlx::query(store)
            .bind(self.session_id)
            .bind(json!({ "parts": parts }))
            .execute(&self.app.pool)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn messages_of_an_undone_compaction_are_sent_again() {
    let scenery = Scenery::new().await;
    scenery
        .store_context(json!([
            { "kind": "summary", "tokens": 675, "sent": true, "why": "stands_in" },
            { "kind": "transcript", "span": { "from_seq": 1, "to_seq": 4 }, "tokens": 0, "sent": false, "why": "folded" },
        ]))
        .await;
    let undone = "insert into dalsegno.compactions (session_id, from_seq, to_seq, tokens_before, tokens_after, created_at, applied_at, undone_at,
                generation, parent, turn, cause, outcome, summary)
         values ($1, 1, 4, 9000, 675, '2026-11-20 11:50+00', '2026-11-20 11:50+00', '2026-11-20 12:01+00', 1, 0, 1, 'manual', 'applied', 'A lamp.')";
    sqlx::query(undone).bind(scenery.session_id).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&format!("/sessions/{}", scenery.session_id)).await;
    assert!(!page.contains("covered by the summary"), "{page}");
    assert!(page.contains("again, without the summary"), "{page}");
    assert!(page.contains("Its compaction was undone after this call"), "{page}");
}

#[tokio::test]
async fn posts_are_shown_as_posts() {
    let scenery = Scenery::new().await;
    let posts = json!({ "left_out": 2, "posts": [{
        "id": "00000000-0000-7000-8000-00000000000a", "seq": 13, "sender": "ann", "to": "copywriter",
        "posted_at": "2026-11-20T11:40:00Z", "text": "The lamp is **dark**. <script>alert(1)</script>",
    }] });
    scenery.append("notice", &posts.to_string(), Some(&[13])).await;
    let page = scenery.page(&format!("/sessions/{}", scenery.session_id)).await;
    assert!(!page.contains("left_out"), "{page}");
    for part in [
        "<strong>dark</strong>",
        "2 further posts were left out",
        "1 post of <bdi>ann</bdi>",
        "#p13\">post 13</a>",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("<script>alert"), "{page}");
}

#[tokio::test]
async fn answers_are_not_cut_at_a_height() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let long = "The lamp was lit at dusk.\n\n".repeat(120);
    scenery.append("assistant", &long, None).await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/sessions/{}", scenery.session_id))).await;
    let is_cut = "return [...document.querySelectorAll('.msg:not(.seen) .said')].some((it) => it.scrollHeight > it.clientHeight + 1)";
    assert_eq!(browser.run(is_cut).await, false);
    browser.save_picture("session-long-answers").await;
}

#[tokio::test]
async fn the_last_visit_is_told_in_the_time_zone_of_the_pages() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::with(&[("scheduler.time_zone", "Asia/Tokyo")]).await;
    let url = scenery.url("/");
    sqlx::query("update dalsegno.tasks set state = 'failed', started_at = created_at, ended_at = '2026-11-20 11:30+00', error = 'no login' where id = $1")
        .bind(scenery.waiting)
        .execute(&scenery.app.pool)
        .await
        .unwrap();
    browser.open(&url).await;
    browser.run("localStorage.setItem('visit /', JSON.stringify({ newest: 1, at: Date.UTC(2026, 10, 20, 12, 0) })); window.addEventListener('pagehide', () => localStorage.setItem('visit /', JSON.stringify({ newest: 1, at: Date.UTC(2026, 10, 20, 12, 0) })))").await;
    browser.open(&url).await;
    browser.wait_until("document.querySelector('.visit')").await;
    let words = browser.text(".visit").await;
    assert!(words.contains("21:00"), "{words}");
}

#[tokio::test]
async fn turns_of_a_session_are_counted_apart_from_those_of_the_session_before() {
    let scenery = Scenery::new().await;
    let world = &scenery.world;
    let now = TurnSettings::default();
    let then = TurnSettings { model: "sim-2", ..now };
    let mut ids = Vec::new();
    for (prompt, settings) in [("Part one.", now), ("Part two.", then)] {
        let task = scenery.add_apart(prompt).await;
        let (resolved, begun) = world.begin(&task, world.lease(), settings).await;
        world.commit(&begun, "The lamp was lit.", settings).await.unwrap();
        ids.push(resolved.session.id);
    }
    let (before, after) = (ids[0], ids[1]);
    let page = scenery.page(&format!("/sessions/{after}/turns")).await;
    let link = format!("1 earlier turn: <a rel=\"prev\" href=\"/sessions/{before}/turns\">");
    assert!(page.contains("<span>1 turn</span>") && page.contains(&link), "{page}");
    let page = scenery.page(&format!("/sessions/{after}")).await;
    assert!(page.contains(&format!("1 · <a href=\"/sessions/{after}/turns\">all</a>")), "{page}");
    let page = scenery.page(&format!("/sessions/{before}/turns")).await;
    assert!(page.contains("<span>1 turn</span>") && !page.contains("1 earlier turn"), "{page}");
}
