//! Flows from templates: problems of files, starts and control.

mod control;
mod improvement;
mod start;
mod structured_results;
mod templates;

use dalsegno::domain::{
    agents::Library,
    flows::{self, Flow, FlowDetail, InputValue, Inputs, Templates},
    tasks::{self, Task},
    transaction::{begin, commit},
};
use uuid::Uuid;

use crate::{app::noon, turns::fixture::Fixture};

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
pub async fn fixture() -> Fixture {
    let fixture = Fixture::new(&[]).await;
    for name in AGENTS {
        let file = format!("---\nname: {name}\ndescription: Works\n---\nYou work.\n");
        fixture.write_agent(name, &file);
    }
    fixture.write_template("series", SERIES);
    fixture
}

pub fn inputs(topic: &str, parts: &[&str]) -> Inputs {
    let parts = parts.iter().map(|part| (*part).to_owned()).collect();
    Inputs::from([
        ("topic".to_owned(), InputValue::Text(topic.to_owned())),
        ("parts".to_owned(), InputValue::List(parts)),
    ])
}

pub async fn start(fixture: &Fixture, name: &str, inputs: &Inputs) -> Result<Flow, flows::Error> {
    let config = fixture.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    let templates = Templates::load(&config.flows, &catalogue)?;
    let new = flows::New {
        campaign_id: fixture.campaign.id,
        template: templates.get(name)?,
        inputs,
        added_by: Some("key boss"),
        parent_id: None,
    };
    let mut tx = begin(&fixture.pool).await.unwrap();
    let flow = flows::start(&mut tx, &config.tasks, &catalogue, &new, noon()).await?;
    commit(tx).await.unwrap();
    Ok(flow)
}

pub async fn retry(fixture: &Fixture, id: Uuid, step: &str) -> Result<Flow, flows::Error> {
    let config = fixture.config();
    let catalogue = Library::open(&config.agents).unwrap().current();
    let mut tx = begin(&fixture.pool).await.unwrap();
    let flow = flows::retry(&mut tx, &config.tasks, &catalogue, (id, step), None, noon()).await?;
    commit(tx).await.unwrap();
    Ok(flow)
}

pub async fn show(fixture: &Fixture, id: Uuid) -> FlowDetail {
    let mut conn = fixture.pool.acquire().await.unwrap();
    flows::show(&mut conn, id).await.unwrap()
}

/// Returns the current task of a step.
pub async fn task(fixture: &Fixture, id: Uuid, place: usize) -> Task {
    let id = show(fixture, id).await.steps[place].task_id;
    tasks::get(&fixture.pool, id).await.unwrap()
}

pub async fn ended(fixture: &Fixture, id: Uuid) -> FlowDetail {
    crate::app::eventually("the flow has ended", async || {
        let shown = show(fixture, id).await;
        (shown.flow.open == 0).then_some(shown)
    })
    .await
}

/// Returns `step: state` in order.
pub fn states(shown: &FlowDetail) -> Vec<String> {
    let steps = shown.steps.iter();
    steps.map(|step| format!("{} {}", step.step, step.state.as_str())).collect()
}
