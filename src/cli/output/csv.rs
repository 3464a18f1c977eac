//! Data as CSV: one line per item below the names of the columns.
//!
//! Fields of fields are columns of their own, such as `campaign.name`. A list in a cell is JSON.

use std::borrow::Cow;

use super::tree::Tree;
use crate::domain::csv::{self, escape_formula};

/// A line of cells with the names of their columns.
type Row = Vec<(String, String)>;

/// Returns the names of the columns and one line per item.
pub(super) fn format_csv(items: Vec<Tree>) -> String {
    let rows: Vec<Row> = items.into_iter().map(row).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    // A field that is null in some rows and has fields in others.
    let is_needless = |column: &str| {
        let is_parent = columns
            .iter()
            .any(|other| other.strip_prefix(column).is_some_and(|rest| rest.starts_with('.')));
        is_parent && rows.iter().flatten().all(|(name, value)| name != column || value.is_empty())
    };
    let columns: Vec<&str> =
        columns.iter().copied().filter(|column| !is_needless(column)).collect();
    if columns.is_empty() {
        return String::new();
    }
    let mut text = line(columns.iter().copied().map(escape_formula));
    for row in &rows {
        let cell = |name: &&str| row.iter().find(|(other, _)| other == name);
        text.push_str(&line(
            columns
                .iter()
                .map(|name| Cow::Borrowed(cell(name).map_or("", |(_, value)| value.as_str()))),
        ));
    }
    text
}

/// Returns the names of the columns and the line of one of several items, which are not known together.
///
/// Each field is one column. Inner fields, which differ between events, are JSON.
pub(super) fn format_csv_item(item: Tree) -> (String, String) {
    let Tree::Fields(fields) = item else {
        return ("value\n".to_owned(), line(std::iter::once(Cow::Owned(cell(item)))));
    };
    let (names, values): (Vec<String>, Vec<Tree>) = fields.into_iter().unzip();
    let values: Vec<String> = values.into_iter().map(cell).collect();
    (line(names.iter().map(|name| escape_formula(name))), line(values.into_iter().map(Cow::Owned)))
}

fn row(tree: Tree) -> Row {
    let mut row = Row::new();
    flatten(String::new(), tree, &mut row);
    row
}

fn flatten(name: String, tree: Tree, row: &mut Row) {
    match tree {
        Tree::Fields(fields) if !fields.is_empty() => {
            for (field, value) in fields {
                let name = if name.is_empty() { field } else { format!("{name}.{field}") };
                flatten(name, value, row);
            }
        }
        other => row.push((if name.is_empty() { "value".to_owned() } else { name }, cell(other))),
    }
}

fn cell(tree: Tree) -> String {
    match tree {
        Tree::Null => String::new(),
        Tree::Text(text) => escape_formula(&text).into_owned(),
        other => other.to_json(),
    }
}

fn line<'a>(cells: impl Iterator<Item = Cow<'a, str>>) -> String {
    csv::line(cells) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(json: &str) -> String {
        format_csv(serde_json::from_str::<Tree>(json).unwrap().into_page().items)
    }

    #[test]
    fn items_are_lines_and_inner_fields_are_columns() {
        assert_eq!(
            csv(
                r#"[{"id":1,"by":{"name":"a, \"b\""},"tags":["x","y"]},{"id":2,"by":null,"more":"z"}]"#
            ),
            "id,by.name,tags,more\n1,\"a, \"\"b\"\"\",\"[\"\"x\"\",\"\"y\"\"]\",\n2,,,z\n"
        );
        assert_eq!(csv(r#"{"items":[{"id":1}],"next":null}"#), "id\n1\n");
        assert_eq!(csv(r#"{"removed":"x"}"#), "removed\nx\n");
        assert_eq!(csv("[]"), "");
    }

    #[test]
    fn texts_and_names_of_fields_are_never_formulas() {
        assert_eq!(
            csv(r#"[{"=id":-1,"prompt":"=1+2","tags":["-x"]}]"#),
            "'=id,prompt,tags\n-1,'=1+2,\"[\"\"-x\"\"]\"\n"
        );
        let item = format_csv_item(serde_json::from_str(r#"{"@a":"+1","b":-1.5}"#).unwrap());
        assert_eq!(item, ("'@a,b\n".to_owned(), "'+1,-1.5\n".to_owned()));
    }

    #[test]
    fn items_that_come_one_by_one_have_the_same_columns() {
        let item = |json: &str| format_csv_item(serde_json::from_str(json).unwrap());
        let queued = item(r#"{"id":1,"kind":"task.queued","data":{}}"#);
        let done = item(r#"{"id":2,"kind":"turn.done","data":{"turn":1,"error":null}}"#);
        assert_eq!(queued, ("id,kind,data\n".to_owned(), "1,task.queued,{}\n".to_owned()));
        assert_eq!(done.0, queued.0);
        assert_eq!(done.1, "2,turn.done,\"{\"\"turn\"\":1,\"\"error\"\":null}\"\n");
        assert_eq!(item(r#"{"id":3,"kind":null,"data":null}"#), (queued.0, "3,,\n".to_owned()));
        assert_eq!(item("7"), ("value\n".to_owned(), "7\n".to_owned()));
    }
}
