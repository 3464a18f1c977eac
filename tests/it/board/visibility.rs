//! Visibility of posts, among very many posts, and for names that are parts of each other.

use dalsegno::domain::{
    posts::{ListDirection, New, Sender, SourceTurn, Viewer, list_page, reader},
    sessions::SessionRow,
    turn_phases::{UnseenQuery, find_unseen_posts},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::{by_operator, post, to};
use crate::conversations::world::{TurnSettings, World};

/// Names that are parts of each other, and instances of one agent.
const READERS: [(&str, &str); 7] = [
    ("an", "main"),
    ("ann", "main"),
    ("anna", "main"),
    ("ann", "a"),
    ("ann", "an"),
    ("al", "main"),
    ("all_", "main"),
];

#[tokio::test]
async fn a_post_is_hidden_from_agents_whose_name_only_resembles_its_audience() {
    let world = World::new().await;
    let id = world.campaign.id;
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let readers: Vec<String> =
        READERS.iter().map(|(agent, instance)| reader(agent, instance).into_owned()).collect();
    let mut expected: Vec<Vec<String>> = vec![Vec::new(); readers.len()];
    let mut everything = Vec::new();
    for number in 0..400 {
        let mut names: Vec<&str> = readers.iter().map(String::as_str).collect();
        names.extend(["operator", "all"]);
        let n_names = random.random_range(1..=3);
        let names: Vec<&str> = names.sample(&mut random, n_names).copied().collect();
        let (sender, by) = match random.random_range(0..=readers.len()) {
            who if who < readers.len() => {
                let (agent, instance) = READERS[who];
                let (task_id, session_id) = (Uuid::new_v4(), Uuid::new_v4());
                let said =
                    SourceTurn { task_id, session_id, turn: 1, message_id: Some(Uuid::new_v4()) };
                (Sender::Agent { agent, instance, said }, Some(who))
            }
            _ => (Sender::Operator { author: "cli:ann@host" }, None),
        };
        let (audience, text) = (to(&names), format!("{number} to {names:?}"));
        post(&world, &New { sender, ..by_operator(id, &audience, &text) }).await;
        for (who, name) in readers.iter().enumerate() {
            if names.contains(&"all") || names.contains(&name.as_str()) || by == Some(who) {
                expected[who].push(text.clone());
            }
        }
        everything.push(text);
    }
    let seen = async |viewer| {
        let posts =
            list_page(&world.pool, id, viewer, ListDirection::After(0), 1000).await.unwrap();
        posts.into_iter().map(|post| post.text).collect::<Vec<_>>()
    };
    for (name, expected) in readers.iter().zip(&expected) {
        assert_eq!(&seen(Viewer::Reader(name)).await, expected, "{name}");
    }
    assert_eq!(seen(Viewer::All).await, everything);
    for outsider in ["", "a", "ann/", "ann/main", "ANN", "operator", "%", "system"] {
        let all = seen(Viewer::Reader(outsider)).await;
        assert!(all.iter().all(|text| text.contains("\"all\"")), "{outsider}: {all:?}");
    }
}

const POSTS: i64 = 200_000;
/// One post in a thousand is for this agent.
const RARE_READER: &str = "ann";
const N_READS: usize = 7;
/// Limit for the rows that are read, of 600,000.
const MOST_ROWS: i64 = 2_000;

/// Writes the same rows as [`post`], in bulk.
async fn fill(world: &World) {
    let id = world.campaign.id;
    for sql in [
        "insert into dalsegno.boards values ($1, 200000)",
        "insert into dalsegno.posts (campaign_id, seq, id, posted_at, origin, sender, audience, text)
         select $1, n, gen_random_uuid(), now(), 'operator', 'operator', array[case when n % 1000 = 7 then 'ann' else 'anna' end],
                'Post ' || n || repeat(' and some words', 20)
           from generate_series(1, 200000) as n",
        "insert into dalsegno.post_viewers (campaign_id, viewer, seq)
         select $1, case when n % 1000 = 7 then 'ann' else 'anna' end, n from generate_series(1, 200000) as n",
    ] {
        sqlx::query(sql).bind(id).execute(&world.pool).await.unwrap();
    }
}

/// Sets up a session of five hundred messages whose turn is about to read the board.
async fn session(world: &World) -> SessionRow {
    let live = world.turn("Begin.", TurnSettings::default()).await.session;
    let sql = "insert into dalsegno.messages (session_id, seq, id, created_at, weight, turn, role, text, digest)
               select $1, 10 + n, gen_random_uuid(), now(), 1, 1, case n % 2 when 0 then 'user' else 'assistant' end, 'Said.',
                      sha256('x')
                 from generate_series(1, 500) as n";
    sqlx::query(sql).bind(live.id).execute(&world.pool).await.unwrap();
    live
}

/// Returns the rows that this transaction has read from the tables of board and conversation.
async fn rows_read(conn: &mut PgConnection) -> i64 {
    let sql = "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_xact_user_tables
                where schemaname = 'dalsegno' and relname in ('boards', 'posts', 'post_viewers', 'messages')";
    sqlx::query_scalar(sql).fetch_one(conn).await.unwrap()
}

/// Returns the most rows that one of `N_READS` reads takes. After five reads, Postgres may use a generic plan.
async fn rows_of_a_look(conn: &mut PgConnection, session: &SessionRow, viewer: Viewer<'_>) -> i64 {
    let look = UnseenQuery {
        session,
        task_id: Uuid::new_v4(),
        viewer,
        window: 50,
        max_bytes: 1024 * 1024,
    };
    let (after, mut most) = (session.board_cursor, 0);
    for _ in 0..N_READS {
        let mut tx = conn.begin().await.unwrap();
        let before = rows_read(&mut tx).await;
        let seen = find_unseen_posts(&mut tx, &look).await.unwrap();
        most = most.max(rows_read(&mut tx).await - before);
        tx.rollback().await.unwrap();
        assert_eq!(seen.posts.len(), 50);
        if viewer == Viewer::Reader(RARE_READER) {
            let seqs: Vec<i64> = seen.posts.iter().map(|post| post.seq).collect();
            let hers: Vec<i64> = (after + 1..=POSTS).filter(|seq| seq % 1000 == 7).collect();
            assert_eq!(seqs, hers[hers.len() - 50..]);
            assert_eq!(seen.n_older, i64::try_from(hers.len() - 50).unwrap());
        }
    }
    println!("{viewer:?} after {after}: {most} rows");
    most
}

/// Returns the same for a page that a person reads.
async fn rows_of_a_page(conn: &mut PgConnection, world: &World, way: ListDirection) -> i64 {
    let mut most = 0;
    for _ in 0..N_READS {
        let mut tx = conn.begin().await.unwrap();
        let (viewer, before) = (Viewer::Reader(RARE_READER), rows_read(&mut tx).await);
        let page = list_page(&mut *tx, world.campaign.id, viewer, way, 50).await.unwrap();
        most = most.max(rows_read(&mut tx).await - before);
        tx.rollback().await.unwrap();
        assert!(page.len() == 50 && page.iter().all(|post| post.seq % 1000 == 7));
    }
    println!("a page {way:?}: {most} rows");
    most
}

#[tokio::test]
async fn a_small_window_over_very_many_posts_reads_few_rows() {
    let world = World::new().await;
    let begins = SessionRow { context_tokens: 0, ..session(&world).await };
    fill(&world).await;
    let at = |board_cursor| SessionRow { context_tokens: 1, board_cursor, ..begins.clone() };
    let mut conn = world.pool.acquire().await.unwrap();
    // Without statistics, as just after growth, and with them.
    for analyse in [false, true] {
        if analyse {
            let sql = "analyze dalsegno.posts, dalsegno.post_viewers, dalsegno.messages";
            sqlx::query(sql).execute(&mut *conn).await.unwrap();
        }
        for (viewer, session) in [
            (Viewer::Reader(RARE_READER), &begins),
            (Viewer::Reader(RARE_READER), &at(0)),
            (Viewer::Reader(RARE_READER), &at(150_000)),
            (Viewer::Reader("anna"), &at(0)),
            (Viewer::All, &at(0)),
        ] {
            let rows = rows_of_a_look(&mut conn, session, viewer).await;
            assert!(rows <= MOST_ROWS, "{viewer:?}: {rows}");
        }
        for way in [
            ListDirection::After(0),
            ListDirection::After(100_000),
            ListDirection::Before(i64::MAX),
        ] {
            let rows = rows_of_a_page(&mut conn, &world, way).await;
            assert!(rows <= MOST_ROWS, "{way:?}: {rows}");
        }
    }
}
