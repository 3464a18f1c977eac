//! Turns that a lost worker left, created directly so that the test does not wait for a missing worker.

use dalsegno::{
    domain::{
        Amount,
        agents::SessionMode as Mode,
        amount::Limit,
        budgets::{self, Payers, Spender},
        campaigns::LimitChange,
        sessions,
        tasks::{State, Task},
    },
    queue::admin,
};
use uuid::Uuid;

use super::Fixture;
use crate::{
    app::{eventually, noon},
    conversations::world::{TurnSettings, World},
};

/// The caller of calls without a task.
const SPENDER: Spender<'_> = Spender { agent: "writer", task_id: None };

impl Fixture {
    /// Leaves a turn of the task running under an expired lease.
    pub(super) async fn lose_turn(&self, task: &Task, reserve: Amount) {
        let config = self.config();
        let library = dalsegno::domain::agents::Library::open(&config.agents).unwrap();
        let hash = library.current().agent(&task.agent).unwrap().prompt_hash.clone();
        let now = TurnSettings { prompt_hash: hash.leak(), ..TurnSettings::default() };
        let world = World::over(self.pool.clone(), Limit::default()).await;
        world.try_begin(task, 0, now, reserve).await.unwrap();
    }
}

#[tokio::test]
async fn two_lost_turns_do_not_block_each_other_forever() {
    let limit = Limit { micros: None, tokens: Some(1_000_000) };
    let fixture = Fixture::with_limit(&[], limit).await;
    // The tokens that one of these turns reserves.
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add_for("writer", "probe", "Write.").await).await;
    worker.stop().await;
    let spent = fixture.budget().await.spent.tokens;
    let sql = "select estimated_tokens from dalsegno.manifests limit 1";
    let share = fixture.count(sql).await + 8192;

    let (one, other) = (
        fixture.add_for("writer", "one", "Write.").await,
        fixture.add_for("writer", "other", "Write.").await,
    );
    for task in [&one, &other] {
        fixture.lose_turn(task, Amount { micros: 0, tokens: share }).await;
    }
    // The limit allows both turns as they were. The notice of the interruption makes each turn a little more expensive.
    let tight = LimitChange { tokens: Some(Some(spent + 2 * share)), ..Default::default() };
    fixture.change_limit(tight).await;
    let worker = fixture.start_worker().await;
    for task in [&one, &other] {
        let task = fixture.ended_after_pause(task).await;
        assert_eq!(task.state, State::Done, "{task:?}");
        let transcript = fixture.transcript(task.session_id.unwrap()).await;
        assert!(transcript[1].starts_with("Notice: The turn before this one"), "{transcript:?}");
    }
    worker.stop().await;
    assert_eq!(fixture.budget().await.reserved, Amount::ZERO);
    let snoozed =
        fixture.count("select count(*) from dalsegno.runs where outcome = 'snooze'").await;
    assert!(snoozed > 0, "no turn was refused, so the test tested nothing");
}

/// Makes the database refuse every change of one row, with an error like one of its own.
async fn refuse(fixture: &Fixture, table: &str, column: &str, id: Uuid) {
    let statements = format!(
        "create or replace function public.refuse() returns trigger language plpgsql as $body$
         begin raise exception 'told to refuse'; end $body$;
         create trigger refuse before update on dalsegno.{table} for each row when (old.{column} = '{id}')
         execute function public.refuse();"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&fixture.pool).await.unwrap();
}

#[tokio::test]
async fn a_lost_task_that_cannot_be_ended_hides_no_later_one_and_is_retried() {
    let fixture = Fixture::new(&[]).await;
    let stuck = fixture.add_for("writer", "one", "Alone.").await;
    let behind = fixture.add_for("writer", "two", "Alone.").await;
    for task in [&stuck, &behind] {
        admin::cancel_job(&fixture.pool, task.job_id, "not wanted").await.unwrap();
    }
    refuse(&fixture, "tasks", "id", stuck.id).await;
    let worker = fixture.start_worker().await;
    assert_eq!(fixture.ended(&behind).await.state, State::Cancelled);
    assert_eq!(fixture.task(&stuck).await.state, State::Queued);
    let allow = "drop trigger refuse on dalsegno.tasks";
    sqlx::query(allow).execute(&fixture.pool).await.unwrap();
    assert_eq!(fixture.ended(&stuck).await.state, State::Cancelled);
    worker.stop().await;
}

#[tokio::test]
async fn a_wait_that_cannot_be_ended_hides_no_later_one() {
    let fixture = Fixture::new(&[]).await;
    let first = fixture.add_for("writer", "one", "Alone.").await;
    let mut waiting = Vec::new();
    for instance in ["two", "three"] {
        waiting.push(fixture.add_after(instance, "Join.", &[&first]).await);
    }
    waiting.sort_by_key(|task| task.id);
    for task in &waiting {
        fixture.cancel(task).await;
    }
    let lost = "update dalsegno.task_waits set over_at = null";
    sqlx::query(lost).execute(&fixture.pool).await.unwrap();
    refuse(&fixture, "task_waits", "task_id", waiting[0].id).await;
    let worker = fixture.start_worker().await;
    let open = "select count(*) from dalsegno.task_waits where over_at is null";
    eventually("the second wait has ended", async || {
        (fixture.count(open).await == 1).then_some(())
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn a_one_task_session_is_closed_with_its_task_for_every_end() {
    let fixture = Fixture::new(&[]).await;
    fixture.write_agent("editor", &super::fixture::WRITER.replace("writer", "editor"));
    let none = Some(Mode::None);
    let add = async |agent, instance| {
        let task = fixture.add_as(agent, instance, "Alone.", none, Limit::default()).await;
        fixture.lose_turn(&task, Amount::ZERO).await;
        fixture.task(&task).await
    };
    let cancelled = add("writer", "one").await;
    let forgotten = add("writer", "other").await;
    let refused = add("editor", "main").await;
    fixture.cancel(&cancelled).await;
    admin::cancel_job(&fixture.pool, forgotten.job_id, "not wanted").await.unwrap();
    fixture.remove_agent("editor");
    let worker = fixture.start_worker().await;
    for (task, state) in
        [(&cancelled, State::Cancelled), (&forgotten, State::Cancelled), (&refused, State::Failed)]
    {
        assert_eq!(fixture.ended(task).await.state, state);
        let session = fixture.session(task).await;
        assert!(session.ephemeral, "{session:?}");
        let closed = (session.state, session.closed_because);
        assert_eq!(closed, (sessions::State::Closed, Some(sessions::Reason::Ended)), "{task:?}");
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_task_that_fails_at_the_limit_reports_its_wait_once_and_checks_ever_more_rarely() {
    let limit = Limit { micros: None, tokens: Some(10_000) };
    let fixture = Fixture::with_limit(&[], limit).await;
    fixture.fail_at_limit().await;
    // A turn of another task runs with all that is left.
    let mut conn = fixture.pool.acquire().await.unwrap();
    let all = Amount { micros: 0, tokens: 10_000 };
    let campaign = Payers::campaign(fixture.campaign.id);
    budgets::reserve(&mut conn, campaign, all, noon()).await.unwrap();
    let worker = fixture.start_worker().await;
    let task = fixture.add("Write.").await;
    let second = "select extract(epoch from j.run_at - (select max(ended_at) from dalsegno.runs))::float8
                    from dalsegno.jobs as j
                   where j.wait_reason = 'snooze' and (select count(*) from dalsegno.runs where outcome = 'snooze') = 2";
    let pause_secs: f64 = eventually("the task was postponed twice", async || {
        sqlx::query_scalar(second).fetch_optional(&fixture.pool).await.unwrap()
    })
    .await;
    assert!((9.0..11.0).contains(&pause_secs), "{pause_secs}");
    assert_eq!(fixture.kinds(&task).await, ["task.waiting"]);
    budgets::settle(&mut *conn, campaign, SPENDER, (all, Amount::ZERO), noon()).await.unwrap();
    drop(conn);
    sqlx::query("update dalsegno.jobs set run_at = now()").execute(&fixture.pool).await.unwrap();
    let task = fixture.done(&task).await;
    worker.stop().await;
    let expected = ["task.waiting", "session.opened", "turn.started", "turn.done"];
    assert_eq!(fixture.kinds(&task).await, expected);
}
