//! `/v1/feed`: in order, without gaps or repetitions, for readers that reconnect and for slow ones.

use dalsegno::domain::{
    feed::{self, EventFilter, FeedItem, Kind, Watch},
    tasks,
};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Fixture, Stream, client::ReceivedEvent};
use crate::{
    app::{SOON, noon},
    conversations::world::{TurnSettings, World},
    service::Service,
};

/// The statement that reads the next events for a reader.
const PAGE: &str = include_str!("../../../src/domain/feed/page.sql");

fn new(campaign_id: Option<Uuid>, kind: Kind, n: usize, text: &str) -> feed::New {
    let data = json!({ "n": n, "text": text });
    feed::New { campaign_id, task_id: None, session_id: None, kind, data }
}

async fn append_event(executor: impl PgExecutor<'_>, n: usize) {
    feed::append(executor, &[new(None, Kind::TurnStarted, n, "")], noon()).await.unwrap();
}

fn n(sent: &ReceivedEvent) -> usize {
    let data: Value = serde_json::from_str(&sent.data).unwrap();
    data["data"]["n"].as_u64().unwrap_or_else(|| panic!("{sent:?}")) as usize
}

impl Fixture {
    async fn feed(&self, query: &str, last: Option<&str>) -> Stream {
        Stream::open(self.app.address, &format!("/v1/feed{query}"), last).await.ok().unwrap()
    }
}

#[tokio::test]
async fn a_feed_reader_gets_the_requested_events() {
    let fixture = Fixture::new().await;
    let campaign = fixture.world.campaign.id;
    let events = [
        new(None, Kind::TurnStarted, 1, ""),
        new(Some(campaign), Kind::TurnStarted, 2, ""),
        new(Some(campaign), Kind::TurnDone, 3, ""),
        new(Some(Uuid::nil()), Kind::TurnDone, 4, ""),
    ];
    feed::append(&fixture.world.pool, &events, noon()).await.unwrap();
    let told = async |query: &str, n_events: usize| {
        let mut stream = fixture.feed(query, None).await;
        let mut told = Vec::new();
        for _ in 0..n_events {
            told.push(n(&stream.next().await.unwrap()));
        }
        told
    };
    assert_eq!(told("?after=0", 4).await, [1, 2, 3, 4]);
    assert_eq!(told(&format!("?after=0&campaign_id={campaign}"), 2).await, [2, 3]);
    assert_eq!(told("?after=0&kinds=turn.done", 2).await, [3, 4]);
    let both = format!("?after=0&kinds=turn.failed,turn.done&campaign_id={campaign}");
    assert_eq!(told(&both, 1).await, [3]);
    let unknown = fixture.get("/v1/feed?kinds=turn.done,task.nope").await.problem(400, "bad_query");
    assert!(unknown.contains("`task.nope`: use `agent.paused`, `"), "{unknown}");
    // Filtered events do not arrive later.
    let mut stream = fixture.feed("?after=0&kinds=turn.failed", None).await;
    let failed = new(None, Kind::TurnFailed, 5, "");
    feed::append(&fixture.world.pool, &[failed], noon()).await.unwrap();
    assert_eq!(n(&stream.next().await.unwrap()), 5);
}

#[tokio::test]
async fn a_feed_reader_follows_one_agent_or_one_session_and_resumes() {
    let fixture = Fixture::new().await;
    let world = &fixture.world;
    let task = world.add("Write.").await;
    let other = tasks::New { instance: "2", ..world.ask("Write.") };
    let other = world.add_new(&other).await.unwrap().task;
    let planner = world.catalogue.agent("planner").unwrap();
    let planned = tasks::New { agent: planner, ..world.ask("Plan.") };
    let planned = world.add_new(&planned).await.unwrap().task;
    let session = world.begin(&task, world.lease(), TurnSettings::default()).await.0.session.id;
    let of_task =
        |n, task_id| feed::New { task_id: Some(task_id), ..new(None, Kind::TurnDone, n, "") };
    let events = [
        feed::New { session_id: Some(session), ..of_task(1, task.id) },
        of_task(2, other.id),
        of_task(3, planned.id),
        feed::New { session_id: Some(session), ..new(None, Kind::TurnDone, 4, "") },
        feed::New { data: json!({ "n": 5, "agent": "copywriter/2" }), ..of_task(5, planned.id) },
        feed::New {
            data: json!({ "n": 6, "agent": "copywriter" }),
            ..new(None, Kind::TurnDone, 6, "")
        },
        new(None, Kind::TurnDone, 7, ""),
    ];
    feed::append(&world.pool, &events, noon()).await.unwrap();
    let told = async |query: &str, last: Option<&str>, n_events: usize| {
        let query = format!("?after=0&kinds=turn.done&{query}");
        let mut stream = fixture.feed(&query, last).await;
        let mut told = Vec::new();
        for _ in 0..n_events {
            told.push(stream.next().await.unwrap());
        }
        told
    };
    let numbers = |told: &[ReceivedEvent]| told.iter().map(n).collect::<Vec<_>>();
    let of_agent = told("agent=copywriter", None, 5).await;
    assert_eq!(numbers(&of_agent), [1, 2, 4, 5, 6]);
    // An event without an instance concerns all of them.
    assert_eq!(numbers(&told("agent=copywriter_2", None, 3).await), [2, 5, 6]);
    assert_eq!(numbers(&told("agent=planner", None, 1).await), [3]);
    let of_session = format!("session_id={session}");
    assert_eq!(numbers(&told(&of_session, None, 2).await), [1, 4]);
    let both = format!("{of_session}&agent=copywriter");
    assert_eq!(numbers(&told(&both, None, 2).await), [1, 4]);
    // A reader that reconnects goes on behind the last event that it received.
    assert_eq!(numbers(&told("agent=copywriter", Some(&of_agent[1].id), 3).await), [4, 5, 6]);
    let second = told(&of_session, Some(&of_agent[0].id), 1).await;
    assert_eq!(numbers(&second), [4]);
    let event: Value = serde_json::from_str(&second[0].data).unwrap();
    assert_eq!((&event["agent"], &event["instance"]), (&json!("copywriter"), &json!("main")));
    fixture.get("/v1/feed?agent=a/b/c").await.problem(400, "bad_query");
    fixture.get("/v1/feed?session_id=one").await.problem(400, "bad_query");
}

#[tokio::test]
async fn a_feed_of_one_agent_or_session_reads_few_rows_of_a_large_feed() {
    let world = World::new().await;
    let (session, campaign) = (Uuid::from_u128(7), world.campaign.id);
    let fill = "insert into dalsegno.feed (created_at, campaign_id, session_id, kind, data)
                select $1, $2, case when n % 4000 = 0 then $3 else gen_random_uuid() end, 'turn.progress',
                       jsonb_build_object('agent', case when n % 4000 = 0 then 'rare' else 'a' || n % 100 end)
                  from generate_series(1, 40000) as n";
    let fill = sqlx::query(fill).bind(noon()).bind(campaign).bind(session);
    fill.execute(&world.pool).await.unwrap();
    let mut conn = PgConnection::connect(&world.url()).await.unwrap();
    sqlx::query("vacuum analyze dalsegno.feed").execute(&mut conn).await.unwrap();
    // With the generic plan that a prepared statement gets after some calls.
    sqlx::query("set plan_cache_mode = force_generic_plan").execute(&mut conn).await.unwrap();
    let types = "bigint, bigint, uuid, text[], bigint, bigint, uuid[], uuid, text, text";
    let prepare = format!("prepare page ({types}) as {PAGE}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(prepare)).execute(&mut conn).await.unwrap();
    let of_session = format!("'{session}', null, null");
    for filter in ["null, 'rare', null", of_session.as_str()] {
        let mut tx = conn.begin().await.unwrap();
        let page =
            format!("execute page (0, 1000000, '{campaign}', null, 100, 100000, null, {filter})");
        let page = sqlx::raw_sql(sqlx::AssertSqlSafe(page)).fetch_all(&mut *tx).await.unwrap();
        assert_eq!(page.len(), 10, "{filter}");
        let read = "select coalesce(seq_scan, 0)::bigint, coalesce(idx_tup_fetch, 0)::bigint
                      from pg_stat_xact_user_tables where schemaname = 'dalsegno' and relname = 'feed'";
        let read: (i64, i64) = sqlx::query_as(read).fetch_one(&mut *tx).await.unwrap();
        assert!(read.0 == 0 && read.1 <= 20, "{filter}: {read:?}");
        tx.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn a_new_feed_reader_gets_the_start_position() {
    let fixture = Fixture::new().await;
    append_event(&fixture.world.pool, 1).await;
    let mut slow = fixture.world.pool.begin().await.unwrap();
    append_event(&mut *slow, 2).await;
    append_event(&fixture.world.pool, 3).await;
    let mut stream = fixture.feed("", None).await;
    // Its id is below a visible one: the stream does not begin until the transaction has ended.
    slow.commit().await.unwrap();
    let begin = stream.next().await.unwrap();
    assert_eq!(begin.event, "begin");
    append_event(&fixture.world.pool, 4).await;
    assert_eq!(n(&stream.next().await.unwrap()), 4);
    // A reader that disconnects at once and reconnects misses nothing.
    let mut again = fixture.feed("", Some(&begin.id)).await;
    assert_eq!(n(&again.next().await.unwrap()), 4);
}

/// The situation after a restore, or after a failover that lost the last events.
#[tokio::test]
async fn a_feed_reader_ahead_of_the_database_gets_the_start_position() {
    let fixture = Fixture::new().await;
    append_event(&fixture.world.pool, 1).await;
    let mut stream = fixture.feed("", Some("1000000")).await;
    let begin = tokio::time::timeout(SOON, stream.next()).await.expect("an event arrives");
    assert_eq!(begin.unwrap().event, "begin");
    append_event(&fixture.world.pool, 2).await;
    assert_eq!(n(&stream.next().await.unwrap()), 2);
}

#[tokio::test]
async fn an_invalid_feed_position_is_refused() {
    let fixture = Fixture::new().await;
    let refused = async |query: &str, last: Option<&str>| {
        Stream::open(fixture.app.address, &format!("/v1/feed{query}"), last).await.err().unwrap()
    };
    refused("", Some("yesterday")).await.problem(400, "bad_last_event_id");
    refused("?after=yesterday", None).await.problem(400, "bad_query");
    refused("?kind=turn.done", None).await.problem(400, "bad_query");
}

/// Many readers in sequence, each continuing after the previous one, beside writers that commit out of order.
#[tokio::test]
async fn a_reconnecting_feed_reader_repeats_no_event_and_misses_none() {
    const ROUNDS: usize = if cfg!(feature = "chaos") { 1_000 } else { 200 };
    let fixture = Fixture::new().await;
    let pool = fixture.world.pool.clone();
    let writer = tokio::spawn(async move {
        for round in 0..ROUNDS {
            let mut slow = pool.begin().await.unwrap();
            append_event(&mut *slow, round * 3).await;
            append_event(&pool, round * 3 + 1).await;
            append_event(&mut *slow, round * 3 + 2).await;
            match round % 7 {
                // A permanent gap.
                0 => slow.rollback().await.unwrap(),
                _ => slow.commit().await.unwrap(),
            }
        }
    });
    let gone = |n: usize| (n / 3).is_multiple_of(7) && n % 3 != 1;
    let n_expected = (0..ROUNDS * 3).filter(|n| !gone(*n)).count();
    let (mut seen, mut last, mut n_readers) = (Vec::new(), "0".to_owned(), 0);
    while seen.len() < n_expected {
        let mut stream = fixture.feed("", Some(&last)).await;
        n_readers += 1;
        let wanted = if n_readers < ROUNDS { 1 + n_readers % 3 } else { n_expected };
        for _ in 0..wanted.min(n_expected - seen.len()) {
            let sent = stream.next().await.unwrap();
            seen.push(n(&sent));
            let id = |text: &str| text.parse::<i64>().unwrap();
            assert!(id(&sent.id) > id(&last), "{last} and then {sent:?}");
            last = sent.id;
        }
    }
    writer.await.unwrap();
    assert!(n_readers >= ROUNDS, "only {n_readers} readers");
    seen.sort_unstable();
    let expected: Vec<usize> = (0..ROUNDS * 3).filter(|n| !gone(*n)).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_slow_feed_reader_uses_little_memory_and_gets_everything() {
    const EVENTS: usize = 4_000;
    let fixture = Fixture::new().await;
    let long = "x".repeat(4_000);
    let events: Vec<_> = (0..EVENTS).map(|n| new(None, Kind::TurnProgress, n, &long)).collect();
    feed::append(&fixture.world.pool, &events, noon()).await.unwrap();
    // Memory held for a reader between two reads, by the length of its debug output.
    let mut watch =
        Watch::begin(&fixture.world.pool, EventFilter::default(), Some(0)).await.unwrap();
    assert!(matches!(watch.next().await.unwrap(), FeedItem::Event(_)));
    let held = format!("{watch:?}").len();
    assert!(held > 8_000, "the test measures the wrong value: {held}");
    assert!(held < 64 * 1024, "{held} bytes are buffered for a reader");
    // Sixteen megabytes exceed the buffers: the service waits for the slow reader, not the other way round.
    let mut slow = fixture.feed("?after=0", None).await;
    let mut quick = fixture.feed("?after=0", None).await;
    for expected in 0..EVENTS {
        assert_eq!(n(&quick.next().await.unwrap()), expected);
    }
    for expected in 0..EVENTS {
        assert_eq!(n(&slow.next().await.unwrap()), expected);
    }
}

#[tokio::test]
async fn fifty_open_streams_do_not_delay_the_end_of_a_service() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let url = world.url();
    // A service that waited for the readers would not end within this test.
    let settings = [
        ("DATABASE_URL", url.as_str()),
        ("DALSEGNO_SHUTDOWN__DRAIN_TIMEOUT_SECS", "3600"),
        ("DALSEGNO_SHUTDOWN__STOP_TIMEOUT_SECS", "7200"),
    ];
    let mut service = Service::start(folder.path(), &settings).await;
    let task = world.add_later("Part one.").await;
    let mut streams = Vec::new();
    for n_stream in 0..50 {
        let path = match n_stream % 2 {
            0 => "/v1/feed".to_owned(),
            _ => format!("/v1/tasks/{}/events", task.id),
        };
        let mut stream = Stream::open(service.address, &path, None).await.ok().unwrap();
        stream.next().await.unwrap();
        streams.push(stream);
    }
    service.signal("TERM");
    assert!(service.ended().await.success());
    for mut stream in streams {
        while stream.next().await.is_some() {}
    }
}
