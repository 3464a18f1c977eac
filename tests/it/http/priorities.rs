//! The priority of waiting tasks, and claims at the same time.

use serde_json::{Value, json};
use sqlx::Row as _;

use super::Fixture;
use crate::app::until_blocked;

impl Fixture {
    async fn add_waiting(&self, priority: i32) -> Value {
        let ask = json!({ "agent": "copywriter", "prompt": "Part one.", "priority": priority });
        self.post(&self.tasks(), &ask).await.expect(201)
    }

    /// Returns the priorities of the task and of its job.
    async fn priorities(&self, task: &Value) -> (i16, i16) {
        let sql = "select t.priority, j.priority::smallint from dalsegno.tasks as t join dalsegno.jobs as j on j.id = t.job_id where t.id::text = $1";
        let row = sqlx::query(sql).bind(task["id"].as_str()).fetch_one(&self.app.pool).await;
        let row = row.unwrap();
        (row.get(0), row.get(1))
    }
}

fn path(task: &Value) -> String {
    format!("/v1/tasks/{}", task["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_waiting_task_gets_a_priority_and_its_retries_keep_it() {
    let fixture = Fixture::new().await;
    let task = fixture.add_waiting(100).await;
    let at = format!("{}/priority", path(&task));
    let changed = fixture.patch(&at, &json!({ "priority": 7 })).await.expect(200);
    assert_eq!(changed, json!({ "task_id": task["id"], "priority": 7, "before": 100 }));
    assert_eq!(fixture.priorities(&task).await, (7, 7));
    assert_eq!(fixture.get(&path(&task)).await.expect(200)["priority"], 7);
    // The same priority again is no change, and writes no audit line.
    fixture.patch(&at, &json!({ "priority": 7 })).await.expect(200);
    let audit = fixture.get("/v1/audit?action=task.priority").await.expect(200);
    let data: Vec<_> =
        audit["items"].as_array().unwrap().iter().map(|it| it["data"].clone()).collect();
    assert_eq!(data, [json!({ "priority": 7, "before": 100 })]);
    for priority in [-1, 32_768] {
        let words = fixture.patch(&at, &json!({ "priority": priority })).await;
        assert!(words.problem(422, "bad_argument").contains("0 (most urgent) to 32767"));
    }
    fixture.post(&format!("{}/cancel", path(&task)), &json!({})).await.expect(200);
    fixture.patch(&at, &json!({ "priority": 9 })).await.problem(409, "task_ended");
    fixture.post(&format!("{}/retry", path(&task)), &json!({})).await.expect(200);
    assert_eq!(fixture.priorities(&task).await, (7, 7));
    let unknown = "/v1/tasks/00000000-0000-0000-0000-000000000001/priority";
    fixture.patch(unknown, &json!({ "priority": 9 })).await.problem(404, "unknown_task");
}

#[tokio::test]
async fn a_claim_at_the_same_time_wins_over_a_priority() {
    let fixture = Fixture::new().await;
    let task = fixture.add_waiting(100).await;
    let mut claim = fixture.app.pool.begin().await.unwrap();
    let sql = "update dalsegno.jobs set state = 'running', lease = 1, claimed_at = now(), attempt = 1 where state = 'ready'";
    assert_eq!(sqlx::query(sql).execute(&mut *claim).await.unwrap().rows_affected(), 1);
    let at = format!("{}/priority", path(&task));
    let body = json!({ "priority": 7 });
    let claimed = async {
        until_blocked(&fixture.app.pool).await;
        claim.commit().await.unwrap();
    };
    let (reply, ()) = tokio::join!(fixture.patch(&at, &body), claimed);
    assert!(reply.problem(409, "task_not_waiting").contains("task show"));
    assert_eq!(fixture.priorities(&task).await, (100, 100), "the change is whole or not at all");
    // The job waits again, for example after its worker was lost.
    let sql = "update dalsegno.jobs set state = 'ready', lease = null, claimed_at = null";
    sqlx::query(sql).execute(&fixture.app.pool).await.unwrap();
    fixture.patch(&at, &body).await.expect(200);
    assert_eq!(fixture.priorities(&task).await, (7, 7));
}
