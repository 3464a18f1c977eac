//! Makes a script for pgbench from the statements of a turn.

use anyhow::{Context as _, ensure};

use super::steps::{STEPS, Step};

/// Fails if the turn has other statements than [`STEPS`], or has them in another order.
pub fn script(captured: Vec<String>) -> anyhow::Result<String> {
    let mut captured = captured.into_iter();
    let mut script = String::new();
    for step in STEPS {
        match step {
            Step::Own(line) => script.push_str(line),
            Step::Of { words, parameters, keep } => {
                let sql =
                    captured.next().with_context(|| format!("no statement with `{words}`"))?;
                ensure!(
                    sql.to_lowercase().contains(words),
                    "not a statement with `{words}`: {sql}"
                );
                script.push_str(&with_parameters(&plain(&sql), parameters)?);
                script.push_str(&keep.map_or(";".to_owned(), |prefix| format!(" \\gset {prefix}")));
            }
        }
        script.push('\n');
    }
    match captured.next() {
        Some(sql) => Err(anyhow::anyhow!("the turn has one statement more: {sql}")),
        None => Ok(script),
    }
}

/// Removes comments, and sqlx's type notes from column names, which pgbench could not store.
fn plain(sql: &str) -> String {
    let lines = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
    let sql = lines.collect::<Vec<_>>().join("\n");
    sql.split('"')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            1 => part.split(['!', '?', ':']).next().unwrap_or(part),
            _ => part,
        })
        .collect()
}

fn with_parameters(sql: &str, parameters: &[&str]) -> anyhow::Result<String> {
    let beyond = format!("${}", parameters.len() + 1);
    ensure!(!sql.contains(&beyond), "nothing stands for {beyond} of {sql}");
    let mut sql = sql.to_owned();
    // From the last one on, so that $1 does not match the beginning of $10.
    for (index, parameter) in parameters.iter().enumerate().rev() {
        let name = format!("${}", index + 1);
        ensure!(sql.contains(&name), "there is no {name} in {sql}");
        sql = sql.replace(&name, parameter);
    }
    ensure!(!sql.contains('$'), "nothing stands for a parameter of {sql}");
    Ok(sql)
}
