//! Nodes of steps, and the improvement phase after them.

use dalsegno::domain::{
    flows::{Inputs, State},
    nodes, tasks,
};

use super::{ended, fixture, retry, show, start, states};
use crate::turns::fixture::Fixture;

const REVIEWED: &str = "---
name: reviewed
description: A text and its review
improvement: planner
steps:
  - step: write
    agent: copywriter
    node: desk
  - step: review
    agent: reviewer
    after: [write]
  - step: count
    agent: reviewer
    instance: counter
    session: none
    after: [write]
  - step: revise
    agent: copywriter
    after: [review]
---
## write

Write it. [[sim: say draft]]

## review

Read it. [[sim: say fine]]

## count

Count it. [[sim: say 1]]

## revise

Revise it. [[sim: say text]]

## meta-analysis

Look back. [[sim: say list]]
";

async fn reviewed() -> Fixture {
    let fixture = fixture().await;
    for name in ["desk", "meta-analysis"] {
        let file = format!("---\nname: {name}\ndescription: d\n---\nThe contract of {name}.\n");
        fixture.write_node(name, &file);
    }
    fixture.write_template("reviewed", REVIEWED);
    fixture
}

#[tokio::test]
async fn after_a_flow_each_role_looks_back_in_its_own_conversation_and_a_fresh_session_combines_it()
{
    let fixture = reviewed().await;
    let worker = fixture.start_worker().await;
    // The agent that combines the results has a conversation already.
    let earlier = fixture.done(&fixture.add_for("planner", "main", "Plan.").await).await;
    let flow = start(&fixture, "reviewed", &Inputs::new()).await.unwrap();
    assert_eq!(flow.tasks, 7);
    let shown = ended(&fixture, flow.id).await;
    worker.stop().await;
    assert_eq!(shown.flow.state, State::Done);
    let steps: Vec<_> = shown
        .steps
        .iter()
        .map(|step| (step.step.as_str(), step.agent.as_str(), step.node.as_deref()))
        .collect();
    let expected = [
        ("write", "copywriter", Some("desk")),
        ("review", "reviewer", None),
        ("count", "reviewer", None),
        ("revise", "copywriter", None),
        // The counter has no conversation to look back at.
        ("meta-analysis", "copywriter", Some("meta-analysis")),
        ("meta-analysis", "reviewer", Some("meta-analysis")),
        ("improvement", "planner", None),
    ];
    assert_eq!(steps, expected);
    let ids: Vec<_> = shown.steps.iter().map(|step| step.task_id).collect();
    // They wait for the tasks that no step waits for.
    assert_eq!(shown.steps[4].after, [ids[2], ids[3]]);
    assert_eq!(shown.steps[5].after, [ids[2], ids[3]]);
    assert_eq!(shown.steps[6].after, [ids[4], ids[5]]);
    let session = async |place: usize| {
        let task = tasks::get(&fixture.pool, ids[place]).await.unwrap();
        task.session_id.unwrap()
    };
    assert_eq!(session(4).await, session(0).await, "the writer's own conversation");
    assert_eq!(session(5).await, session(1).await, "the reviewer's own conversation");
    let stays = nodes::of_session(&fixture.pool, session(0).await).await.unwrap();
    let stays: Vec<_> = stays.iter().map(|stay| stay.node.as_str()).collect();
    assert_eq!(stays, ["desk", "meta-analysis"]);
    assert_ne!(Some(session(6).await), earlier.session_id, "a fresh session");
    let told = tasks::predecessors(&fixture.pool, ids[6], 100).await.unwrap();
    let told: Vec<_> = told.iter().map(|one| one.text.as_deref().unwrap()).collect();
    assert_eq!(told, ["list", "list"]);
    let combine = tasks::get(&fixture.pool, ids[6]).await.unwrap();
    assert!(combine.prompt.contains("flow `reviewed`"), "{}", combine.prompt);
}

#[tokio::test]
async fn a_failed_step_is_looked_back_at_and_a_retry_keeps_the_nodes() {
    let fixture = reviewed().await;
    let failing = REVIEWED.replace("[[sim: say fine]]", "[[sim: error 400]]");
    fixture.write_template("reviewed", &failing);
    let flow = start(&fixture, "reviewed", &Inputs::new()).await.unwrap();
    let worker = fixture.start_worker().await;
    let shown = ended(&fixture, flow.id).await;
    assert_eq!(states(&shown)[1], "review failed");
    assert_eq!(
        states(&shown)[4..],
        ["meta-analysis done", "meta-analysis done", "improvement done"]
    );
    retry(&fixture, flow.id, "write").await.unwrap();
    let nodes: Vec<_> =
        show(&fixture, flow.id).await.steps.into_iter().map(|step| step.node).collect();
    ended(&fixture, flow.id).await;
    worker.stop().await;
    assert_eq!(nodes[0].as_deref(), Some("desk"));
    assert_eq!(nodes[1], None);
    assert_eq!(nodes[4].as_deref(), Some("meta-analysis"));
}
