//! Turns of several calls whose budget ends before they do.

use dalsegno::{
    domain::{
        Amount,
        amount::{Limit, parse_money},
        campaigns,
        messages::StoredMessage,
        tasks::{self, BudgetChange, State, Task},
        turns,
    },
    transcript::Role,
};
use serde_json::{Value, json};

use super::{Setup, WRITER};
use crate::{
    providers::claude::{
        api::{Api, Play},
        cli::Cli,
    },
    turns::budgets::stop_and_continue,
};

const BUDGET: i64 = 60_000;
/// More calls than the budget pays for.
const N_CALLS: usize = 30;
/// Lets a task without space in the budget fail instead of waiting.
const FAILS: &str = "on_limit: fail\n";
/// Tokens that the test's API adds to its count: two of a cache, and the answer.
const OTHER_TOKENS: i64 = 3 + 7 + 11;

/// Calls that take long enough for a check of the budget, each with a new text.
fn calls() -> impl Iterator<Item = Play> {
    let command = |n: usize| json!({ "command": format!("sleep 0.7; echo wave {n}") });
    (0..N_CALLS).map(move |n| Play::Calls("Bash", command(n)))
}

fn tokens(limit: i64) -> Limit {
    Limit { micros: None, tokens: Some(limit) }
}

/// Returns the tokens of the calls, as the API has counted them.
fn counted(api: &Api) -> Vec<i64> {
    let tokens = |request: &Value| (request.to_string().len() / 4) as i64 + OTHER_TOKENS;
    api.requests().iter().map(tokens).collect()
}

/// Returns the number of calls that the limit allows. A turn stops before the first call whose prompt, which contains
/// the one before, would exceed the limit.
fn n_affordable(counted: &[i64], limit: i64) -> usize {
    let mut spent = 0;
    let passes = |tokens: &i64| {
        spent += tokens;
        spent + tokens > limit
    };
    counted.iter().position(passes).map_or(N_CALLS, |at| at + 1)
}

fn results(messages: &[StoredMessage]) -> Vec<&str> {
    let results = messages.iter().filter(|stored| stored.message.role == Role::Tool);
    results.map(|stored| stored.message.text.trim()).collect()
}

impl Setup {
    /// `more` are lines for the agent's file.
    fn writes_with_a_shell(&self, more: &str) {
        let more = format!("{more}reserve_tokens: 300\ntools: Bash\nmodel:");
        self.fixture.write_agent("writer", &WRITER.replace("model:", &more));
        self.api.counts();
        self.api.plays(calls());
    }

    /// Checks that the ledger, the task and the campaign agree, and that nothing is reserved any more.
    async fn check_sums(&self, tasks: &[&Task]) -> i64 {
        let ledger = "select coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)
                             + coalesce(cache_read_tokens, 0) + coalesce(cache_creation_tokens, 0)), 0)::bigint
                        from dalsegno.usage";
        let ledger = self.fixture.count(ledger).await;
        let of_tasks: i64 = tasks.iter().map(|task| task.spent_tokens).sum();
        let budget = self.fixture.budget().await;
        assert_eq!((budget.spent.tokens, budget.reserved), (ledger, Amount::ZERO));
        assert_eq!(of_tasks, ledger);
        ledger
    }
}

#[tokio::test]
async fn a_token_budget_of_the_campaign_ends_a_turn_between_two_calls() {
    let Some(setup) = Setup::with_limit(tokens(BUDGET)).await else { return };
    setup.fixture.fail_at_limit().await;
    let worker = setup.fixture.start_worker().await;
    setup.writes_with_a_shell(FAILS);
    let task = setup.stopped_by("campaign", Limit::default()).await;
    setup.check_sums(&[&task]).await;
    let change = campaigns::LimitChange { tokens: Some(Some(BUDGET * 10)), ..Default::default() };
    setup.fixture.change_limit(change).await;
    let said = setup.next_messages().await;
    worker.stop().await;
    assert!(said.last().unwrap().contains("was interrupted"), "{said:?}");
    assert!(said.iter().any(|line| line.contains("wave 0")), "{said:?}");
}

/// In a conversation that the CLI holds: it continues after its last answer.
#[tokio::test]
async fn a_token_budget_of_a_task_ends_its_turn_between_two_calls() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let worker = setup.fixture.start_worker().await;
    setup.writes_with_a_shell(FAILS);
    setup.api.stop_playing();
    setup.run_prompt("Begin.").await;
    setup.api.plays(calls());
    setup.stopped_by("task", tokens(BUDGET)).await;
    let said = setup.next_messages().await;
    worker.stop().await;
    let last = said.last().unwrap();
    assert!(last.contains("was interrupted") && last.contains("wave 0"), "{said:?}");
    assert_eq!(said.len(), 3, "{said:?}");
}

impl Setup {
    /// Runs a task with more calls than its budget pays for, and checks everything that is kept of it.
    async fn stopped_by(&self, owner: &str, own: Limit) -> Task {
        let (fixture, n_before) = (&self.fixture, self.api.requests().len());
        let task = fixture.add_as("writer", "main", "Write.", None, own).await;
        let task = fixture.ended_after_pause(&task).await;
        let counted = counted(&self.api).split_off(n_before);
        assert_eq!(task.state, State::Failed, "{counted:?}: {task:?}");
        let why = task.error.as_deref().unwrap();
        let of_whom = format!("the budget of the {owner} does not allow the call");
        let sums = format!("{} tokens of {BUDGET} tokens are spent", task.spent_tokens);
        assert!(why.contains(&of_whom) && why.contains(&sums) && !why.contains("wait"), "{why}");
        assert_eq!(counted.len(), n_affordable(&counted, BUDGET), "{counted:?}");
        assert!((2..N_CALLS).contains(&counted.len()), "{counted:?}");
        assert_eq!(task.spent_tokens, counted.iter().sum::<i64>());
        let turns = fixture.turns(&task).await;
        assert_eq!(turns.len(), 1, "{turns:?}");
        assert_eq!(turns[0].state, turns::State::Failed);
        // The texts of the calls and the tools are kept; the last tool was cut off.
        let messages = fixture.messages(task.session_id.unwrap()).await;
        let results = results(&messages);
        assert!(results.len() + 1 >= counted.len() && results[0] == "wave 0", "{results:?}");
        assert!(results.iter().all(|result| result.starts_with("wave ")), "{results:?}");
        let has_calls = |stored: &&StoredMessage| !stored.message.tool_calls.is_empty();
        assert_eq!(messages.iter().filter(has_calls).count(), counted.len());
        task
    }

    /// Returns the messages that the next turn sends.
    async fn next_messages(&self) -> Vec<String> {
        self.api.stop_playing();
        self.run_prompt("Go on.").await;
        self.fixture.settled().await;
        self.api.last_messages()
    }
}

#[tokio::test]
async fn at_the_limit_of_the_campaign_a_turn_keeps_its_part_and_all_tasks_continue_after_a_raise() {
    let Some(setup) = Setup::with_limit(tokens(BUDGET)).await else { return };
    setup.writes_with_a_shell("");
    let worker = setup.fixture.start_worker().await;
    let (api, fixture) = (&setup.api, &setup.fixture);
    let first = stop_and_continue(fixture, || api.requests().len(), || api.stop_playing()).await;
    worker.stop().await;
    let requests = api.requests();
    let interrupted = |request: &&Value| request.to_string().contains("was interrupted");
    let continued = requests.iter().find(interrupted).unwrap().to_string();
    assert!(continued.contains("wave 0") && first.result.is_some(), "{continued}");
}

#[tokio::test]
async fn two_turns_at_once_share_the_budget_of_their_campaign() {
    let Some(setup) = Setup::with_limit(tokens(BUDGET)).await else { return };
    setup.fixture.fail_at_limit().await;
    setup.writes_with_a_shell(FAILS);
    setup.api.plays(calls());
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let tasks = [
        fixture.add_for("writer", "one", "Write.").await,
        fixture.add_for("writer", "two", "Write.").await,
    ];
    let [one, two] =
        [fixture.ended_after_pause(&tasks[0]).await, fixture.ended_after_pause(&tasks[1]).await];
    fixture.settled().await;
    worker.stop().await;
    let counted = counted(&setup.api);
    for task in [&one, &two] {
        assert_eq!(task.state, State::Failed, "{task:?}");
        assert!(task.error.as_deref().unwrap().contains("the budget of the campaign"), "{task:?}");
    }
    // Each may exceed the limit by the tokens of its last call beyond the expected ones.
    let most = counted.iter().max().unwrap();
    let spent = setup.check_sums(&[&one, &two]).await;
    assert!(spent <= BUDGET + 2 * most, "{spent}: {counted:?}");
}

#[tokio::test]
async fn a_money_budget_ends_a_turn_with_the_same_message() {
    let limit = parse_money("0.05").unwrap();
    let Some(setup) = Setup::with_limit(Limit { micros: Some(limit), tokens: None }).await else {
        return;
    };
    setup.fixture.fail_at_limit().await;
    setup.writes_with_a_shell(FAILS);
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    let task = fixture.ended_after_pause(&fixture.add("Write.").await).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(task.state, State::Failed, "{task:?}");
    let why = task.error.as_deref().unwrap();
    assert!(why.starts_with("the budget of the campaign is used up: 0.0"), "{why}");
    let next = format!(
        "of 0.05 are spent; raise the limit with `dalsegno campaign budget {} --money ",
        task.campaign_id
    );
    let (_, advised) = why.split_once(&next).unwrap_or_else(|| panic!("{why}"));
    let advised = parse_money(advised.split_once('`').unwrap().0).unwrap();
    assert!(advised > limit, "{why}");
    assert!(setup.fixture.budget().await.spent.micros >= limit);
    setup.check_sums(&[&task]).await;
    let messages = fixture.messages(task.session_id.unwrap()).await;
    assert!(messages.iter().any(|stored| !stored.message.tool_calls.is_empty()), "{messages:?}");
}

/// Each call of the fake counts 10,100 tokens, and it reports no total when it is interrupted. After the raise the task continues.
#[tokio::test]
async fn a_cli_without_a_total_is_stopped_charged_and_continues_after_a_raise() {
    for of_campaign in [true, false] {
        let settings = [("claude.pass_variables", "[\"FAKE_CLAUDE\"]")];
        let (shared, own) = match of_campaign {
            true => (tokens(BUDGET), Limit::default()),
            false => (Limit::default(), tokens(BUDGET)),
        };
        let setup = Setup::made(&Cli::Fake, &settings, shared).await.unwrap();
        let fault = "calls tools until it is interrupted";
        let fixture = setup.fixture.with_variable("FAKE_CLAUDE", fault);
        let setup = Setup { fixture, ..setup };
        let fixture = &setup.fixture;
        fixture.write_agent("writer", &WRITER.replace("model:", "reserve_tokens: 300\nmodel:"));
        let worker = fixture.start_worker().await;
        let task = fixture.add_as("writer", "main", "Write.", None, own).await;
        fixture.waiting_for_budget(1).await;
        let waiting = fixture.task(&task).await;
        assert_eq!(waiting.state, State::Queued);
        assert_eq!(setup.check_sums(&[&waiting]).await, 5 * 10_100, "{waiting:?}");
        let turns = fixture.turns(&task).await;
        let why = turns[0].error.as_deref().unwrap();
        let sums = "50500 tokens of 60000 tokens are spent, and up to 10100 tokens are needed; it continues when";
        assert!(why.starts_with("waiting: budget: ") && why.contains(sums), "{why}");
        let session = waiting.session_id.unwrap();
        let kept = fixture.messages(session).await;
        assert_eq!(results(&kept), ["wave 0", "wave 1", "wave 2", "wave 3"]);
        match of_campaign {
            true => {
                let tokens = Some(Some(BUDGET * 10));
                let change = campaigns::LimitChange { tokens, ..Default::default() };
                fixture.change_limit(change).await;
            }
            false => {
                let change = BudgetChange { tokens: Some(Some(BUDGET * 10)), ..Default::default() };
                let mut conn = fixture.pool.acquire().await.unwrap();
                tasks::change_budget(&mut conn, task.id, change).await.unwrap();
            }
        }
        let done = fixture.done(&task).await;
        fixture.settled().await;
        worker.stop().await;
        setup.check_sums(&[&done]).await;
        // The prompt is not repeated silently: the notice stands between the two.
        let transcript = fixture.transcript(done.session_id.unwrap()).await;
        let is_notice =
            |line: &&String| line.starts_with("Notice: ") && line.contains("was interrupted");
        let notices = transcript.iter().filter(is_notice);
        assert_eq!(notices.count(), 1, "{transcript:?}");
        let prompts = fixture.messages(session).await;
        let prompts = prompts.iter().filter(|stored| stored.message.role == Role::User);
        assert_eq!(prompts.count(), 1);
    }
}
