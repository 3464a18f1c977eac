//! Retrying a flow from one of its steps.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, Flow, control, get, is_paused, start::error_with_step};
use crate::domain::{
    agents::{Catalogue, Node},
    amount::Limit,
    feed,
    files::nearest,
    tasks::{self, FlowStep, FlowTask, Links, TaskLink},
};

/// Adds again the tasks of a step and all that wait for them, in any state. Those that have not ended are cancelled first.
pub async fn retry(
    conn: &mut PgConnection,
    config: &tasks::Config,
    catalogue: &Catalogue,
    (id, step): (Uuid, &str),
    added_by: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Flow, Error> {
    let campaign_id = get(&mut *conn, id).await?.campaign_id;
    control::lock(&mut *conn, id).await?;
    if is_paused(&mut *conn, id).await? {
        return Err(Error::Paused(id));
    }
    let tasks = tasks::of_flow(&mut *conn, id).await?;
    let again = affected(&tasks, step)?;
    let why = format!("its flow {id} runs again from the step `{step}`");
    for task in again.iter().rev() {
        control::cancel_task(&mut *conn, task.id, &why, now).await?;
    }
    tasks::hold_of_flow(&mut *conn, id).await?;
    let replaced: Vec<Uuid> = again.iter().map(|task| task.id).collect();
    tasks::forget_dead_letters(&mut *conn, &replaced).await?;
    let items: HashMap<Uuid, usize> =
        again.iter().enumerate().map(|(item, task)| (task.id, item)).collect();
    let after: Vec<Vec<TaskLink>> = again.iter().map(|task| after(task, &items)).collect();
    let mut news = Vec::with_capacity(again.len());
    for (task, after) in again.iter().zip(&after) {
        news.push(tasks::New {
            campaign_id,
            agent: catalogue.agent(&task.agent)?,
            instance: &task.instance,
            node: node_of(catalogue, task)?,
            prompt: &task.prompt,
            session_mode: Some(task.session_mode),
            budget: Limit::default(),
            idempotency_key: None,
            priority: None,
            run_at: None,
            added_by,
            traceparent: None,
            labels: Default::default(),
            parameters: None,
            result_schema: task.result_schema.as_ref(),
            attachments: &[],
            within_secs: task.within_secs,
            links: Links {
                depends_on: after,
                on_failure: task.on_failure,
                flow: Some(FlowStep {
                    flow_id: id,
                    step: &task.step,
                    place: task.place,
                    fields: task.step_fields.as_ref(),
                }),
                ..Links::default()
            },
        });
    }
    let added = tasks::add_many(&mut *conn, config, campaign_id, &news, now).await;
    added.map_err(|error| {
        error_with_step(error, |place| again.get(place).map(|task| task.step.clone()))
    })?;
    let flow = get(&mut *conn, id).await?;
    let data = json!({ "from": step, "tasks": again.len() });
    feed::append(&mut *conn, &[flow.event(feed::Kind::FlowRetried, data)], now).await?;
    // Steps that ended during this transaction found the flow locked, and released no task.
    for task in tasks.iter().filter(|task| !replaced.contains(&task.id) && !task.after.is_empty()) {
        tasks::end_wait(&mut *conn, task.id).await?;
    }
    Ok(flow)
}

/// Counts the tasks by which a retry makes the queue longer. A task that has not ended is replaced by its new one, and does not count.
pub async fn n_more(executor: impl PgExecutor<'_>, id: Uuid, step: &str) -> Result<usize, Error> {
    let tasks = tasks::of_flow(executor, id).await?;
    if tasks.is_empty() {
        return Err(Error::Unknown(id));
    }
    Ok(affected(&tasks, step)?.iter().filter(|task| task.state.has_ended()).count())
}

/// Finds the tasks of the step, and all that wait for one of these, in the order of their places.
fn affected<'a>(all: &'a [FlowTask], step: &str) -> Result<Vec<&'a FlowTask>, Error> {
    let steps = || all.iter().map(|task| task.step.as_str());
    if !steps().any(|known| known == step) {
        let advice = match nearest(step, steps()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`dalsegno flow show` lists them".to_owned(),
        };
        return Err(Error::NoStep { step: step.to_owned(), advice });
    }
    let mut ids: HashSet<Uuid> = HashSet::new();
    let mut affected = Vec::new();
    // A task waits for places before its own only, so one pass finds them all.
    for task in all {
        if task.step == step || task.after.iter().any(|other| ids.contains(other)) {
            ids.insert(task.id);
            affected.push(task);
        }
    }
    Ok(affected)
}

/// Returns the node of a task, from the catalogue.
fn node_of<'a>(catalogue: &'a Catalogue, task: &FlowTask) -> Result<Option<&'a Node>, Error> {
    let node = task.node.as_deref().map(|node| catalogue.node(node)).transpose()?;
    Ok(node.map(AsRef::as_ref))
}

/// Returns the predecessors of a task, each replaced by its new task if there is one.
fn after(task: &FlowTask, items: &HashMap<Uuid, usize>) -> Vec<TaskLink> {
    let name = |other: &Uuid| match items.get(other) {
        Some(item) => TaskLink::Item { item: *item },
        None => TaskLink::Task(*other),
    };
    task.after.iter().map(name).collect()
}
