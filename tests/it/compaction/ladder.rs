//! Compactions with faulty summarisers, windows and budgets.

use chrono::TimeDelta;
use dalsegno::{
    clock::Clock as _,
    domain::{
        amount::Limit,
        busy_models, campaigns,
        compactions::Outcome,
        feed::{self, Filter},
    },
    jobs::compact_session::{Cause, Error, PreparedCompaction},
    providers::{Class, sim::SummaryMode},
    queue::{Decision, HoldUntil, JobError, WaitCause},
};
use serde_json::json;

use super::{
    Setup, WatchedProvider,
    setup::{OTHER_MODEL, WINDOW_TOKENS},
    sim,
};
use crate::{control::feed_kinds::assert_described, conversations::world::World};

fn rungs(prepared: &PreparedCompaction) -> Vec<String> {
    let refused = prepared.refused.iter().map(|attempt| format!("{:?}", attempt.rung));
    refused.chain(prepared.rung.map(|rung| format!("{rung:?}"))).collect()
}

#[tokio::test]
async fn a_summary_is_stored_charged_and_shown_and_the_transcript_stays() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    let (transcript, tokens_before) =
        (setup.world.transcript(id).await, setup.session(id).await.token_count);
    let prepared = setup.prepare(id, Cause::Manual).await.unwrap();
    assert_eq!(rungs(&prepared), ["First"]);
    assert_eq!(setup.session(id).await.generation, 0, "a prepared summary is not shown");
    setup.apply(id).await;

    let stored = setup.compactions(id).await.remove(0);
    assert_eq!((stored.cause, stored.outcome), (Cause::Manual, Outcome::Applied));
    assert_eq!((stored.model.as_deref(), stored.turn), (Some("sim-1"), 24));
    assert!(stored.tokens_after.unwrap() * 4 <= stored.tokens_before * 3);
    let context = setup.context(id).await;
    assert!((1..=24).all(|turn| context.contains(&format!("INV-{turn:04}"))));
    assert_eq!(setup.world.transcript(id).await, transcript);

    let (calls, tokens, micros) = setup.ledger().await;
    assert_eq!(calls, i64::try_from(setup.provider.n_summaries()).unwrap());
    assert_eq!(micros, tokens * 3);
    assert_eq!(setup.session(id).await.token_count - tokens_before, tokens);
    let budget = campaigns::budget(&setup.world.pool, setup.world.campaign.id).await;
    // The turns of the script cost 500 each.
    assert_eq!(budget.unwrap().unwrap().spent.micros, micros + 24 * 500);
    assert_eq!(kinds(&setup).await, ["session.compacted"]);
}

#[tokio::test]
async fn each_ladder_step_is_tried_and_every_refusal_is_stored_with_its_reason() {
    let provider = WatchedProvider::new(sim(SummaryMode::Empty, &[]));
    let setup = Setup { alternate_model: Some(OTHER_MODEL), ..Setup::new(provider).await };
    let id = setup.chat(24).await;
    let prepared = setup.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry", "Alternate"]);
    let stored = setup.compactions(id).await.remove(0);
    assert_eq!(stored.model.as_deref(), Some(OTHER_MODEL));
    assert_eq!(
        stored.refusals[1],
        json!({ "rung": "retry", "refusals": [{ "refusal": "empty" }] })
    );
    assert_eq!(kinds(&setup).await, ["session.compaction_refused"]);
}

#[tokio::test]
async fn an_open_breaker_ends_deferrable_jobs_and_gives_an_overflow_an_extract() {
    let provider = WatchedProvider::new(sim(SummaryMode::Bloated, &[]));
    let setup = Setup { alternate_model: Some("sim-1"), ..Setup::new(provider).await };
    let id = setup.chat(24).await;
    let prepared = setup.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry", "Alternate", "Extract"]);
    let n_asked = setup.provider.n_summaries();
    setup.apply(id).await;
    for turn in 25..=33 {
        setup.commit_turn(&format!("Part {turn}."), &[]).await;
    }
    for cause in [Cause::Auto, Cause::Manual] {
        let error = setup.prepare(id, cause).await.unwrap_err();
        assert!(matches!(error, Error::BreakerOpen { from_turn: 34, .. }), "{error}");
        assert!(error.to_string().contains("from turn 34 on"), "{error}");
    }
    setup.chat(12).await;
    // The attempts of turn 24 no longer count in turn 45.
    let again = setup.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(again.refused.len(), 3);
    let n_asked_again = setup.provider.n_summaries();
    assert!(n_asked_again > n_asked);
    setup.apply(id).await;
    setup.chat(8).await;
    let extract = setup.prepare(id, Cause::Overflow).await.unwrap();
    assert_eq!(rungs(&extract), ["Extract"]);
    assert_eq!(setup.provider.n_summaries(), n_asked_again, "no further call was made");
}

#[tokio::test]
async fn a_busy_summariser_postpones_the_job_without_using_up_an_attempt() {
    let setup =
        Setup::new(WatchedProvider::new(sim(SummaryMode::Honest, &["error 503 once"]))).await;
    let id = setup.chat(24).await;
    let error = setup.prepare(id, Cause::Auto).await.unwrap_err();
    assert!(
        matches!(&error, Error::NotAsked(source) if matches!(source.class, Class::Snooze { .. }))
    );
    let Decision::Snooze(HoldUntil::After(wait), Some(WaitCause::Provider)) =
        JobError::from(error).decision
    else {
        panic!()
    };
    assert!((2..=4).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(setup.session(id).await.compaction_breaker, Some(json!({ "attempts": [] })));
    assert_eq!((setup.ledger().await.0, setup.compactions(id).await.len()), (0, 0));
    // The model is not called until its backoff is over.
    let waits = setup.prepare(id, Cause::Auto).await.unwrap_err();
    assert!(waits.to_string().contains("(1 in a row)"), "{waits}");
    assert_eq!(setup.provider.n_summaries(), 1);
    setup.clock.advance(TimeDelta::seconds(4));
    assert_eq!(rungs(&setup.prepare(id, Cause::Auto).await.unwrap()), ["First"]);
    let busy = busy_models::list(&setup.world.pool, setup.clock.now()).await.unwrap();
    assert_eq!(busy, [], "the summariser has answered");
}

#[tokio::test]
async fn a_summariser_that_stays_busy_counts_as_failed() {
    let setup = Setup::new(WatchedProvider::new(sim(SummaryMode::Honest, &["error 503"]))).await;
    let id = setup.chat(24).await;
    let mut n_waits = 0;
    let extract = loop {
        match setup.prepare(id, Cause::Auto).await {
            Ok(extract) => break extract,
            Err(Error::NotAsked(source)) => {
                let Class::Snooze { after, .. } = source.class else { panic!("{source}") };
                setup.clock.advance(TimeDelta::from_std(after).unwrap());
                n_waits += 1;
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(rungs(&extract).last().unwrap(), "Extract");
    assert!((8..=30).contains(&n_waits), "{n_waits}");
}

#[tokio::test]
async fn a_stopped_compaction_leaves_only_its_cost() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(24).await;
    setup.cancel.cancel();
    let error = setup.prepare(id, Cause::Auto).await.unwrap_err();
    assert!(matches!(&error, Error::NotAsked(source) if source.class == Class::Cancelled));
    assert_eq!(setup.ledger().await, (1, 0, 0));
    assert_eq!(setup.compactions(id).await.len(), 0);
}

#[tokio::test]
async fn a_failing_summariser_counts_as_an_attempt_and_the_ladder_continues() {
    let faults = ["error 500 once"];
    let setup = Setup::new(WatchedProvider::new(sim(SummaryMode::Honest, &faults))).await;
    let id = setup.chat(24).await;
    let prepared = setup.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry"]);
    assert!(prepared.refused[0].refusals[0].to_string().contains("no answer"));
    assert_eq!(setup.session(id).await.compaction_breaker, Some(json!({ "attempts": [24, 24] })));
    let lost = Setup::new(WatchedProvider::new(sim(SummaryMode::Honest, &["error 404"]))).await;
    let id = lost.chat(24).await;
    let prepared = lost.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry", "Extract"]);
    assert_eq!(lost.compactions(id).await[0].model, None);
}

#[tokio::test]
async fn a_truncated_summary_is_refused_even_if_it_looks_complete() {
    let setup = Setup::new(WatchedProvider::new(sim(SummaryMode::Honest, &["length once"]))).await;
    let id = setup.chat(24).await;
    let prepared = setup.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry"]);
    assert!(prepared.refused[0].refusals[0].to_string().contains("broke off"));
}

#[tokio::test]
async fn a_spent_budget_makes_no_provider_call_and_still_frees_context() {
    let limit = Limit { micros: None, tokens: Some(2_000) };
    let setup = Setup::with_world(World::with_limit(limit).await, WatchedProvider::honest());
    let id = setup.chat(24).await;
    let prepared = setup.prepare(id, Cause::Overflow).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry", "Extract"]);
    assert!(prepared.refused[0].refusals[0].to_string().contains("budget of the campaign"));
    assert_eq!((setup.provider.n_summaries(), setup.ledger().await.0), (0, 0));
    let breaker = setup.session(id).await.compaction_breaker;
    assert_eq!(breaker, Some(json!({ "attempts": [] })));
}

#[tokio::test]
async fn an_input_beyond_the_summarisers_window_is_compacted_in_batches() {
    let provider = WatchedProvider::honest();
    let setup = Setup { summariser_window_tokens: WINDOW_TOKENS / 2, ..Setup::new(provider).await };
    let id = setup.chat(30).await;
    let prepared = setup.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First"]);
    assert!(setup.provider.n_summaries() >= 4, "{} batches", setup.provider.n_summaries());
    assert!(setup.provider.largest_tokens() <= WINDOW_TOKENS / 2);
    // Several calls are one attempt.
    assert_eq!(setup.session(id).await.compaction_breaker, Some(json!({ "attempts": [30] })));
    assert_eq!(setup.ledger().await.0, i64::try_from(setup.provider.n_summaries()).unwrap());
    setup.apply(id).await;
    let context = setup.context(id).await;
    assert!((1..=30).all(|turn| context.contains(&format!("INV-{turn:04}"))));
}

#[tokio::test]
async fn an_impossible_compaction_is_reported_without_a_provider_call() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let id = setup.chat(2).await;
    for cause in [Cause::Auto, Cause::Manual, Cause::Overflow] {
        let error = setup.prepare(id, cause).await.unwrap_err();
        assert!(error.to_string().contains("there is nothing to compact"), "{error}");
        assert_eq!(JobError::from(error).decision, Decision::Fail);
    }
    assert_eq!((setup.provider.n_summaries(), setup.compactions(id).await.len()), (0, 0));
}

/// Returns the kinds of events about sessions.
async fn kinds(setup: &Setup) -> Vec<String> {
    let filter = Filter { campaign_id: None, after: 0, up_to: i64::MAX, limit: 100 };
    let events = feed::list(&setup.world.pool, filter).await.unwrap();
    assert_described(&events);
    let kinds = events.into_iter().map(|event| event.kind);
    kinds.filter(|kind| kind.starts_with("session.")).collect()
}
