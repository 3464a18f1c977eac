//! Data as CSV: one line per item below the names of the columns.
//!
//! Fields of fields are columns of their own, such as `campaign.name`. A list in a cell is JSON.

use super::tree::Tree;

/// A line of cells with the names of their columns.
type Row = Vec<(String, String)>;

/// Returns the names of the columns and one line per item.
pub(super) fn format_csv(tree: Tree) -> String {
    let rows: Vec<Row> = tree.into_items().into_iter().map(row).collect();
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
    let mut text = line(columns.iter().copied());
    for row in &rows {
        let cell = |name: &&str| row.iter().find(|(other, _)| other == name);
        text.push_str(&line(
            columns.iter().map(|name| cell(name).map_or("", |(_, value)| value.as_str())),
        ));
    }
    text
}

fn row(tree: Tree) -> Row {
    let mut row = Row::new();
    flatten(String::new(), tree, &mut row);
    row
}

fn flatten(name: String, tree: Tree, row: &mut Row) {
    let value = match tree {
        Tree::Fields(fields) if !fields.is_empty() => {
            for (field, value) in fields {
                let name = if name.is_empty() { field } else { format!("{name}.{field}") };
                flatten(name, value, row);
            }
            return;
        }
        Tree::Null => String::new(),
        Tree::Text(text) => text,
        other => other.to_json(),
    };
    row.push((if name.is_empty() { "value".to_owned() } else { name }, value));
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    format!("{}\n", cells.map(quoted).collect::<Vec<_>>().join(","))
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) || cell.trim() != cell {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(json: &str) -> String {
        format_csv(serde_json::from_str(json).unwrap())
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
}
