//! The reference of settings, from the documented defaults.

use super::cells::{cell, code};
use crate::config::TEMPLATE;

const HEAD: &str = "\
# Settings

`config/default.toml` has every setting with its default and is compiled into the binary; `dalsegno config template` prints it. Layers override it
in this order:

1. a file of the same form: `--config FILE`, or `DALSEGNO_CONFIG=FILE`, or `dalsegno.toml` in the working directory;
2. the environment: `DALSEGNO_<SECTION>__<KEY>`, for example `DALSEGNO_HTTP__LISTEN=127.0.0.1:8080`; an empty variable counts as unset.
   `DATABASE_URL`, or libpq's `PGHOST`, `PGHOSTADDR` or `PGDATABASE`, name the database, and `PGPORT`, `PGUSER`, `PGPASSWORD` complete them;
3. flags: `--set section.key=value`.

Any key may be given as `<key>_file`: the value is then the content of that file, without the last line break. `dalsegno config check` lists all
problems at once; `dalsegno config print` shows the origin of each value.
";

/// Settings that one comment describes.
#[derive(Debug, Default, PartialEq)]
struct Group {
    text: String,
    keys: Vec<Setting>,
}

#[derive(Debug, PartialEq)]
struct Setting {
    key: String,
    default: String,
}

/// Writes the reference.
pub(super) fn markdown() -> String {
    let mut text = HEAD.to_owned();
    for (name, intro, groups) in sections(TEMPLATE) {
        text += &format!("\n## `[{name}]`\n\n");
        if !intro.is_empty() {
            text += &format!("{}\n\n", cell(&intro));
        }
        text += "| setting | default | meaning |\n|---|---|---|\n";
        for group in groups {
            let column = |value: fn(&Setting) -> &str| {
                let cells = group.keys.iter().map(|it| code(value(it)));
                cells.collect::<Vec<_>>().join("<br>")
            };
            let (keys, defaults) = (column(|it| &it.key), column(|it| &it.default));
            text += &format!("| {keys} | {defaults} | {} |\n", cell(&group.text));
        }
    }
    text
}

/// Returns the default of a setting such as `http.max_body_bytes`, as the template writes it.
pub(super) fn default_of(key: &str) -> String {
    let (section, key) = key.split_once('.').unwrap_or_default();
    let groups = sections(TEMPLATE).into_iter().filter(|(name, ..)| name == section);
    let settings = groups.flat_map(|(_, _, groups)| groups).flat_map(|group| group.keys);
    settings.filter(|setting| setting.key == key).map(|setting| setting.default).collect()
}

/// Reads the sections: name, comment above it, and groups of settings.
fn sections(template: &str) -> Vec<(String, String, Vec<Group>)> {
    let mut sections: Vec<(String, String, Vec<Group>)> = Vec::new();
    let mut comment = String::new();
    for line in template.lines() {
        if let Some(text) = line.strip_prefix('#') {
            comment.push_str(text);
        } else if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            // The comment at the head of the file is followed by an empty line.
            sections.push((name.to_owned(), std::mem::take(&mut comment), Vec::new()));
        } else if let Some((key, default)) = line.split_once(" = ") {
            let Some((_, _, groups)) = sections.last_mut() else { continue };
            if !comment.is_empty() {
                groups.push(Group { text: std::mem::take(&mut comment), keys: Vec::new() });
            }
            if groups.is_empty() {
                groups.push(Group::default());
            }
            if let Some(group) = groups.last_mut() {
                group.keys.push(Setting { key: key.to_owned(), default: default.to_owned() });
            }
        } else if sections.is_empty() {
            comment.clear();
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config,
        settings::{Environment, Flags},
    };

    #[test]
    fn every_setting_is_in_the_reference_with_a_comment() {
        let read = sections(TEMPLATE);
        let mut documented: Vec<String> = Vec::new();
        for (section, intro, groups) in &read {
            for group in groups {
                let is_described = !group.text.is_empty() || !intro.is_empty();
                assert!(is_described, "[{section}] {:?} has no comment", group.keys);
                documented.extend(group.keys.iter().map(|it| format!("{section}.{}", it.key)));
            }
        }
        // The section that describes others has no settings of its own.
        documented.retain(|key| !key.starts_with("providers.NAME."));
        documented.sort();
        let printed = config::print(&Environment::default(), &Flags::default()).unwrap();
        // Test builds have further keys, which name the places of faults.
        let is_fault = |key: &String| key.ends_with("_at");
        let known = printed.into_iter().map(|value| value.key).filter(|key| !is_fault(key));
        assert_eq!(documented, known.collect::<Vec<_>>());
    }
}
