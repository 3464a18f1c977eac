//! Paths of a session's transcript in the CLI's folder.

use std::path::{Component, Path, PathBuf};

use uuid::Uuid;

/// Maximum length of a name. Longer names are cut and get a hash.
const MAX_SLUG: usize = 200;

/// Returns the CLI's folder for the sessions of a working directory. `cwd` must be canonical.
pub(in crate::providers::claude) fn project_dir(config_dir: &Path, cwd: &Path) -> PathBuf {
    config_dir.join("projects").join(slug(&cwd.to_string_lossy()))
}

/// Returns the session's own file, relative to its project.
pub(in crate::providers::claude) fn main_name(session: Uuid) -> String {
    format!("{session}.jsonl")
}

/// Returns true if a name from outside stays below the project and belongs to the session.
pub(in crate::providers::claude) fn is_of_session(name: &str, session: Uuid) -> bool {
    let path = Path::new(name);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let rest = name.strip_prefix(&session.to_string());
    is_plain && rest.is_some_and(|rest| rest == ".jsonl" || rest.starts_with('/'))
}

/// Replaces every UTF-16 unit but ASCII letters and digits by a dash.
fn slug(path: &str) -> String {
    let dashed: String = path
        .encode_utf16()
        .map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
            _ => '-',
        })
        .collect();
    if dashed.len() <= MAX_SLUG {
        return dashed;
    }
    // Java's 32-bit hash of strings, as JavaScript programs use it.
    let hash = path
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{}-{}", &dashed[..MAX_SLUG], base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_characters_than_letters_and_digits_become_dashes() {
        assert_eq!(slug("/tmp/a b.C_é語🎼/x"), "-tmp-a-b-C------x");
    }

    #[test]
    fn long_paths_are_cut_and_hashed() {
        let slug = slug(&format!("/{}", "a".repeat(300)));
        assert_eq!(&slug[..201], format!("-{}-", "a".repeat(199)));
        assert!(slug[201..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(base36(0), "0");
        assert_eq!(base36(36 * 36 + 35), "10z");
    }

    #[test]
    fn names_stay_inside_the_session() {
        let session = Uuid::nil();
        let own = |name: &str| is_of_session(&name.replace("ID", &session.to_string()), session);
        assert!(own("ID.jsonl") && own("ID/subagents/agent-1.jsonl"));
        for name in
            ["", "other.jsonl", "ID", "ID.json", "ID/../x", "/ID.jsonl", "../ID.jsonl", "IDx/y"]
        {
            assert!(!own(name), "{name}");
        }
    }
}
