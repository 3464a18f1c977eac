//! Flows from templates: problems of files, starts and control.

mod control;
mod start;
mod templates;

use dalsegno::domain::{
    agents::Library,
    flows::{self, Flow, FlowDetail, InputValue, Inputs, Templates},
    tasks::{self, Task},
    transaction::{begin, commit},
};
use uuid::Uuid;

use crate::{app::noon, turns::ground::Ground};

/// Agents of the templates in these tests.
pub const AGENTS: [&str; 3] = ["planner", "copywriter", "reviewer"];

pub const SERIES: &str = "---
name: series
description: A plan, its parts, and the whole
inputs:
  topic: What it is about
  parts: One line each
steps:
  - step: plan
    agent: planner
  - step: draft
    agent: copywriter
    instance: part
    each: parts
    after: [plan]
  - step: review
    agent: reviewer
    after: [draft]
    on_failure: cancel
  - step: finish
    agent: planner
    after: [draft, review]
---
## plan

Plan {{topic}}: {{parts}}

## draft

Write {{number}}: {{item}}

## review

Read it. [[sim: say fine]]

## finish

Put it together. [[sim: say whole]]
";

/// Sets up a campaign with these agents and this template.
pub async fn ground() -> Ground {
    let ground = Ground::new(&[]).await;
    for name in AGENTS {
        let file = format!("---\nname: {name}\ndescription: Works\n---\nYou work.\n");
        ground.write_agent(name, &file);
    }
    ground.write_template("series", SERIES);
    ground
}

pub fn inputs(topic: &str, parts: &[&str]) -> Inputs {
    let parts = parts.iter().map(|part| (*part).to_owned()).collect();
    Inputs::from([
        ("topic".to_owned(), InputValue::Text(topic.to_owned())),
        ("parts".to_owned(), InputValue::List(parts)),
    ])
}

pub async fn start(ground: &Ground, name: &str, inputs: &Inputs) -> Result<Flow, flows::Error> {
    let config = ground.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    let templates = Templates::load(&config.flows, &catalogue)?;
    let new = flows::New {
        campaign_id: ground.campaign.id,
        template: templates.get(name)?,
        inputs,
        added_by: Some("key boss"),
        parent_id: None,
    };
    let mut tx = begin(&ground.pool).await.unwrap();
    let flow = flows::start(&mut tx, &config.tasks, &catalogue, &new, noon()).await?;
    commit(tx).await.unwrap();
    Ok(flow)
}

pub async fn retry(ground: &Ground, id: Uuid, step: &str) -> Result<Flow, flows::Error> {
    let config = ground.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    let mut tx = begin(&ground.pool).await.unwrap();
    let flow = flows::retry(&mut tx, &config.tasks, &catalogue, (id, step), None, noon()).await?;
    commit(tx).await.unwrap();
    Ok(flow)
}

pub async fn show(ground: &Ground, id: Uuid) -> FlowDetail {
    let mut conn = ground.pool.acquire().await.unwrap();
    flows::show(&mut conn, id).await.unwrap()
}

/// Returns the current task of a step.
pub async fn task(ground: &Ground, id: Uuid, place: usize) -> Task {
    let id = show(ground, id).await.steps[place].task_id;
    tasks::get(&ground.pool, id).await.unwrap()
}

pub async fn ended(ground: &Ground, id: Uuid) -> FlowDetail {
    crate::app::eventually("the flow has ended", async || {
        let shown = show(ground, id).await;
        (shown.flow.open == 0).then_some(shown)
    })
    .await
}

/// Returns `step: state` in order.
pub fn states(shown: &FlowDetail) -> Vec<String> {
    let steps = shown.steps.iter();
    steps.map(|step| format!("{} {}", step.step, step.state.as_str())).collect()
}
