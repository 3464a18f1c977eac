//! Tables. On a terminal they fit its width: the widest texts are cut.

use unicode_width::UnicodeWidthStr;

use super::{
    escape_control,
    fields::format_wrapped,
    style::{Style, Tint, is_mark, style, tint, tint_of_state},
};

const GAP: usize = 2;
/// Width that cells keep: an id in its short form, and most states.
const MIN_WIDTH: usize = 12;
/// Preferred minimum width, at which texts are still recognised.
const READABLE_WIDTH: usize = 20;
/// Columns whose texts are copied.
const NEVER_CUT: [&str; 2] = ["ID", "COMMAND"];
/// Columns whose cells have the colour of the state.
const STATES: [&str; 3] = ["STATE", "STATUS", "OUTCOME"];
/// End of the heads over exact times.
const UTC: &str = " (UTC)";

/// The properties of a style that matter to a table.
#[derive(Debug, Clone, Copy, Default)]
struct Look {
    /// Width to fit. `None`: any.
    columns: Option<usize>,
    has_relative_times: bool,
    is_coloured: bool,
}

impl From<Style> for Look {
    fn from(style: Style) -> Self {
        Self {
            columns: style.table_columns(),
            has_relative_times: style.has_relative_times(),
            is_coloured: style.is_coloured(),
        }
    }
}

/// Formats a table.
pub(in crate::cli) fn format_table<const N: usize>(
    head: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    draw(head, &rows.collect::<Vec<_>>(), style().into())
}

/// Formats a table whose last column is wrapped, so that its lines fit a terminal.
pub(in crate::cli) fn format_wrapped_table<const N: usize>(
    head: &[&str; N],
    rows: impl Iterator<Item = ([String; N], String)>,
    last: &str,
) -> String {
    let head = (head.map(str::to_owned), last.to_owned());
    let rows: Vec<([String; N], String)> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|(row, _)| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |(row, last): &([String; N], String)| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{}  ", pad(cell, *width)));
        format_wrapped(&cells.collect::<String>(), last)
    };
    rows.iter().map(line).collect()
}

fn draw<const N: usize>(head: &[&str; N], rows: &[[String; N]], look: Look) -> String {
    let heads = head.map(|name| match look.has_relative_times {
        true => name.strip_suffix(UTC).unwrap_or(name).to_owned(),
        false => name.to_owned(),
    });
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| in_one_line(cell))).collect();
    let lines = || std::iter::once(&heads).chain(&rows);
    let natural: Vec<usize> =
        (0..N).map(|column| lines().map(|row| row[column].width()).max().unwrap_or(0)).collect();
    let widths = match look.columns {
        Some(columns) => fit(&natural, head, columns),
        None => natural,
    };
    let mut text = String::new();
    for (i, row) in lines().enumerate() {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let cell = cut(cell, widths[column]);
            let n_blanks = widths[column] - cell.width() + GAP;
            line.push_str(&match (look.is_coloured, i) {
                (true, 0) => tint(&cell, Tint::Head),
                (true, _) if STATES.contains(&head[column]) => match tint_of_state(&cell) {
                    Some(colour) => tint(&cell, colour),
                    None => cell,
                },
                _ => cell,
            });
            line.push_str(&" ".repeat(n_blanks));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Replaces characters of a cell that would break the layout.
fn in_one_line(cell: &str) -> String {
    let plain = escape_control(cell);
    plain.replace(['\n', '\t'], " ").replace(is_mark, "\u{fffd}")
}

/// Narrows the widest columns until the table fits. A table of many columns may stay wider: cells keep a minimum width.
fn fit(natural: &[usize], head: &[&str], columns: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let gaps = GAP * natural.len().saturating_sub(1);
    for floor in [READABLE_WIDTH, MIN_WIDTH] {
        while widths.iter().sum::<usize>() + gaps > columns {
            let can_shrink =
                |column: &usize| !NEVER_CUT.contains(&head[*column]) && widths[*column] > floor;
            let Some(widest) = (0..widths.len()).filter(can_shrink).max_by_key(|i| widths[*i])
            else {
                break;
            };
            widths[widest] -= 1;
        }
    }
    widths
}

/// Cuts a text to a width. `…` shows that more follows.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    // Widths of prefixes, because emoji of several characters are as wide as one.
    let fits = |end: &usize| text[..*end].width() < width;
    let ends = text.char_indices().map(|(start, c)| start + c.len_utf8());
    let end = ends.take_while(fits).last().unwrap_or(0);
    // A joiner at the end would join the ellipsis.
    format!("{}…", text[..end].trim_end_matches('\u{200d}').trim_end())
}

/// Fills a text with blanks up to a width.
pub(super) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(columns: usize) -> Look {
        Look { columns: Some(columns), has_relative_times: true, is_coloured: false }
    }

    fn row(cells: [&str; 3]) -> [String; 3] {
        cells.map(str::to_owned)
    }

    #[test]
    fn columns_are_aligned_below_wide_characters() {
        let rows = [row(["春のコレクション", "done", "x"]), row(["👩‍🚀 crew", "failed", "y"])];
        let text = draw(&["NAME", "STATE", "BY"], &rows, Look::default());
        assert_eq!(
            text,
            "NAME              STATE   BY\n春のコレクション  done    x\n👩‍🚀 crew           failed  y\n"
        );
    }

    #[test]
    fn a_terminal_gets_lines_that_fit_and_a_file_gets_all() {
        let prompt = "Write the third part of the series ".repeat(3);
        let rows = [row(["0c1d2e3f4a5b", "3 min ago", &prompt])];
        let head = ["ID", "CREATED (UTC)", "PROMPT"];
        let text = draw(&head, &rows, at(60));
        assert!(text.starts_with("ID            CREATED    PROMPT\n"), "{text}");
        assert!(text.lines().all(|line| line.width() <= 60) && text.ends_with("…\n"), "{text}");
        let all = draw(&head, &rows, Look::default());
        assert!(all.contains(prompt.trim_end()) && all.contains("CREATED (UTC)"), "{all}");
    }

    #[test]
    fn ids_and_commands_are_never_cut() {
        let command = "dalsegno task retry 0c1d2e3f4a5b --reason because";
        let rows = [row(["0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "x", command])];
        let text = draw(&["ID", "STATE", "COMMAND"], &rows, at(40));
        assert!(text.contains(command) && text.contains("0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"));
    }

    #[test]
    fn a_cell_cannot_break_its_line_or_choose_a_colour() {
        let rows = [row(["a\nb", "c\u{1b}[31m", "d\u{fdd1}"])];
        let text = draw(&["A", "B", "C"], &rows, Look::default());
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains(['\u{1b}', '\u{fdd1}']), "{text:?}");
    }

    #[test]
    fn states_have_colours_only_if_colours_are_on() {
        let rows = [row(["x", "failed", "failed"])];
        let head = ["ID", "STATE", "PROMPT"];
        let coloured = draw(&head, &rows, Look { is_coloured: true, ..Look::default() });
        assert_eq!(coloured.matches(&tint("failed", Tint::Bad)).count(), 1, "{coloured:?}");
        assert!(!draw(&head, &rows, Look::default()).contains(is_mark));
    }

    proptest! {
        #[test]
        fn a_cut_text_is_never_wider(text in "[a-z春👩🏽\u{200d}🚀e\u{301} ]{0,40}", width in 1_usize..30) {
            prop_assert!(cut(&text, width).width() <= width.max(1));
        }
    }
}
