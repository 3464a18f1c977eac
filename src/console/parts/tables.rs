//! Tables that become lists on phones.

use maud::{Markup, PreEscaped, html};

/// A table in a region of its own. On narrow screens its rows are lists, in which each cell has the heading of its column.
pub(in crate::console) fn wide(label: &str, body: &Markup) -> Markup {
    html! { div.wide role="group" tabindex="0" aria-label=(label) { (PreEscaped(with_labels(&body.0))) } }
}

/// Adds the headings of the columns to the cells, as `data-label`. Texts are escaped, so that each `<` in the markup begins a tag.
fn with_labels(table: &str) -> String {
    let labels = headings(table);
    let mut cells = table.split("<td");
    let mut labelled = cells.next().unwrap_or_default().to_owned();
    let mut column = column_after(&labelled, 0);
    for cell in cells {
        labelled.push_str("<td");
        if let Some(label) = labels.get(column).filter(|label| !label.is_empty()) {
            labelled.push_str(&format!(" data-label=\"{label}\""));
        }
        labelled.push_str(cell);
        column = column_after(cell, column + 1);
    }
    labelled
}

/// Returns the column of the next cell: the first one, if a row begins in this markup.
fn column_after(markup: &str, next: usize) -> usize {
    if markup.contains("<tr") { 0 } else { next }
}

/// Returns the texts of the headings, still escaped.
fn headings(table: &str) -> Vec<String> {
    let Some((head, _)) = table.split_once("</thead>") else { return Vec::new() };
    let cells = head.split("<th").skip(1).filter(|cell| cell.starts_with([' ', '>']));
    cells
        .map(|cell| text(&format!("<th{}", cell.split("</th>").next().unwrap_or_default())))
        .collect()
}

fn text(markup: &str) -> String {
    let pieces = markup.split('<').skip(1);
    let texts = pieces.map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
    texts.collect::<String>().replace('"', "&quot;").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_has_the_heading_of_its_column() {
        let table = html! {
            table {
                thead { tr { th { span.sr { "Selected" } } th.num { "A & \"b\"" } th { } } }
                tbody { @for n in 0..2 { tr { td.pick { "x" } td.num title=">" { "<td" (n) } td { "z" } } } }
            }
        };
        let labelled = with_labels(&table.0);
        let row = |n: u8| {
            format!(
                "<tr><td data-label=\"Selected\" class=\"pick\">x</td><td data-label=\"A &amp; &quot;b&quot;\" class=\"num\" title=\"&gt;\">&lt;td{n}</td><td>z</td></tr>"
            )
        };
        assert!(
            labelled.ends_with(&format!("<tbody>{}{}</tbody></table>", row(0), row(1))),
            "{labelled}"
        );
    }

    #[test]
    fn other_markup_stays_as_it_is() {
        for markup in ["", "<svg><title>a</title></svg>", "<table><tr><td>a</td></tr></table>"] {
            assert_eq!(with_labels(markup), markup);
        }
    }
}
