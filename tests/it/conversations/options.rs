//! A retried task has all the options of the original.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use dalsegno::domain::{
    agents::SessionMode as Mode,
    amount::Limit,
    labels::Labels,
    tasks::{self, FlowStep, Links, New, OnFailure, Task, TaskLink},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::World;
use crate::app::noon;

/// Columns that a retry changes, or that are not options: progress of the task, and ids of its job.
const CHANGED_COLUMNS: &[&str] = &[
    "task.budget_refusal",
    "task.cancelled_because",
    "task.created_at",
    "task.ended_at",
    "task.error",
    "task.first_job_id",
    "task.id",
    "task.job_id",
    "task.n_waits",
    "task.result",
    "task.result_fault",
    "task.result_json",
    "task.session_id",
    "task.spent_micros",
    "task.spent_tokens",
    "task.started_at",
    "task.state",
    "task.stop_asked_at",
    "task.turn",
    "job.attempt",
    "job.claimed_at",
    "job.crash_count",
    "job.enqueued_at",
    "job.hold_by",
    "job.hold_reason",
    "job.id",
    "job.lane_id",
    "job.lane_seq",
    "job.lease",
    "job.worker_id",
    "payload.job_id",
    // The payload names a key by the task's first job.
    "payload.payload",
    "wait.n_open",
    "wait.over_at",
    "wait.task_id",
];
/// Options that are compared, and empty here: they come from a post, and from the policy of the kind.
const EMPTY_OPTIONS: &[&str] = &["task.post_id", "payload.timeout_secs"];

/// Returns all columns of a task's rows, by table and name.
async fn columns(world: &World, id: Uuid) -> BTreeMap<String, Value> {
    let sql = "select 'task', to_jsonb(t) from dalsegno.tasks as t where t.id = $1
               union all
               select 'job', to_jsonb(j) from dalsegno.tasks as t join dalsegno.jobs as j on j.id = t.job_id where t.id = $1
               union all
               select 'payload', to_jsonb(p) from dalsegno.tasks as t join dalsegno.job_payloads as p on p.job_id = t.job_id where t.id = $1
               union all
               select 'wait', to_jsonb(w) from dalsegno.task_waits as w where w.task_id = $1
               union all
               select 'labels', to_jsonb(l) - 'task_id' from dalsegno.task_labels as l where l.task_id = $1
               union all
               select 'others', jsonb_build_object('ids', jsonb_agg(d.on_task_id order by d.place))
                 from dalsegno.task_dependencies as d where d.task_id = $1 having count(*) > 0";
    let rows: Vec<(String, Value)> =
        sqlx::query_as(sql).bind(id).fetch_all(&world.pool).await.unwrap();
    let mut columns = BTreeMap::new();
    for (table, row) in rows {
        let Value::Object(row) = row else { panic!("{row} is not a row") };
        columns.extend(row.into_iter().map(|(name, value)| (format!("{table}.{name}"), value)));
    }
    columns
}

async fn add(world: &World, new: &New<'_>) -> Task {
    world.add_new(new).await.unwrap().task
}

async fn retry(world: &World, id: Uuid) {
    let mut tx = world.pool.begin().await.unwrap();
    tasks::cancel(&mut tx, id, "not now", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = world.pool.begin().await.unwrap();
    tasks::retry(&mut tx, id, noon()).await.unwrap();
    tx.commit().await.unwrap();
}

/// Compares the options before a retry and after it, and returns those that are set.
async fn compare(world: &World, task: &Task) -> BTreeSet<String> {
    let before = columns(world, task.id).await;
    retry(world, task.id).await;
    let after = columns(world, task.id).await;
    assert_ne!(before["task.job_id"], after["task.job_id"]);
    let options = |columns: &BTreeMap<String, Value>| {
        let mut options = columns.clone();
        options.retain(|name, _| !CHANGED_COLUMNS.contains(&name.as_str()));
        options
    };
    assert_eq!(options(&before), options(&after));
    // Comparing null with null proves nothing: the tests have to set the options.
    let asked = options(&before).into_iter().filter(|(_, value)| !value.is_null());
    asked.map(|(name, _)| name).collect()
}

#[tokio::test]
async fn a_retried_task_keeps_every_option() {
    let world = World::new().await;
    let flow_id = Uuid::now_v7();
    sqlx::query("insert into dalsegno.flows (id, campaign_id, created_at, template) values ($1, $2, now(), 'series')")
        .bind(flow_id)
        .bind(world.campaign.id)
        .execute(&world.pool)
        .await
        .unwrap();
    let first = world.add("Part one.").await;
    let after = [TaskLink::Task(first.id)];
    let (tags, metadata) = (["late".to_owned()], json!({ "order": 17 }));
    let (schema, fields) = (json!({ "type": "object" }), json!([]));
    // Without `..`, so that a new option has to be set here.
    let plain = New {
        campaign_id: world.campaign.id,
        agent: world.catalogue.agent("copywriter").unwrap(),
        instance: "second",
        prompt: "Part two.",
        node: None,
        session_mode: Some(Mode::Fresh),
        budget: Limit { micros: Some(5), tokens: Some(7) },
        idempotency_key: Some("order-1"),
        priority: Some(3),
        run_at: Some(noon() + TimeDelta::days(3_650)),
        added_by: Some("a test"),
        links: Links::default(),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        labels: Labels { tags: &tags, metadata: metadata.as_object() },
        parameters: None,
        result_schema: Some(&schema),
        attachments: &[],
        within_secs: Some(86_400),
    };
    let templates = ["reviewed-text".to_owned()];
    let linked = New {
        idempotency_key: Some("order-2"),
        node: world.catalogue.nodes().next().map(|node| &**node),
        links: Links {
            depends_on: &after,
            on_failure: OnFailure::Cancel,
            only_of: None,
            parent_id: Some(first.id),
            continues_id: Some(first.id),
            flow: Some(FlowStep { flow_id, step: "draft", place: 4, fields: Some(&fields) }),
            flow_templates: Some(&templates),
        },
        ..plain
    };
    let tasks = [add(&world, &plain).await, add(&world, &linked).await];
    let mut known = BTreeSet::new();
    let mut asked = BTreeSet::new();
    // Soft limits are set after a task is added.
    let soft = "update dalsegno.tasks set soft_micros = 3, soft_tokens = 4, warned_at = now() where id = $1";
    sqlx::query(soft).bind(tasks[0].id).execute(&world.pool).await.unwrap();
    for task in &tasks {
        known.extend(columns(&world, task.id).await.into_keys());
        asked.extend(compare(&world, task).await);
    }
    // Each column is set by one of the two tasks, or listed above.
    let listed = |name: &&String| {
        CHANGED_COLUMNS.contains(&name.as_str()) || EMPTY_OPTIONS.contains(&name.as_str())
    };
    let unknown: Vec<_> = known.difference(&asked).filter(|name| !listed(name)).collect();
    assert!(unknown.is_empty(), "no task of this test has {unknown:?}");
    for listed in CHANGED_COLUMNS.iter().chain(EMPTY_OPTIONS) {
        assert!(known.contains(*listed), "{listed} is not a column any more");
    }
    assert_eq!(columns(&world, tasks[0].id).await["job.priority"], 3);
    assert_eq!(columns(&world, tasks[0].id).await["job.state"], "scheduled");
}

/// Its start time has passed: it takes its place behind the ready tasks.
#[tokio::test]
async fn a_retried_task_with_a_passed_start_time_is_ready() {
    let world = World::new().await;
    let run_at = Some(noon() + TimeDelta::days(3_650));
    let task = add(&world, &New { run_at, ..world.ask("Part one.") }).await;
    let mut tx = world.pool.begin().await.unwrap();
    let later = noon() + TimeDelta::days(3_651);
    tasks::cancel(&mut tx, task.id, "not now", later).await.unwrap();
    tasks::retry(&mut tx, task.id, later).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(columns(&world, task.id).await["job.state"], "ready");
}
