//! Jobs that wait for a signal of the application.

use proptest::{prop_assert, prop_assert_eq};
use sqlx::Executor as _;

use super::{
    super::{
        model::Spec,
        statements::GIVE_BACK,
        steps::{Fence, Pick},
    },
    Machine, StepResult,
    callers::enqueue,
    pick_one,
};

impl Machine {
    /// Does the same as `queue::enqueue_waiting`.
    pub(super) async fn enqueue_waiting(&mut self, spec: &Spec) -> StepResult {
        let spec = Spec { later: true, ..spec.clone() };
        self.conn.execute("BEGIN").await.unwrap();
        let (id, created, _) = enqueue(&mut self.conn, &spec).await.unwrap();
        prop_assert!(created);
        let n_waiting = self.tell("await_signal", &[id], "").await;
        self.conn.execute("COMMIT").await.unwrap();
        prop_assert_eq!(n_waiting, 1);
        self.model.enqueue_waiting(id, &spec);
        Ok(())
    }

    /// Signals mostly jobs that wait for it, and some others, which it does not change.
    pub(super) async fn signal(&mut self, picks: &[Pick], later: bool) -> StepResult {
        let waiting: Vec<i64> = self.model.waiting();
        let ids = self.some_of(&waiting, picks);
        let moment = if later { ", '2999-01-01T00:00:00Z'" } else { "" };
        let told = self.tell("signal", &ids, moment).await;
        let (n_told, put_off) = self.model.signal(&ids, later);
        prop_assert_eq!(told, n_told);
        self.extend_delays(put_off).await
    }

    pub(super) async fn put_aside(&mut self, picks: &[Pick]) -> StepResult {
        let ids = self.some_of(&self.model.known_ids(), picks);
        let aside = self.tell("put_aside", &ids, "").await;
        prop_assert_eq!(aside, self.model.put_aside(&ids));
        Ok(())
    }

    /// Gives a job back and puts it aside in one transaction, like a run does. All of it is rolled back if the lease is
    /// not the current one.
    pub(super) async fn end_aside(&mut self, pick: Pick, fence: Fence) -> StepResult {
        let Some((id, lease)) = self.fenced(pick, fence) else {
            return Ok(());
        };
        self.conn.execute("BEGIN").await.unwrap();
        let back = self.call_with_arrays(GIVE_BACK, &[(id, lease)], Some("paused")).await;
        self.tell("put_aside", &[id], "").await;
        let is_ours = !back.is_empty();
        self.conn.execute(if is_ours { "COMMIT" } else { "ROLLBACK" }).await.unwrap();
        prop_assert_eq!(is_ours, self.model.end_aside(id, lease));
        Ok(())
    }

    /// Picks jobs, mostly from `wanted` if there are any.
    fn some_of(&self, wanted: &[i64], picks: &[Pick]) -> Vec<i64> {
        let all = self.model.known_ids();
        let one = |pick: &Pick| {
            let from = if wanted.is_empty() || pick % 4 == 3 { &all[..] } else { wanted };
            pick_one(from, pick / 4)
        };
        picks.iter().filter_map(one).collect()
    }

    /// Calls a function on jobs, and returns how many it has changed.
    async fn tell(&mut self, function: &str, ids: &[i64], more: &str) -> i32 {
        let sql = format!("SELECT dalsegno.{function}($1{more})");
        let call = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(ids);
        call.fetch_one(&mut self.conn).await.unwrap()
    }
}
