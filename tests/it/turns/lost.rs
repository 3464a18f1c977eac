//! Turns that a lost worker left, created directly so that the test does not wait for a missing worker.

use dalsegno::{
    domain::{
        Amount,
        agents::SessionMode as Mode,
        amount::Limit,
        campaigns::{self, LimitChange},
        sessions,
        tasks::{State, Task},
    },
    queue::admin,
};
use uuid::Uuid;

use super::Ground;
use crate::{
    app::eventually,
    conversations::world::{Now, World},
};

impl Ground {
    /// Leaves a turn of the task running under an expired lease.
    pub(super) async fn lose_turn(&self, task: &Task, reserve: Amount) {
        let config = self.config();
        let library = dalsegno::domain::agents::Library::open(&config.agents).unwrap();
        let hash = library.current().agent(&task.agent).unwrap().prompt_hash.clone();
        let now = Now { prompt_hash: hash.leak(), ..Now::default() };
        let world = World::over(self.pool.clone(), Limit::default()).await;
        world.try_begin(task, 0, now, reserve).await.unwrap();
    }

    async fn budget(&self) -> campaigns::Budget {
        campaigns::budget(&self.pool, self.campaign.id).await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn two_lost_turns_do_not_refuse_each_other_for_ever() {
    let limit = Limit { micros: None, tokens: Some(1_000_000) };
    let ground = Ground::with_limit(&[], limit).await;
    // The tokens that one of these turns reserves.
    let worker = ground.work().await;
    ground.done(&ground.add_for("writer", "probe", "Write.").await).await;
    worker.stop().await;
    let spent = ground.budget().await.spent.tokens;
    let sql = "select estimated_tokens from dalsegno.manifests limit 1";
    let share = ground.count(sql).await + 8192;

    let (one, other) = (
        ground.add_for("writer", "one", "Write.").await,
        ground.add_for("writer", "other", "Write.").await,
    );
    for task in [&one, &other] {
        ground.lose_turn(task, Amount { micros: 0, tokens: share }).await;
    }
    // The limit allows both turns as they were. The notice of the interruption makes each turn a little more expensive.
    let mut conn = ground.pool.acquire().await.unwrap();
    let tight = LimitChange { micros: None, tokens: Some(Some(spent + 2 * share)) };
    campaigns::change_limit(&mut conn, ground.campaign.id, tight).await.unwrap();
    drop(conn);
    let worker = ground.work().await;
    for task in [&one, &other] {
        let task = ground.patiently_ended(task).await;
        assert_eq!(task.state, State::Done, "{task:?}");
        let transcript = ground.transcript(task.session_id.unwrap()).await;
        assert!(transcript[1].starts_with("Notice: The turn before this one"), "{transcript:?}");
    }
    worker.stop().await;
    assert_eq!(ground.budget().await.reserved, Amount::ZERO);
    let snoozed = ground.count("select count(*) from dalsegno.runs where outcome = 'snooze'").await;
    assert!(snoozed > 0, "nobody was refused, so nothing was tried here");
}

/// Makes the database refuse every change of one row, with an error like one of its own.
async fn refuse(ground: &Ground, table: &str, column: &str, id: Uuid) {
    let statements = format!(
        "create or replace function public.refuse() returns trigger language plpgsql as $body$
         begin raise exception 'told to refuse'; end $body$;
         create trigger refuse before update on dalsegno.{table} for each row when (old.{column} = '{id}')
         execute function public.refuse();"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&ground.pool).await.unwrap();
}

#[tokio::test]
async fn a_task_that_cannot_be_ended_hides_none_behind_it_and_is_tried_again() {
    let ground = Ground::new(&[]).await;
    let stuck = ground.add_for("writer", "one", "Alone.").await;
    let behind = ground.add_for("writer", "two", "Alone.").await;
    for task in [&stuck, &behind] {
        admin::cancel_job(&ground.pool, task.job_id, "not wanted").await.unwrap();
    }
    refuse(&ground, "tasks", "id", stuck.id).await;
    let worker = ground.work().await;
    assert_eq!(ground.ended(&behind).await.state, State::Cancelled);
    assert_eq!(ground.task(&stuck).await.state, State::Queued);
    let allow = "drop trigger refuse on dalsegno.tasks";
    sqlx::query(allow).execute(&ground.pool).await.unwrap();
    assert_eq!(ground.ended(&stuck).await.state, State::Cancelled);
    worker.stop().await;
}

#[tokio::test]
async fn a_wait_that_cannot_be_ended_hides_none_behind_it() {
    let ground = Ground::new(&[]).await;
    let first = ground.add_for("writer", "one", "Alone.").await;
    let mut waiting = Vec::new();
    for instance in ["two", "three"] {
        waiting.push(ground.add_after(instance, "Join.", &[&first]).await);
    }
    waiting.sort_by_key(|task| task.id);
    for task in &waiting {
        ground.cancel(task).await;
    }
    let lost = "update dalsegno.task_waits set over_at = null";
    sqlx::query(lost).execute(&ground.pool).await.unwrap();
    refuse(&ground, "task_waits", "task_id", waiting[0].id).await;
    let worker = ground.work().await;
    let open = "select count(*) from dalsegno.task_waits where over_at is null";
    eventually("the second wait is over", async || (ground.count(open).await == 1).then_some(()))
        .await;
    worker.stop().await;
}

#[tokio::test]
async fn a_session_of_one_task_is_closed_with_it_however_the_task_ends() {
    let ground = Ground::new(&[]).await;
    ground.write_agent("editor", &super::ground::WRITER.replace("writer", "editor"));
    let none = Some(Mode::None);
    let add = async |agent, instance| {
        let task = ground.add_as(agent, instance, "Alone.", none, Limit::default()).await;
        ground.lose_turn(&task, Amount::ZERO).await;
        ground.task(&task).await
    };
    let cancelled = add("writer", "one").await;
    let forgotten = add("writer", "other").await;
    let refused = add("editor", "main").await;
    ground.cancel(&cancelled).await;
    admin::cancel_job(&ground.pool, forgotten.job_id, "not wanted").await.unwrap();
    ground.remove_agent("editor");
    let worker = ground.work().await;
    for (task, state) in
        [(&cancelled, State::Cancelled), (&forgotten, State::Cancelled), (&refused, State::Failed)]
    {
        assert_eq!(ground.ended(task).await.state, state);
        let session = ground.session(task).await;
        assert!(session.ephemeral, "{session:?}");
        let closed = (session.state, session.closed_because);
        assert_eq!(closed, (sessions::State::Closed, Some(sessions::Reason::Ended)), "{task:?}");
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_task_that_waits_for_budget_says_so_once_and_looks_ever_more_rarely() {
    let limit = Limit { micros: None, tokens: Some(10_000) };
    let ground = Ground::with_limit(&[], limit).await;
    // A turn of another task runs with all that is left.
    let mut conn = ground.pool.acquire().await.unwrap();
    let all = Amount { micros: 0, tokens: 10_000 };
    campaigns::reserve(&mut conn, ground.campaign.id, all).await.unwrap();
    let worker = ground.work().await;
    let task = ground.add("Write.").await;
    let second = "select extract(epoch from j.run_at - (select max(ended_at) from dalsegno.runs))::float8
                    from dalsegno.jobs as j
                   where j.wait_reason = 'snooze' and (select count(*) from dalsegno.runs where outcome = 'snooze') = 2";
    let pause_secs: f64 = eventually("it was put off twice", async || {
        sqlx::query_scalar(second).fetch_optional(&ground.pool).await.unwrap()
    })
    .await;
    assert!((9.0..11.0).contains(&pause_secs), "{pause_secs}");
    assert_eq!(ground.kinds(&task).await, ["task.waiting"]);
    campaigns::settle_reservation(&mut *conn, ground.campaign.id, all, Amount::ZERO).await.unwrap();
    drop(conn);
    sqlx::query("update dalsegno.jobs set run_at = now()").execute(&ground.pool).await.unwrap();
    let task = ground.done(&task).await;
    worker.stop().await;
    let expected = ["task.waiting", "session.opened", "turn.started", "turn.done"];
    assert_eq!(ground.kinds(&task).await, expected);
}
