//! A provider that refuses calls for some time: the number of calls, the messages to people, and the end of the wait.

use chrono::TimeDelta;
use dalsegno::{
    clock::Clock as _,
    domain::{
        busy_models, explanations, feed,
        tasks::{self, State, Task},
    },
    queue::admin,
};

use tokio::net::TcpSocket;

use super::Fixture;
use crate::{
    app::eventually,
    providers::{
        conformance::{dialects::OpenAi, server::ScriptedServer},
        fake_ollama::{FakeOllama, Play},
    },
};

const MINUTES: i64 = 60;

impl Fixture {
    /// Waits until every live job waits for a provider, then for the end of that wait. False: the tasks have ended.
    async fn wait_for_retry(&self, elapsed: &mut TimeDelta) -> bool {
        let is_alive = eventually("every job waits", async || {
            let live = "select count(*) from dalsegno.jobs";
            let waiting = "select count(*) from dalsegno.jobs
                            where state = 'blocked' or (state = 'scheduled' and run_at > now())";
            let (waiting, live) = (self.count(waiting).await, self.count(live).await);
            (waiting == live).then_some(live > 0)
        })
        .await;
        if is_alive {
            *elapsed += self.end_waits().await;
        }
        is_alive
    }

    async fn snoozes(&self) -> Vec<feed::Event> {
        let feed = self.feed().await.into_iter();
        feed.filter(|event| event.kind == "turn.snoozed").collect()
    }

    /// Waits until this many refusals in a row are recorded.
    async fn wait_for_refusals(&self, times: i64) {
        eventually("the refusal is stored", async || {
            let refusals = "select coalesce(max(refusals), 0)::bigint from dalsegno.busy_models";
            (self.count(refusals).await == times).then_some(())
        })
        .await;
    }

    async fn n_turns(&self) -> i64 {
        self.count("select count(*) from dalsegno.turns").await
    }

    async fn explained(&self, task: &Task) -> (String, String) {
        let mut conn = self.pool.acquire().await.unwrap();
        let task_words = explanations::explain(&mut conn, task.id).await.unwrap();
        let job_words = admin::explain(&mut *conn, task.job_id).await.unwrap();
        // A retry of the job alone is nothing to advise; the task may be tried at once.
        assert!(!job_words.next.contains("job retry"), "{}", job_words.next);
        (task_words.because, job_words.because)
    }
}

#[tokio::test]
async fn a_busy_provider_is_retried_about_ten_times_in_ten_minutes_with_one_event_each() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: error 503]]").await;
    let mut elapsed = TimeDelta::zero();
    let (mut waits, mut n_calls) = (Vec::new(), 0);
    while elapsed <= TimeDelta::minutes(10) {
        let before = elapsed;
        assert!(fixture.wait_for_retry(&mut elapsed).await);
        waits.push((elapsed - before).num_milliseconds());
        n_calls += 1;
        assert_eq!(fixture.n_turns().await, n_calls);
        assert!(n_calls <= 13, "{n_calls} calls in {elapsed}");
    }
    println!("{n_calls} calls in ten minutes; waits in ms: {waits:?}");
    assert!((7..=13).contains(&n_calls), "{n_calls}");
    for (n, wait) in waits.iter().enumerate() {
        let most = (5_000 << n.min(10)).min(300_000);
        assert!((most / 2..=most).contains(wait), "wait {n} of {waits:?}");
    }
    let snoozes = fixture.snoozes().await;
    assert_eq!(i64::try_from(snoozes.len()).unwrap(), n_calls);
    let otherwise = "select count(*) from dalsegno.runs
                      where kind = 'run_turn' and outcome = 'snooze' and wait_cause is distinct from 'provider'";
    assert_eq!(fixture.count(otherwise).await, 0);
    assert!(fixture.turns(&task).await.iter().all(|turn| turn.attempt == 1 && turn.is_put_off()));
    worker.stop().await;
}

#[tokio::test]
async fn tasks_of_the_same_busy_provider_wait_together() {
    // Jobs wait by the clock of the database, the model by that of the test: so long that all forty wait at once, also on a slow machine.
    let waits = [("providers.busy_first_secs", "60"), ("providers.busy_max_wait_secs", "120")];
    let fixture = Fixture::new(&[waits[0], waits[1], ("sim.faults", "[\"error 503\"]")]).await;
    let workers = [fixture.start_worker().await, fixture.start_worker().await];
    for n in 0..40 {
        fixture.add_for("writer", &format!("copy_{n}"), "Write.").await;
    }
    let mut elapsed = TimeDelta::zero();
    let mut n_rounds = 0;
    while elapsed <= TimeDelta::minutes(10) {
        assert!(fixture.wait_for_retry(&mut elapsed).await);
        n_rounds += 1;
        assert!(n_rounds <= 20, "{n_rounds} waits in {elapsed}");
    }
    let n_turns = fixture.n_turns().await;
    println!("{n_turns} calls for forty tasks in ten minutes, in {n_rounds} waits");
    // All slots call before the first refusal is recorded.
    assert!(n_turns <= 16 + 2 * n_rounds, "{n_turns} calls in {n_rounds} waits");
    let busy = busy_models::list(&fixture.pool, fixture.clock.now()).await.unwrap();
    assert_eq!(busy.len(), 1, "{busy:?}");
    assert!((5..=12).contains(&busy[0].refusals), "{busy:?}");
    let waiting =
        fixture.feed().await.into_iter().filter(|event| event.kind == "task.waiting").count();
    assert!(waiting <= 40 + 2 * usize::try_from(n_rounds).unwrap(), "{waiting} events");
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn explain_names_the_reason_start_count_and_end_of_a_wait() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: error 503 3 times]]").await;
    let mut elapsed = TimeDelta::zero();
    fixture.wait_for_retry(&mut elapsed).await;
    fixture.wait_for_retry(&mut elapsed).await;
    fixture.wait_for_refusals(3).await;
    let behind = fixture.add_for("writer", "second", "Write, too.").await;
    eventually("both wait", async || {
        let waiting = "select count(*) from dalsegno.jobs where wait_reason = 'snooze'";
        (fixture.count(waiting).await == 2).then_some(())
    })
    .await;
    let busy = busy_models::list(&fixture.pool, fixture.clock.now()).await.unwrap();
    let [busy] = &busy[..] else { panic!("{busy:?}") };
    assert_eq!(busy.since, crate::app::noon());
    let deadline = crate::app::noon() + TimeDelta::days(1);
    for (task, since) in [(&task, busy.since), (&behind, fixture.clock.now())] {
        let (of_task, of_job) = fixture.explained(task).await;
        for words in [of_task, of_job] {
            for word in [
                format!("since {}", busy_models::format_moment(busy.since)),
                "(3 in a row)".to_owned(),
                format!("again at {}", busy_models::format_moment(busy.until)),
                "too many calls are waiting".to_owned(),
                format!("the task waits since {}", busy_models::format_moment(since)),
            ] {
                assert!(words.contains(&word), "{word} is missing: {words}");
            }
        }
    }
    let (of_task, _) = fixture.explained(&task).await;
    let short = format!(
        "It waits for its provider {} ({}), which refuses calls or cannot be reached, since {}. ",
        busy.provider,
        busy.model,
        busy_models::format_moment(busy.since)
    );
    assert!(of_task.starts_with(&short), "{of_task}");
    let end = format!("fails at {}", busy_models::format_moment(deadline));
    assert!(of_task.contains(&end), "{of_task}");
    assert_eq!(of_task.matches("too many calls are waiting").count(), 1, "said once: {of_task}");
    // The answer ends the wait for all.
    assert_eq!(fixture.ended_after_waits(&task).await.state, State::Done);
    assert_eq!(fixture.ended_after_waits(&behind).await.state, State::Done);
    assert_eq!(fixture.count("select count(*) from dalsegno.busy_models").await, 0);
    worker.stop().await;
}

#[tokio::test]
async fn a_task_that_waited_for_a_day_fails_and_waits_as_long_after_a_retry() {
    let fixture = Fixture::new(&[("providers.busy_max_wait_secs", "7200")]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write. [[sim: error 429]]").await;
    let mut elapsed = TimeDelta::zero();
    while fixture.wait_for_retry(&mut elapsed).await {
        let (of_task, _) = fixture.explained(&task).await;
        assert!(elapsed <= TimeDelta::hours(31), "the task waits forever: {elapsed}, {of_task}");
    }
    let failed = fixture.task(&task).await;
    assert_eq!(failed.state, State::Failed);
    let error = failed.error.unwrap();
    assert!(error.contains("has waited for its provider since 2026-"), "{error}");
    assert!(error.contains("providers.busy_max_secs"), "{error}");
    assert!(error.contains("too many calls are waiting"), "{error}");
    assert!(fixture.turns(&task).await.iter().all(|turn| turn.attempt == 1));
    let n_turns = fixture.n_turns().await;

    let mut tx = fixture.pool.begin().await.unwrap();
    tasks::retry(&mut tx, task.id, fixture.clock.now()).await.unwrap();
    tx.commit().await.unwrap();
    let mut elapsed = TimeDelta::zero();
    while elapsed <= TimeDelta::minutes(2 * MINUTES) {
        assert!(fixture.wait_for_retry(&mut elapsed).await, "the task waits again");
    }
    assert!(fixture.n_turns().await > n_turns);
    worker.stop().await;
}

#[tokio::test]
async fn a_conversation_with_a_chain_skips_a_model_that_other_turns_found_busy() {
    let busy = || Play::Status(503, "", r#"{"error":"server busy"}"#);
    let fake = FakeOllama::playing((0..20).map(|_| busy())).await;
    let url = format!("http://{}", fake.addr);
    let settings = [
        ("ollama.base_url", url.as_str()),
        ("ollama.num_ctx", "4096"),
        ("agents.fallback_after", "3"),
    ];
    let fixture = Fixture::new(&settings).await;
    let front = |name: &str, models: &str| {
        format!("---\nname: {name}\ndescription: Writes\nmodel: [{models}]\n---\nYou write.\n")
    };
    fixture.write_agent("writer", &front("writer", "ollama/qwen3:8b"));
    fixture.write_agent("editor", &front("editor", "ollama/qwen3:8b, sim"));
    let worker = fixture.start_worker().await;
    fixture.add("Write.").await;
    let mut elapsed = TimeDelta::zero();
    for _ in 0..2 {
        fixture.wait_for_retry(&mut elapsed).await;
    }
    eventually("the task was refused three times", async || {
        (fake.chats().len() == 3).then_some(())
    })
    .await;
    fixture.wait_for_refusals(3).await;
    let edited = fixture.add_for("editor", "main", "Edit.").await;
    assert_eq!(fixture.ended(&edited).await.state, State::Done);
    assert_eq!(fixture.session(&edited).await.provider, "sim");
    let choice = fixture.turns(&edited).await[0].chain.clone().unwrap().0;
    assert_eq!((choice.entry.as_str(), choice.skipped.len()), ("sim/sim-1", 1));
    assert!(choice.skipped[0].because.contains("(3 in a row)"), "{choice:?}");
    assert_eq!(fake.chats().len(), 3, "no call is made for the second conversation");
    worker.stop().await;
}

/// A fixture whose writer has a provider at an address where nothing listens. The port stays taken.
async fn absent_server(provider: &str, settings: &[(&str, &str)]) -> (Fixture, TcpSocket) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let local_url = format!("{url}/v1");
    let usual = [
        ("ollama.base_url", url.as_str()),
        ("ollama.breaker_failures", "100"),
        ("providers.local.base_url", &local_url),
        ("providers.local.breaker_failures", "100"),
    ];
    let fixture = Fixture::new(&[&usual, settings].concat()).await;
    let front = format!("---\nname: writer\ndescription: Writes\nprovider: {provider}\n");
    fixture.write_agent("writer", &format!("{front}model: qwen3:8b\n---\nYou write.\n"));
    (fixture, socket)
}

#[tokio::test]
async fn a_server_that_is_absent_for_an_hour_uses_up_no_attempt_and_the_task_says_why_it_waits() {
    for provider in ["ollama", "local"] {
        let (fixture, socket) = absent_server(provider, &[]).await;
        let worker = fixture.start_worker().await;
        let task = fixture.add("Write.").await;
        let mut elapsed = TimeDelta::zero();
        while elapsed <= TimeDelta::minutes(MINUTES) {
            assert!(fixture.wait_for_retry(&mut elapsed).await, "{provider}: the task has ended");
        }
        let n_turns = fixture.n_turns().await;
        assert!(n_turns > 5, "{provider}: {n_turns}");
        assert!(fixture.turns(&task).await.iter().all(|turn| turn.attempt == 1));
        let (of_task, _) = fixture.explained(&task).await;
        for words in ["cannot connect to", "base_url", "the task waits since", "fails at"] {
            assert!(of_task.contains(words), "{words}: {of_task}");
        }
        assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 0);
        let listener = socket.listen(16).unwrap();
        let (ollama, local) = match provider {
            "ollama" => (Some(FakeOllama::start_on(listener)), None),
            _ => (None, Some(ScriptedServer::on(listener, &OpenAi, []))),
        };
        let task = fixture.ended_after_waits(&task).await;
        assert_eq!(task.state, State::Done, "{provider}: {:?}", task.error);
        assert!(fixture.turns(&task).await.iter().all(|turn| turn.attempt == 1));
        worker.stop().await;
        drop((ollama, local));
    }
}

#[tokio::test]
async fn a_worker_that_cannot_reach_the_server_does_not_hold_up_the_others() {
    let fake = FakeOllama::start().await;
    let (here, (fixture, _socket)) =
        (format!("http://{}", fake.addr), absent_server("ollama", &[]).await);
    // The second call finds the breaker open.
    let worker = fixture.start_worker_with(&[("ollama.breaker_failures", "1")]).await;
    let mut tasks = Vec::new();
    for instance in ["one", "two"] {
        let task = fixture.add_for("writer", instance, "Write.").await;
        eventually("the call is put off", async || {
            fixture.turns(&task).await.iter().any(|turn| turn.is_put_off()).then_some(())
        })
        .await;
        tasks.push(task);
    }
    let (of_task, _) = fixture.explained(&tasks[1]).await;
    let told = ["did not answer the last calls", "ollama.base_url is correct"];
    for words in told.into_iter().chain(["the task waits since", "fails at"]) {
        assert!(of_task.contains(words), "{words}: {of_task}");
    }
    worker.stop().await;
    assert_eq!(fixture.count("select count(*) from dalsegno.busy_models").await, 0);
    let worker = fixture.start_worker_with(&[("ollama.base_url", &here)]).await;
    let other = fixture.done(&fixture.add_for("writer", "three", "Write.").await).await;
    assert_eq!(other.result.as_deref(), Some("A good answer."));
    for task in &tasks {
        assert_eq!(fixture.ended_after_waits(task).await.state, State::Done);
        assert!(fixture.turns(task).await.iter().all(|turn| turn.attempt == 1));
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_task_whose_server_is_absent_for_a_day_fails() {
    let (fixture, _socket) =
        absent_server("ollama", &[("providers.busy_max_wait_secs", "7200")]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write.").await;
    let mut elapsed = TimeDelta::zero();
    while fixture.wait_for_retry(&mut elapsed).await {
        assert!(elapsed <= TimeDelta::hours(31), "the task waits forever: {elapsed}");
    }
    worker.stop().await;
    let failed = fixture.task(&task).await;
    assert_eq!(failed.state, State::Failed);
    let error = failed.error.unwrap();
    for words in ["has waited for its provider since 2026-", "cannot connect to"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(fixture.turns(&task).await.iter().all(|turn| turn.attempt == 1));
}
