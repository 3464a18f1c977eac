//! Turns whose calls are message batches.

use std::os::unix::process::ExitStatusExt as _;

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::{
    clock::Clock as _,
    domain::{
        agents::Library,
        campaigns::LimitChange,
        cleanups, explanations,
        task_files::attachments::NewAttachment,
        tasks::{self, State, Task},
        turns,
    },
    providers::{BatchSearch, FoundBatch},
    queue::admin::{self, WaitReason},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Fixture, WRITER, calling, fixture_with};
use crate::{
    app::{eventually, noon, until_blocked},
    providers::conformance::{
        batches::{FakeBatch, UNREADABLE, errored, succeeded},
        dialects::Anthropic,
        server::{Play, ScriptedServer},
    },
};

/// The head of an image of 1,000 by 1,500 pixels.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\xe8\0\0\x05\xdc";
const DAY_SECS: i32 = 86_400;
const SEND: &str = "POST /v1/messages/batches";
const CANCELLATIONS: &str = "select count(*) from dalsegno.jobs where kind = 'cancel_batch'";
/// Prices in millionths of the currency per million tokens.
const PRICES: (&str, &str) = (
    "prices.models",
    r#"[{ provider = "anthropic", model = "claude-of-the-test", input = 20000000, output = 100000000 }]"#,
);

fn usage() -> Value {
    json!({ "input_tokens": 1_000, "output_tokens": 10 })
}

/// Cost of such a call in millionths, without the discount of batches.
const COST: i64 = 1_000 * 20 + 10 * 100;

fn answers(text: &str) -> Value {
    succeeded(&[json!({ "type": "text", "text": text })], &usage())
}

async fn server() -> ScriptedServer {
    ScriptedServer::playing(&Anthropic, []).await
}

/// Without a key, because processes of workers do not have the variables of the test.
async fn fixture(server: &ScriptedServer) -> Fixture {
    let settings = [PRICES, ("providers.anthropic.credential_variable", "")];
    fixture_with(server, 100_000, &settings).await
}

impl Fixture {
    async fn add_within(&self, instance: &str, prompt: &str, within_secs: i32) -> Task {
        self.add_within_with(instance, prompt, within_secs, &[], Default::default()).await
    }

    async fn add_within_with(
        &self,
        instance: &str,
        prompt: &str,
        within_secs: i32,
        attachments: &[NewAttachment],
        links: tasks::Links<'_>,
    ) -> Task {
        let config = self.config();
        let catalogue = Library::open(&config.agents).unwrap().current();
        let new = tasks::New {
            instance,
            links,
            attachments,
            within_secs: Some(within_secs),
            ..tasks::New::for_agent(self.campaign.id, catalogue.agent("writer").unwrap(), prompt)
        };
        let mut transaction = self.pool.begin().await.unwrap();
        let added = tasks::add(&mut transaction, &config.tasks, &new, self.clock.now()).await;
        transaction.commit().await.unwrap();
        added.unwrap().task
    }

    /// Waits until the task waits for its batch, and no worker has it.
    async fn waits_for_batch(&self, task: &Task) {
        self.waits_after_looks(task, 1).await;
    }

    /// Waits until the service has looked at the batch this often, its sending included.
    async fn waits_after_looks(&self, task: &Task, n_looks: i32) {
        eventually("the task waits for its batch", async || {
            let sql = "select true from dalsegno.batches as b join dalsegno.tasks as t on t.id = b.task_id
                         join dalsegno.jobs as j on j.id = t.job_id
                        where t.id = $1 and t.state = 'queued' and j.state = 'scheduled' and b.n_looks >= $2";
            let found: Option<bool> =
                sqlx::query_scalar(sql).bind(task.id).bind(n_looks).fetch_optional(&self.pool).await.unwrap();
            found
        })
        .await;
    }

    /// Lets the service look at the batches now.
    async fn look(&self) {
        let due = "update dalsegno.jobs set run_at = now() where wait_reason in ('snooze', 'crash', 'retry')";
        sqlx::query(due).execute(&self.pool).await.unwrap();
    }

    /// Waits until the task has ended, and lets the service look at its batches meanwhile.
    async fn ended_with_looks(&self, task: &Task) -> Task {
        eventually("the task has ended", async || {
            self.look().await;
            let task = self.task(task).await;
            task.ended_at.is_some().then_some(task)
        })
        .await
    }

    async fn because(&self, task: &Task) -> String {
        let mut conn = self.pool.acquire().await.unwrap();
        explanations::explain(&mut conn, task.id).await.unwrap().because
    }

    /// Returns costs and the provider's ids of the calls in the ledger, in order.
    async fn ledger(&self) -> Vec<(i64, Option<String>)> {
        let sql = "select cost_micros, provider_message_id from dalsegno.usage order by id";
        sqlx::query_as(sql).fetch_all(&self.pool).await.unwrap()
    }

    async fn n_batches(&self) -> i64 {
        self.count("select count(*) from dalsegno.batches").await
    }
}

/// Waits until this number of batches were sent.
async fn sent(server: &ScriptedServer, n: usize) -> Vec<FakeBatch> {
    eventually("the batches were sent", async || {
        let all = server.state.batches.all();
        (all.len() == n).then_some(all)
    })
    .await
}

#[tokio::test]
async fn a_batch_holds_no_slot_keeps_the_order_and_costs_half() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let limit = LimitChange { micros: Some(Some(100_000_000)), ..LimitChange::default() };
    fixture.change_limit(limit).await;
    let worker = fixture.start_worker_with(&[("worker.turns_slots", "1")]).await;
    let first = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    let behind = fixture.add("Write part two.").await;
    fixture.waits_for_batch(&first).await;
    let waiting = admin::JobFilter { waits_for: Some(WaitReason::Batch), ..Default::default() };
    let waiting = admin::list_jobs(&fixture.pool, &waiting).await.unwrap();
    assert_eq!(waiting.iter().map(|job| job.id).collect::<Vec<_>>(), [first.job_id]);
    let batch = sent(&server, 1).await.remove(0);
    // The only slot is free for another conversation.
    let other = fixture.done(&fixture.add_for("writer", "2", "Write part three.").await).await;
    assert_eq!(server.calls().len(), 1);
    assert!(fixture.turns(&behind).await.is_empty(), "it waits behind the batch");
    let waits = "It waits for batch msgbatch_1 of anthropic, sent 2026-11-20 12:00 UTC, at most until 2026-11-21 12:00 UTC.";
    assert_eq!(fixture.because(&first).await, waits);
    let shown = fixture.succeed(&["task", "show", &first.id.to_string()]).await;
    assert!(shown.contains("within") && shown.contains("24 h"), "{shown}");
    assert!(shown.contains("waits for batch msgbatch_1"), "{shown}");
    assert!(fixture.budget().await.reserved.micros > 0, "the money stays reserved");
    // A look that finds nothing new changes nothing.
    fixture.look().await;
    fixture.waits_after_looks(&first, 2).await;
    server.state.batches.end(0, answers("Part one."));
    let first = fixture.ended_with_looks(&first).await;
    assert_eq!((first.state, first.result.as_deref()), (State::Done, Some("Part one.")));
    fixture.done(&behind).await;
    fixture.settled().await;
    worker.stop().await;
    let turns = fixture.turns(&first).await;
    assert_eq!((turns.len(), turns[0].attempt, turns[0].state), (1, 1, turns::State::Done));
    let transcript = fixture.transcript(first.session_id.unwrap()).await;
    assert_eq!(
        transcript[..3],
        ["User: Write part one.", "Assistant: Part one.", "User: Write part two."]
    );
    // The next call of the conversation has the answer, and the call of the batch is shown as it was sent.
    let sent_again = server.calls().pop().unwrap().to_string();
    assert!(sent_again.contains("Part one."), "{sent_again}");
    let session = first.session_id.unwrap().to_string();
    let shown = fixture.run_command(&["context", "show", &session, "--turn", "1", "--raw"]).await;
    assert_eq!(String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&batch.body));
    let ledger = fixture.ledger().await;
    let of_batch = (COST / 2, Some(batch.call_id.clone()));
    assert!(ledger.contains(&of_batch), "{ledger:?} and {of_batch:?}");
    assert_eq!(ledger.len(), 3, "{ledger:?}: the batch, {other:?} and the task behind it");
    assert_eq!((fixture.n_batches().await, fixture.budget().await.reserved.micros), (0, 0));
}

#[tokio::test]
async fn an_answer_that_asks_for_tools_goes_on_with_ordinary_calls() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let post =
        calling("toolu_0", "board_post", json!({ "text": "Berth 7 is free.", "to": ["all"] }));
    server.play(Play::Answers(post));
    fixture.done(&fixture.add_for("writer", "2", "Post it.").await).await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    let sent = server.state.batches.all()[0].call.to_string();
    assert!(sent.contains("Berth 7 is free."), "{sent}");
    let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "board_post", "input": { "text": "Tide." } });
    server.state.batches.end(0, succeeded(&[call], &usage()));
    let task = fixture.ended_with_looks(&task).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("A good answer."));
    assert_eq!(fixture.count("select count(*) from dalsegno.posts where text = 'Tide.'").await, 1);
    let asked = server.calls().pop().unwrap()["messages"].to_string();
    assert!(asked.contains("tool_result") && asked.contains("toolu_1"), "{asked}");
    let ledger = fixture.ledger().await;
    assert_eq!((ledger.len(), ledger[2].0), (4, COST / 2), "{ledger:?}");
    assert_eq!((ledger[3].1.as_deref(), fixture.turns(&task).await.len()), (None, 1));
    // The posts that the batch has shown are in the conversation, and before the prompt.
    let transcript = fixture.transcript(task.session_id.unwrap()).await;
    assert!(
        transcript[0].starts_with("Posts:") && transcript[0].contains("Berth 7"),
        "{transcript:?}"
    );
}

/// Lets a worker die at this point, and ends the task with another one. Returns the number of batches that the heir found.
async fn survives(point: &str) -> (Fixture, ScriptedServer, Task, usize) {
    let server = server().await;
    let fixture = fixture(&server).await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    // Processes use the real clock.
    let now = "update dalsegno.tasks set created_at = now() returning created_at";
    let now: DateTime<Utc> = sqlx::query_scalar(now).fetch_one(&fixture.pool).await.unwrap();
    server.state.batches.set_created_at(now);
    let mut armed = fixture.process(&[("worker.crash_turns_at", point)]);
    let died = armed.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", armed.log());
    let n_sent = server.state.batches.all().len();
    let heir = fixture.process(&[]);
    eventually("the heir has looked for the batch", async || {
        fixture.end_crash_pauses().await;
        (fixture.count("select count(*) from dalsegno.batches where n_looks > 0").await == 1)
            .then_some(())
    })
    .await;
    assert_eq!(
        server.state.batches.all().len(),
        n_sent,
        "it is not sent again before it is missed"
    );
    // As if some minutes had passed.
    let earlier = "update dalsegno.batches set sent_at = sent_at - interval '1 hour', last_sent_at = last_sent_at - interval '1 hour'";
    sqlx::query(earlier).execute(&fixture.pool).await.unwrap();
    server.state.batches.set_created_at(now - TimeDelta::hours(1));
    if n_sent == 0 {
        eventually("the batch is sent again", async || {
            fixture.look().await;
            (!server.state.batches.all().is_empty()).then_some(())
        })
        .await;
        let renewed = "select count(*) from dalsegno.batches where last_sent_at > sent_at + interval '30 minutes'";
        assert_eq!(fixture.count(renewed).await, 1, "the list may lack this sending, too");
    }
    server.state.batches.end(0, answers("Part one."));
    let task = fixture.ended_with_looks(&task).await;
    fixture.settled().await;
    heir.kill().await;
    (fixture, server, task, n_sent)
}

#[tokio::test]
async fn a_worker_that_dies_around_the_sending_neither_loses_nor_repeats_the_call() {
    for (point, n_sent) in [("before_batch", 0), ("after_batch", 1)] {
        let (fixture, server, task, n_found) = survives(point).await;
        assert_eq!((n_found, task.result.as_deref()), (n_sent, Some("Part one.")), "{point}");
        let batches = server.state.batches.all();
        assert_eq!((batches.len(), server.calls().len()), (1, 0), "{point}");
        let ledger = fixture.ledger().await;
        assert_eq!(ledger, [(COST / 2, Some(batches[0].call_id.clone()))], "{point}");
        let turns = fixture.turns(&task).await;
        assert_eq!((turns.len(), turns[0].state), (1, turns::State::Done), "{point}");
    }
}

#[tokio::test]
async fn a_worker_that_dies_with_the_answer_leaves_it_for_the_next_one() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    worker.stop().await;
    server.state.batches.end(0, answers("Part one."));
    fixture.look().await;
    let mut armed = fixture.process(&[("worker.crash_turns_at", "before_job_end")]);
    armed.ended_after_pause().await;
    let heir = fixture.process(&[]);
    let task = fixture.ended_with_looks(&task).await;
    fixture.settled().await;
    heir.kill().await;
    assert_eq!(task.result.as_deref(), Some("Part one."));
    assert_eq!((fixture.turns(&task).await.len(), fixture.ledger().await.len()), (1, 1));
    assert_eq!((server.state.batches.all().len(), server.calls().len()), (1, 0));
}

#[tokio::test]
async fn a_batch_whose_reply_was_lost_is_found_by_the_id_of_its_call() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    server.state.batches.lose_next_reply();
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    let because = fixture.because(&task).await;
    assert!(because.contains("the service looks for the batch"), "{because}");
    fixture.advance(TimeDelta::hours(1));
    fixture.look().await;
    fixture.waits_after_looks(&task, 2).await;
    assert_eq!(server.state.batches.all().len(), 1, "one that has not ended may be the one");
    server.state.batches.end(0, answers("Part one."));
    let task = fixture.ended_with_looks(&task).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Part one."));
    assert_eq!((server.state.batches.all().len(), fixture.ledger().await.len()), (1, 1));
}

#[tokio::test]
async fn a_lost_batch_is_given_up_at_the_end_of_the_wait_and_an_ordinary_call_follows() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    server.state.batches.lose_next_reply();
    let task = fixture.add_within("main", "Write part one.", 3_600).await;
    fixture.waits_for_batch(&task).await;
    fixture.advance(TimeDelta::hours(1));
    let task = fixture.ended_with_looks(&task).await;
    fixture.settled().await;
    assert_eq!(task.result.as_deref(), Some("A good answer."));
    let attempts: Vec<_> = fixture.turns(&task).await.iter().map(|turn| turn.attempt).collect();
    assert_eq!((attempts.as_slice(), fixture.ledger().await.len()), ([1, 1].as_slice(), 1));
    assert_eq!((server.state.batches.all().len(), server.calls().len()), (1, 1));
    // The provider may have it, so a job looks for it, and not without end.
    assert_eq!((fixture.n_batches().await, fixture.count(CANCELLATIONS).await), (0, 1));
    fixture.advance(TimeDelta::days(2));
    eventually("the search has ended", async || {
        fixture.look().await;
        (fixture.count(CANCELLATIONS).await == 0).then_some(())
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn a_lost_batch_is_one_of_the_time_of_its_sending_and_is_missed_only_in_a_whole_list() {
    let server = server().await;
    let (provider, cancel, sent_at) = (server.provider(), CancellationToken::new(), noon());
    let api = provider.batches().unwrap();
    let other = json!({ "requests": [{ "custom_id": "other", "params": {} }] }).to_string();
    assert!(server.state.batches.answer(SEND, other.as_bytes()).is_some());
    let find = async |created_at: DateTime<Utc>| {
        server.state.batches.set_created_at(created_at);
        let until = sent_at + TimeDelta::minutes(2);
        let search = BatchSearch { call_id: Uuid::from_u128(2), sent_at, until, known: &[] };
        api.find(search, &cancel).await.unwrap()
    };
    let (before, within) = (sent_at - TimeDelta::minutes(11), sent_at + TimeDelta::minutes(11));
    let after = sent_at + TimeDelta::minutes(13);
    assert_eq!(find(before).await, FoundBatch::NotSent);
    assert_eq!(find(within).await, FoundBatch::Unsure, "it runs, and may be the one");
    assert_eq!(find(after).await, FoundBatch::NotSent);
    server.state.batches.hide_end_of_list();
    assert_eq!(find(after).await, FoundBatch::Unsure, "a further page may have it");
}

#[tokio::test]
async fn a_batch_that_expires_is_cancelled_or_fails_is_retried_or_ends_with_its_error() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    server.state.batches.end(0, json!({ "type": "expired" }));
    fixture.look().await;
    eventually("it is sent again", async || {
        fixture.look().await;
        (server.state.batches.all().len() == 2).then_some(())
    })
    .await;
    fixture.waits_for_batch(&task).await;
    let because = fixture.because(&task).await;
    assert!(because.contains("msgbatch_2"), "{because}");
    server.state.batches.end(1, json!({ "type": "canceled" }));
    eventually("it is sent again", async || {
        fixture.look().await;
        (server.state.batches.all().len() == 3).then_some(())
    })
    .await;
    fixture.waits_for_batch(&task).await;
    server.state.batches.end(2, errored("invalid_request_error", "messages.0: not accepted"));
    let task = fixture.ended_with_looks(&task).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(task.state, State::Failed);
    let error = task.error.clone().unwrap();
    assert!(
        error.contains("refuses the call (status 400)") && error.contains("not accepted"),
        "{error}"
    );
    let turns = fixture.turns(&task).await;
    let attempts: Vec<_> = turns.iter().map(|turn| turn.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    let errors: Vec<_> = turns.iter().map(|turn| turn.error.clone().unwrap()).collect();
    assert!(errors[0].contains("batch msgbatch_1 expired"), "{errors:?}");
    assert!(errors[1].contains("batch msgbatch_2 was cancelled at the provider"), "{errors:?}");
    assert_eq!(
        fixture.count("select coalesce(sum(cost_micros), 0)::bigint from dalsegno.usage").await,
        0
    );
    assert_eq!(fixture.n_batches().await, 0);
}

#[tokio::test]
async fn a_batch_that_is_late_is_cancelled_and_an_ordinary_call_follows_without_an_attempt() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", 3_600).await;
    fixture.waits_for_batch(&task).await;
    fixture.advance(TimeDelta::hours(1));
    fixture.look().await;
    fixture.waits_after_looks(&task, 2).await;
    let because = fixture.because(&task).await;
    assert!(
        because.contains("the batch was cancelled, because that moment has passed"),
        "{because}"
    );
    assert!(server.state.batches.all()[0].is_cancelled);
    server.state.batches.end(0, json!({ "type": "canceled" }));
    let task = fixture.ended_with_looks(&task).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("A good answer."));
    let attempts: Vec<_> = fixture.turns(&task).await.iter().map(|turn| turn.attempt).collect();
    assert_eq!((attempts.as_slice(), fixture.ledger().await.len()), ([1, 1].as_slice(), 1));
    assert_eq!((server.state.batches.all().len(), server.calls().len()), (1, 1));
}

#[tokio::test]
async fn a_late_batch_whose_cancellation_was_not_recorded_uses_no_attempt() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", 3_600).await;
    fixture.waits_for_batch(&task).await;
    fixture.advance(TimeDelta::hours(1));
    server.state.batches.end(0, json!({ "type": "canceled" }));
    let task = fixture.ended_with_looks(&task).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("A good answer."));
    let attempts: Vec<_> = fixture.turns(&task).await.iter().map(|turn| turn.attempt).collect();
    assert_eq!(attempts, [1, 1]);
}

#[tokio::test]
async fn the_cleanup_gives_up_a_batch_whose_turn_an_older_worker_has_ended() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    worker.stop_only().await;
    let ended = "update dalsegno.turns set state = 'interrupted', ended_at = now(), error = 'lost', reserved_micros = 0, reserved_tokens = 0";
    sqlx::query(ended).execute(&fixture.pool).await.unwrap();
    let upkeep = fixture.upkeep().await;
    cleanups::request(&fixture.pool, "cli:ann@vm").await.unwrap();
    eventually("the batch is given up", async || (fixture.n_batches().await == 0).then_some(()))
        .await;
    upkeep.stop_only().await;
    assert_eq!(fixture.count(CANCELLATIONS).await, 1);
}

#[tokio::test]
async fn a_cancelled_task_cancels_its_batch_and_the_conversation_goes_on() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let limit = LimitChange { micros: Some(Some(100_000_000)), ..LimitChange::default() };
    fixture.change_limit(limit).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    let behind = fixture.add("Write part two.").await;
    fixture.cancel(&task).await;
    assert_eq!(fixture.task(&task).await.state, State::Cancelled);
    assert_eq!((fixture.n_batches().await, fixture.budget().await.reserved.micros), (0, 0));
    eventually("the batch is cancelled", async || {
        server.state.batches.all()[0].is_cancelled.then_some(())
    })
    .await;
    let behind = fixture.done(&behind).await;
    worker.stop().await;
    assert_eq!(behind.result.as_deref(), Some("A good answer."));
    let turns = fixture.turns(&task).await;
    assert_eq!(turns[0].state, turns::State::Interrupted);
    assert!(turns[0].error.as_deref().unwrap().contains("no longer waits for its batch"));
}

#[tokio::test]
async fn an_erasure_cancels_batches_and_leaves_nothing_of_them() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part SECRET-TIDE.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    let refused = fixture.campaign.id.to_string();
    let exported =
        fixture.run_command(&["campaign", "export", &refused, "--output", "/dev/null"]).await;
    assert!(!exported.status.success(), "a turn is open");
    let upkeep = fixture.upkeep().await;
    fixture.succeed(&["campaign", "erase", &refused, "--yes"]).await;
    eventually("the campaign is erased", async || {
        (fixture.count("select count(*) from dalsegno.erasures where ended_at is not null").await
            == 1)
            .then_some(())
    })
    .await;
    eventually("the batch is cancelled", async || {
        server.state.batches.all()[0].is_cancelled.then_some(())
    })
    .await;
    worker.stop_only().await;
    upkeep.stop_only().await;
    assert_eq!(fixture.n_batches().await, 0);
    let left =
        "select count(*) from dalsegno.job_payloads where payload::text like '%SECRET-TIDE%'";
    assert_eq!(fixture.count(left).await, 0);
}

#[tokio::test]
async fn a_provider_without_batches_and_a_short_time_get_ordinary_calls() {
    let server = server().await;
    server.lack(SEND);
    let fixture = fixture(&server).await;
    let simulated = WRITER.replace("provider: anthropic\nmodel: claude-of-the-test\n", "");
    fixture.write_agent("writer", &simulated);
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add_within("main", "Write on the simulation.", DAY_SECS).await).await;
    fixture.write_agent("writer", WRITER);
    fixture.done(&fixture.add_within("2", "Write part one.", DAY_SECS).await).await;
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| *request == SEND).count(), 1, "{requests:?}");
    worker.stop().await;
    let late = fixture.add_within("3", "Write part two.", 3_600).await;
    fixture.advance(TimeDelta::minutes(31));
    let worker = fixture.start_worker().await;
    fixture.done(&late).await;
    worker.stop().await;
    assert_eq!((server.calls().len(), fixture.n_batches().await), (2, 0));
    assert_eq!(server.requests().iter().filter(|request| *request == SEND).count(), 1);
}

/// Runs a task whose answer may take a day from `now`.
async fn assert_answer_within_a_day(
    fixture: &Fixture,
    server: &ScriptedServer,
    task: &Task,
    now: DateTime<Utc>,
) {
    let worker = fixture.start_worker().await;
    sent(server, 1).await;
    fixture.waits_for_batch(task).await;
    let answer_by = "select answer_by from dalsegno.batches";
    let answer_by: DateTime<Utc> =
        sqlx::query_scalar(answer_by).fetch_one(&fixture.pool).await.unwrap();
    assert_eq!(answer_by, now + TimeDelta::days(1));
    server.state.batches.end(0, answers("Part one."));
    let task = fixture.ended_with_looks(task).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Part one."));
}

#[tokio::test]
async fn a_retried_task_has_its_time_again() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.cancel(&task).await;
    let now = fixture.advance(TimeDelta::days(2));
    let mut transaction = fixture.pool.begin().await.unwrap();
    tasks::retry(&mut transaction, task.id, now).await.unwrap();
    transaction.commit().await.unwrap();
    assert_answer_within_a_day(&fixture, &server, &task, now).await;
}

/// As a step of a flow behind others that take days.
#[tokio::test]
async fn a_task_that_waited_for_others_has_its_time_from_their_end() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let before = fixture.add_for("writer", "second", "Write part zero.").await;
    let depends_on = [tasks::TaskLink::Task(before.id)];
    let links = tasks::Links { depends_on: &depends_on, ..Default::default() };
    let task = fixture.add_within_with("main", "Write part one.", DAY_SECS, &[], links).await;
    fixture.advance(TimeDelta::days(2));
    let worker = fixture.start_worker().await;
    fixture.done(&before).await;
    sent(&server, 1).await;
    fixture.waits_for_batch(&task).await;
    let from_the_end = "select b.answer_by = w.over_at + interval '1 day'
                          from dalsegno.batches as b join dalsegno.task_waits as w on w.task_id = b.task_id";
    assert!(sqlx::query_scalar::<_, bool>(from_the_end).fetch_one(&fixture.pool).await.unwrap());
    server.state.batches.end(0, answers("Part one."));
    let task = fixture.ended_with_looks(&task).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Part one."));
}

#[tokio::test]
async fn a_task_that_runs_before_its_earliest_start_keeps_its_time() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let start = fixture.clock.now() + TimeDelta::days(3_650);
    let task = fixture.add_at(start, Default::default()).await;
    let within = "update dalsegno.tasks set within_secs = $1";
    sqlx::query(within).bind(DAY_SECS).execute(&fixture.pool).await.unwrap();
    let now = fixture.advance(TimeDelta::days(2));
    let mut transaction = fixture.pool.begin().await.unwrap();
    tasks::retry_job(&mut transaction, task.job_id, now).await.unwrap();
    transaction.commit().await.unwrap();
    assert_answer_within_a_day(&fixture, &server, &task, now).await;
}

#[tokio::test]
async fn a_task_that_runs_before_the_end_of_others_has_its_time_from_then() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let before = fixture.add_for("writer", "second", "Write part zero.").await;
    let depends_on = [tasks::TaskLink::Task(before.id)];
    let links = tasks::Links { depends_on: &depends_on, ..Default::default() };
    let task = fixture.add_within_with("main", "Write part one.", DAY_SECS, &[], links).await;
    let now = fixture.advance(TimeDelta::days(2));
    let mut transaction = fixture.pool.begin().await.unwrap();
    tasks::retry_job(&mut transaction, task.job_id, now).await.unwrap();
    transaction.commit().await.unwrap();
    let begins = "select run_at from dalsegno.tasks where id = $1";
    let begins: Option<DateTime<Utc>> =
        sqlx::query_scalar(begins).bind(task.id).fetch_one(&fixture.pool).await.unwrap();
    assert_eq!(begins, Some(now), "the day that the answer may take begins");
}

#[tokio::test]
async fn a_model_that_leaves_the_agents_file_ends_the_wait() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    fixture.write_agent("writer", &WRITER.replace("claude-of-the-test", "claude-other"));
    server.state.batches.end(0, answers("Part one."));
    eventually("another batch is sent", async || {
        fixture.look().await;
        (server.state.batches.all().len() == 2).then_some(())
    })
    .await;
    fixture.waits_for_batch(&task).await;
    assert_eq!(server.state.batches.all()[1].call["model"], "claude-other");
    server.state.batches.end(1, answers("Part one, again."));
    let task = fixture.ended_with_looks(&task).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Part one, again."));
}

#[tokio::test]
async fn results_of_other_programs_that_cannot_be_read_do_not_end_the_search() {
    let server = server().await;
    let (provider, cancel, sent_at) = (server.provider(), CancellationToken::new(), noon());
    let call_id = Uuid::from_u128(2).to_string();
    let results = [
        (call_id.as_str(), json!({ "type": "of_a_later_version" })),
        ("odd", json!({ "type": "of_a_later_version" })),
        ("unreadable", json!(UNREADABLE)),
    ];
    // The newest ones are looked at first.
    for (at, (call_id, result)) in results.into_iter().enumerate() {
        let sent = json!({ "requests": [{ "custom_id": call_id, "params": {} }] }).to_string();
        assert!(server.state.batches.answer(SEND, sent.as_bytes()).is_some());
        server.state.batches.end(at, result);
    }
    let until = sent_at + TimeDelta::minutes(2);
    let search = BatchSearch { call_id: Uuid::from_u128(2), sent_at, until, known: &[] };
    let found = provider.batches().unwrap().find(search, &cancel).await.unwrap();
    assert_eq!(found, FoundBatch::Found("msgbatch_1".to_owned()));
    let search = BatchSearch { call_id: Uuid::from_u128(3), sent_at, until, known: &[] };
    let found = provider.batches().unwrap().find(search, &cancel).await.unwrap();
    assert_eq!(found, FoundBatch::Unsure, "the unreadable one may be the one");
}

#[tokio::test]
async fn a_lost_batch_whose_result_cannot_be_read_is_not_sent_again() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    server.state.batches.lose_next_reply();
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    server.state.batches.end(0, json!(UNREADABLE));
    fixture.advance(TimeDelta::hours(1));
    for n_looks in 2..=3 {
        fixture.look().await;
        fixture.waits_after_looks(&task, n_looks).await;
        assert_eq!(server.state.batches.all().len(), 1, "it may be the one");
    }
    server.state.batches.end(0, answers("Part one."));
    let task = fixture.ended_with_looks(&task).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Part one."));
    assert_eq!((server.state.batches.all().len(), fixture.ledger().await.len()), (1, 1));
}

impl Fixture {
    /// Replaces the version of the stored turn.
    async fn set_version(&self, from: &str, to: &str) {
        let sql = "update dalsegno.batches set open_turn = replace(open_turn, $1, $2) where starts_with(open_turn, $1)";
        let changed = sqlx::query(sql).bind(from).bind(to).execute(&self.pool).await.unwrap();
        assert_eq!(changed.rows_affected(), 1);
    }
}

#[tokio::test]
async fn a_turn_of_an_older_version_is_answered_and_one_of_a_newer_version_is_left_to_its_workers()
{
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let older = fixture.add_within("old", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&older).await;
    let [current, newer] = ["{\"version\":1,", "{\"version\":999,"];
    fixture.set_version(current, "{").await;
    server.state.batches.end(0, answers("Part one."));
    let older = fixture.ended_with_looks(&older).await;
    assert_eq!(older.result.as_deref(), Some("Part one."));

    let task = fixture.add_within("new", "Write part two.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    fixture.set_version(current, newer).await;
    server.state.batches.end(1, answers("Part two."));
    fixture.look().await;
    fixture.waits_after_looks(&task, 2).await;
    let because = fixture.because(&task).await;
    assert!(because.contains("a worker of a newer version has stored its turn"), "{because}");
    assert_eq!((fixture.n_batches().await, fixture.count(CANCELLATIONS).await), (1, 0));
    fixture.set_version(newer, current).await;
    let task = fixture.ended_with_looks(&task).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("Part two."));
    assert_eq!((server.state.batches.all().len(), server.calls().len()), (2, 0));
}

#[tokio::test]
async fn a_late_batch_of_a_newer_version_is_cancelled_and_its_turn_is_left_to_its_workers() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", 3_600).await;
    fixture.waits_for_batch(&task).await;
    let [current, newer] = ["{\"version\":1,", "{\"version\":999,"];
    fixture.set_version(current, newer).await;
    fixture.look().await;
    fixture.waits_after_looks(&task, 2).await;
    assert!(!server.state.batches.all()[0].is_cancelled, "it is not late");
    fixture.advance(TimeDelta::hours(1));
    fixture.look().await;
    fixture.waits_after_looks(&task, 3).await;
    assert!(server.state.batches.all()[0].is_cancelled);
    let because = fixture.because(&task).await;
    for words in ["the batch was cancelled", "a worker of a newer version has stored its turn"] {
        assert!(because.contains(words), "{words}: {because}");
    }
    server.state.batches.end(0, json!({ "type": "canceled" }));
    fixture.set_version(newer, current).await;
    let task = fixture.ended_with_looks(&task).await;
    worker.stop().await;
    assert_eq!(task.result.as_deref(), Some("A good answer."));
    let attempts: Vec<_> = fixture.turns(&task).await.iter().map(|turn| turn.attempt).collect();
    assert_eq!(attempts, [1, 1]);
}

#[tokio::test]
async fn a_run_that_loses_its_lease_while_it_gives_a_batch_up_changes_nothing() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add_within("main", "Write part one.", DAY_SECS).await;
    fixture.waits_for_batch(&task).await;
    // The batch is given up, because the agent's file names another model.
    fixture.write_agent("writer", &WRITER.replace("claude-of-the-test", "claude-other"));
    server.state.batches.end(0, answers("Part one."));
    let mut lock = fixture.pool.begin().await.unwrap();
    let held = "select from dalsegno.batches for update";
    sqlx::query(held).execute(&mut *lock).await.unwrap();
    fixture.look().await;
    until_blocked(&fixture.pool).await;
    let taken = "update dalsegno.jobs set lease = lease + 1 where state = 'running'";
    assert_eq!(sqlx::query(taken).execute(&fixture.pool).await.unwrap().rows_affected(), 1);
    lock.rollback().await.unwrap();
    worker.stop_only().await;
    assert_eq!((fixture.n_batches().await, fixture.count(CANCELLATIONS).await), (1, 0));
    let turns = fixture.turns(&task).await;
    assert_eq!((turns.len(), turns[0].state), (1, turns::State::Running));
    assert_eq!(fixture.task(&task).await.state, State::Queued);
}

#[tokio::test]
async fn a_call_with_files_is_an_ordinary_one_and_its_explanation_says_so() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let image = NewAttachment::upload("chart.png", PNG.to_vec());
    let task = fixture
        .add_within_with("main", "Describe it.", DAY_SECS, &[image], Default::default())
        .await;
    let task = fixture.done(&task).await;
    worker.stop().await;
    assert_eq!((server.state.batches.all().len(), server.calls().len()), (0, 1));
    let because = fixture.because(&task).await;
    let words = "Its call was an ordinary one and no batch, because it has files.";
    assert!(because.contains(words), "{because}");
}

/// An earlier task of the conversation has the image: its message is part of the call.
#[tokio::test]
async fn a_batch_has_text_files_and_a_conversation_with_an_image_gets_ordinary_calls() {
    let server = server().await;
    let fixture = fixture(&server).await;
    let worker = fixture.start_worker().await;
    let notes = [NewAttachment::upload("notes.md", b"Low tide at six.".to_vec())];
    let task =
        fixture.add_within_with("main", "Sum them up.", DAY_SECS, &notes, Default::default()).await;
    let batch = sent(&server, 1).await.remove(0);
    let messages = batch.call["messages"].to_string();
    assert!(messages.contains("notes.md") && messages.contains("Low tide at six."), "{messages}");
    fixture.waits_for_batch(&task).await;
    server.state.batches.end(0, answers("At six."));
    assert_eq!(fixture.ended_with_looks(&task).await.result.as_deref(), Some("At six."));
    let image = [NewAttachment::upload("chart.png", PNG.to_vec())];
    let with_image =
        fixture.add_within_with("main", "Describe it.", DAY_SECS, &image, Default::default()).await;
    fixture.done(&with_image).await;
    let later = fixture.add_within("main", "And now?", DAY_SECS).await;
    fixture.done(&later).await;
    worker.stop().await;
    assert_eq!((server.state.batches.all().len(), server.calls().len()), (1, 2));
    let last = server.calls().pop().unwrap()["messages"].to_string();
    assert!(last.contains("Low tide at six.") && last.contains("image/png"), "{last}");
}
