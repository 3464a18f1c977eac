//! Where the layers come from: TOML texts, variables, and files that hold one value.

use std::{collections::BTreeMap, io, path::Path};

use config::{FileFormat, Map, Source as _, Value, ValueKind};

use super::{Environment, Origin, Problem, Problems};

const PREFIX: &str = "DALSEGNO_";
/// The variable that selects the file layer; not a key of the configuration itself.
pub const FILE_VARIABLE: &str = "DALSEGNO_CONFIG";
/// Stands for a key in problems of a file.
const WHOLE_FILE: &str = "(the whole file)";
/// libpq's variables that name a server. The others (PGUSER, PGPASSWORD ...) only complete them.
const PG_SERVER_VARIABLES: [&str; 3] = ["PGHOST", "PGHOSTADDR", "PGDATABASE"];

pub(super) fn parse_defaults(text: &str, problems: &mut Problems) -> Map<String, Value> {
    let parsed = config::File::from_str(text, FileFormat::Toml).collect();
    parsed.unwrap_or_else(|error| unreadable("config/default.toml", &error.to_string(), problems))
}

pub(super) fn parse_file(path: &Path, problems: &mut Problems) -> Map<String, Value> {
    let shown = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            problems.push(missing_file(shown));
            return Map::new();
        }
        Err(error) => return unreadable(&shown, &error.to_string(), problems),
    };
    let parsed = config::File::from_str(&text, FileFormat::Toml).collect();
    parsed
        .unwrap_or_else(|error| unreadable(&shown, &without_excerpt(&error.to_string()), problems))
}

/// Keeps the position and the reason of a syntax error, without the line of the file: it may hold a password.
fn without_excerpt(error: &str) -> String {
    let lines: Vec<&str> = error.lines().collect();
    let excerpt_end = lines.iter().rposition(|line| line.trim_start().starts_with('|'));
    let reason = excerpt_end.map_or(&[][..], |end| &lines[end + 1..]);
    lines.iter().take(1).chain(reason).copied().collect::<Vec<_>>().join(": ")
}

fn missing_file(path: String) -> Problem {
    let fix = format!(
        "a file at this path, for example with `dalsegno config template > {path}`, or the path of another one in --config or {FILE_VARIABLE}"
    );
    let message = format!("the file does not exist: {path}");
    Problem { key: WHOLE_FILE.to_owned(), origin: path, message, fix }
}

fn unreadable(path: &str, error: &str, problems: &mut Problems) -> Map<String, Value> {
    problems.push(Problem {
        key: WHOLE_FILE.to_owned(),
        origin: path.to_owned(),
        message: format!("cannot be read: {}", error.trim_end()),
        fix: "a readable TOML file; `dalsegno config template` prints one to start with".to_owned(),
    });
    Map::new()
}

pub(super) fn read_content(
    key: &str,
    value: &Value,
    named_by: &Origin,
) -> Result<(Value, Origin), Problem> {
    let path = value.to_string();
    let origin = Origin::Content { path: path.clone(), named_by: Box::new(named_by.clone()) };
    match std::fs::read_to_string(&path) {
        Ok(content) => {
            let line = content.strip_suffix('\n').unwrap_or(&content);
            Ok((string(line.strip_suffix('\r').unwrap_or(line)), origin))
        }
        Err(error) => Err(Problem {
            key: key.to_owned(),
            origin: named_by.to_string(),
            message: format!("names {path}, which cannot be read: {error}"),
            fix: "the path of a readable file that holds the value".to_owned(),
        }),
    }
}

/// Uses `DATABASE_URL`, else a libpq variable that names a server; sqlx completes the rest from libpq's variables itself.
pub(super) fn database_variables(environment: &Environment) -> Vec<(String, Value, Origin)> {
    let url = environment.get("DATABASE_URL").map(|url| ("DATABASE_URL", url.to_owned()));
    let server = PG_SERVER_VARIABLES.into_iter().find(|name| environment.get(name).is_some());
    let found = url.or_else(|| server.map(|name| (name, "postgres:".to_owned())));
    let entry = found.map(|(name, url)| {
        ("database.url".to_owned(), string(&url), Origin::Variable(name.to_owned()))
    });
    entry.into_iter().collect()
}

/// Reports variables of ours that are not valid Unicode, because they must not count as unset.
pub(super) fn unreadable_variables(environment: &Environment) -> impl Iterator<Item = Problem> {
    let is_read = |name: &String| {
        name.starts_with(PREFIX)
            || name == "DATABASE_URL"
            || PG_SERVER_VARIABLES.contains(&name.as_str())
    };
    environment.not_unicode().filter(is_read).map(|name| Problem {
        key: name.clone(),
        origin: Origin::Variable(name).to_string(),
        message: "is not valid UTF-8".to_owned(),
        fix: "the value in UTF-8, or unset the variable".to_owned(),
    })
}

/// Reads our variables. Only a name with a double underscore is a key: Kubernetes sets DALSEGNO_PORT and similar for a
/// service named dalsegno. An empty variable counts as unset.
pub(super) fn own_variables(
    environment: &Environment,
    known: &BTreeMap<String, Value>,
    problems: &mut Problems,
) -> Vec<(String, Value, Origin)> {
    let mut found = Vec::new();
    let named = environment.unicode().filter(|(name, _)| *name != FILE_VARIABLE);
    for (name, value) in named.filter(|(_, value)| !value.is_empty()) {
        let Some(key) = name.strip_prefix(PREFIX).map(str::to_ascii_lowercase) else {
            continue;
        };
        let origin = Origin::Variable(name.to_owned());
        if key.contains("__") {
            found.push((key.replace("__", "."), string(value), origin));
            continue;
        }
        let stem = key.strip_suffix("_file").unwrap_or(&key);
        if let Some(meant) = known.keys().find(|known| known.replace('.', "_") == stem) {
            let variable = format!("{PREFIX}{}", meant.replace('.', "__").to_ascii_uppercase());
            problems.push(Problem {
                key: meant.clone(),
                origin: origin.to_string(),
                message: "has another variable name: two underscores separate section and key"
                    .to_owned(),
                fix: variable + if stem == key { "" } else { "_FILE" },
            });
        }
    }
    found
}

pub(super) fn string(value: &str) -> Value {
    Value::new(None, ValueKind::String(value.to_owned()))
}

pub(super) fn flatten(tables: Map<String, Value>) -> BTreeMap<String, Value> {
    let mut leaves = BTreeMap::new();
    for (key, value) in tables {
        match value.kind {
            // An empty table is kept, so that it is reported if it is not a section.
            ValueKind::Table(table) if !table.is_empty() => {
                let inner = flatten(table).into_iter();
                leaves.extend(inner.map(|(rest, leaf)| (format!("{key}.{rest}"), leaf)));
            }
            _ => _ = leaves.insert(key, value),
        }
    }
    leaves
}
