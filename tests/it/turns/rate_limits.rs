//! Tasks that wait for rate limits, and the shares of workers.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use dalsegno::{
    clock::Clock as _,
    domain::{
        campaigns, explanations,
        rate_limits::{self, Lease, Measure, RateLimit, WantedShare},
        tasks::{State, Task},
    },
};
use serde_json::Value;
use uuid::Uuid;

use super::Fixture;
use crate::{
    app::{TestApp, eventually, noon},
    providers::conformance::{
        dialects::{Answer, OpenAi},
        server::{Play, ScriptedServer},
    },
};

const ONE_PER_SECOND: (&str, &str) =
    ("rate_limits.rules", "[{ provider = \"sim\", requests_per_minute = 60 }]");
/// Amount that a bucket of 60 requests per minute holds.
const BURST: i64 = 3;

impl Fixture {
    /// Adds a task for each of these conversations of a campaign.
    async fn add_many(&self, campaign_id: Uuid, prefix: i32, n: i32) {
        let add = "select dalsegno.add_task($1, 'writer', 'Write.', instance => ($2 + i)::text) from generate_series(1, $3) as i";
        let added = sqlx::query(add).bind(campaign_id).bind(prefix).bind(n);
        added.execute(&self.pool).await.unwrap();
    }

    async fn n_begun(&self) -> i64 {
        self.count("select count(*) from dalsegno.turns").await
    }

    /// Waits until this many turns have begun and the other tasks wait for a limit.
    async fn begun_and_waiting(&self, begun: i64, waiting: i64) {
        eventually("turns have begun, and the other tasks wait", async || {
            let waits = "select count(*) from dalsegno.rate_limit_waits where granted_at is null";
            let busy = "select count(*) from dalsegno.jobs where state in ('ready', 'running') and kind = 'run_turn'";
            let counts = (self.n_begun().await, self.count(waits).await, self.count(busy).await);
            (counts == (begun, waiting, 0)).then_some(())
        })
        .await;
    }

    async fn explained_wait(&self, task: &Task) -> explanations::Explanation {
        let mut conn = self.pool.acquire().await.unwrap();
        explanations::explain(&mut conn, task.id).await.unwrap()
    }
}

#[tokio::test]
async fn a_task_that_waits_for_a_limit_holds_no_slot_uses_no_attempt_and_says_why() {
    let fixture = Fixture::new(&[ONE_PER_SECOND]).await;
    let worker = fixture.start_worker().await;
    let mut tasks = Vec::new();
    for instance in 2..10 {
        tasks.push(fixture.add_for("writer", &instance.to_string(), "Write.").await);
    }
    fixture.begun_and_waiting(BURST, 5).await;
    let mut waiting = Vec::new();
    for task in &tasks {
        if fixture.task(task).await.state == State::Queued {
            waiting.push(fixture.explained_wait(task).await.because);
        }
    }
    let limit = "It is waiting for the provider `sim`: 60 requests per minute, next slot in 1 s.";
    assert!(waiting.iter().all(|because| because.starts_with(limit)), "{waiting:?}");
    assert!(waiting.iter().any(|because| because.contains("It is the next one.")), "{waiting:?}");
    assert!(
        waiting.iter().any(|because| because.contains("4 tasks are before it.")),
        "{waiting:?}"
    );
    let limits = rate_limits::list(&fixture.pool, fixture.clock.now()).await.unwrap();
    let [limit] = &limits[..] else { panic!("{limits:?}") };
    assert_eq!(limit.amount_words(), "60 requests per minute");
    assert_eq!((limit.waiting_tasks, limit.campaign_id), (5, None), "{limit:?}");
    assert!(limit.available < 1.0 && limit.waiting_since == Some(noon()), "{limit:?}");
    let events = fixture.feed().await.into_iter().filter(|event| event.kind == "task.waiting");
    let n_waited = events.count();
    // One that was refused while a lease was on its way waits for a moment, too.
    assert!((5..=8).contains(&n_waited), "{n_waited}");
    fixture.advance(TimeDelta::seconds(1));
    fixture.begun_and_waiting(BURST + 1, 4).await;
    fixture.advance(TimeDelta::seconds(60));
    fixture.begun_and_waiting(2 * BURST + 1, 1).await;
    fixture.advance(TimeDelta::seconds(60));
    for task in &tasks {
        fixture.done(task).await;
        let turns = fixture.turns(task).await;
        assert_eq!((turns.len(), turns[0].attempt), (1, 1));
    }
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(fixture.count("select count(*) from dalsegno.rate_limit_waits").await, 0);
}

#[tokio::test]
async fn limits_are_listed_with_their_campaign_and_the_tasks_that_wait() {
    let rules = "[{ campaign = \"*\", requests_per_minute = 60 }]";
    let fixture = Fixture::new(&[("rate_limits.rules", rules)]).await;
    let worker = fixture.start_worker().await;
    fixture.add_many(fixture.campaign.id, 100, 5).await;
    fixture.begun_and_waiting(BURST, 2).await;
    let clock = Arc::new(fixture.clock.clone());
    let app = TestApp::start_over(fixture.pool.clone(), &[], clock).await;
    let listed: Value = serde_json::from_str(&app.get("/v1/rate-limits").await.body).unwrap();
    let limit = &listed["items"][0];
    assert_eq!(limit["measure"], "requests", "{listed}");
    assert_eq!(limit["campaign_id"], fixture.campaign.id.to_string(), "{listed}");
    assert_eq!(limit["waiting_tasks"], 2, "{listed}");
    let page = app.get("/work").await.body;
    for words in ["<h2>Rate limits</h2>", "60 requests per minute", "waits_for=condition\">2</a>"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    worker.stop().await;
}

#[tokio::test]
async fn without_rules_there_is_nothing_about_limits() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write.").await).await;
    worker.stop().await;
    let rows = "select (select count(*) from dalsegno.rate_limits) + (select count(*) from dalsegno.rate_limit_calls)
                     + (select count(*) from dalsegno.rate_limit_waits)";
    assert_eq!(fixture.count(rows).await, 0);
    let calls = "select calls from pg_stat_user_functions where funcname = 'lease_rate_limits'";
    let calls: Option<i64> = sqlx::query_scalar(calls).fetch_optional(&fixture.pool).await.unwrap();
    assert_eq!(calls, None);
}

#[tokio::test]
async fn a_short_queue_is_not_behind_the_long_one_of_another_campaign() {
    let fixture = Fixture::new(&[ONE_PER_SECOND]).await;
    let new = campaigns::New {
        name: "Short",
        brief: "Three parts.",
        client_context: None,
        limit: Default::default(),
    };
    let mut conn = fixture.pool.acquire().await.unwrap();
    let short = campaigns::create(&mut conn, &new, noon()).await.unwrap();
    drop(conn);
    let workers = [fixture.start_worker().await, fixture.start_worker().await];
    fixture.add_many(fixture.campaign.id, 100, 30).await;
    fixture.begun_and_waiting(BURST, 27).await;
    fixture.add_many(short.id, 200, 3).await;
    fixture.begun_and_waiting(BURST, 30).await;
    // The two take turns: after six more turns the short queue has ended.
    for second in 1..=6 {
        fixture.advance(TimeDelta::seconds(1));
        fixture.begun_and_waiting(BURST + second, 30 - second).await;
    }
    let done: i64 = sqlx::query_scalar(
        "select count(*) from dalsegno.tasks where campaign_id = $1 and started_at is not null",
    )
    .bind(short.id)
    .fetch_one(&fixture.pool)
    .await
    .unwrap();
    assert_eq!(done, 3);
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn four_workers_together_keep_the_rate() {
    let rules = "[{ provider = \"sim\", requests_per_minute = 600 }]";
    let fixture = Fixture::new(&[("rate_limits.rules", rules)]).await;
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers.push(fixture.start_worker().await);
    }
    fixture.add_many(fixture.campaign.id, 100, 200).await;
    // Three seconds of the rate at once, then ten a second.
    fixture.begun_and_waiting(30, 170).await;
    for second in 1..=12 {
        fixture.advance(TimeDelta::seconds(1));
        fixture.begun_and_waiting(30 + 10 * second, 170 - 10 * second).await;
    }
    for worker in workers {
        worker.stop_only().await;
    }
}

#[tokio::test]
async fn a_call_is_charged_the_tokens_that_it_used_and_a_debt_is_paid_before_the_next() {
    let rules = "[{ provider = \"sim\", input_tokens_per_minute = 600, output_tokens_per_minute = 100000000 }]";
    let fixture = Fixture::new(&[("rate_limits.rules", rules)]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Write part one.").await).await;
    let turn = fixture.turns(&first).await.remove(0);
    let second = fixture.add("Write part two.").await;
    fixture.begun_and_waiting(1, 1).await;
    let because = fixture.explained_wait(&second).await.because;
    assert!(because.contains("600 input tokens per minute"), "{because}");
    let input = "select available from dalsegno.rate_limits where measure = 'input_tokens'";
    let debt: f64 = sqlx::query_scalar(input).fetch_one(&fixture.pool).await.unwrap();
    assert_eq!(30.0 - debt, turn.input_tokens as f64, "a bucket holds three seconds");
    // Ten tokens a second flow in.
    fixture.advance(TimeDelta::seconds(turn.input_tokens / 10 - 3 - 1));
    fixture.begun_and_waiting(1, 1).await;
    fixture.advance(TimeDelta::seconds(2));
    fixture.done(&second).await;
    worker.stop().await;
}

#[tokio::test]
async fn no_more_calls_run_at_once_than_a_limit_allows() {
    let rules = "[{ campaign = \"*\", concurrent_calls = 2 }]";
    let fixture = Fixture::new(&[("rate_limits.rules", rules)]).await;
    let first = fixture.process(&[]);
    for instance in ["2", "3", "4"] {
        fixture.add_for("writer", instance, "Write. [[sim: stall]]").await;
    }
    fixture.begun_and_waiting_beside(2, 1, 2).await;
    // Its places are free once it has not renewed them for ten seconds, which the test does not wait for.
    first.kill().await;
    let second = fixture.process(&[("sim.directives", "false")]);
    let expire = "update dalsegno.rate_limit_calls set until = now() where worker in
                    (select worker from dalsegno.rate_limit_calls order by until limit 1)";
    sqlx::query(expire).execute(&fixture.pool).await.unwrap();
    eventually("all tasks have ended", async || {
        fixture.end_crash_pauses().await;
        let open = "select count(*) from dalsegno.tasks where ended_at is null";
        (fixture.count(open).await == 0).then_some(())
    })
    .await;
    second.kill().await;
}

impl Fixture {
    /// Like [`begun_and_waiting`](Self::begun_and_waiting), beside running turns.
    async fn begun_and_waiting_beside(&self, begun: i64, waiting: i64, running: i64) {
        eventually("turns run, and the other tasks wait", async || {
            let waits = "select count(*) from dalsegno.rate_limit_waits where granted_at is null";
            let busy = "select count(*) from dalsegno.jobs where state in ('ready', 'running') and kind = 'run_turn'";
            let counts = (self.n_begun().await, self.count(waits).await, self.count(busy).await);
            (counts == (begun, waiting, running)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn limits_and_pauses_that_a_provider_tells_hold_for_the_next_call() {
    let chunk = r#"{"id":"1","choices":[{"index":0,"delta":{"content":"Done."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
    let headers = "x-ratelimit-limit-requests: 120\r\nx-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 500ms\r\n";
    let told = Play::Status(200, headers.to_owned(), format!("data: {chunk}\n\ndata: [DONE]\n\n"));
    let server =
        ScriptedServer::playing(&OpenAi, [told, Play::Answers(Answer::of(&["Two."]))]).await;
    let url = format!("{}/v1", server.base_url());
    let settings = [
        ("providers.local.base_url", url.as_str()),
        ("rate_limits.rules", "[{ provider = \"local\" }]"),
    ];
    let fixture = Fixture::new(&settings).await;
    let agent = "---\nname: writer\ndescription: Writes\nprovider: local\nmodel: qwen3:8b\n---\nYou write.\n";
    fixture.write_agent("writer", agent);
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    let second = fixture.add("Write part two.").await;
    fixture.begun_and_waiting(1, 1).await;
    let because = fixture.explained_wait(&second).await.because;
    assert!(because.contains("waiting for `qwen3:8b`: 120 requests per minute"), "{because}");
    fixture.advance(TimeDelta::seconds(1));
    fixture.done(&second).await;
    worker.stop().await;
}

#[tokio::test]
async fn tasks_do_not_wait_for_a_limit_that_was_removed() {
    let fixture = Fixture::new(&[]).await;
    let limited = fixture.start_worker_with(&[ONE_PER_SECOND]).await;
    fixture.add_many(fixture.campaign.id, 100, 5).await;
    fixture.begun_and_waiting(BURST, 2).await;
    limited.stop().await;
    let unlimited = fixture.start_worker().await;
    fixture.advance(TimeDelta::minutes(2));
    eventually("all tasks have ended", async || {
        let open = "select count(*) from dalsegno.tasks where ended_at is null";
        (fixture.count(open).await == 0).then_some(())
    })
    .await;
    unlimited.stop().await;
}

fn wanted(limit: &RateLimit, in_use: f64, wanted: f64) -> WantedShare {
    WantedShare { limit: limit.clone(), returned: 0.0, in_use, wanted, at_most: None }
}

#[tokio::test]
async fn a_task_that_a_limit_has_served_begins_before_the_other_ready_ones() {
    let fixture = Fixture::new(&[ONE_PER_SECOND]).await;
    let worker = fixture.start_worker().await;
    fixture.add_many(fixture.campaign.id, 100, 6).await;
    fixture.begun_and_waiting(BURST, 3).await;
    worker.stop().await;
    fixture.add_many(fixture.campaign.id, 200, 10).await;
    fixture.advance(TimeDelta::seconds(2));
    let now = fixture.clock.now();
    rate_limits::lease(&fixture.pool, Uuid::new_v4(), &[], &[], now).await.unwrap();
    // In the order of claims.
    let served = "select count(*) from (select j.id from dalsegno.jobs as j where j.state = 'ready' and j.kind = 'run_turn'
                           order by j.priority, j.run_at, j.id limit 2) as first
                   where exists (select from dalsegno.rate_limit_waits as w where w.job_id = first.id and w.granted_at is not null)";
    assert_eq!(fixture.count(served).await, 2);
}

#[tokio::test]
async fn shares_of_a_worker_that_is_gone_expire() {
    let fixture = Fixture::new(&[]).await;
    let (pool, now) = (&fixture.pool, fixture.clock.now());
    let limit = |measure| RateLimit::new(Some("sim"), None, None, None, measure);
    let calls = limit((Measure::ConcurrentCalls, 4.0));
    let requests = limit((Measure::Requests, 60.0));
    let [gone, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
    let lease = async |worker, shares: &[WantedShare], after_secs| {
        let at = now + TimeDelta::seconds(after_secs);
        let leases = rate_limits::lease(pool, worker, shares, &[], at).await.unwrap();
        leases.into_iter().map(|lease: Lease| lease.granted).collect::<Vec<_>>()
    };
    let both = |in_use| [wanted(&calls, in_use, 2.0), wanted(&requests, 0.0, 2.0)];
    assert_eq!(lease(gone, &both(1.0), 0).await, [2.0, 2.0]);
    assert_eq!(lease(other, &both(0.0), 0).await, [1.0, 1.0], "the rest");
    assert_eq!(lease(other, &both(1.0), 9).await[0], 0.0, "the other one is not yet gone");
    assert_eq!(lease(other, &both(1.0), 10).await[0], 2.0, "all but its own");
    // The lost requests count as used, and the bucket is full again after three seconds.
    assert_eq!(lease(other, &both(1.0), 13).await[1], 2.0);
}

#[tokio::test]
async fn a_wait_that_a_provider_asks_for_stops_the_other_calls_under_its_limits() {
    let busy = Play::Status(429, "Retry-After: 30\r\n".to_owned(), "{}".to_owned());
    let server = ScriptedServer::playing(&OpenAi, [busy]).await;
    let url = format!("{}/v1", server.base_url());
    let rules = "[{ provider = \"local\", requests_per_minute = 60 }]";
    let settings = [("providers.local.base_url", url.as_str()), ("rate_limits.rules", rules)];
    let fixture = Fixture::new(&settings).await;
    for (name, model) in [("writer", "qwen3:8b"), ("editor", "qwen3:4b")] {
        let agent = format!(
            "---\nname: {name}\ndescription: Writes\nprovider: local\nmodel: {model}\n---\nYou write.\n"
        );
        fixture.write_agent(name, &agent);
    }
    let worker = fixture.start_worker().await;
    fixture.add("Write part one.").await;
    eventually("the call is refused", async || {
        (fixture.count("select count(*) from dalsegno.busy_models").await == 1).then_some(())
    })
    .await;
    // The other model is not busy, but its calls have the same limit.
    let other = fixture.add_for("editor", "main", "Edit.").await;
    fixture.begun_and_waiting(1, 1).await;
    fixture.advance(TimeDelta::seconds(28));
    fixture.begun_and_waiting(1, 1).await;
    fixture.advance(TimeDelta::seconds(3));
    fixture.done(&other).await;
    worker.stop_only().await;
}

#[tokio::test]
async fn limits_that_a_refusal_tells_are_in_the_explanation_and_hold_for_the_next_calls() {
    let headers = "retry-after: 1\r\nx-ratelimit-limit-requests: 90\r\nx-ratelimit-remaining-requests: 0\r\nx-ratelimit-limit-tokens: 40000\r\n";
    let busy =
        Play::Status(429, headers.to_owned(), r#"{"error":{"message":"slow down"}}"#.to_owned());
    let server = ScriptedServer::playing(&OpenAi, [busy]).await;
    let url = format!("{}/v1", server.base_url());
    let settings = [
        ("providers.local.base_url", url.as_str()),
        ("rate_limits.rules", "[{ provider = \"local\" }]"),
    ];
    let fixture = Fixture::new(&settings).await;
    let agent = "---\nname: writer\ndescription: Writes\nprovider: local\nmodel: qwen3:8b\n---\nYou write.\n";
    fixture.write_agent("writer", agent);
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write part one.").await;
    let because = eventually("the call is refused", async || {
        let because = fixture.explained_wait(&task).await.because;
        because.contains("slow down").then_some(because)
    })
    .await;
    let limits =
        "slow down (its limits: 90 requests per minute, 0 left; 40000 input tokens per minute)";
    assert!(because.contains(limits), "{because}");
    let known = eventually("the limits are known", async || {
        let limits = rate_limits::list(&fixture.pool, fixture.clock.now()).await.unwrap();
        (limits.len() >= 2).then_some(limits)
    })
    .await;
    let mut known: Vec<_> = known.iter().map(|limit| limit.amount_words()).collect();
    known.sort_unstable();
    assert_eq!(known, ["40,000 input tokens per minute", "90 requests per minute"]);
    worker.stop_only().await;
}

#[tokio::test]
#[ignore = "runs for five minutes, and its figure means something on a quiet machine only"]
async fn four_worker_processes_keep_600_requests_per_minute_over_five_minutes() {
    let rules = "[{ provider = \"sim\", requests_per_minute = 600 }]";
    let fixture = Fixture::new(&[("rate_limits.rules", rules)]).await;
    for _ in 0..9 {
        fixture.add_many(fixture.campaign.id, 100, 400).await;
    }
    let processes = [0; 4].map(|_| fixture.process(&[]));
    let begun = "select count(*) from dalsegno.turns
                  where started_at < (select min(started_at) from dalsegno.turns) + interval '5 minutes'";
    let is_over = "select count(*) from dalsegno.turns
                    where started_at >= (select min(started_at) from dalsegno.turns) + interval '5 minutes'";
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..600 {
        seconds.tick().await;
        if fixture.count(is_over).await > 0 {
            break;
        }
    }
    let n = fixture.count(begun).await;
    let percent = (n as f64 / 3_000.0 - 1.0) * 100.0;
    println!("{n} requests in five minutes: {percent:+.2} %");
    assert!((-5.0..=2.0).contains(&percent), "{n} requests: {percent:+.2} %");
    for process in processes {
        process.kill().await;
    }
}
