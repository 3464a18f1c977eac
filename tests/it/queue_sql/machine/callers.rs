//! Calls of applications and people.

use proptest::{prop_assert, prop_assert_eq};
use serde_json::{Value, json};
use sqlx::{Executor as _, PgConnection};

use super::{
    super::{
        model::{GROUPS, LANES, QUEUES, Spec, payload_of},
        refusal::Refusal,
        steps::Pick,
    },
    Machine, StepResult, pick_one,
};

/// Result of an enqueue: the job, whether it is new, and its state.
type EnqueueRow = (i64, bool, String);

impl Machine {
    pub(super) async fn enqueue(&mut self, spec: &Spec) -> StepResult {
        let answer = enqueue(&mut self.conn, spec).await;
        self.check_enqueued(spec, answer)
    }

    pub(super) async fn enqueue_many(&mut self, specs: &[Spec]) -> StepResult {
        let jobs = Value::Array(specs.iter().map(element).collect());
        let sql = "SELECT job_id, created, state FROM dalsegno.enqueue_many($1) ORDER BY ord";
        let answer =
            sqlx::query_as::<_, EnqueueRow>(sql).bind(jobs).fetch_all(&mut self.conn).await;
        let before = self.model.clone();
        match answer {
            Ok(rows) => {
                prop_assert_eq!(rows.len(), specs.len());
                for (spec, row) in specs.iter().zip(rows) {
                    self.check_enqueued(spec, Ok(row))?;
                }
            }
            Err(error) => {
                // All or none: one conflict, with an earlier job or within the call, and no job is added.
                prop_assert_eq!(Refusal::of(&error).code, "DS409");
                let mut conflict = false;
                for spec in specs {
                    conflict |= self.conflicts(spec);
                    self.model.enqueue(i64::MAX, spec);
                }
                prop_assert!(conflict);
                self.model = before;
            }
        }
        Ok(())
    }

    /// Returns true if an earlier call has used the key for another job.
    fn conflicts(&self, spec: &Spec) -> bool {
        let known = spec.key.and_then(|key| self.model.keys.get(&key));
        known.is_some_and(|(_, lane, known)| (*lane, *known) != (spec.lane, spec.known))
    }

    fn check_enqueued(
        &mut self,
        spec: &Spec,
        answer: Result<EnqueueRow, sqlx::Error>,
    ) -> StepResult {
        let earlier = spec.key.and_then(|key| self.model.keys.get(&key)).map(|known| known.0);
        match answer {
            Err(error) => {
                prop_assert!(self.conflicts(spec), "{error}");
                prop_assert_eq!(Refusal::of(&error).code, "DS409");
            }
            Ok((id, false, state)) => {
                prop_assert_eq!(Some(id), earlier);
                prop_assert_eq!(state, self.model.state_of(id));
            }
            Ok((id, true, state)) => {
                prop_assert!(earlier.is_none());
                self.model.enqueue(id, spec);
                prop_assert_eq!(state, self.model.state_of(id));
            }
        }
        Ok(())
    }

    pub(super) async fn open_with_enqueue(&mut self, spec: &Spec) -> StepResult {
        self.open.execute("BEGIN").await.unwrap();
        let (id, created, _) = enqueue(&mut self.open, spec).await.unwrap();
        prop_assert!(created);
        self.model.open_with_enqueue(id, spec);
        Ok(())
    }

    pub(super) async fn open_with_cancel(&mut self, pick: Pick) -> StepResult {
        let Some(id) = pick_one(&self.model.known_ids(), pick) else {
            return Ok(());
        };
        self.open.execute("BEGIN").await.unwrap();
        let said: String = sqlx::query_scalar("SELECT dalsegno.cancel($1, 'r')")
            .bind(id)
            .fetch_one(&mut self.open)
            .await
            .unwrap();
        prop_assert_eq!(said, self.model.open_with_cancel(id));
        Ok(())
    }

    pub(super) async fn finish_open(&mut self, commit: bool) {
        self.open.execute(if commit { "COMMIT" } else { "ROLLBACK" }).await.unwrap();
        self.model.finish_open(commit);
    }

    pub(super) async fn cancel(&mut self, pick: Pick) -> StepResult {
        let Some(id) = pick_one(&self.model.known_ids(), pick) else {
            return Ok(());
        };
        let said = self.ask("cancel", id, Some("r")).await;
        prop_assert_eq!(said, Ok(self.model.cancel(id).to_owned()));
        Ok(())
    }

    pub(super) async fn hold_job(&mut self, pick: Pick) -> StepResult {
        let Some(id) = pick_one(&self.model.known_ids(), pick) else {
            return Ok(());
        };
        let said = self.ask("hold_job", id, Some("r")).await;
        prop_assert_eq!(said, owned(self.model.hold_job(id)));
        Ok(())
    }

    pub(super) async fn release_job(&mut self, pick: Pick) -> StepResult {
        let held = self.model.jobs.iter().filter(|(_, job)| job.hold_by.is_some());
        let held: Vec<i64> = held.map(|(id, _)| *id).collect();
        // Mostly a held job, sometimes another one, which is refused.
        let Some(id) = pick_one(&held, pick).or_else(|| pick_one(&self.model.known_ids(), pick))
        else {
            return Ok(());
        };
        let said = self.ask("release_job", id, None).await;
        prop_assert_eq!(said, owned(self.model.release_job(id)));
        Ok(())
    }

    pub(super) async fn retry_job(&mut self, pick: Pick) -> StepResult {
        let dead: Vec<i64> = self.model.dead.keys().copied().collect();
        let from =
            if pick.is_multiple_of(2) && !dead.is_empty() { dead } else { self.model.known_ids() };
        let Some(id) = pick_one(&from, pick / 2) else {
            return Ok(());
        };
        let said = self.ask("retry", id, None).await;
        prop_assert_eq!(said, owned(self.model.retry(id)));
        Ok(())
    }

    pub(super) async fn hold_lane(&mut self, lane: usize) -> StepResult {
        let found: bool = sqlx::query_scalar("SELECT dalsegno.hold_lane($1, 'r')")
            .bind(LANES[lane])
            .fetch_one(&mut self.conn)
            .await
            .unwrap();
        prop_assert_eq!(found, self.model.hold_lane(lane));
        Ok(())
    }

    pub(super) async fn release_lane(&mut self, lane: usize) -> StepResult {
        let found: bool = sqlx::query_scalar("SELECT dalsegno.release_lane($1)")
            .bind(LANES[lane])
            .fetch_one(&mut self.conn)
            .await
            .unwrap();
        prop_assert_eq!(found, self.model.release_lane(lane));
        Ok(())
    }

    pub(super) async fn lane_policy(&mut self, lane: usize, hold: bool) -> StepResult {
        sqlx::query("SELECT dalsegno.set_lane_policy($1, $2)")
            .bind(LANES[lane])
            .bind(if hold { "hold" } else { "continue" })
            .execute(&mut self.conn)
            .await
            .unwrap();
        let row = &mut self.model.lanes[lane];
        (row.exists, row.hold_on_failure) = (true, hold);
        Ok(())
    }

    pub(super) async fn pause(&mut self, scope: &str, name: &'static str) -> StepResult {
        let pause = sqlx::query("SELECT dalsegno.pause($1, $2)").bind(scope).bind(name);
        pause.execute(&mut self.conn).await.unwrap();
        self.model.paused.insert(name);
        Ok(())
    }

    pub(super) async fn resume(&mut self, pick: Pick) -> StepResult {
        let paused: Vec<&'static str> = self.model.paused.iter().copied().collect();
        let Some(name) = pick_one(&paused, pick) else {
            return Ok(());
        };
        let scope = if QUEUES.contains(&name) { "queue" } else { "group" };
        let resume = sqlx::query_scalar("SELECT dalsegno.resume($1, $2)").bind(scope).bind(name);
        let was_paused: bool = resume.fetch_one(&mut self.conn).await.unwrap();
        prop_assert!(was_paused);
        self.model.paused.remove(name);
        Ok(())
    }

    /// Calls a function for a job. Returns its result, or the code of its refusal.
    async fn ask(
        &mut self,
        function: &str,
        id: i64,
        reason: Option<&str>,
    ) -> Result<String, String> {
        let reason = reason.map(|reason| format!(", '{reason}'")).unwrap_or_default();
        let sql = format!("SELECT dalsegno.{function}({id}{reason})");
        let answer = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&mut self.conn).await;
        answer.map_err(|error| Refusal::of(&error).code)
    }
}

fn owned(answer: Result<&str, &str>) -> Result<String, String> {
    answer.map(str::to_owned).map_err(str::to_owned)
}

pub(super) async fn enqueue(
    conn: &mut PgConnection,
    spec: &Spec,
) -> Result<EnqueueRow, sqlx::Error> {
    let sql = "SELECT e.job_id, e.created, e.state
                 FROM jsonb_to_record($1) AS r (kind text, payload jsonb, queue text, lane text, group_key text, priority integer,
                      run_at timestamptz, max_attempts integer, idempotency_key text)
                CROSS JOIN LATERAL dalsegno.enqueue(r.kind, r.payload, r.queue, r.lane, r.group_key, r.priority, r.run_at,
                      r.max_attempts, r.idempotency_key) AS e";
    sqlx::query_as(sql).bind(element(spec)).fetch_one(conn).await
}

/// Returns the arguments of an enqueue as an element of the bulk form.
fn element(spec: &Spec) -> Value {
    json!({
        "kind": spec.kind(),
        "payload": payload_of(spec),
        "queue": QUEUES[spec.queue],
        "lane": spec.lane.map(|lane| LANES[lane]),
        "group_key": spec.group.map(|group| GROUPS[group]),
        "priority": spec.priority,
        // Far enough away not to become due by itself.
        "run_at": spec.later.then_some("2999-01-01T00:00:00Z"),
        "max_attempts": spec.max_attempts,
        "idempotency_key": spec.key.map(|key| format!("key-{key}")),
    })
}
