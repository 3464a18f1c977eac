//! Budgets with many concurrent turns.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use dalsegno::domain::{
    Amount,
    amount::{Limit, Refusal, Unit},
    budgets::{self, Change, OwnerKind, Payers, ReserveError},
    campaigns,
    tasks::{New as NewTask, Task},
};
use futures_util::future::join_all;
use sqlx::{Connection as _, PgConnection, PgExecutor, Postgres, pool::PoolConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{TurnSettings, World, world::SPENDER};
use crate::app::{eventually, noon, until_blocked};

const LIMIT: i64 = 1_000;
const NEEDED: i64 = 100;
const COST: i64 = 60;

fn tokens(tokens: i64) -> Amount {
    Amount { micros: 0, tokens }
}

/// A budget of 1,000 tokens that many turns share.
struct SharedBudget {
    world: World,
    owner: (OwnerKind, String),
    /// The row of a budget that is not the campaign's, as a turn names it.
    rows: Vec<i64>,
    /// The highest sum of spent and reserved tokens that a turn has seen.
    most: AtomicI64,
    last_wake_job: AtomicI64,
}

impl SharedBudget {
    async fn of_campaign() -> Self {
        let world = World::with_limit(Limit { micros: None, tokens: Some(LIMIT) }).await;
        let id = world.campaign.id.to_string();
        Self::new(world, OwnerKind::Campaign, id)
    }

    async fn of(owner: OwnerKind, key: &str) -> Self {
        let world = World::with_limit(Limit::default()).await;
        let shared = Self::new(world, owner, key.to_owned());
        shared.limit_to(LIMIT).await;
        let rows = sqlx::query_scalar("select dalsegno.budgets_of($1, $2)");
        let rows = rows.bind(shared.world.campaign.id).bind(SPENDER.agent);
        Self { rows: rows.fetch_one(&shared.world.pool).await.unwrap(), ..shared }
    }

    fn new(world: World, owner: OwnerKind, key: String) -> Self {
        let (most, last_wake_job) = (AtomicI64::new(0), AtomicI64::new(0));
        Self { world, owner: (owner, key), rows: Vec::new(), most, last_wake_job }
    }

    async fn limit_to(&self, limit: i64) {
        let mut conn = self.world.pool.acquire().await.unwrap();
        let change = Change { tokens: Some(Some(limit)), ..Default::default() };
        let owner = (self.owner.0, self.owner.1.as_str());
        budgets::change(&mut conn, owner, change, "UTC", noon()).await.unwrap();
    }

    async fn reserve(&self, conn: &mut PgConnection) -> Result<(), ReserveError> {
        budgets::reserve(conn, self.payers(), tokens(NEEDED), noon()).await
    }

    async fn settle(&self, executor: impl PgExecutor<'_>, spent: i64) {
        let amounts = (tokens(NEEDED), tokens(spent));
        budgets::settle(executor, self.payers(), SPENDER, amounts, noon()).await.unwrap();
    }

    fn payers(&self) -> Payers<'_> {
        Payers { campaign_id: self.world.campaign.id, budgets: &self.rows }
    }

    /// Returns spent and reserved tokens.
    async fn amounts(&self) -> (i64, i64) {
        let (owner, key) = &self.owner;
        let found = budgets::find(&self.world.pool, *owner, key, Some(noon())).await.unwrap();
        let found = found.unwrap();
        (found.spent.tokens, found.reserved.tokens)
    }

    async fn look(&self) {
        let (spent, reserved) = self.amounts().await;
        self.most.fetch_max(spent + reserved, Ordering::Relaxed);
    }

    /// Begins to wait for the budget, and puts the job of the task off. Returns false if there is space by now.
    async fn wait(&self, conn: &mut PgConnection, task: &Task, refused: &Refusal) -> bool {
        let waits = budgets::wait(&mut *conn, (task.id, task.job_id), refused, noon()).await;
        if !waits.unwrap() {
            return false;
        }
        let put_off = "update dalsegno.jobs set state = 'scheduled', wait_reason = 'snooze', run_at = dalsegno.never() where id = $1";
        sqlx::query(put_off).bind(task.job_id).execute(conn).await.unwrap();
        true
    }

    async fn add_task(&self, n: usize) -> Task {
        let instance = format!("copy_{n}");
        let new = NewTask { instance: &instance, ..self.world.ask("Part one.") };
        self.world.add_new(&new).await.unwrap().task
    }

    async fn refusal(&self) -> Refusal {
        let mut conn = self.world.pool.acquire().await.unwrap();
        match self.reserve(&mut conn).await {
            Err(ReserveError::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }

    /// Wakes the waiting tasks once for each job to which a turn has left that.
    async fn run_wake_jobs(&self) {
        let (owner, key) = &self.owner;
        let last =
            "select coalesce(max(id), 0) from dalsegno.jobs where kind = 'begin_budget_period'";
        let last: i64 = sqlx::query_scalar(last).fetch_one(&self.world.pool).await.unwrap();
        if self.last_wake_job.fetch_max(last, Ordering::Relaxed) < last {
            budgets::wake(&self.world.pool, owner.as_str(), key, noon()).await.unwrap();
        }
    }

    /// Connections that use different shares of a budget.
    async fn two_connections(&self) -> [PoolConnection<Postgres>; 2] {
        let share = "select dalsegno.own_share()";
        let mut first = self.world.pool.acquire().await.unwrap();
        let own: i16 = sqlx::query_scalar(share).fetch_one(&mut *first).await.unwrap();
        let mut held = Vec::new();
        loop {
            let mut other = self.world.pool.acquire().await.unwrap();
            if own != sqlx::query_scalar::<_, i16>(share).fetch_one(&mut *other).await.unwrap() {
                return [first, other];
            }
            held.push(other);
        }
    }
}

/// Settles a reservation of the campaign.
async fn settle(executor: impl PgExecutor<'_>, id: Uuid, reserved: Amount, spent: Amount) {
    let amounts = (reserved, spent);
    budgets::settle(executor, Payers::campaign(id), SPENDER, amounts, noon()).await.unwrap();
}

/// A hundred turns at the limit: spent and reserved amounts never exceed it, and no budget is left that a waiting turn
/// could use.
#[tokio::test]
async fn a_hundred_turns_at_the_limit_never_exceed_it() {
    for shared in [SharedBudget::of_campaign().await, SharedBudget::of(OwnerKind::Day, "").await] {
        let shared = Arc::new(shared);
        let mut turns = JoinSet::new();
        for _ in 0..100 {
            turns.spawn(turn(Arc::clone(&shared)));
        }
        let ran = turns.join_all().await.into_iter().filter(|ran| *ran).count() as i64;
        assert_eq!(shared.amounts().await, (ran * COST, 0), "{:?}", shared.owner);
        assert!(shared.most.load(Ordering::Relaxed) <= LIMIT, "{:?}", shared.most);
        // 16 turns cost 960; the last that fits begins at 900 or less.
        assert_eq!(ran, (LIMIT - NEEDED) / COST + 1, "{:?}", shared.owner);
    }
}

/// Runs a turn. Returns false if the budget was used up.
async fn turn(shared: Arc<SharedBudget>) -> bool {
    loop {
        let mut tx = shared.world.pool.begin().await.unwrap();
        match shared.reserve(&mut tx).await {
            Ok(()) => {
                tx.commit().await.unwrap();
                break;
            }
            Err(ReserveError::Refused(refusal)) => {
                assert_eq!(refusal.unit, Unit::Tokens);
                if !refusal.may_pass_later() {
                    return false;
                }
            }
            Err(error) => panic!("{error}"),
        }
        drop(tx);
        tokio::task::yield_now().await;
    }
    shared.look().await;
    shared.settle(&shared.world.pool, COST).await;
    true
}

/// Neither the begin nor the end of a turn waits for another turn within the same budget.
#[tokio::test]
async fn turns_within_a_budget_do_not_wait_for_each_other() {
    let shared = SharedBudget::of(OwnerKind::Day, "").await;
    shared.limit_to(1_000_000).await;
    let [mut first, mut second] = shared.two_connections().await;
    sqlx::query("set lock_timeout = '5s'").execute(&mut *second).await.unwrap();
    let mut one = first.begin().await.unwrap();
    shared.reserve(&mut one).await.unwrap();
    shared.reserve(&mut second).await.unwrap();
    one.commit().await.unwrap();
    let mut one = first.begin().await.unwrap();
    shared.settle(&mut *one, COST).await;
    shared.settle(&mut *second, COST).await;
    assert_eq!(shared.amounts().await, (COST, NEEDED));
    one.commit().await.unwrap();
    assert_eq!(shared.amounts().await, (2 * COST, 0));
}

/// A turn releases its reservation while a task is about to wait for the budget, in both orders.
#[tokio::test]
async fn space_that_is_released_while_a_task_begins_to_wait_is_not_lost() {
    let shared = Arc::new(SharedBudget::of(OwnerKind::Agent, "copywriter").await);
    shared.limit_to(NEEDED).await;
    let task = shared.add_task(0).await;
    let [mut first, mut second] = shared.two_connections().await;
    shared.reserve(&mut first).await.unwrap();
    let refused = shared.refusal().await;
    // The end comes first: the task waits for its commit, and then finds the space.
    let mut end = first.begin().await.unwrap();
    shared.settle(&mut *end, 0).await;
    let waits = tokio::spawn({
        let (shared, task, refused) = (Arc::clone(&shared), task.clone(), refused.clone());
        async move { shared.wait(&mut second, &task, &refused).await }
    });
    until_blocked(&shared.world.pool).await;
    end.commit().await.unwrap();
    assert!(!waits.await.unwrap());
    // The wait comes first: the end finds it, and leaves the wake-up to a job.
    let [mut first, mut second] = shared.two_connections().await;
    shared.reserve(&mut first).await.unwrap();
    let mut wait = second.begin().await.unwrap();
    assert!(shared.wait(&mut wait, &task, &refused).await);
    let end = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move { shared.settle(&mut *first, 0).await }
    });
    until_blocked(&shared.world.pool).await;
    wait.commit().await.unwrap();
    end.await.unwrap();
    let jobs =
        "select count(*) from dalsegno.jobs where kind = 'begin_budget_period' and state = 'ready'";
    let jobs: i64 = sqlx::query_scalar(jobs).fetch_one(&shared.world.pool).await.unwrap();
    assert_eq!(jobs, 1);
    let woken = budgets::wake(&shared.world.pool, "agent", "copywriter", noon()).await.unwrap();
    assert_eq!(woken, 1);
}

#[tokio::test]
async fn a_refused_turn_leaves_nothing_behind() {
    let world = World::with_limit(Limit { micros: Some(100), tokens: None }).await;
    let task = world.add("Part one.").await;
    let needed = Amount { micros: 101, tokens: 0 };
    let error =
        world.try_begin(&task, world.lease(), TurnSettings::default(), needed).await.unwrap_err();
    assert!(error.to_string().contains("the budget of the campaign"), "{error}");
    assert!(world.sessions().await.is_empty());
    assert_eq!(world.task(task.id).await.started_at, None);
    // The limit is raised.
    let mut conn = world.pool.acquire().await.unwrap();
    let change = campaigns::LimitChange { micros: Some(Some(200)), ..Default::default() };
    let budget = campaigns::change_limit(&mut conn, world.campaign.id, change).await.unwrap();
    assert_eq!(budget.limit, Limit { micros: Some(200), tokens: None });
    drop(conn);
    world.try_begin(&task, world.lease(), TurnSettings::default(), needed).await.unwrap();
}

#[tokio::test]
async fn a_call_that_costs_more_than_its_reservation_is_charged_in_full() {
    let world = World::with_limit(Limit { micros: None, tokens: Some(100) }).await;
    let id = world.campaign.id;
    let mut conn = world.pool.acquire().await.unwrap();
    let campaign = Payers::campaign(id);
    budgets::reserve(&mut conn, campaign, tokens(100), noon()).await.unwrap();
    settle(&mut *conn, id, tokens(100), tokens(130)).await;
    let refused = budgets::reserve(&mut conn, campaign, tokens(1), noon()).await.unwrap_err();
    assert!(refused.to_string().contains("130 tokens of 100 tokens are spent"), "{refused}");
}

/// Sixty turns share a budget for ten at once, and each waits until it is woken. Each wake-up comes from the end of another turn: nothing
/// looks at the waits beside it.
#[tokio::test]
async fn no_turn_misses_the_space_that_another_one_releases() {
    for shared in
        [SharedBudget::of_campaign().await, SharedBudget::of(OwnerKind::Agent, "copywriter").await]
    {
        let mut turns = Vec::new();
        for n in 0..60 {
            let task = shared.add_task(n).await;
            turns.push(waiting_turn(&shared, task));
        }
        let n_waits: usize = join_all(turns).await.into_iter().sum();
        assert!(n_waits >= 10, "{n_waits}");
        assert!(shared.most.load(Ordering::Relaxed) <= LIMIT, "{:?}", shared.most);
        assert_eq!(shared.amounts().await, (60, 0), "{:?}", shared.owner);
        let waits = sqlx::query_scalar::<_, i64>("select count(*) from dalsegno.budget_waits");
        assert_eq!(waits.fetch_one(&shared.world.pool).await.unwrap(), 0);
    }
}

/// Runs a turn that costs one token. Returns how often it has waited.
async fn waiting_turn(shared: &SharedBudget, task: Task) -> usize {
    let world = &shared.world;
    let mut n_waits = 0;
    loop {
        let mut tx = world.pool.begin().await.unwrap();
        let refused = match shared.reserve(&mut tx).await {
            Ok(()) => {
                tx.commit().await.unwrap();
                break;
            }
            Err(ReserveError::Refused(refusal)) => refusal,
            Err(error) => panic!("{error}"),
        };
        tx.rollback().await.unwrap();
        let mut tx = world.pool.begin().await.unwrap();
        if shared.wait(&mut tx, &task, &refused).await {
            tx.commit().await.unwrap();
            n_waits += 1;
            let ready = "select state = 'ready' from dalsegno.jobs where id = $1";
            eventually("the job is woken", async || {
                shared.run_wake_jobs().await;
                let ready = sqlx::query_scalar::<_, bool>(ready).bind(task.job_id);
                ready.fetch_one(&world.pool).await.unwrap().then_some(())
            })
            .await;
        }
    }
    shared.look().await;
    shared.settle(&world.pool, 1).await;
    n_waits
}

/// A raise wakes as many tasks as it pays for, in the order in which they were added, and each once.
#[tokio::test]
async fn a_raised_limit_wakes_the_tasks_that_fit_in_order_and_each_once() {
    let limit = Limit { micros: None, tokens: Some(LIMIT) };
    let world = World::with_limit(limit).await;
    let id = world.campaign.id;
    settle(&world.pool, id, Amount::ZERO, tokens(LIMIT)).await;
    let mut jobs = Vec::new();
    for n in 0..5 {
        let instance = format!("copy_{n}");
        let new = NewTask { instance: &instance, ..world.ask("Part one.") };
        let task = world.add_new(&new).await.unwrap().task;
        let mut tx = world.pool.begin().await.unwrap();
        let mut probe = world.pool.acquire().await.unwrap();
        let refused =
            budgets::reserve(&mut probe, Payers::campaign(id), tokens(NEEDED), noon()).await;
        let Err(ReserveError::Refused(refused)) = refused else { panic!("{refused:?}") };
        assert!(refused.waits(), "{refused}");
        assert!(budgets::wait(&mut tx, (task.id, task.job_id), &refused, noon()).await.unwrap());
        let put_off = "update dalsegno.jobs set state = 'scheduled', wait_reason = 'snooze', run_at = dalsegno.never() where id = $1";
        sqlx::query(put_off).bind(task.job_id).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        jobs.push(task.job_id);
    }
    let ready = async || -> Vec<i64> {
        let ready = "select id from dalsegno.jobs where state = 'ready' order by id";
        sqlx::query_scalar(ready).fetch_all(&world.pool).await.unwrap()
    };
    let raise = async |by: i64| {
        let mut conn = world.pool.acquire().await.unwrap();
        let change =
            campaigns::LimitChange { tokens: Some(Some(LIMIT + by)), ..Default::default() };
        campaigns::change_limit(&mut conn, id, change).await.unwrap();
    };
    assert!(ready().await.is_empty());
    raise(NEEDED - 1).await;
    assert!(ready().await.is_empty());
    raise(2 * NEEDED + 1).await;
    assert_eq!(ready().await, jobs[..2]);
    // The two have not reserved yet, so this pays for two again, and not for those that are awake.
    raise(2 * NEEDED + 1).await;
    assert_eq!(ready().await, jobs[..4]);
    raise(100 * NEEDED).await;
    assert_eq!(ready().await, jobs);
    let woken =
        "select coalesce(sum(n), 0)::bigint from dalsegno.transition_deltas where event = 'due'";
    let woken: i64 = sqlx::query_scalar(woken).fetch_one(&world.pool).await.unwrap();
    assert_eq!(woken, 5);
}
