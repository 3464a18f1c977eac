//! The proofs that models saw their history, and the report on a campaign.

use dalsegno::domain::{
    fidelity::{self, CheckedTurn, FidelityReport},
    turns::HistoryCheck,
};
use uuid::Uuid;

use super::Fixture;

const WRITER: &str = "---\nname: writer\ndescription: Writes\n---\nYou write.\n";

async fn report(fixture: &Fixture, campaign_id: Uuid) -> (FidelityReport, Vec<CheckedTurn>) {
    let mut conn = fixture.pool.acquire().await.unwrap();
    let report = fidelity::report(&mut conn, campaign_id).await.unwrap();
    let mut turns = fidelity::list(&mut conn, campaign_id, None, None, 2).await.unwrap().turns;
    let after = turns.last().map(CheckedTurn::cursor);
    turns.extend(fidelity::list(&mut conn, campaign_id, None, after, 200).await.unwrap().turns);
    (report, turns)
}

#[tokio::test]
async fn a_count_above_that_of_a_prompt_without_history_proves_that_it_was_seen() {
    let fixture = Fixture::new(&[]).await;
    fixture.write_agent("writer", WRITER);
    let worker = fixture.start_worker().await;
    let long = "The harbour is called Vik. ".repeat(200);
    let prompts = [long.as_str(), "Two.", &long.repeat(5), "Four."];
    let mut campaign_id = None;
    for prompt in prompts {
        let task = fixture.done(&fixture.add(prompt).await).await;
        campaign_id = Some(task.campaign_id);
    }
    fixture.settled().await;
    worker.stop().await;
    let (report, mut turns) = report(&fixture, campaign_id.unwrap()).await;
    turns.reverse();
    let checks: Vec<_> = turns.iter().map(|turn| turn.history_check).collect();
    let expected = [
        HistoryCheck::NoHistory,
        HistoryCheck::Seen,
        // The prompt is longer than the history: its estimate may be wrong by as much.
        HistoryCheck::NotProvable,
        HistoryCheck::Seen,
    ];
    assert_eq!(checks, expected.map(Some));
    let id = campaign_id.unwrap().to_string();
    let listed = ["fidelity", "turns", "--campaign", &id, "--history", "not_provable", "--json"];
    let output = fixture.run_command(&listed).await;
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let numbers: Vec<_> = listed.as_array().unwrap().iter().map(|turn| &turn["turn"]).collect();
    assert_eq!(numbers, [&serde_json::json!(3)], "{listed}");
    let counts = report.turns;
    assert_eq!((counts.seen, counts.not_provable, counts.no_history), (2, 1, 1));
    assert_eq!((counts.not_seen, counts.not_checked, report.lost_sessions), (0, 0, 0));
    assert_eq!(report.estimates.counted_calls, 4);
    assert!(
        turns.iter().all(|turn| turn.counted_tokens.is_some() && turn.estimated_tokens.is_some())
    );
    let ratio = |turn: &CheckedTurn| {
        turn.estimated_tokens.unwrap() as f64 / turn.counted_tokens.unwrap() as f64
    };
    let largest = turns.iter().map(ratio).fold(0.0, f64::max);
    assert!((report.estimates.largest.unwrap() - largest).abs() < 1e-9);
}
