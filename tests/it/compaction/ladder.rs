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
    jobs::compact_session::{Cause, Error, Prepared},
    providers::{Class, sim::SummaryMode},
    queue::{Decision, JobError, Until},
};
use serde_json::json;

use super::{
    Stage, Watched, sim,
    stage::{OTHER_MODEL, WINDOW_TOKENS},
};
use crate::conversations::world::World;

fn rungs(prepared: &Prepared) -> Vec<String> {
    let refused = prepared.refused.iter().map(|attempt| format!("{:?}", attempt.rung));
    refused.chain(prepared.rung.map(|rung| format!("{rung:?}"))).collect()
}

#[tokio::test]
async fn a_summary_is_stored_charged_and_shown_and_the_transcript_stays() {
    let stage = Stage::new(Watched::honest()).await;
    let id = stage.chat(24).await;
    let (transcript, tokens_before) =
        (stage.world.transcript(id).await, stage.session(id).await.token_count);
    let prepared = stage.prepare(id, Cause::Manual).await.unwrap();
    assert_eq!(rungs(&prepared), ["First"]);
    assert_eq!(stage.session(id).await.generation, 0, "prepared is not shown");
    stage.apply(id).await;

    let stored = stage.compactions(id).await.remove(0);
    assert_eq!((stored.cause, stored.outcome), (Cause::Manual, Outcome::Applied));
    assert_eq!((stored.model.as_deref(), stored.turn), (Some("sim-1"), 24));
    assert!(stored.tokens_after.unwrap() * 4 <= stored.tokens_before * 3);
    let context = stage.context(id).await;
    assert!((1..=24).all(|turn| context.contains(&format!("INV-{turn:04}"))));
    assert_eq!(stage.world.transcript(id).await, transcript);

    let (calls, tokens, micros) = stage.ledger().await;
    assert_eq!(calls, i64::try_from(stage.provider.n_summaries()).unwrap());
    assert_eq!(micros, tokens * 3);
    assert_eq!(stage.session(id).await.token_count - tokens_before, tokens);
    let budget = campaigns::budget(&stage.world.pool, stage.world.campaign.id).await;
    // The turns of the script cost 500 each.
    assert_eq!(budget.unwrap().unwrap().spent.micros, micros + 24 * 500);
    assert_eq!(kinds(&stage).await, ["session.compacted"]);
}

#[tokio::test]
async fn each_rung_is_tried_and_every_refusal_is_kept_with_its_reason() {
    let provider = Watched::new(sim(SummaryMode::Empty, &[]));
    let stage = Stage { alternate_model: Some(OTHER_MODEL), ..Stage::new(provider).await };
    let id = stage.chat(24).await;
    let prepared = stage.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry", "Alternate"]);
    let stored = stage.compactions(id).await.remove(0);
    assert_eq!(stored.model.as_deref(), Some(OTHER_MODEL));
    assert_eq!(
        stored.refusals[1],
        json!({ "rung": "retry", "refusals": [{ "refusal": "empty" }] })
    );
    assert_eq!(kinds(&stage).await, ["session.compaction_refused"]);
}

#[tokio::test]
async fn an_open_breaker_ends_what_can_wait_at_once_and_gives_an_overflow_an_extract() {
    let provider = Watched::new(sim(SummaryMode::Bloated, &[]));
    let stage = Stage { alternate_model: Some("sim-1"), ..Stage::new(provider).await };
    let id = stage.chat(24).await;
    let prepared = stage.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry", "Alternate", "Extract"]);
    let n_asked = stage.provider.n_summaries();
    stage.apply(id).await;
    for turn in 25..=33 {
        stage.say(&format!("Part {turn}."), &[]).await;
    }
    for cause in [Cause::Auto, Cause::Manual] {
        let error = stage.prepare(id, cause).await.unwrap_err();
        assert!(matches!(error, Error::BreakerOpen { from_turn: 34, .. }), "{error}");
        assert!(error.to_string().contains("from turn 34 on"), "{error}");
    }
    stage.chat(12).await;
    // The attempts of turn 24 no longer count in turn 45.
    let again = stage.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(again.refused.len(), 3);
    let n_asked_again = stage.provider.n_summaries();
    assert!(n_asked_again > n_asked);
    stage.apply(id).await;
    stage.chat(8).await;
    let extract = stage.prepare(id, Cause::Overflow).await.unwrap();
    assert_eq!(rungs(&extract), ["Extract"]);
    assert_eq!(stage.provider.n_summaries(), n_asked_again, "nobody was asked");
}

#[tokio::test]
async fn a_busy_summariser_puts_the_job_off_and_costs_no_attempt() {
    let stage = Stage::new(Watched::new(sim(SummaryMode::Honest, &["error 503 once"]))).await;
    let id = stage.chat(24).await;
    let error = stage.prepare(id, Cause::Auto).await.unwrap_err();
    assert!(
        matches!(&error, Error::NotAsked(source) if matches!(source.class, Class::Snooze { .. }))
    );
    let Decision::Snooze(Until::After(wait)) = JobError::from(error).decision else { panic!() };
    assert!((2..=4).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(stage.session(id).await.compaction_breaker, Some(json!({ "attempts": [] })));
    assert_eq!((stage.ledger().await.0, stage.compactions(id).await.len()), (0, 0));
    // The model is not called until its backoff is over.
    let waits = stage.prepare(id, Cause::Auto).await.unwrap_err();
    assert!(waits.to_string().contains("(1 in a row)"), "{waits}");
    assert_eq!(stage.provider.n_summaries(), 1);
    stage.clock.advance(TimeDelta::seconds(4));
    assert_eq!(rungs(&stage.prepare(id, Cause::Auto).await.unwrap()), ["First"]);
    let busy = busy_models::list(&stage.world.pool, stage.clock.now()).await.unwrap();
    assert_eq!(busy, [], "it has answered");
}

#[tokio::test]
async fn a_summariser_that_is_busy_for_too_long_counts_as_failed() {
    let stage = Stage::new(Watched::new(sim(SummaryMode::Honest, &["error 503"]))).await;
    let id = stage.chat(24).await;
    let mut n_waits = 0;
    let extract = loop {
        match stage.prepare(id, Cause::Auto).await {
            Ok(extract) => break extract,
            Err(Error::NotAsked(source)) => {
                let Class::Snooze { after, .. } = source.class else { panic!("{source}") };
                stage.clock.advance(TimeDelta::from_std(after).unwrap());
                n_waits += 1;
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(rungs(&extract).last().unwrap(), "Extract");
    assert!((8..=30).contains(&n_waits), "{n_waits}");
}

#[tokio::test]
async fn a_fold_that_is_stopped_leaves_nothing_but_what_it_cost() {
    let stage = Stage::new(Watched::honest()).await;
    let id = stage.chat(24).await;
    stage.cancel.cancel();
    let error = stage.prepare(id, Cause::Auto).await.unwrap_err();
    assert!(matches!(&error, Error::NotAsked(source) if source.class == Class::Cancelled));
    assert_eq!(stage.ledger().await, (1, 0, 0));
    assert_eq!(stage.compactions(id).await.len(), 0);
}

#[tokio::test]
async fn a_summariser_that_fails_is_an_attempt_and_the_ladder_goes_on() {
    let faults = ["error 500 once"];
    let stage = Stage::new(Watched::new(sim(SummaryMode::Honest, &faults))).await;
    let id = stage.chat(24).await;
    let prepared = stage.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry"]);
    assert!(prepared.refused[0].refusals[0].to_string().contains("no answer"));
    assert_eq!(stage.session(id).await.compaction_breaker, Some(json!({ "attempts": [24, 24] })));
    let lost = Stage::new(Watched::new(sim(SummaryMode::Honest, &["error 404"]))).await;
    let id = lost.chat(24).await;
    let prepared = lost.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry", "Extract"]);
    assert_eq!(lost.compactions(id).await[0].model, None);
}

#[tokio::test]
async fn a_summary_that_breaks_off_is_refused_even_if_it_looks_whole() {
    let stage = Stage::new(Watched::new(sim(SummaryMode::Honest, &["length once"]))).await;
    let id = stage.chat(24).await;
    let prepared = stage.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry"]);
    assert!(prepared.refused[0].refusals[0].to_string().contains("broke off"));
}

#[tokio::test]
async fn a_budget_that_is_used_up_asks_nobody_and_still_makes_room() {
    let limit = Limit { micros: None, tokens: Some(2_000) };
    let stage = Stage::in_world(World::with_limit(limit).await, Watched::honest());
    let id = stage.chat(24).await;
    let prepared = stage.prepare(id, Cause::Overflow).await.unwrap();
    assert_eq!(rungs(&prepared), ["First", "Retry", "Extract"]);
    assert!(prepared.refused[0].refusals[0].to_string().contains("budget of the campaign"));
    assert_eq!((stage.provider.n_summaries(), stage.ledger().await.0), (0, 0));
    let breaker = stage.session(id).await.compaction_breaker;
    assert_eq!(breaker, Some(json!({ "attempts": [] })));
}

#[tokio::test]
async fn an_input_beyond_the_summarisers_window_is_folded_in_batches() {
    let provider = Watched::honest();
    let stage = Stage { summariser_window_tokens: WINDOW_TOKENS / 2, ..Stage::new(provider).await };
    let id = stage.chat(30).await;
    let prepared = stage.prepare(id, Cause::Auto).await.unwrap();
    assert_eq!(rungs(&prepared), ["First"]);
    assert!(stage.provider.n_summaries() >= 4, "{} batches", stage.provider.n_summaries());
    assert!(stage.provider.largest_tokens() <= WINDOW_TOKENS / 2);
    // Several calls are one attempt.
    assert_eq!(stage.session(id).await.compaction_breaker, Some(json!({ "attempts": [30] })));
    assert_eq!(stage.ledger().await.0, i64::try_from(stage.provider.n_summaries()).unwrap());
    stage.apply(id).await;
    let context = stage.context(id).await;
    assert!((1..=30).all(|turn| context.contains(&format!("INV-{turn:04}"))));
}

#[tokio::test]
async fn what_cannot_be_folded_says_so_and_asks_nobody() {
    let stage = Stage::new(Watched::honest()).await;
    let id = stage.chat(2).await;
    for cause in [Cause::Auto, Cause::Manual, Cause::Overflow] {
        let error = stage.prepare(id, cause).await.unwrap_err();
        assert!(error.to_string().contains("there is nothing to compact"), "{error}");
        assert_eq!(JobError::from(error).decision, Decision::Fail);
    }
    assert_eq!((stage.provider.n_summaries(), stage.compactions(id).await.len()), (0, 0));
}

/// Returns the kinds of events about sessions.
async fn kinds(stage: &Stage) -> Vec<String> {
    let filter = Filter { campaign_id: None, after: 0, up_to: i64::MAX, limit: 100 };
    let events = feed::list(&stage.world.pool, filter).await.unwrap();
    let kinds = events.into_iter().map(|event| event.kind);
    kinds.filter(|kind| kind.starts_with("session.")).collect()
}
