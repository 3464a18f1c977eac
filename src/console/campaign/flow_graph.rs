//! The graph of a flow's steps: a column per depth, an edge per dependency.

use std::collections::HashMap;

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        parts::{agent_name, icon, wide},
        task::tone,
    },
    domain::flows::StepTask,
};

const NODE_WIDTH: usize = 176;
const NODE_HEIGHT: usize = 44;
const GAP_X: usize = 40;
const GAP_Y: usize = 12;
/// Larger flows are shown as a table only.
const MAX_STEPS: usize = 200;

/// A step with its place in the grid.
struct Node<'a> {
    step: &'a StepTask,
    column: usize,
    row: usize,
}

impl Node<'_> {
    fn x(&self) -> usize {
        self.column * (NODE_WIDTH + GAP_X) + 1
    }

    fn y(&self) -> usize {
        self.row * (NODE_HEIGHT + GAP_Y) + 1
    }
}

pub(super) fn show(steps: &[StepTask]) -> Markup {
    if steps.len() > MAX_STEPS {
        return html! { p."small soft" { "The flow has " (steps.len()) " tasks, too many for a picture. The table has all of them." } };
    }
    let nodes = layout(steps);
    let by_task: HashMap<Uuid, &Node<'_>> =
        nodes.iter().map(|node| (node.step.task_id, node)).collect();
    let n_columns = nodes.iter().map(|node| node.column + 1).max().unwrap_or(0);
    let n_rows = nodes.iter().map(|node| node.row + 1).max().unwrap_or(0);
    let width = n_columns * (NODE_WIDTH + GAP_X);
    let height = n_rows * (NODE_HEIGHT + GAP_Y);
    let by_task = &by_task;
    let edges = nodes.iter().flat_map(|node| {
        node.step.after.iter().filter_map(move |before| Some((*by_task.get(before)?, node)))
    });
    let graph = html! {
        svg.graph width=(width.saturating_sub(GAP_X) + 2) height=(height) role="group" aria-label="Steps of the flow, from left to right. The table below has the same data." {
            @for (before, after) in edges { path.edge d=(curve(before, after)) {} }
            @for node in &nodes { (drawn(node)) }
        }
    };
    wide("Graph of the steps", &graph)
}

/// Gives each step a column behind those that it depends on, and the next free row of that column.
fn layout(steps: &[StepTask]) -> Vec<Node<'_>> {
    let places: HashMap<Uuid, usize> =
        steps.iter().enumerate().map(|(place, step)| (step.task_id, place)).collect();
    let mut columns = vec![0_usize; steps.len()];
    // Each round moves steps behind the ones before them. A dependency that leads back, which no template has, would end the rounds.
    for _ in 0..steps.len() {
        let mut has_moved = false;
        for (place, step) in steps.iter().enumerate() {
            let before = step.after.iter().filter_map(|id| places.get(id));
            let column = before.map(|before| columns[*before] + 1).max().unwrap_or(0);
            if column > columns[place] && column < steps.len() {
                columns[place] = column;
                has_moved = true;
            }
        }
        if !has_moved {
            break;
        }
    }
    let mut filled: HashMap<usize, usize> = HashMap::new();
    let node = |(step, column)| {
        let row = filled.entry(column).or_default();
        *row += 1;
        Node { step, column, row: *row - 1 }
    };
    steps.iter().zip(columns).map(node).collect()
}

fn curve(before: &Node<'_>, after: &Node<'_>) -> String {
    let (x1, y1) = (before.x() + NODE_WIDTH, before.y() + NODE_HEIGHT / 2);
    let (x2, y2) = (after.x(), after.y() + NODE_HEIGHT / 2);
    let middle = x1.midpoint(x2);
    format!("M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}")
}

/// Draws a step as a link to its task. The inner picture cuts long names.
fn drawn(node: &Node<'_>) -> Markup {
    let StepTask { step, task_id, agent, instance, state, .. } = node.step;
    let tone = tone(*state);
    html! {
        a href={ "/tasks/" (task_id) } {
            title { (step) ", " (state.as_str()) ", " (agent_name(agent, instance)) }
            svg.node.(tone.class()) x=(node.x()) y=(node.y()) width=(NODE_WIDTH) height=(NODE_HEIGHT) {
                rect.box x="0.5" y="0.5" width=(NODE_WIDTH - 1) height=(NODE_HEIGHT - 1) rx="5" {}
                svg x="8" y="7" width="14" height="14" { (icon(tone.icon())) }
                text x="28" y="18" { (step) }
                text.sub x="28" y="34" { (agent_name(agent, instance)) " · " (state.as_str()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tasks::State;

    fn step(n: u128, after: &[u128]) -> StepTask {
        StepTask {
            step: format!("step {n} <script>"),
            task_id: Uuid::from_u128(n),
            agent: "writer".to_owned(),
            instance: "main".to_owned(),
            node: None,
            state: State::Queued,
            after: after.iter().copied().map(Uuid::from_u128).collect(),
        }
    }

    #[test]
    fn steps_stand_behind_those_that_they_depend_on() {
        let steps = [step(1, &[]), step(2, &[1]), step(3, &[1]), step(4, &[2, 3]), step(5, &[99])];
        let places: Vec<_> = layout(&steps).iter().map(|node| (node.column, node.row)).collect();
        assert_eq!(places, [(0, 0), (1, 0), (1, 1), (2, 0), (0, 1)]);
        let shown = show(&steps).0;
        assert_eq!(shown.matches("class=\"edge\"").count(), 4);
        assert!(!shown.contains("<script>"), "{shown}");
    }

    #[test]
    fn a_circle_of_steps_ends() {
        let steps = [step(1, &[2]), step(2, &[1])];
        assert!(layout(&steps).iter().all(|node| node.column < 2));
    }
}
