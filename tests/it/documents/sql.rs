//! The reference of SQL, from the comments of a migrated database.

use std::collections::BTreeSet;

use sqlx::{PgPool, Row as _};

use super::{documents, read, root};
use crate::app::{TestDatabase, execute};

/// The committed file.
const COMMITTED: &str = "docs/reference/sql.md";

/// A section of the document, with the functions and the relations that others may use.
struct Section {
    title: &'static str,
    about: &'static str,
    functions: &'static [&'static str],
    /// Views and tables. Of a table only the listed columns are stable; of a view all are.
    relations: &'static [(&'static str, &'static [&'static str])],
}

/// The public part of the schema. All else may change with any version.
const PUBLIC: &[Section] = &[
    Section {
        title: "Tasks",
        about: "[Enqueue from your own system](../how-to/enqueue.md#sql) has examples. A trigger is not needed to learn of the end: read `ended_at`, or use a [webhook](../how-to/enqueue.md#webhooks).",
        functions: &["add_task", "digest_of_task"],
        relations: &[
            ("tasks", &["id", "state", "result", "error", "result_json", "created_at", "ended_at"]),
            ("task_labels", &["task_id", "tags", "metadata"]),
        ],
    },
    Section {
        title: "Agents and sessions",
        about: "`dalsegno agent status` and `dalsegno session show` print the same. [Control agents](../how-to/control-agents.md#history-in-rows) says how the history is derived.",
        functions: &["agent_statuses", "running_tool"],
        relations: &[("agent_states", &[]), ("session_states", &[]), ("session_histories", &[])],
    },
    Section {
        title: "Flows",
        about: "`dalsegno flow show` prints the same.",
        functions: &[],
        relations: &[("flow_states", &[]), ("flow_steps", &[])],
    },
    Section {
        title: "Erasures",
        about: "[Erase a campaign](../how-to/erase-a-campaign.md#the-receipt) says how to verify a receipt.",
        functions: &["contents_of_campaign", "left_of_campaign"],
        relations: &[],
    },
    Section {
        title: "Queue",
        about: "Jobs, lanes and pauses, as `dalsegno job`, `dalsegno lane` and `dalsegno queue` show and change them. Prefer the commands: they write the audit log. [States of a job](queue-states.md) has all transitions.",
        functions: &[
            "cancel",
            "retry",
            "pause",
            "resume",
            "hold_job",
            "release_job",
            "hold_lane",
            "release_lane",
            "set_lane_policy",
        ],
        relations: &[("queue_load", &[])],
    },
];

const HEAD: &str = "\
# SQL

The functions, views and columns of the schema `dalsegno` that other systems and operators may use. They stay as they are: a change is a line in the
changelog. All else in the schema may change with any version. `\\df+ dalsegno.NAME` and `\\d+ dalsegno.NAME` in psql print the same comments.

- Write arguments by name (`idempotency_key => 'order-17'`): newer versions may add some with a default.
- A call belongs to the caller's transaction. What it adds or changes exists exactly if the transaction commits.
- PgBouncer in transaction mode is fine: no function keeps a state in the session.

## Rights

| use | rights that the role needs |
|---|---|
| a view | `usage` on the schema, `select` on the view |
| a function | `usage` on the schema, and the rights on the tables that the function reads or writes: it runs with the rights of its caller. The role of the service has them |
| a function, by a role without these rights | `execute` on a `security definer` function that calls it ([example](../how-to/enqueue.md#sql)) |
| columns of a table | `usage` on the schema, `select` on the columns |

## Errors

An error has an SQLSTATE, a message and mostly a hint. It aborts the transaction, like any error of Postgres; a savepoint before the call keeps the rest.

| SQLSTATE | meaning |
|---|---|
| `DS400` | an argument is wrong: the hint says how to correct it |
| `DS404` | a campaign, task or job that the arguments name does not exist |
| `DS405` | the rows are append-only, or belong to an erasure, which alone may change them |
| `DS409` | the request conflicts with the current state: the message names it |
| `DS413` | a text or payload is too long |

## Settings

`set`, `alter role` or `alter database` change a setting of the session, role or database.

| setting | default | meaning |
|---|---|---|
| `dalsegno.max_prompt_bytes` | 262144 | longest prompt that `add_task` accepts, in bytes |
| `dalsegno.max_attachments` | 20 | attachments of a task that `add_task` accepts |
| `dalsegno.max_attachment_bytes` | 10000000 | bytes of one of them |
| `dalsegno.max_attachments_bytes` | 25000000 | bytes of all attachments of a task |
| `dalsegno.max_payload_bytes` | 1048576 | longest payload of a job, in bytes |
";

async fn document(pool: &PgPool) -> String {
    let mut text = HEAD.to_owned();
    for section in PUBLIC {
        text += &format!("\n## {}\n\n{}\n", section.title, section.about);
        for name in section.functions {
            text += &functions(pool, name).await;
        }
        for (name, columns) in section.relations {
            text += &relation(pool, name, columns).await;
        }
    }
    text
}

/// Writes all functions of a name, the one with the fewest arguments first.
async fn functions(pool: &PgPool, name: &str) -> String {
    let sql = "select pg_get_function_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result, p.prosecdef as is_definer,
                      coalesce(obj_description(p.oid, 'pg_proc'), '') as comment
                 from pg_proc as p where p.pronamespace = 'dalsegno'::regnamespace and p.proname = $1 order by p.pronargs";
    let rows = sqlx::query(sql).bind(name).fetch_all(pool).await.unwrap();
    assert!(!rows.is_empty(), "there is no function dalsegno.{name}");
    let mut text = String::new();
    for (n, row) in rows.iter().enumerate() {
        let [arguments, result, comment]: [String; 3] =
            ["arguments", "result", "comment"].map(|column| row.get(column));
        let heading = if n == 0 { format!("\n### {name}\n") } else { String::new() };
        let arguments = plain(&arguments).replace(", ", ",\n  ");
        // The row of output arguments.
        let result =
            if result == "record" { String::new() } else { format!(" returns {}", plain(&result)) };
        text += &format!(
            "{heading}\n```sql\ndalsegno.{name}(\n  {arguments}){result}\n```\n{}",
            commented(&comment)
        );
        if row.get("is_definer") {
            text += "\nIt runs with the rights of its owner: `execute` is enough.\n";
        }
    }
    text
}

/// Removes the casts of defaults, and writes types as they are usually written.
fn plain(signature: &str) -> String {
    let parts = signature.split(", ").map(|part| match part.split_once("::") {
        Some((default, _)) => default.replace(" DEFAULT ", " default "),
        None => part.replace("OUT ", "out ").replace(" DEFAULT ", " default "),
    });
    parts.collect::<Vec<_>>().join(", ").replace("timestamp with time zone", "timestamptz")
}

/// Writes a comment: lines with a name, two blanks and a text are rows of a table, others are paragraphs.
fn commented(comment: &str) -> String {
    let mut text = String::new();
    for block in comment.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut rows: Vec<(String, String)> = Vec::new();
        for line in block.lines() {
            match line.split_once("  ") {
                Some(("", more)) => rows.last_mut().unwrap().1 += &format!(" {}", more.trim()),
                Some((name, about)) if !name.is_empty() => {
                    rows.push((name.to_owned(), about.trim().to_owned()))
                }
                _ => {}
            }
        }
        text.push('\n');
        if rows.is_empty() {
            text += &format!("{}\n", escaped(&block.replace('\n', " ")));
            continue;
        }
        text += "| name | meaning |\n|---|---|\n";
        for (name, about) in rows {
            text += &format!("| `{}` | {} |\n", name.replace(", ", "`, `"), escaped(&about));
        }
    }
    text
}

fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let escape = |(n, part): (usize, &str)| match n % 2 {
        0 => part.replace('<', "\\<").replace('|', "\\|"),
        _ => part.to_owned(),
    };
    parts.map(escape).collect::<Vec<_>>().join("`")
}

async fn relation(pool: &PgPool, name: &str, listed: &[&str]) -> String {
    let sql = "select a.attname::text as name, format_type(a.atttypid, a.atttypmod) as type, coalesce(col_description(a.attrelid, a.attnum), '') as comment,
                      coalesce(obj_description(a.attrelid, 'pg_class'), '') as about
                 from pg_attribute as a
                where a.attrelid = ('dalsegno.' || $1)::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum";
    let rows = sqlx::query(sql).bind(name).fetch_all(pool).await.unwrap();
    let about: String = rows[0].get("about");
    let kind = if listed.is_empty() { "View" } else { "Table" };
    let mut text =
        format!("\n### {kind} {name}\n\n{about}\n\n| column | type | meaning |\n|---|---|---|\n");
    let mut missing: BTreeSet<&str> = listed.iter().copied().collect();
    for row in &rows {
        let [column, of_type, comment]: [String; 3] =
            ["name", "type", "comment"].map(|column| row.get(column));
        if listed.is_empty() || missing.remove(column.as_str()) {
            assert!(!comment.is_empty(), "dalsegno.{name}.{column} has no comment");
            text += &format!(
                "| `{column}` | {} | {} |\n",
                of_type.replace("timestamp with time zone", "timestamptz"),
                escaped(&comment)
            );
        }
    }
    assert!(missing.is_empty(), "dalsegno.{name} has no columns {missing:?}");
    text
}

#[tokio::test]
async fn the_committed_reference_of_sql_is_that_of_the_schema() {
    let database = TestDatabase::migrated().await;
    let document = document(&database.pool().await).await;
    let committed = std::fs::read_to_string(root().join(COMMITTED)).unwrap_or_default();
    if document == committed {
        return;
    }
    let written = concat!(env!("CARGO_TARGET_TMPDIR"), "/sql.md");
    std::fs::write(written, &document).unwrap();
    panic!("{COMMITTED} differs from the schema. Read the change, then: cp {written} {COMMITTED}");
}

/// Names in how-to guides and tutorials, of which readers make their own programs.
#[tokio::test]
async fn functions_and_views_that_guides_name_are_public() {
    let database = TestDatabase::migrated().await;
    let sql = "select proname::text from pg_proc where pronamespace = 'dalsegno'::regnamespace
               union select relname::text from pg_class where relnamespace = 'dalsegno'::regnamespace and relkind = 'v'";
    let known: Vec<String> =
        sqlx::query_scalar(sql).fetch_all(&database.pool().await).await.unwrap();
    let public: BTreeSet<&str> = PUBLIC
        .iter()
        .flat_map(|section| {
            section.functions.iter().copied().chain(section.relations.iter().map(|(name, _)| *name))
        })
        .collect();
    let mut n_named = 0;
    for (path, text) in documents() {
        let path = path.strip_prefix(root()).unwrap().display().to_string();
        if !path.starts_with("docs/how-to/")
            && !path.starts_with("docs/tutorials/")
            && path != "README.md"
        {
            continue;
        }
        for rest in text.split("dalsegno.").skip(1) {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if known.contains(&name) {
                n_named += 1;
                assert!(
                    public.contains(name.as_str()),
                    "{path} names dalsegno.{name}, which {COMMITTED} lacks"
                );
            }
        }
    }
    assert!(n_named > 8, "{n_named} names were found: the test searches for the wrong text");
}

#[test]
fn the_reference_of_sql_lists_every_sqlstate() {
    for entry in std::fs::read_dir(root().join("migrations")).unwrap() {
        let text = read(&entry.unwrap().path());
        for rest in text.split("errcode = '").skip(1) {
            let code = rest.split('\'').next().unwrap();
            // Of a check inside of the queue, which no caller gets.
            let is_listed = HEAD.contains(&format!("| `{code}` |")) || code == "DS101";
            assert!(is_listed, "{code} is not in {COMMITTED}");
        }
    }
}

/// As the table of rights promises.
#[tokio::test]
async fn select_on_a_view_is_enough_to_read_it() {
    let database = TestDatabase::migrated().await;
    let role = format!("reader_{}", uuid::Uuid::new_v4().simple());
    execute(&database.options, &format!("create role {role}")).await;
    execute(&database.options, &format!("grant usage on schema dalsegno to {role}")).await;
    let views = PUBLIC
        .iter()
        .flat_map(|section| section.relations)
        .filter(|(_, columns)| columns.is_empty());
    let mut n_views = 0;
    for (view, _) in views {
        n_views += 1;
        let read = format!("set role {role}; select * from dalsegno.{view} limit 1");
        let pool = database.pool().await;
        let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(read.clone())).execute(&pool).await;
        assert!(refused.is_err(), "{view} can be read by anyone");
        pool.close().await;
        execute(&database.options, &format!("grant select on dalsegno.{view} to {role}")).await;
        execute(&database.options, &read).await;
    }
    assert!(n_views > 4);
    let call = format!(
        "set role {role}; select * from dalsegno.add_task(gen_random_uuid(), 'writer', 'Write.')"
    );
    let refused =
        sqlx::raw_sql(sqlx::AssertSqlSafe(call)).execute(&database.pool().await).await.unwrap_err();
    assert!(refused.to_string().contains("permission denied"), "{refused}");
    execute(&database.options, &format!("drop owned by {role}; drop role {role}")).await;
}
