//! Charts as SVG. Each has a label; its figures stand beside it as text.

use std::fmt::Write as _;

use maud::{Markup, html};

const WIDTH: f64 = 100.0;
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

/// Draws values over time. An empty list is a flat line.
pub(in crate::console) fn sparkline(label: &str, values: &[f64]) -> Markup {
    let values = if values.is_empty() { &[0.0, 0.0][..] } else { values };
    let highest = values.iter().copied().fold(0.0, f64::max);
    let step = WIDTH / (values.len().max(2) - 1) as f64;
    let mut points = String::new();
    for (place, value) in values.iter().enumerate() {
        let share = if highest > 0.0 { value / highest } else { 0.0 };
        let y = HEIGHT - (HEIGHT - TOP) * share;
        // Writing to a string cannot fail.
        let _ = write!(points, "{:.2} {y:.2} ", place as f64 * step);
    }
    let line = format!("M{}", points.trim_end());
    let area = format!("{line} L100 28 L0 28Z");
    html! {
        svg.spark viewBox="0 0 100 28" preserveAspectRatio="none" role="img" aria-label=(label) {
            path.area d=(area) {}
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
        assert!(shown.contains("M0.00 28.00 50.00 15.50 100.00 3.00"), "{shown}");
        assert!(sparkline("none", &[]).0.contains("M0.00 28.00 100.00 28.00"));
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
