//! The reference of campaign files.

use super::cells::{cell, code};
use crate::domain::campaign_files::{LEFT_OUT, tables};

const HEAD: &str = "\
# Campaign files

`dalsegno campaign export` writes one JSON object per line ([campaign-file.schema.json](campaign-file.schema.json)):

| line | content |
|---|---|
| first | header: format and its version, schema, campaign, installation, time, and the columns of each table |
| between | a row: the name of its table, and its columns as Postgres writes them as JSON. Binary data is `\\x` and hexadecimal digits |
| last | trailer: the number of rows of each table, and the SHA-256 of all bytes before this line |

[Move a campaign](../how-to/move-a-campaign.md) says how to use them.

## Tables in the file

In this order. Columns in the second column belong to an installation: they are left out, or an import gives them other values, such as new numbers.
`task_links` has the references between tasks, which an import adds when all tasks are there.

| table | columns with other values after an import |
|---|---|
";

const OTHERS: &str = "
## Tables that are not in the file

| table | reason |
|---|---|
";

pub(super) fn markdown() -> String {
    let in_file = tables().into_iter().map(|table| {
        let mut columns = table.changed_columns();
        columns.sort_unstable();
        columns.dedup();
        let columns: Vec<String> = columns.into_iter().map(code).collect();
        format!("| {} | {} |\n", code(table.name), columns.join(", "))
    });
    let left_out =
        LEFT_OUT.iter().map(|(name, why)| format!("| {} | {} |\n", code(name), cell(why)));
    format!("{HEAD}{}{OTHERS}{}", in_file.collect::<String>(), left_out.collect::<String>())
}
