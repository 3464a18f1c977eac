//! The board as seen by a viewer for whom one post in a thousand is meant.

use std::time::Instant;

use anyhow::Context as _;
use dalsegno::domain::{
    posts::Viewer,
    sessions::{self, SessionRow},
    turn_phases::{UnseenQuery, find_unseen_posts},
};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{at, common::size, fixture::Fixture};

fn n_posts() -> i64 {
    size::of(200_000, 1_000)
}

fn one_in() -> i64 {
    size::of(1_000, 10)
}

const WINDOW: i64 = 50;
const MAX_BYTES: i64 = 1024 * 1024;
fn n_runs() -> usize {
    size::of(200, 2)
}

const BAR_MS: f64 = 5.0;

/// Writes the same rows as posting, all at once.
const FILL: [&str; 3] = [
    "insert into dalsegno.boards (campaign_id, last_seq) select $1, max(n) from generate_series(1, $2) as n where n % $3 >= 0",
    "insert into dalsegno.posts (campaign_id, seq, id, posted_at, origin, sender, audience, text)
     select $1, n, gen_random_uuid(), now(), 'operator', 'operator', array[case when n % $3 = 7 then 'ann' else 'bea' end],
            'Post ' || n || repeat(' and some words', 20)
       from generate_series(1, $2) as n",
    "insert into dalsegno.post_viewers (campaign_id, viewer, seq)
     select $1, case when n % $3 = 7 then 'ann' else 'bea' end, n from generate_series(1, $2) as n",
];

pub async fn of_very_many(ground: &Fixture) -> anyhow::Result<Value> {
    let campaign_id = ground.campaign().await?;
    let session = session(ground, campaign_id).await?;
    for sql in FILL {
        sqlx::query(sql)
            .bind(campaign_id)
            .bind(n_posts())
            .bind(one_in())
            .execute(&ground.pool)
            .await?;
    }
    sqlx::query("analyze dalsegno.posts, dalsegno.post_viewers").execute(&ground.pool).await?;
    let mut conn = ground.pool.acquire().await?;
    let mut sparse = timed(&mut conn, &session, Viewer::Reader("ann")).await?;
    let mut dense = timed(&mut conn, &session, Viewer::Reader("bea")).await?;
    let mut lead = timed(&mut conn, &session, Viewer::All).await?;
    Ok(json!({
        "scenario": "window", "posts": n_posts(), "visible_one_in": one_in(), "window": WINDOW,
        "p50_ms": at(&mut sparse, 0.5), "p99_ms": at(&mut sparse, 0.99), "bar_ms": BAR_MS,
        "p99_ms_of_one_who_sees_most": at(&mut dense, 0.99), "p99_ms_of_the_lead": at(&mut lead, 0.99),
    }))
}

/// Creates a session that has had a turn before the first post.
async fn session(ground: &Fixture, campaign_id: Uuid) -> anyhow::Result<SessionRow> {
    let task = ground.add(campaign_id, "Begin.").await?;
    let worker = ground.work()?;
    let session_id = ground.done(task.id).await?.session_id;
    worker.stop().await?;
    Ok(sessions::read_live(&ground.pool, session_id.context("the turn has failed")?).await?)
}

async fn timed(
    conn: &mut PgConnection,
    session: &SessionRow,
    viewer: Viewer<'_>,
) -> anyhow::Result<Vec<f64>> {
    let look = UnseenQuery {
        session,
        task_id: Uuid::new_v4(),
        viewer,
        window: WINDOW,
        max_bytes: MAX_BYTES,
    };
    let mut millis = Vec::with_capacity(n_runs());
    for _ in 0..n_runs() {
        let began = Instant::now();
        let seen = find_unseen_posts(&mut *conn, &look).await?;
        millis.push(began.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(i64::try_from(seen.posts.len()) == Ok(WINDOW), "the window is not full");
    }
    Ok(millis)
}
