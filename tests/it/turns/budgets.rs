//! Tasks that wait for the budgets that pay for their turns.

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::domain::{
    Amount,
    amount::Limit,
    attention,
    budgets::{self, Change, OwnerKind, Payers, Spender},
    campaigns::LimitChange,
    explanations::{self, Obstacle},
    tasks::{self, State, Task},
};
use serde_json::json;
use sqlx::types::Json;

use super::{Fixture, fixture::WRITER};
use crate::{
    app::{eventually, noon},
    facts::setup::set_user,
};

/// The caller of calls without a task.
const SPENDER: Spender<'_> = Spender { agent: "writer", task_id: None };

/// More than any turn of these tests needs.
const LIMIT: i64 = 20_000;

fn tokens(tokens: i64) -> Amount {
    Amount { micros: 0, tokens }
}

/// A campaign whose budget is used up.
pub async fn used_up() -> Fixture {
    let fixture = Fixture::with_limit(&[], Limit { micros: None, tokens: Some(LIMIT) }).await;
    let campaign = Payers::campaign(fixture.campaign.id);
    let amounts = (Amount::ZERO, tokens(LIMIT - 1));
    budgets::settle(&fixture.pool, campaign, SPENDER, amounts, noon()).await.unwrap();
    fixture
}

async fn raise(fixture: &Fixture, limit: i64) {
    fixture.change_limit(LimitChange { tokens: Some(Some(limit)), ..Default::default() }).await;
}

#[tokio::test]
async fn two_hundred_tasks_wait_at_the_limit_without_a_look_and_continue_when_it_is_raised() {
    let fixture = used_up().await;
    let worker = fixture.start_worker().await;
    let mut tasks = Vec::new();
    for n in 0..200 {
        tasks.push(fixture.add_for("writer", &format!("w_{n}"), "Write.").await);
    }
    fixture.waiting_for_budget(200).await;
    let runs = "select count(*) from dalsegno.runs where kind = 'run_turn'";
    assert_eq!(fixture.count(runs).await, 200, "each was looked at once");
    assert_eq!(fixture.kinds(&tasks[7]).await, ["task.waiting"]);
    let mut conn = fixture.pool.acquire().await.unwrap();
    let told = explanations::explain(&mut conn, tasks[7].id).await.unwrap();
    let left = "1 tokens of 20000 tokens are left, and the next call may need ";
    let budget =
        format!("It waits for the budget of its campaign `{}`: {left}", fixture.campaign.name);
    assert!(told.because.starts_with(&budget), "{told:?}");
    assert!(told.because.ends_with(" 19999 tokens are spent."), "{told:?}");
    assert!(told.next.contains("when `dalsegno campaign budget "), "{told:?}");
    drop(conn);
    raise(&fixture, 100_000_000).await;
    for task in &tasks {
        fixture.done(task).await;
    }
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(fixture.count(runs).await, 400, "each was woken once");
    let budget = fixture.budget().await;
    let ledger = "select sum(input_tokens + output_tokens)::bigint from dalsegno.usage";
    assert_eq!(budget.spent.tokens, LIMIT - 1 + fixture.count(ledger).await);
    assert_eq!(budget.reserved, Amount::ZERO);
}

/// Number of tasks that wait behind one whose turn was stopped.
const N_BEHIND: usize = if cfg!(feature = "chaos") { 199 } else { 11 };

/// Runs a task until the limit of its campaign stops it between two calls, lets others wait behind it, and raises the limit.
/// `n_calls` counts the requests at the provider; `end_play` lets it answer without further tools. Returns the first task.
pub async fn stop_and_continue(
    fixture: &Fixture,
    n_calls: impl Fn() -> usize,
    end_play: impl FnOnce(),
) -> Task {
    let first = fixture.add_for("writer", "first", "Write.").await;
    fixture.waiting_for_budget(1).await;
    let n_paid = n_calls();
    assert!(n_paid > 1, "{n_paid}");
    let waiting = fixture.task(&first).await;
    assert_eq!(waiting.state, State::Queued);
    let parts = "select count(*) from dalsegno.messages where role = 'tool'";
    let n_parts = fixture.count(parts).await;
    assert!(n_parts > 0 && n_parts <= n_paid as i64, "{n_parts} of {n_paid}");
    let mut behind = Vec::new();
    for n in 0..N_BEHIND {
        behind.push(fixture.add_for("writer", &format!("w_{n}"), "Write.").await);
    }
    fixture.waiting_for_budget(1 + N_BEHIND as i64).await;
    assert_eq!(n_calls(), n_paid, "a task that waits calls no provider");
    let budget = fixture.budget().await;
    assert_eq!((budget.spent.tokens, budget.reserved), (waiting.spent_tokens, Amount::ZERO));
    end_play();
    raise(fixture, 100_000_000).await;
    let first = fixture.done(&first).await;
    let mut charged = first.spent_tokens;
    for task in &behind {
        charged += fixture.done(task).await.spent_tokens;
    }
    fixture.settled().await;
    let budget = fixture.budget().await;
    assert_eq!((budget.spent.tokens, budget.reserved), (charged, Amount::ZERO));
    assert!(fixture.count(parts).await >= n_parts, "the part of the stopped turn is kept");
    let runs = "select count(*) from dalsegno.runs where kind = 'run_turn'";
    let n_runs = 2 * (1 + N_BEHIND as i64);
    assert_eq!(fixture.count(runs).await, n_runs, "each was looked at once and woken once");
    first
}

/// Space for one turn at a time: each end wakes the next task, and the limit is never exceeded.
#[tokio::test]
async fn tasks_that_share_the_space_of_one_turn_run_one_after_the_other() {
    let fixture = used_up().await;
    let worker = fixture.start_worker().await;
    let mut tasks = Vec::new();
    for n in 0..6 {
        tasks.push(fixture.add_for("writer", &format!("w_{n}"), "Write.").await);
    }
    fixture.waiting_for_budget(6).await;
    // A turn reserves some 8,700 tokens and costs some 700.
    raise(&fixture, LIMIT + 15_000).await;
    for task in &tasks {
        fixture.done(task).await;
    }
    fixture.settled().await;
    worker.stop().await;
    let overlaps = "select count(*) from dalsegno.runs as a join dalsegno.runs as b on a.job_id <> b.job_id
                      where a.outcome = 'done' and b.outcome = 'done' and a.started_at < b.ended_at and b.started_at < a.ended_at";
    assert_eq!(fixture.count(overlaps).await, 0);
    assert!(fixture.budget().await.spent.tokens < LIMIT + 15_000);
}

#[tokio::test]
async fn a_waiting_head_keeps_its_conversation_and_no_other_waits_with_it() {
    let fixture = used_up().await;
    let worker = fixture.start_worker().await;
    let first = fixture.add_for("writer", "one", "Write.").await;
    fixture.waiting_for_budget(1).await;
    let behind = fixture.add_for("writer", "one", "Go on.").await;
    let cancelled = fixture.add_for("writer", "two", "Write.").await;
    fixture.waiting_for_budget(2).await;
    let blocked = "select count(*) from dalsegno.jobs where state = 'blocked'";
    assert_eq!(fixture.count(blocked).await, 1);
    fixture.cancel(&cancelled).await;
    assert_eq!(fixture.task(&cancelled).await.state, State::Cancelled);
    raise(&fixture, 1_000_000).await;
    let (first, behind) = (fixture.done(&first).await, fixture.done(&behind).await);
    worker.stop().await;
    assert!(first.ended_at <= behind.started_at.max(behind.ended_at));
    assert_eq!(fixture.turns(&first).await.len(), 1);
    assert_eq!(fixture.count("select count(*) from dalsegno.budget_waits").await, 0);
}

#[tokio::test]
async fn a_call_that_exceeds_the_whole_limit_fails_its_task_at_once() {
    let fixture = Fixture::with_limit(&[], Limit { micros: None, tokens: Some(500) }).await;
    let worker = fixture.start_worker().await;
    let task = fixture.ended(&fixture.add("Write.").await).await;
    worker.stop().await;
    let why = task.error.unwrap();
    let stored =
        fixture.json("select budget_refusal from dalsegno.tasks where state = 'failed'").await;
    assert_eq!(stored["owner"], "campaign");
    assert_eq!(stored["key"], fixture.campaign.id.to_string());
    assert_eq!((&stored["unit"], &stored["limit"]), (&json!("tokens"), &json!(500)));
    let larger = "; the whole limit of the budget of the campaign is 500 tokens; raise the limit with `dalsegno campaign budget ";
    assert!(why.starts_with("this call may use up to ") && why.contains(larger), "{why}");
    let mut conn = fixture.pool.acquire().await.unwrap();
    let told = explanations::explain(&mut conn, task.id).await.unwrap();
    let [Obstacle::Budget(refusal)] = &told.obstacles[..] else { panic!("{told:?}") };
    let next = format!(
        "Raise the limit with {}, then run `dalsegno task retry {}`.",
        refusal.raise_command(),
        task.id
    );
    assert_eq!(told.next, next);
    let listed = attention::list(&mut conn, 0, noon()).await.unwrap().items;
    let failed = listed.iter().find(|it| it.kind == attention::Kind::FailedTask).unwrap();
    let raise = format!("dalsegno campaign budget {} --tokens ", fixture.campaign.id);
    assert!(failed.command.starts_with(&raise), "{failed:?}");
    assert_eq!(failed.then, Some(format!("dalsegno task retry {}", task.id)));
    assert_eq!(failed.budget, Some(format!("campaign/{}", fixture.campaign.id)));
    assert!(failed.because.ends_with("is 500 tokens"), "{failed:?}");
    fixture
        .change_limit(LimitChange {
            tokens: Some(Some(refusal.sufficient_limit())),
            ..Default::default()
        })
        .await;
    let told = explanations::explain(&mut conn, task.id).await.unwrap();
    assert_eq!(told.obstacles, []);
    assert!(told.next.starts_with("The limit allows the call now"), "{told:?}");
    // A raise in a closed campaign promises nothing.
    let close = "update dalsegno.campaigns set status = 'closed', closed_at = now() where id = $1";
    sqlx::query(close).bind(fixture.campaign.id).execute(&fixture.pool).await.unwrap();
    let told = explanations::explain(&mut conn, task.id).await.unwrap();
    assert!(told.next.starts_with("Fix the cause, then run"), "{told:?}");
    let listed = attention::list(&mut conn, 0, noon()).await.unwrap().items;
    let failed = listed.iter().find(|it| it.kind == attention::Kind::FailedTask).unwrap();
    assert_eq!((&failed.then, &failed.budget), (&None, &None));
    assert_eq!(failed.command, format!("dalsegno task retry {}", task.id));
}

/// An older version beside this one fails tasks with the error alone, and its retries know nothing of the refusal.
#[tokio::test]
async fn a_refusal_is_read_as_data_and_removed_with_its_error() {
    let fixture = Fixture::new(&[]).await;
    let task = fixture.add("Write.").await;
    let user = "u".repeat(128);
    set(&fixture, (OwnerKind::User, &user), limit(100)).await.unwrap();
    let found = budgets::find(&fixture.pool, OwnerKind::User, &user, None).await.unwrap().unwrap();
    let refusal = found.check(tokens(500)).unwrap_err();
    let error = refusal.to_string();
    let fail = "update dalsegno.tasks set state = 'failed', ended_at = $3, error = $2, budget_refusal = $4 where id = $1";
    let mut conn = fixture.pool.acquire().await.unwrap();
    for (stored, command) in [
        (Some(Json(&refusal)), format!("dalsegno budget set user {user} --tokens 500")),
        (None, format!("dalsegno task retry {}", task.id)),
    ] {
        let is_refused = stored.is_some();
        let fail = sqlx::query(fail).bind(task.id).bind(&error).bind(noon()).bind(stored);
        fail.execute(&mut *conn).await.unwrap();
        let listed = attention::list(&mut conn, 0, noon()).await.unwrap().items;
        let failed = listed.iter().find(|it| it.kind == attention::Kind::FailedTask).unwrap();
        assert_eq!(failed.command, command);
        assert_eq!(failed.budget, is_refused.then(|| format!("user/{user}")));
        let retry = format!("dalsegno task retry {}", task.id);
        assert_eq!(failed.then, is_refused.then_some(retry));
        tasks::retry(&mut conn, task.id, noon()).await.unwrap();
    }
    let left = "select count(*) from dalsegno.tasks where budget_refusal is not null";
    assert_eq!(fixture.count(left).await, 0);
}

const BERLIN: &str = "Europe/Berlin";

async fn set(
    fixture: &Fixture,
    of: (OwnerKind, &str),
    change: Change,
) -> Option<budgets::OwnedBudget> {
    let mut conn = fixture.pool.acquire().await.unwrap();
    budgets::change(&mut conn, of, change, BERLIN, fixture.clock_now()).await.unwrap()
}

fn limit(limit: i64) -> Change {
    Change { tokens: Some(Some(limit)), ..Default::default() }
}

/// Charges an amount to the campaign, the agent, the user and the day.
async fn charge(fixture: &Fixture, spent: i64) {
    let (campaign, now) = (Payers::campaign(fixture.campaign.id), fixture.clock_now());
    let amounts = (Amount::ZERO, tokens(spent));
    budgets::settle(&fixture.pool, campaign, SPENDER, amounts, now).await.unwrap();
}

#[tokio::test]
async fn tasks_wait_for_the_next_day_and_begin_in_its_budget() {
    let fixture = Fixture::new(&[("scheduler.time_zone", BERLIN)]).await;
    let day = (OwnerKind::Day, "");
    set(&fixture, day, limit(LIMIT)).await.unwrap();
    charge(&fixture, LIMIT - 1).await;
    let worker = fixture.start_worker().await;
    let mut tasks = Vec::new();
    for n in 0..3 {
        tasks.push(fixture.add_for("writer", &format!("w_{n}"), "Write.").await);
    }
    fixture.waiting_for_budget(3).await;
    let because = fixture.turns(&tasks[0]).await;
    assert!(because.is_empty());
    let waiting = fixture.feed().await.into_iter().find(|event| event.kind == "task.waiting");
    let because = waiting.unwrap().data["because"].as_str().unwrap().to_owned();
    let words = "waiting: budget: the budget of the day 2026-11-20 does not allow the call: 19999 tokens of 20000 tokens are spent";
    assert!(because.starts_with(words), "{because}");
    let end = "it continues at 2026-11-21 00:00 Europe/Berlin, or when `dalsegno budget set day --tokens ";
    assert!(because.contains(end), "{because}");
    // One job, due at midnight in Berlin.
    let job = "select count(*) from dalsegno.jobs where kind = 'begin_budget_period' and state = 'scheduled'
                  and run_at - now() between interval '10 hours' and interval '11 hours'";
    assert_eq!(fixture.count(job).await, 1);
    fixture.advance(TimeDelta::hours(11));
    let due = "update dalsegno.jobs set run_at = now() where kind = 'begin_budget_period'";
    sqlx::query(due).execute(&fixture.pool).await.unwrap();
    for task in &tasks {
        fixture.done(task).await;
    }
    fixture.settled().await;
    worker.stop().await;
    let found = budgets::find(&fixture.pool, day.0, day.1, Some(fixture.clock_now())).await;
    let found = found.unwrap().unwrap();
    let ledger = "select sum(input_tokens + output_tokens)::bigint from dalsegno.usage";
    assert_eq!(found.spent.tokens, fixture.count(ledger).await);
    assert_eq!(found.period.unwrap().to_string(), "2026-11-21");
    assert_eq!(found.reserved, Amount::ZERO);
}

/// Days have 23 and 25 hours when the clocks of the time zone change.
#[tokio::test]
async fn a_day_ends_at_midnight_of_its_time_zone_also_when_clocks_change() {
    let fixture = Fixture::new(&[]).await;
    set(&fixture, (OwnerKind::Day, ""), limit(1)).await.unwrap();
    for (now, end) in [
        ("2027-03-27T23:30:00Z", "2027-03-28T22:00:00Z"),
        ("2027-10-30T22:30:00Z", "2027-10-31T23:00:00Z"),
    ] {
        let now: DateTime<Utc> = now.parse().unwrap();
        let found = budgets::find(&fixture.pool, OwnerKind::Day, "", Some(now)).await.unwrap();
        assert_eq!(found.unwrap().ends_at.unwrap(), end.parse::<DateTime<Utc>>().unwrap());
    }
}

#[tokio::test]
async fn the_budget_of_an_agent_or_a_user_stops_only_its_own_tasks() {
    for of in [(OwnerKind::Agent, "writer"), (OwnerKind::User, "ann")] {
        let is_of_agent = of.0 == OwnerKind::Agent;
        let fixture = Fixture::new(&[]).await;
        fixture.write_agent("editor", &WRITER.replace("writer", "editor"));
        set_user(&fixture, "ann").await;
        set(&fixture, of, limit(LIMIT)).await.unwrap();
        charge(&fixture, LIMIT - 1).await;
        let worker = fixture.start_worker().await;
        let waiting = fixture.add("Write.").await;
        fixture.waiting_for_budget(1).await;
        let other = fixture.add_for("editor", "main", "Write.").await;
        if is_of_agent {
            fixture.done(&other).await;
        } else {
            fixture.waiting_for_budget(2).await;
        }
        let found = budgets::find(&fixture.pool, of.0, of.1, None).await.unwrap().unwrap();
        assert_eq!(found.waiting_tasks, if is_of_agent { 1 } else { 2 });
        let mut conn = fixture.pool.acquire().await.unwrap();
        let told = explanations::explain(&mut conn, waiting.id).await.unwrap();
        drop(conn);
        let command = format!("`dalsegno budget set {} {} --tokens ", of.0.as_str(), of.1);
        assert!(told.next.contains(&command), "{told:?}");
        let named = format!("the budget of the {} `{}`", of.0.as_str(), of.1);
        assert!(told.because.contains(&named), "{told:?}");
        set(&fixture, of, limit(10 * LIMIT)).await.unwrap();
        fixture.done(&waiting).await;
        fixture.done(&other).await;
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_removed_budget_lets_all_of_its_tasks_continue() {
    let fixture = Fixture::new(&[]).await;
    let agent = (OwnerKind::Agent, "writer");
    set(&fixture, agent, limit(LIMIT)).await.unwrap();
    charge(&fixture, LIMIT - 1).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write.").await;
    fixture.waiting_for_budget(1).await;
    let removed = Change { tokens: Some(None), ..Default::default() };
    assert_eq!(set(&fixture, agent, removed).await, None);
    fixture.done(&task).await;
    worker.stop().await;
}

/// Returns the owners of the budgets that the feed warns of.
async fn warnings(fixture: &Fixture) -> Vec<String> {
    let events = fixture.feed().await.into_iter().filter(|event| event.kind == "budget.warning");
    events.map(|event| event.data["owner"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_soft_limit_warns_once_per_budget_and_period_and_stops_nothing() {
    let fixture = Fixture::new(&[]).await;
    let hook = "insert into dalsegno.webhooks (id, url, kinds) values (gen_random_uuid(), 'https://example.com/', '{budget.warning}')";
    sqlx::query(hook).execute(&fixture.pool).await.unwrap();
    let soft = Change { soft_tokens: Some(Some(1)), ..Default::default() };
    set(&fixture, (OwnerKind::Day, ""), soft).await.unwrap();
    set(&fixture, (OwnerKind::Agent, "writer"), soft).await.unwrap();
    fixture.change_limit(LimitChange { soft_tokens: Some(Some(1)), ..Default::default() }).await;
    let task = fixture.add("Write.").await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    let change = tasks::BudgetChange { soft_tokens: Some(Some(1)), ..Default::default() };
    tasks::change_budget(&mut conn, task.id, change).await.unwrap();
    drop(conn);
    let worker = fixture.start_worker().await;
    fixture.done(&task).await;
    fixture.done(&fixture.add("Go on.").await).await;
    let mut warned = warnings(&fixture).await;
    warned.sort();
    assert_eq!(warned, ["agent", "campaign", "day", "task"]);
    fixture.advance(TimeDelta::days(1));
    fixture.done(&fixture.add("And on.").await).await;
    worker.stop().await;
    let mut warned = warnings(&fixture).await;
    warned.sort();
    assert_eq!(warned, ["agent", "campaign", "day", "day", "task"]);
    let sent = "select count(*) from dalsegno.webhook_deliveries where kind = 'budget.warning' and task_id is not null";
    assert_eq!(fixture.count(sent).await, 5);
}

/// A worker that is lost with a reservation of the day: the next run releases it.
#[tokio::test]
async fn a_lost_turn_releases_its_reservation_of_a_day() {
    let fixture = Fixture::new(&[]).await;
    set(&fixture, (OwnerKind::Day, ""), limit(1_000_000)).await.unwrap();
    let mut armed = fixture.process(&[("worker.crash_turns_at", "after_begin")]);
    let task = fixture.add("Write.").await;
    armed.ended_after_pause().await;
    let reserved = async || {
        let found = budgets::find(&fixture.pool, OwnerKind::Day, "", None).await.unwrap();
        found.unwrap().reserved.tokens
    };
    assert!(reserved().await > 0);
    let heir = fixture.process(&[]);
    fixture.ended_after_pause(&task).await;
    eventually("the reservation is released", async || (reserved().await == 0).then_some(())).await;
    drop(heir);
}
