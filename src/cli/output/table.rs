//! Tables. On a terminal they fit its width: the widest texts are cut, then the least important columns are left out.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use super::{
    escape_control,
    fields::format_wrapped,
    style::{Style, Tint, is_mark, style, tint, tint_of_state},
};

const GAP: usize = 2;
/// Width at which texts are still recognised. Columns are left out before texts become narrower.
const READABLE_WIDTH: usize = 20;
/// Widths that cells keep after that: an id in its short form, and most states.
const NARROW_WIDTHS: [usize; 2] = [12, 8];
/// Width that columns with short texts keep: a state with the distance of a time.
const KEPT_WIDTH: usize = 24;
const COMMAND: &str = "COMMAND";
/// Columns whose texts are copied.
const NEVER_CUT: [&str; 2] = ["ID", COMMAND];
/// Columns whose cells have the colour of the state.
const STATES: [&str; 3] = ["STATE", "STATUS", "OUTCOME"];
/// End of the heads over exact times.
const UTC: &str = " (UTC)";
/// Blanks before a command on a line of its own.
const INDENT: &str = "  ";

/// The columns of a table.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Table<'a, const N: usize> {
    head: &'a [&'a str; N],
    least: &'a [&'a str],
    kept: &'a [&'a str],
    hidden: Vec<&'a str>,
    /// A column of excerpts, and the match of each row in it.
    excerpts: Option<(&'a str, &'a [Range<usize>])>,
}

/// The properties of a style that matter to a table.
#[derive(Debug, Clone, Copy, Default)]
struct Look {
    /// Width to fit. `None`: any.
    columns: Option<usize>,
    has_relative_times: bool,
    is_coloured: bool,
}

/// The place of each column.
#[derive(Debug, Default)]
struct Layout {
    /// Columns side by side, with their widths.
    columns: Vec<(usize, usize)>,
    /// Column whose cells stand below their rows.
    below: Option<usize>,
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

impl<'a, const N: usize> Table<'a, N> {
    pub(in crate::cli) fn new(head: &'a [&'a str; N]) -> Self {
        Self { head, least: &[], kept: &[], hidden: Vec::new(), excerpts: None }
    }

    /// Sets the columns that a narrow terminal can do without, the least important one first.
    pub(in crate::cli) fn leaves_out(self, least: &'a [&'a str]) -> Self {
        Self { least, ..self }
    }

    /// Sets columns with short texts, which other columns do not narrow below 24 characters.
    pub(in crate::cli) fn keeps(self, kept: &'a [&'a str]) -> Self {
        Self { kept, ..self }
    }

    /// Hides a column, because all rows have the same value there.
    pub(in crate::cli) fn hides(mut self, column: &'a str) -> Self {
        self.hidden.push(column);
        self
    }

    /// Sets a column of excerpts. They are cut so that the match stays in sight: per row its characters, from and to.
    pub(in crate::cli) fn cuts_around(self, column: &'a str, matches: &'a [Range<usize>]) -> Self {
        Self { excerpts: Some((column, matches)), ..self }
    }

    pub(in crate::cli) fn format(self, rows: impl Iterator<Item = [String; N]>) -> String {
        self.draw(&rows.collect::<Vec<_>>(), style().into())
    }
}

/// Formats a table whose columns are equally important.
pub(in crate::cli) fn format_table<const N: usize>(
    head: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    Table::new(head).format(rows)
}

/// Formats a table whose last column is wrapped, so that its lines fit a terminal.
pub(in crate::cli) fn format_wrapped_table<const N: usize>(
    head: &[&str; N],
    rows: impl Iterator<Item = ([String; N], String)>,
    last: &str,
) -> String {
    let head = (head.map(|name| head_cell(name, style().has_relative_times())), last.to_owned());
    let rows: Vec<([String; N], String)> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|(row, _)| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |(row, last): &([String; N], String)| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{}  ", pad(cell, *width)));
        format_wrapped(&cells.collect::<String>(), last)
    };
    rows.iter().map(line).collect()
}

/// Returns a heading over times: without ` (UTC)` where they are relative.
pub(in crate::cli) fn time_head(name: &str) -> String {
    head_cell(name, style().has_relative_times())
}

fn head_cell(name: &str, has_relative_times: bool) -> String {
    let name = if has_relative_times { name.strip_suffix(UTC).unwrap_or(name) } else { name };
    name.to_owned()
}

impl<const N: usize> Table<'_, N> {
    fn draw(&self, rows: &[[String; N]], look: Look) -> String {
        let heads = self.head.map(|name| head_cell(name, look.has_relative_times));
        let rows: Vec<[String; N]> =
            rows.iter().map(|row| row.each_ref().map(|cell| in_one_line(cell))).collect();
        let lines = || std::iter::once(&heads).chain(&rows);
        let natural =
            std::array::from_fn(|column| lines().map(|row| row[column].width()).max().unwrap_or(0));
        let layout = self.lay_out(&natural, look.columns);
        let mut text = String::new();
        for (i, row) in lines().enumerate() {
            let mut line = String::new();
            for (column, width) in &layout.columns {
                let cell = match self.match_in(*column, i) {
                    Some(found) => cut_around(&row[*column], found, *width),
                    None => cut(&row[*column], *width),
                };
                let n_blanks = width.saturating_sub(cell.width()) + GAP;
                line.push_str(&match (look.is_coloured, i) {
                    (true, 0) => tint(&cell, Tint::Head),
                    (true, _) if STATES.contains(&self.head[*column]) => match tint_of_state(&cell)
                    {
                        Some(colour) => tint(&cell, colour),
                        None => cell,
                    },
                    _ => cell,
                });
                line.push_str(&" ".repeat(n_blanks));
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if let Some(command) = layout.below.map(|column| &row[column]).filter(|_| i > 0) {
                text.push_str(&format!("{INDENT}{command}\n"));
            }
        }
        text
    }

    /// Returns the match in a cell. The line 0 has the heads.
    fn match_in(&self, column: usize, line: usize) -> Option<&Range<usize>> {
        let (_, matches) = self.excerpts.filter(|(name, _)| *name == self.head[column])?;
        matches.get(line.checked_sub(1)?)
    }

    /// Places the columns within the width of a terminal, if there is one.
    fn lay_out(&self, natural: &[usize; N], columns: Option<usize>) -> Layout {
        let mut shown: Vec<usize> =
            (0..N).filter(|column| !self.hidden.contains(&self.head[*column])).collect();
        let Some(columns) = columns else {
            let whole = shown.iter().map(|column| (*column, natural[*column])).collect();
            return Layout { columns: whole, below: None };
        };
        let fit = |shown: &[usize], floor| self.narrow(shown, natural, floor, columns);
        if let Some(columns) = fit(&shown, READABLE_WIDTH) {
            return Layout { columns, below: None };
        }
        // A command is copied as a whole, so it needs a line of its own.
        let below = shown.iter().copied().find(|column| self.head[*column] == COMMAND);
        shown.retain(|column| Some(*column) != below);
        let mut least = self.least.iter();
        loop {
            if let Some(columns) = fit(&shown, READABLE_WIDTH) {
                return Layout { columns, below };
            }
            let Some(name) = least.next() else { break };
            shown.retain(|column| self.head[*column] != *name);
        }
        for floor in NARROW_WIDTHS {
            if let Some(columns) = fit(&shown, floor) {
                return Layout { columns, below };
            }
        }
        let [.., floor] = NARROW_WIDTHS;
        while shown.len() > 1 {
            shown.pop();
            if let Some(columns) = fit(&shown, floor) {
                return Layout { columns, below };
            }
        }
        let whole = || shown.iter().map(|column| (*column, natural[*column])).collect();
        Layout { columns: fit(&shown, 1).unwrap_or_else(whole), below }
    }

    /// Narrows the widest columns down to `floor` until they fit. `None`: they do not.
    fn narrow(
        &self,
        shown: &[usize],
        natural: &[usize; N],
        floor: usize,
        columns: usize,
    ) -> Option<Vec<(usize, usize)>> {
        let is_whole = |column: usize| NEVER_CUT.contains(&self.head[column]);
        // No text needs more than the terminal has.
        let width = |column: usize| match is_whole(column) {
            true => natural[column],
            false => natural[column].min(columns),
        };
        let mut placed: Vec<(usize, usize)> =
            shown.iter().map(|column| (*column, width(*column))).collect();
        let gaps = GAP * shown.len().saturating_sub(1);
        let least = |column: usize| match self.kept.contains(&self.head[column]) {
            true => KEPT_WIDTH.max(floor),
            false => floor,
        };
        while placed.iter().map(|(_, width)| width).sum::<usize>() + gaps > columns {
            let widest = placed
                .iter_mut()
                .filter(|(column, width)| !is_whole(*column) && *width > least(*column))
                .max_by_key(|(_, width)| *width)?;
            widest.1 -= 1;
        }
        Some(placed)
    }
}

/// Replaces characters of a cell that would break the layout.
fn in_one_line(cell: &str) -> String {
    let plain = escape_control(cell);
    plain.replace(['\n', '\t'], " ").replace(is_mark, "\u{fffd}")
}

/// Cuts a text to a width. `…` shows that more follows.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    // Widths of prefixes, because emoji of several characters are as wide as one.
    let fits = |end: &usize| text[..*end].width() < width;
    // Few characters are looked at: a text may have any number of them without a width.
    let ends = text.char_indices().map(|(start, c)| start + c.len_utf8()).take(8 * width);
    let end = ends.take_while(fits).last().unwrap_or(0);
    // A joiner at the end would join the ellipsis.
    format!("{}…", text[..end].trim_end_matches('\u{200d}').trim_end())
}

/// Cuts a text to a width around a match: the characters from and to. `…` shows that more comes before and follows.
fn cut_around(text: &str, found: &Range<usize>, width: usize) -> String {
    let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(place, _)| place);
    let (start, end) = (place(found.start), place(found.end));
    if start == 0 || text.width() <= width || text[..end].width() < width {
        return cut(text, width);
    }
    // As much before the match as behind it, or more if less follows. Each `…` takes one column.
    let half = width.saturating_sub(text[start..end].width() + 2) / 2;
    let n_before = half.max(width.saturating_sub(text[start..].width() + 1));
    let begins = text[..start].char_indices().rev().map(|(begin, _)| begin).take(8 * width);
    let fits = |begin: &usize| text[*begin..start].width() <= n_before;
    let mut begin = begins.take_while(fits).last().unwrap_or(start);
    // A word that is cut at its begin is left out.
    if !text[..begin].ends_with(' ')
        && let Some(blank) = text[begin..start].find(' ')
    {
        begin += blank;
    }
    // A joiner at the begin would join the ellipsis.
    let shown = text[begin..].trim_start().trim_start_matches('\u{200d}');
    cut(&format!("…{shown}"), width)
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
        let text = Table::new(&["NAME", "STATE", "BY"]).draw(&rows, Look::default());
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
        let text = Table::new(&head).draw(&rows, at(60));
        assert!(text.starts_with("ID            CREATED    PROMPT\n"), "{text}");
        assert!(text.lines().all(|line| line.width() <= 60) && text.ends_with("…\n"), "{text}");
        let all = Table::new(&head).draw(&rows, Look::default());
        assert!(all.contains(prompt.trim_end()) && all.contains("CREATED (UTC)"), "{all}");
    }

    #[test]
    fn ids_and_commands_are_never_cut() {
        let command = "dalsegno task retry 0c1d2e3f4a5b --reason because";
        let rows = [row(["0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "x", command])];
        let text = Table::new(&["ID", "STATE", "COMMAND"]).draw(&rows, at(40));
        assert!(text.contains(command) && text.contains("0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"));
    }

    #[test]
    fn a_command_that_does_not_fit_stands_below_its_row() {
        let command = "dalsegno task retry 0c1d2e3f4a5b --reason because";
        let rows = [row(["Write part one of the series", "it failed", command])];
        let table = Table::new(&["NAME", "BECAUSE", "COMMAND"]);
        let text = table.draw(&rows, at(60));
        assert_eq!(
            text,
            format!(
                "NAME                          BECAUSE\nWrite part one of the series  it failed\n  {command}\n"
            )
        );
        assert_eq!(table.draw(&rows, at(120)).lines().count(), 2);
    }

    #[test]
    fn a_narrow_terminal_leaves_out_the_least_important_columns_first() {
        let long = "a text of more than twenty characters";
        let rows = [row([long, long, long])];
        let head = ["ONE", "TWO", "THREE"];
        let table = Table::new(&head).leaves_out(&["TWO", "ONE"]);
        let heads = |columns| {
            let text = table.draw(&rows, at(columns));
            assert!(text.lines().all(|line| line.width() <= columns), "{text}");
            assert_eq!(text.lines().nth(1).unwrap().width(), columns, "the width is used: {text}");
            text.lines().next().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(heads(64), head);
        assert_eq!(heads(63), ["ONE", "THREE"]);
        assert_eq!(heads(42), ["ONE", "THREE"]);
        assert_eq!(heads(37), ["THREE"]);
        let unranked = Table::new(&head);
        assert!(unranked.draw(&rows, at(28)).starts_with("ONE       TWO       THREE\n"));
        assert!(unranked.draw(&rows, at(20)).starts_with("ONE        TWO\n"));
        let hidden = table.hides("TWO");
        for look in [at(200), Look::default()] {
            assert!(hidden.draw(&rows, look).starts_with("ONE "), "{look:?}");
            assert!(!hidden.draw(&rows, look).contains("TWO"), "{look:?}");
        }
    }

    #[test]
    fn any_number_of_columns_can_be_hidden() {
        let head = ["A", "B", "C", "D", "E", "F"];
        let table = head[1..].iter().fold(Table::new(&head), |table, name| table.hides(name));
        let rows = [["1", "2", "3", "4", "5", "6"].map(str::to_owned)];
        assert_eq!(table.draw(&rows, Look::default()), "A\n1\n");
    }

    #[test]
    fn a_kept_column_is_whole_beside_long_texts() {
        let long = "a text of more than twenty characters";
        let rows = [row([long, "failing since 59 min ago", long])];
        let head = ["ONE", "TWO", "THREE"];
        let table = Table::new(&head).keeps(&["TWO"]);
        for columns in [80, 60, 44] {
            let text = table.draw(&rows, at(columns));
            assert!(text.contains("  failing since 59 min ago  "), "{columns}: {text}");
            assert!(text.lines().all(|line| line.width() <= columns), "{text}");
        }
    }

    #[test]
    fn an_excerpt_is_cut_around_its_match() {
        let text = "The keeper counts the ships of the night and writes them into his book";
        let around = |word: &str, width| {
            let start = text.find(word).unwrap();
            cut_around(text, &(start..start + word.len()), width)
        };
        assert_eq!(around("keeper", 20), "The keeper counts t…");
        assert_eq!(around("night", 20), "…the night and writ…");
        assert_eq!(around("book", 20), "…them into his book");
        assert_eq!(around("writes", 8), "…writes…");
        assert_eq!(around("writes", 5), "…wri…");
        assert_eq!(around("book", 80), text);
        assert_eq!(cut_around("春のコレクションの港", &(9..10), 8), "…ンの港");
    }

    #[test]
    fn rows_of_excerpts_have_their_matches_on_each_terminal() {
        let texts = ["the quay ".repeat(9), format!("{}quay", "harbour ".repeat(9))];
        let rows = texts.map(|text| ["task".to_owned(), text]);
        let (head, matches) = (["KIND", "TEXT"], [4..8, 72..76]);
        let table = Table::new(&head).cuts_around("TEXT", &matches);
        for columns in [20, 40, 80] {
            let text = table.draw(&rows, at(columns));
            let lines: Vec<_> = text.lines().collect();
            assert!(lines[0] == "KIND  TEXT" && lines.len() == 3, "{text}");
            assert!(lines[1..].iter().all(|line| line.contains("quay")), "{columns}: {text}");
            assert!(lines.iter().all(|line| line.width() <= columns), "{columns}: {text}");
        }
        assert!(table.draw(&rows, Look::default()).contains(rows[1][1].as_str()));
    }

    #[test]
    fn a_cell_cannot_break_its_line_or_choose_a_colour() {
        let rows = [row(["a\nb", "c\u{1b}[31m", "d\u{fdd1}"])];
        let text = Table::new(&["A", "B", "C"]).draw(&rows, Look::default());
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains(['\u{1b}', '\u{fdd1}']), "{text:?}");
    }

    #[test]
    fn states_have_colours_only_if_colours_are_on() {
        let rows = [row(["x", "failed", "failed"])];
        let head = ["ID", "STATE", "PROMPT"];
        let coloured = Table::new(&head).draw(&rows, Look { is_coloured: true, ..Look::default() });
        assert_eq!(coloured.matches(&tint("failed", Tint::Bad)).count(), 1, "{coloured:?}");
        assert!(!Table::new(&head).draw(&rows, Look::default()).contains(is_mark));
    }

    proptest! {
        #[test]
        fn a_table_fits_each_terminal(
            cells in prop::collection::vec("[a-z春 ]{0,60}", 4),
            columns in 12_usize..120,
        ) {
            let rows = [[cells[0].clone(), cells[1].clone(), cells[2].clone(), cells[3].clone()]];
            let text = Table::new(&["A", "B", "C", "D"]).leaves_out(&["C"]).draw(&rows, at(columns));
            let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
            prop_assert!(widest <= columns, "{}", text);
        }

        #[test]
        fn a_cut_text_is_never_wider(text in "[a-z春👩🏽\u{200d}🚀e\u{301} ]{0,40}", width in 1_usize..30) {
            prop_assert!(cut(&text, width).width() <= width.max(1));
        }

        #[test]
        fn an_excerpt_has_its_match_and_is_never_wider(
            before in "[a-z春 ]{0,60}",
            word in "[a-z港]{1,6}",
            after in "[a-z春 ]{0,60}",
            width in 14_usize..50,
        ) {
            let start = before.chars().count();
            let cell = cut_around(&format!("{before}{word}{after}"), &(start..start + word.chars().count()), width);
            prop_assert!(cell.width() <= width && cell.contains(&word), "{}", cell);
        }
    }
}
