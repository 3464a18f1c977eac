//! Charts as SVG. Each has a label; its figures stand beside it as text.

use std::fmt::Write as _;

use maud::{Markup, html};

const HEIGHT: f64 = 28.0;
/// Space above the highest point, so that its line is not cut.
const TOP: f64 = 3.0;

/// A part of a whole.
#[derive(Debug, Clone)]
pub(in crate::console) struct Share {
    pub(in crate::console) name: String,
    pub(in crate::console) value: f64,
    /// The value in words.
    pub(in crate::console) shown: String,
    /// Its colour: `p1` to `p7`, or `hatch`.
    pub(in crate::console) class: &'static str,
}

/// Draws values over time, one unit of the width for each. An empty list is a flat line.
pub(in crate::console) fn sparkline(label: &str, values: &[f64]) -> Markup {
    sparkline_from(label, values, 0)
}

/// Draws values over time without the first ones, which are unknown: their part of the width stays empty.
pub(in crate::console) fn sparkline_from(label: &str, values: &[f64], first: usize) -> Markup {
    let highest = values.iter().copied().fold(0.0, f64::max);
    // In tenths, which is finer than a pixel.
    let y = |value: f64| {
        let share = if highest > 0.0 { value / highest } else { 0.0 };
        ((HEIGHT - (HEIGHT - TOP) * share) * 10.0).round() / 10.0
    };
    let mut heights: Vec<f64> = values.iter().copied().map(y).collect();
    heights.resize(heights.len().max(2), *heights.last().unwrap_or(&HEIGHT));
    let last = heights.len() - 1;
    let first = first.min(last);
    let mut line = String::new();
    for (x, y) in heights.iter().enumerate().skip(first) {
        // The ends of a level part are enough. A page can have many of these charts.
        if x == first || x == last || heights[x - 1] != *y || heights[x + 1] != *y {
            let begin = if x == first { "M" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(line, "{begin}{x} {y}");
        }
    }
    html! {
        svg.spark viewBox={ "0 0 " (last) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
            path.area d={ (line) "V" (HEIGHT) "H" (first) "Z" } {}
            path.edge d=(line) {}
        }
    }
}

/// Draws the parts of a whole in a bar, with their values below.
pub(in crate::console) fn share_bar(
    label: &str,
    shares: &[Share],
    whole: f64,
    mark: Option<f64>,
) -> Markup {
    let whole = whole.max(shares.iter().map(|share| share.value).sum()).max(1.0);
    let percent = |value: f64| format!("{:.2}%", value / whole * 100.0);
    let mut begin = 0.0;
    let begins: Vec<f64> = shares
        .iter()
        .map(|share| {
            let own = begin;
            begin += share.value;
            own
        })
        .collect();
    html! {
        svg.chart.h16 role="img" aria-label=(label) {
            rect.track width="100%" height="100%" rx="2" {}
            @for (share, begin) in shares.iter().zip(begins) {
                rect class=(share.class) x=(percent(begin)) width=(percent(share.value)) height="100%" {}
            }
            @if let Some(mark) = mark { line.now x1=(percent(mark)) x2=(percent(mark)) y1="-3" y2="100%" {} }
        }
        ul.legend {
            @for share in shares {
                li { svg aria-hidden="true" { rect class=(share.class) width="100%" height="100%" rx="2" {} } (share.name) " " b { (share.shown) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_spans_its_box() {
        let shown = sparkline("tasks", &[0.0, 5.0, 10.0]).0;
        assert!(
            shown.contains(r#"viewBox="0 0 2 28""#) && shown.contains(r#"d="M0 28 1 15.5 2 3""#),
            "{shown}"
        );
        let level = sparkline("level", &[0.0, 0.0, 0.0, 8.0, 8.0, 8.0, 2.0]).0;
        assert!(level.contains(r#"d="M0 28 2 28 3 3 5 3 6 21.8""#), "{level}");
        assert!(sparkline("one", &[4.0]).0.contains(r#"d="M0 3 1 3V28H0Z""#));
        assert!(sparkline("none", &[]).0.contains(r#"d="M0 28 1 28""#));
    }

    #[test]
    fn a_sparkline_leaves_its_unknown_part_empty() {
        let shown = sparkline_from("tasks", &[0.0, 0.0, 10.0, 5.0], 2).0;
        assert!(shown.contains(r#"viewBox="0 0 3 28""#), "{shown}");
        assert!(shown.contains(r#"d="M2 3 3 15.5V28H2Z""#), "{shown}");
        assert!(sparkline_from("last", &[0.0, 4.0], 9).0.contains(r#"d="M1 3V28H1Z""#));
    }

    #[test]
    fn shares_follow_each_other() {
        let share = |value, class| Share { name: "a".into(), value, shown: "1".into(), class };
        let shown =
            share_bar("parts", &[share(25.0, "p1"), share(50.0, "p2")], 100.0, Some(85.0)).0;
        for part in
            [r#"x="0.00%" width="25.00%""#, r#"x="25.00%" width="50.00%""#, r#"x1="85.00%""#]
        {
            assert!(shown.contains(part), "{shown}");
        }
    }
}
