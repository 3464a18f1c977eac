//! Compaction in turns, on real workers through the queue.
//!
//! The runs are short here; `chaos` has the long ones.

use std::os::unix::process::ExitStatusExt as _;

use dalsegno::{
    domain::{
        compactions::{self, Cause, Compaction, Outcome},
        messages::StoredMessage,
        tasks::Task,
        usage,
    },
    transcript::Role,
};
use rustix::process::Signal;
use uuid::Uuid;

use crate::{
    app::eventually,
    context::{
        script::{
            has_identifier, has_requirement, has_tool_identifier, identifier, mention, requirement,
        },
        support::prose,
    },
    turns::fixture::Fixture,
};

/// Fewest turns that cause several compactions.
const SHORT: usize = 80;
const WINDOW: (&str, &str) = ("sim.window_tokens", "8192");

/// Returns the identifiers of a turn. All of them are in prompts: the simulation's answers have none of their own.
fn planted(turn: usize) -> Vec<String> {
    let identifiers = [
        has_identifier(turn).then(|| identifier(turn, 0)),
        has_tool_identifier(turn).then(|| identifier(turn, 1)),
    ];
    let rule = has_requirement(turn).then(|| requirement(turn));
    identifiers.into_iter().chain([rule]).flatten().collect()
}

fn prompt(turn: usize) -> String {
    let mut text = format!("{} [[sim: words 120]]", prose(turn * 3, 4));
    for (place, is_there) in
        [has_identifier(turn), has_tool_identifier(turn)].into_iter().enumerate()
    {
        if is_there {
            text.push_str(&format!(
                " It concerns {}, as agreed.",
                mention(&identifier(turn, place))
            ));
        }
    }
    if has_requirement(turn) {
        text.push_str(&format!("\nStanding requirement: {}", requirement(turn)));
    }
    text
}

/// Runs `n_turns` turns of the series on one worker, and checks each view that a compaction has made.
async fn run_turns(summary: &str, n_turns: usize) -> Vec<Compaction> {
    let fixture = Fixture::new(&[WINDOW, ("sim.summary", summary)]).await;
    let mut tasks: Vec<Task> = Vec::new();
    for turn in 0..n_turns {
        tasks.push(fixture.add(&prompt(turn)).await);
    }
    let worker = fixture.start_worker().await;
    for task in &tasks {
        fixture.done(task).await;
    }
    let sessions = fixture.sessions().await;
    assert_eq!(sessions.len(), 1, "no turn was restarted");
    worker.stop().await;
    let id = sessions[0].id;
    let made = compactions::list(&fixture.pool, id).await.unwrap();
    let stored = fixture.messages(id).await;
    assert_eq!(stored.iter().filter(|stored| stored.message.role == Role::User).count(), n_turns);
    let applied: Vec<_> = made.iter().filter(|made| made.outcome == Outcome::Applied).collect();
    let n_look_ups: usize = applied.iter().map(|made| check_planted(made, &stored)).sum();
    check_pace(&made, n_turns);
    let n_refused: usize = made.iter().map(|made| made.refusals.as_array().unwrap().len()).sum();
    println!(
        "fidelity through {n_turns} turns, {summary}: planted {}, {} compactions applied of {} made, {n_look_ups} look-ups, \
         none lost; attempts {}, refused summaries {n_refused}",
        (0..n_turns).flat_map(planted).count(),
        applied.len(),
        made.len(),
        attempts(&made).len(),
    );
    assert!(applied.len() >= 3.max(n_turns / 40), "{}", applied.len());
    // Otherwise the look-ups above would have checked nothing.
    assert!(n_look_ups >= n_turns / 10, "{n_look_ups}");
    made
}

/// Checks that everything planted by then is in the summary or in the verbatim text around it.
fn check_planted(made: &Compaction, stored: &[StoredMessage]) -> usize {
    let mut shown =
        format!("{}\n{}", made.summary.as_ref().unwrap(), made.prompts.as_ref().unwrap());
    for stored in
        stored.iter().filter(|stored| stored.seq > made.to_seq && stored.turn <= made.turn)
    {
        shown.push('\n');
        shown.push_str(&stored.message.text);
    }
    // Counts prompts, because the turn number is higher after a retried attempt.
    let prompts = stored.iter().filter(|stored| stored.message.role == Role::User);
    let n_prompts = prompts.filter(|stored| stored.turn <= made.turn).count();
    let by_then: Vec<String> = (0..n_prompts).flat_map(planted).collect();
    for text in &by_then {
        assert!(shown.contains(text), "{text} is lost in generation {}", made.generation);
    }
    by_then.len()
}

fn check_pace(made: &[Compaction], n_turns: usize) {
    let attempts = attempts(made);
    for first in 1..=n_turns as i32 {
        let recent = attempts.iter().filter(|turn| (first..first + 10).contains(*turn)).count();
        assert!(recent <= 3, "{recent} attempts in ten turns from {first}");
    }
}

/// Returns the turn of each attempt at a summary.
fn attempts(made: &[Compaction]) -> Vec<i32> {
    let mut turns = Vec::new();
    for made in made {
        let refused = made.refusals.as_array().unwrap().iter();
        // Attempts that another compaction had used up were never made.
        let refused =
            refused.filter(|attempt| !attempt.to_string().contains("used up the attempts"));
        let rungs = refused.map(|attempt| attempt["rung"].as_str().unwrap());
        let asked = rungs.chain(made.rung.as_deref()).filter(|rung| *rung != "extract");
        turns.extend(asked.map(|_| made.turn));
    }
    turns
}

pub(super) async fn honest(n_turns: usize) {
    let made = run_turns("honest", n_turns).await;
    let first = made.iter().filter(|made| made.rung.as_deref() == Some("first")).count();
    assert!(first >= 3.max(n_turns / 40), "{first}");
}

pub(super) async fn dishonest(n_turns: usize) {
    let made = run_turns("drops_identifiers", n_turns).await;
    let is_extract = |made: &Compaction| made.rung.as_deref() == Some("extract");
    let with_pins = made.iter().filter(|made| made.turn > 2);
    assert!(with_pins.clone().all(is_extract));
    let n_refused = with_pins.filter(|made| made.refusals[0]["rung"] == "first").count();
    assert!(n_refused >= 2.max(n_turns / 80), "{n_refused}");
}

#[tokio::test]
async fn turns_lose_nothing_on_an_honest_summariser() {
    honest(SHORT).await;
}

#[tokio::test]
async fn turns_succeed_and_lose_nothing_on_a_dishonest_summariser() {
    dishonest(SHORT).await;
}

#[tokio::test]
async fn a_worker_killed_between_prepare_and_apply_leaves_a_summary_that_the_next_one_applies() {
    let fixture = Fixture::new(&[WINDOW]).await;
    let worker = fixture.start_worker().await;
    let mut last = None;
    for turn in 0..11 {
        let task = fixture.add(&format!("{} [[sim: words 110]]", prose(turn, 4))).await;
        last = Some(fixture.done(&task).await);
    }
    worker.stop().await;
    let id = fixture.session(&last.unwrap()).await.id;
    assert!(compactions::list(&fixture.pool, id).await.unwrap().is_empty());
    let mut tx = fixture.pool.begin().await.unwrap();
    compactions::request(&mut tx, id, Cause::Manual).await.unwrap();
    tx.commit().await.unwrap();

    let mut killed = fixture.process(&[("queue.crash_at", "before_end")]);
    assert_eq!(killed.ended().await.signal(), Some(Signal::ABORT.as_raw()), "{}", killed.log());
    let left = compactions::list(&fixture.pool, id).await.unwrap();
    assert_eq!((left.len(), left[0].outcome), (1, Outcome::Prepared));
    let n_calls = summary_calls(&fixture).await;
    assert!(n_calls > 0);

    let next = fixture.start_worker().await;
    let shown =
        eventually("the compaction is shown", async || shown_compaction(&fixture, id).await).await;
    next.stop().await;
    assert_eq!(shown.summary, left[0].summary);
    assert_eq!(summary_calls(&fixture).await, n_calls, "no further call was made");
}

async fn shown_compaction(fixture: &Fixture, id: Uuid) -> Option<Compaction> {
    let made = compactions::list(&fixture.pool, id).await.unwrap();
    made.into_iter().find(|made| made.outcome == Outcome::Applied)
}

async fn summary_calls(fixture: &Fixture) -> i64 {
    let totals = usage::totals(&fixture.pool, fixture.campaign.id).await.unwrap();
    let summaries = totals.iter().filter(|total| total.purpose == usage::Purpose::Summary);
    summaries.map(|total| total.calls).sum()
}
