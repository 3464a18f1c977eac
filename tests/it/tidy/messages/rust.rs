//! The texts of Rust files, sorted by the macro, attribute or call that they stand in.

use super::{Section, Text};
use crate::tidy::{
    source::{Token, tokens_of_program},
    sources,
};

/// Files whose texts are data: word lists, the answers and the play of the simulation, and the generated documents of
/// `docs/reference`, which are reviewed there.
const DATA: &[&str] = &[
    "crates/context/src/compaction/pins/",
    "crates/context/src/compaction/requirements/",
    "crates/private-postgres/src/settings.rs",
    "src/cli/demo/script.rs",
    "src/cli/reference/",
    "src/domain/agents/formats.rs",
    "src/domain/agents/limits.rs",
    "src/domain/feed/catalogue/",
    "src/domain/flows/format.rs",
    "src/domain/mentions/limits.rs",
    "src/domain/webhooks/messages.rs",
    "src/providers/sim/answer.rs",
    "src/providers/sim/facts.rs",
    "src/providers/sim/summary.rs",
    "src/tools/limits.rs",
];

/// Calls whose texts are no messages: SQL, tests of foreign texts, faults of the program.
const OTHER_CALLS: &[&str] = &[
    "assert!",
    "contains",
    "ends_with",
    "execute",
    "expect",
    "fixed",
    "find_id!",
    "panic!",
    "raw_sql",
    "select_live!",
    "select_tasks!",
    "sessions!",
    "setting",
    "Sentence",
    "starts_with",
    "unreachable!",
];

const LOG_LEVELS: [&str; 5] = ["error!", "warn!", "info!", "debug!", "trace!"];

/// An open bracket.
struct Open {
    /// The word before it, with the sign of a macro: `info!`. `#` for an attribute.
    name: String,
    at: usize,
}

pub fn texts() -> Vec<Text> {
    let mut texts = Vec::new();
    for (path, source) in sources("rs") {
        let place = path.display().to_string();
        if !DATA.iter().any(|data| place.starts_with(data)) {
            texts.extend(texts_of(&place, &source).into_iter().map(|(section, text)| Text {
                section,
                place: place.clone(),
                text,
            }));
        }
    }
    texts
}

fn texts_of(path: &str, source: &str) -> Vec<(Section, String)> {
    let tokens = tokens_of_program(source);
    let mut open: Vec<Open> = Vec::new();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(' | '[' | '{') => {
                open.push(Open { name: name_before(&tokens[..at]), at });
            }
            Token::Sign(')' | ']' | '}') => _ = open.pop(),
            Token::Text(text) => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let Some(section) = section(path, &open, &text) else { continue };
                if section != Section::Logs {
                    found.push((section, text));
                } else if let Some(open) = open.last()
                    && tokens[at - 1] != Token::Sign('=')
                {
                    found.push((section, log_line(&open.name, &text, &tokens[open.at + 1..at])));
                }
            }
            _ => {}
        }
    }
    found
}

fn name_before(tokens: &[Token]) -> String {
    match tokens {
        [.., Token::Word(name), Token::Sign('!')] => format!("{name}!"),
        [.., Token::Sign('#')] | [.., Token::Sign('#'), Token::Sign('!')] => "#".to_owned(),
        [.., Token::Word(name)] => name.clone(),
        _ => String::new(),
    }
}

fn section(path: &str, open: &[Open], text: &str) -> Option<Section> {
    let name = open.last().map_or("", |it| it.name.as_str());
    if open.iter().any(|it| it.name == "#") {
        // `{source}` alone is the text of another error.
        let is_text = has_words(text, 1);
        return (name == "error" && is_text).then_some(Section::Errors);
    }
    if LOG_LEVELS.contains(&name) {
        return Some(Section::Logs);
    }
    if ["to", "of", "Failed"].contains(&name) && text.contains(' ') {
        return Some(Section::Actions);
    }
    let is_code = OTHER_CALLS.contains(&name) || name.starts_with("query") || is_sql(text);
    if is_code || !text.contains(' ') || !has_words(text, 3) {
        return None;
    }
    let is_in = |folders: &[&str]| folders.iter().any(|folder| path.contains(folder));
    Some(if name.starts_with("describe_") || is_in(&["/metrics.rs", "/telemetry.rs"]) {
        Section::Metrics
    } else if is_in(&["/explanations/", "/explain/"]) {
        Section::Explanations
    } else if is_in(&["src/doctor/"]) {
        Section::Checks
    } else if is_in(&["crates/context/", "src/tools/", "/notices.rs", "/rounds/limits.rs"]) {
        Section::Models
    } else {
        Section::Other
    })
}

/// Returns true if a text has `n` words of its own, besides its placeholders.
fn has_words(text: &str, n: usize) -> bool {
    let outside = text.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
    let words = outside.flat_map(|part| part.split(|c: char| !c.is_alphabetic()));
    words.filter(|word| word.len() > 1).count() >= n
}

fn is_sql(text: &str) -> bool {
    const BEGINS: &[&str] = &[
        "begin; set",
        "dalsegno.",
        "delete from ",
        "insert into ",
        "select ",
        "set deadlock_timeout",
        "set local ",
        "set lock_timeout",
        "set plan_cache_mode",
        "set statement_timeout",
        "update dalsegno.",
    ];
    let text = text.to_lowercase();
    BEGINS.iter().any(|it| text.starts_with(it)) || text.contains(" from dalsegno.")
}

/// Formats a log line: `warn: waiting for the database (error, server)`.
fn log_line(level: &str, text: &str, before: &[Token]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut name = String::new();
    let (mut depth, mut has_value) = (0, false);
    for token in before {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            _ if depth > 0 => {}
            Token::Sign(',') => {
                names.extend(Some(std::mem::take(&mut name)).filter(|name| !name.is_empty()));
                has_value = false;
            }
            // `parent: &span` is not a field.
            Token::Sign(':') => {
                name.clear();
                has_value = true;
            }
            Token::Sign('=') => has_value = true,
            Token::Word(word) if !has_value => name.push_str(word),
            Token::Sign('.') if !has_value => name.push('.'),
            _ => {}
        }
    }
    let level = level.trim_end_matches('!');
    match names.is_empty() {
        true => format!("{level}: {text}"),
        false => format!("{level}: {text} ({})", names.join(", ")),
    }
}

#[test]
fn texts_are_sorted_by_what_they_stand_in() {
    let source = r#"
        #[error("cannot read {path}: \
                 it is empty")]
        #[arg(value_name = "a name that clap shows")]
        fn f() {
            tracing::warn!(job.id = run.id(), %error, "the job was lost");
            pool.fetch("select 1 from dalsegno.jobs as j").map_err(Failed::to("list jobs"));
            bail!("there is nothing to do: {}", "two words");
        }
        #[cfg(test)]
        mod tests { const TEXT: &str = "a text of a unit test"; }
    "#;
    let found = texts_of("src/x.rs", source);
    let found: Vec<_> = found.iter().map(|(section, text)| (*section, text.as_str())).collect();
    assert_eq!(
        found,
        [
            (Section::Errors, "cannot read {path}: it is empty"),
            (Section::Logs, "warn: the job was lost (job.id, error)"),
            (Section::Actions, "list jobs"),
            (Section::Other, "there is nothing to do: {}"),
        ]
    );
}
