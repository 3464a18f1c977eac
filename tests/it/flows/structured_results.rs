//! Fields of structured results in the prompts of later steps.

use dalsegno::domain::{flows::State, tasks};
use serde_json::json;

use super::{ended, fixture, inputs, retry, show, start, states, task};
use crate::turns::fixture::Fixture;

const FIELDS: &str = "---
name: fields
description: A plan, and a text about its title
inputs:
  topic: What it is about
steps:
  - step: plan
    agent: planner
    result_schema:
      type: object
      properties:
        title: { type: string }
        parts: { type: array, items: { type: string } }
      required: [title]
  - step: write
    agent: copywriter
    after: [plan]
---
## plan

Plan. [[sim: json {\"title\": \"The {{topic}}\", \"parts\": [\"a\", \"b\"]}]]

## write

Write {{topic}}: {{steps.plan.result.title}}, {{ steps.plan.result.parts.1 }}, {{steps.plan.result.parts}}. [[sim: say Fine.]]
";

async fn fields(template: &str) -> Fixture {
    let fixture = fixture().await;
    fixture.write_template("fields", template);
    fixture
}

/// Returns the prompt of a task, as its agent got it.
async fn sent(fixture: &Fixture, task: &tasks::Task) -> String {
    let messages = fixture.messages(task.session_id.unwrap()).await;
    messages.into_iter().find(|it| it.id == task.id).unwrap().message.text
}

fn topic(topic: &str) -> dalsegno::domain::flows::Inputs {
    let mut given = inputs(topic, &[]);
    given.remove("parts");
    given
}

#[tokio::test]
async fn a_later_step_reads_fields_of_an_earlier_result() {
    let fixture = fields(FIELDS).await;
    // An input with the text of a placeholder is only text.
    let flow = start(&fixture, "fields", &topic("{{steps.plan.result}}")).await.unwrap();
    let worker = fixture.start_worker().await;
    let shown = ended(&fixture, flow.id).await;
    assert_eq!(shown.flow.state, State::Done, "{:?}", states(&shown));
    let plan = task(&fixture, flow.id, 0).await;
    let title = "The {{steps.plan.result}}";
    assert_eq!(plan.result_json, Some(json!({ "title": title, "parts": ["a", "b"] })));
    let write = task(&fixture, flow.id, 1).await;
    let expected =
        format!("Write {{{{steps.plan.result}}}}: {title}, b, [\"a\",\"b\"]. [[sim: say Fine.]]");
    assert_eq!(sent(&fixture, &write).await, expected);

    // A repeated step has the same fields again.
    retry(&fixture, flow.id, "write").await.unwrap();
    let shown = ended(&fixture, flow.id).await;
    worker.stop().await;
    assert_ne!(shown.steps[1].task_id, write.id);
    let again = task(&fixture, flow.id, 1).await;
    assert_eq!(sent(&fixture, &again).await, expected);
}

#[tokio::test]
async fn a_field_that_the_result_lacks_fails_the_step_with_the_reason() {
    let optional = FIELDS.replace(", \"parts\": [\"a\", \"b\"]", "");
    let fixture = fields(&optional).await;
    let flow = start(&fixture, "fields", &topic("sea")).await.unwrap();
    let worker = fixture.start_worker().await;
    let shown = ended(&fixture, flow.id).await;
    worker.stop().await;
    assert_eq!(states(&shown), ["plan done", "write failed"]);
    let error = task(&fixture, flow.id, 1).await.error.unwrap();
    assert!(error.contains("the result of the step `plan` has no `parts`"), "{error}");
    assert!(error.contains("`dalsegno flow retry`"), "{error}");
    assert_eq!(show(&fixture, flow.id).await.flow.failed, 1);
}
