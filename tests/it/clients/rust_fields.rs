//! Fields of a task in the Rust client.

use dalsegno_client::{Client, EnqueueError, Error, NewTask, OnFailure, State, TaskLink, enqueue};
use serde_json::{Value, json};
use uuid::Uuid;

use super::ExternalSystem;

impl ExternalSystem {
    async fn show(&self, task: Uuid) -> Value {
        self.run_operator_command(&["task", "show", &task.to_string()]).await
    }

    async fn enqueue(&self, new: &NewTask<'_>) -> Result<Uuid, EnqueueError> {
        let mut conn = self.pool.acquire().await.unwrap();
        Ok(enqueue(&mut conn, self.campaign_id, new).await?.task_id)
    }
}

/// A task that does not begin.
fn later() -> NewTask<'static> {
    let run_at = Some("2999-01-01T00:00:00Z".parse().unwrap());
    NewTask { run_at, idempotency_key: Some("plan-1"), ..NewTask::of("planner", "Plan.") }
}

#[tokio::test]
async fn a_task_has_labels_links_and_flow_templates_over_http_and_in_sql() {
    let external = ExternalSystem::new().await;
    let client = Client::new(&external.url()).unwrap();
    let first = client.add_task(external.campaign_id, &later()).await.unwrap().id;
    let metadata = json!({ "order": "17" });
    let new = NewTask {
        depends_on: &[TaskLink::Task(first)],
        on_failure: OnFailure::Cancel,
        flow_templates: Some(&["reviewed-text"]),
        tags: &["urgent", "tide"],
        metadata: Some(&metadata),
        ..NewTask::of("copywriter", "Write part one.")
    };
    let over_http = client.add_task(external.campaign_id, &new).await.unwrap().id;
    let in_sql = external.enqueue(&new).await.unwrap();
    for task in [over_http, in_sql] {
        let shown = external.show(task).await;
        assert_eq!(shown["waiting"]["depends_on"][0]["task_id"], first.to_string(), "{shown}");
        assert_eq!(shown["waiting"]["on_failure"], "cancel", "{shown}");
        assert_eq!(shown["flow_templates"], json!(["reviewed-text"]), "{shown}");
        assert_eq!(shown["tags"], json!(["urgent", "tide"]), "{shown}");
        assert_eq!(shown["metadata"], metadata, "{shown}");
    }
    client.cancel(first, "not needed").await.unwrap();
    for task in [over_http, in_sql] {
        assert_eq!(client.wait(task).await.unwrap().state, State::Cancelled);
    }
}

#[tokio::test]
async fn tasks_wait_for_keys_and_for_earlier_tasks_of_their_list() {
    let external = ExternalSystem::new().await;
    let client = Client::new(&external.url()).unwrap();
    let first = client.add_task(external.campaign_id, &later()).await.unwrap().id;
    let after = [TaskLink::Key("plan-1")];
    let second = NewTask { depends_on: &after, ..NewTask::of("copywriter", "Write part one.") };
    let before = [TaskLink::Item(0), TaskLink::Key("plan-1")];
    let third = NewTask { depends_on: &before, ..NewTask::of("reviewer", "Read it.") };
    let added = client.add_tasks(external.campaign_id, &[second, third], Some("import-1")).await;
    let added = added.unwrap();
    for (task, expected) in [(added[0].id, vec![first]), (added[1].id, vec![added[0].id, first])] {
        let shown = external.show(task).await;
        let waited: Vec<String> = shown["waiting"]["depends_on"]
            .as_array()
            .unwrap()
            .iter()
            .map(|other| other["task_id"].as_str().unwrap().to_owned())
            .collect();
        let expected: Vec<String> = expected.iter().map(Uuid::to_string).collect();
        assert_eq!(waited, expected, "{shown}");
    }
    let wrong = client.add_tasks(external.campaign_id, &[third], None).await.unwrap_err();
    assert!(matches!(wrong, Error::Link { task: 0, item: 0 }), "{wrong:?}");
}

#[tokio::test]
async fn node_and_parameters_are_sent_over_http_and_refused_in_sql() {
    let external = ExternalSystem::new().await;
    let client = Client::new(&external.url()).unwrap();
    let parameters = json!({ "agent_mode": "plan" });
    let plain = NewTask::of("copywriter", "Look back.");
    let at_node = NewTask { node: Some("meta-analysis"), ..plain };
    let with_parameters = NewTask { parameters: Some(&parameters), ..plain };
    let both = NewTask { parameters: Some(&parameters), ..at_node };
    let task = client.add_task(external.campaign_id, &both).await.unwrap().id;
    let shown = external.show(task).await;
    assert_eq!((&shown["node"], &shown["parameters"]), (&json!("meta-analysis"), &parameters));

    let (key, item) = ([TaskLink::Key("plan-1")], [TaskLink::Item(0)]);
    for (wrong, field) in [
        (at_node, "node"),
        (with_parameters, "parameters"),
        (NewTask { depends_on: &key, ..plain }, "TaskLink::Key"),
        (NewTask { depends_on: &item, ..plain }, "TaskLink::Item"),
    ] {
        let refused = external.enqueue(&wrong).await.unwrap_err();
        assert!(matches!(refused, EnqueueError::Field(name) if name == field), "{refused:?}");
    }
}
