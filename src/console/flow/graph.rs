//! The graph of steps: a column per depth, an edge per dependency.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::console::parts::{Tone, icon, wide};

const NODE_WIDTH: usize = 176;
const NODE_HEIGHT: usize = 44;
const GAP_X: usize = 40;
const GAP_Y: usize = 12;
/// Larger graphs are shown as a table only.
const MAX_NODES: usize = 200;

/// A step as it is drawn.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) sub: String,
    /// `None`: a step of a template.
    pub(super) tone: Option<Tone>,
    pub(super) target: Option<String>,
    /// The places of the nodes before it.
    pub(super) after: Vec<usize>,
    pub(super) is_critical: bool,
}

/// The place of a node in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    column: usize,
    row: usize,
}

impl Cell {
    fn x(self) -> usize {
        self.column * (NODE_WIDTH + GAP_X) + 2
    }

    fn y(self) -> usize {
        self.row * (NODE_HEIGHT + GAP_Y) + 2
    }
}

pub(super) fn graph(label: &str, nodes: &[Node]) -> Markup {
    if nodes.len() > MAX_NODES {
        return html! { p."small soft" { (nodes.len()) " steps are too many for a picture. The table has all of them." } };
    }
    let cells = layout(nodes);
    let n_columns = cells.iter().map(|cell| cell.column + 1).max().unwrap_or(0);
    let n_rows = cells.iter().map(|cell| cell.row + 1).max().unwrap_or(0);
    let width = (n_columns * (NODE_WIDTH + GAP_X)).saturating_sub(GAP_X) + 4;
    let height = (n_rows * (NODE_HEIGHT + GAP_Y)).saturating_sub(GAP_Y) + 4;
    let edges: Vec<(usize, usize)> = nodes
        .iter()
        .enumerate()
        .flat_map(|(place, node)| node.after.iter().map(move |before| (*before, place)))
        .collect();
    let is_critical =
        |(before, after): &(usize, usize)| nodes[*before].is_critical && nodes[*after].is_critical;
    let (critical, plain): (Vec<_>, Vec<_>) = edges.into_iter().partition(is_critical);
    let drawing = html! {
        svg.graph width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="group" aria-label=(label) {
            @for (before, after) in plain { path.edge d=(curve(cells[before], cells[after])) {} }
            @for (before, after) in critical { path."edge critical" d=(curve(cells[before], cells[after])) {} }
            @for (node, cell) in nodes.iter().zip(&cells) { (drawn(node, *cell)) }
        }
    };
    wide(label, &drawing)
}

/// Gives each node a column behind those that it depends on, and the next free row of that column.
fn layout(nodes: &[Node]) -> Vec<Cell> {
    let mut columns = vec![0_usize; nodes.len()];
    // Each round moves nodes behind the ones before them. A dependency that leads back, which no template has, would end the rounds.
    for _ in 0..nodes.len() {
        let mut has_moved = false;
        for (place, node) in nodes.iter().enumerate() {
            let column = node.after.iter().map(|before| columns[*before] + 1).max().unwrap_or(0);
            if column > columns[place] && column < nodes.len() {
                columns[place] = column;
                has_moved = true;
            }
        }
        if !has_moved {
            break;
        }
    }
    let mut filled: HashMap<usize, usize> = HashMap::new();
    let cell = |column| {
        let row = filled.entry(column).or_default();
        *row += 1;
        Cell { column, row: *row - 1 }
    };
    columns.into_iter().map(cell).collect()
}

fn curve(before: Cell, after: Cell) -> String {
    let (x1, y1) = (before.x() + NODE_WIDTH, before.y() + NODE_HEIGHT / 2);
    let (x2, y2) = (after.x(), after.y() + NODE_HEIGHT / 2);
    let middle = x1.midpoint(x2);
    format!("M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}")
}

/// Draws a node, as a link if it has a page. The inner picture cuts long names.
fn drawn(node: &Node, cell: Cell) -> Markup {
    let tone = node.tone.map_or("step", Tone::class);
    let inside = html! {
        title { (node.name) ", " (node.sub) @if node.is_critical { ", on the critical path" } }
        svg.node.(tone).critical[node.is_critical] x=(cell.x()) y=(cell.y()) width=(NODE_WIDTH) height=(NODE_HEIGHT) {
            rect.box x="1" y="1" width=(NODE_WIDTH - 2) height=(NODE_HEIGHT - 2) rx="5" {}
            @if let Some(tone) = node.tone { svg x="9" y="8" width="14" height="14" { (icon(tone.icon())) } }
            text x=(if node.tone.is_some() { "29" } else { "10" }) y="19" { (node.name) }
            text.sub x=(if node.tone.is_some() { "29" } else { "10" }) y="35" { (node.sub) }
        }
    };
    html! { @match &node.target { Some(target) => a href=(target) { (inside) }, None => g { (inside) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n: usize, after: &[usize], is_critical: bool) -> Node {
        Node {
            name: format!("step {n} <script>"),
            sub: "writer".to_owned(),
            tone: Some(Tone::Queued),
            target: None,
            after: after.to_vec(),
            is_critical,
        }
    }

    #[test]
    fn steps_stand_behind_those_that_they_depend_on() {
        let nodes = [
            node(1, &[], true),
            node(2, &[0], true),
            node(3, &[0], false),
            node(4, &[1, 2], true),
            node(5, &[], false),
        ];
        let places: Vec<_> = layout(&nodes).iter().map(|cell| (cell.column, cell.row)).collect();
        assert_eq!(places, [(0, 0), (1, 0), (1, 1), (2, 0), (0, 1)]);
        let shown = graph("steps", &nodes).0;
        assert_eq!(shown.matches("class=\"edge\"").count(), 2);
        assert_eq!(shown.matches("class=\"edge critical\"").count(), 2);
        assert!(!shown.contains("<script>"), "{shown}");
    }

    #[test]
    fn a_circle_of_steps_ends() {
        let nodes = [node(1, &[1], false), node(2, &[0], false)];
        assert!(layout(&nodes).iter().all(|cell| cell.column < 2));
    }
}
