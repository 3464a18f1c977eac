//! Searches this machine for server binaries, nearest first.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::Runner;

/// The folders that packagers use. One `*` stands for any text within one step of the path.
const USUAL_FOLDERS: [&str; 12] = [
    // Debian and Ubuntu.
    "usr/lib/postgresql/*/bin",
    // Red Hat and its relatives, from postgresql.org and from the distribution.
    "usr/pgsql-*/bin",
    "usr/lib64/pgsql/bin",
    // SUSE and Alpine.
    "usr/lib/postgresql*/bin",
    "usr/libexec/postgresql*",
    // Homebrew on ARM, on Intel, on Linux.
    "opt/homebrew/opt/postgresql*/bin",
    "usr/local/opt/postgresql*/bin",
    "home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
    "Applications/Postgres.app/Contents/Versions/*/bin",
    // MacPorts, the installer of EDB, and a build from source.
    "opt/local/lib/postgresql*/bin",
    "Library/PostgreSQL/*/bin",
    "usr/local/pgsql/bin",
];

pub(super) fn on_path(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute() && has_server(folder))
        .collect()
}

/// Asks the machine's own `pg_config`, which also knows unusual folders.
pub(super) async fn by_pg_config(runner: &Runner) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in std::env::split_paths(&runner.ambient.path) {
        let program = folder.join("pg_config");
        if folder.is_absolute()
            && program.exists()
            && let Ok(answer) = runner.ask(&program, "--bindir").await
        {
            found.push(PathBuf::from(answer));
        }
    }
    found.retain(|folder| has_server(folder));
    found
}

pub(super) fn usual_folders(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        USUAL_FOLDERS.iter().flat_map(|pattern| matching(root, pattern)).collect();
    found.retain(|folder| has_server(folder));
    found
}

/// Lists the binaries that earlier runs have downloaded.
pub(super) fn list_downloaded(folder: &Path) -> Vec<PathBuf> {
    let mut found = matching(folder, "*/bin");
    found.retain(|folder| has_server(folder));
    found
}

/// Counts folders once that are the same after following links.
pub(super) fn drop_repeated(folders: &mut Vec<PathBuf>) {
    let mut seen = Vec::new();
    folders.retain(|folder| {
        let program = folder.join("postgres");
        let real = program.canonicalize().unwrap_or(program);
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
}

fn has_server(folder: &Path) -> bool {
    folder.join("postgres").exists() && folder.join("initdb").exists()
}

fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_path_buf()];
    for step in pattern.split('/') {
        found = match step.split_once('*') {
            None => found.into_iter().map(|folder| folder.join(step)).collect(),
            Some((before, after)) => {
                found.iter().flat_map(|folder| children(folder, before, after)).collect()
            }
        };
    }
    found
}

fn children(folder: &Path, before: &str, after: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let fits = |name: &str| {
        name.len() >= before.len() + after.len()
            && name.starts_with(before)
            && name.ends_with(after)
    };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(fits))
        .map(|entry| entry.path())
        .collect();
    // The order of a directory is arbitrary.
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create_files(root: &Path, folder: &str) {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).unwrap();
        for program in ["postgres", "initdb"] {
            fs::write(folder.join(program), "").unwrap();
        }
    }

    #[test]
    fn every_packager_is_known() {
        let machine = tempfile::tempdir().unwrap();
        let folders = [
            "usr/lib/postgresql/16/bin",
            "usr/pgsql-17/bin",
            "usr/libexec/postgresql16",
            "opt/homebrew/opt/postgresql@17/bin",
            "usr/local/opt/postgresql@14/bin",
            "Applications/Postgres.app/Contents/Versions/18/bin",
        ];
        for folder in folders {
            create_files(machine.path(), folder);
        }
        fs::create_dir_all(machine.path().join("usr/lib/postgresql/14/bin")).unwrap();
        let mut found = usual_folders(machine.path());
        found.sort();
        let mut expected: Vec<_> =
            folders.iter().map(|folder| machine.path().join(folder)).collect();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn one_server_under_two_names_counts_once() {
        let machine = tempfile::tempdir().unwrap();
        create_files(machine.path(), "a");
        std::os::unix::fs::symlink(machine.path().join("a"), machine.path().join("b")).unwrap();
        let mut folders = vec![machine.path().join("a"), machine.path().join("b")];
        drop_repeated(&mut folders);
        assert_eq!(folders, [machine.path().join("a")]);
    }
}
