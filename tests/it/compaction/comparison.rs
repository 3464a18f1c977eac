//! Sessions before and after a compaction: the places of messages and values.

use dalsegno::{
    domain::{
        compactions::{self, CompactionComparison, MessagePlace, ValuePlace},
        tasks,
    },
    jobs::compact_session::Cause,
    providers::sim::SummaryMode,
    transcript::Role,
};
use uuid::Uuid;

use super::{Setup, WatchedProvider, sim};
use crate::{cli::compact, context::support::message};

const LAMP: &str = "You must always mention the red lamp.";

impl Setup {
    async fn compare(&self, id: Uuid, number: i32) -> CompactionComparison {
        let mut conn = self.world.pool.acquire().await.unwrap();
        let replaced = compactions::replaced_texts(&mut conn, id, number).await.unwrap();
        let by_agents = tasks::added_by_agents(&mut *conn, &replaced.prompt_tasks()).await.unwrap();
        replaced.compare(&by_agents)
    }
}

fn place(compared: &CompactionComparison, seq: i64) -> MessagePlace {
    compared.messages.iter().find(|message| message.seq == seq).unwrap().place
}

#[tokio::test]
async fn each_replaced_message_and_value_has_its_place_after_a_compaction() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    setup.commit_turn(LAMP, &[message(Role::Assistant, "I will.")]).await;
    let id = setup.chat(24).await;
    setup.prepare(id, Cause::Manual).await.unwrap();
    setup.apply(id).await;
    let first = setup.compare(id, 1).await;
    assert!(first.is_current && first.earlier_summary.is_none() && first.attempts.is_empty());
    let seqs: Vec<_> = first.messages.iter().map(|message| message.seq).collect();
    assert_eq!(seqs, (first.compaction.from_seq..=first.compaction.to_seq).collect::<Vec<_>>());
    assert_eq!((&*first.messages[0].beginning, place(&first, 1)), (LAMP, MessagePlace::Sentences));
    assert_eq!(
        (first.messages[1].role, place(&first, 2)),
        (Role::Assistant, MessagePlace::Summary)
    );
    assert!(first.values.iter().any(|value| value.text.contains("INV-0001") && value.is_pinned));
    assert!(first.values.iter().all(|value| value.place != ValuePlace::Archive), "{first:#?}");

    setup.chat(24).await;
    setup.prepare(id, Cause::Manual).await.unwrap();
    setup.apply(id).await;
    let second = setup.compare(id, 2).await;
    assert_eq!(second.earlier_summary, first.compaction.summary);
    assert!(second.is_current && !setup.compare(id, 1).await.is_current);
    // Prompts that the first compaction had kept are compared again.
    let kept = first.messages.iter().filter(|message| message.place == MessagePlace::Kept);
    let kept: Vec<_> = kept.map(|message| message.seq).collect();
    let again: Vec<_> =
        second.messages.iter().map(|message| message.seq).take(kept.len()).collect();
    assert!(!kept.is_empty() && kept == again, "{kept:?} {again:?}");
    assert!(second.messages.iter().any(|message| message.seq == first.compaction.to_seq + 1));
}

#[tokio::test]
async fn a_value_that_the_summary_lost_is_only_in_the_archive() {
    let setup = Setup::new(WatchedProvider::honest()).await;
    let answer = message(Role::Assistant, "Invoice INV-4711 is paid.");
    let id = setup.commit_turn("Pay it.", &[answer]).await;
    setup.commit_turn("Go on.", &[message(Role::Assistant, "Done.")]).await;
    compact(&setup.world.pool, id).await;
    let compared = setup.compare(id, 1).await;
    let lost: Vec<_> =
        compared.values.iter().map(|it| (&*it.text, it.is_pinned, it.place)).collect();
    let place = ValuePlace::Archive;
    assert_eq!(lost, [("INV-4711", false, place)]);
    // The summary stands for them, and repeats none of their values.
    let all = compared.messages.iter().map(|it| (it.place, it.values, it.values_shown));
    let summary = MessagePlace::Summary;
    assert_eq!(all.collect::<Vec<_>>(), [(summary, 0, 0), (summary, 1, 0)]);
}

#[tokio::test]
async fn a_refused_compaction_replaces_nothing_and_lists_its_attempts() {
    let setup = Setup::new(WatchedProvider::new(sim(SummaryMode::Empty, &[]))).await;
    let id = setup.chat(24).await;
    setup.prepare(id, Cause::Auto).await.unwrap();
    let extract = setup.compare(id, 1).await;
    let faults: Vec<_> = extract.attempts.iter().flat_map(|attempt| &attempt.faults).collect();
    assert_eq!(faults, ["the summary is empty", "the summary is empty"]);
    assert!(!extract.messages.is_empty() && !extract.is_current, "prepared by an extract");

    let failed = "update dalsegno.compactions set outcome = 'refused', summary = null, rung = null, tokens_after = null,
                  prompts = null where session_id = $1";
    sqlx::query(failed).bind(id).execute(&setup.world.pool).await.unwrap();
    let refused = setup.compare(id, 1).await;
    assert!(refused.messages.is_empty() && refused.values.is_empty());
    assert_eq!(refused.attempts, extract.attempts);
}
