//! The CLI as a file on this machine: its location and version.

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use rustix::fs::{Access, access};
use tokio::{process::Command, time::timeout};

use super::Config;

/// Reason why the CLI was not found.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    #[error("there is no program {0} in claude.path")]
    InPath(String),
    #[error("{} does not exist or is not executable", .0.display())]
    AtPlace(PathBuf),
    /// A relative path: the CLI is started in the folder of its session.
    #[error("{} is a relative path: use an absolute path or a plain name", .0.display())]
    Relative(PathBuf),
}

#[derive(Debug, thiserror::Error)]
pub enum NoVersion {
    #[error("cannot start {}", program.display())]
    NotStarted {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} does not print a version: {said:?}", program.display())]
    NotSaid { program: PathBuf, said: String },
    #[error("{} did not print its version within {} s", program.display(), PATIENCE.as_secs())]
    TooSlow { program: PathBuf },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

/// Version of the CLI on which all its behaviour was measured.
pub const TESTED: Version = Version { major: 2, minor: 1, patch: 197 };
/// Timeout for `--version`. It takes a tenth of a second on an idle machine; forty at once took eleven seconds on two cores.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_SAID_CHARS: usize = 80;

impl Config {
    /// Returns the file that a turn would start, found by the CLI's own `PATH` and not by the service's.
    pub fn find_program(&self) -> Result<PathBuf, NotFound> {
        let is_program = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
        let program = &self.program;
        match (program.is_absolute(), program.components().count()) {
            (true, _) => Some(program.clone())
                .filter(is_program)
                .ok_or_else(|| NotFound::AtPlace(program.clone())),
            (false, 1) => std::env::split_paths(&self.path)
                .map(|folder| folder.join(program))
                .find(is_program)
                .ok_or_else(|| NotFound::InPath(program.display().to_string())),
            (false, _) => Err(NotFound::Relative(program.clone())),
        }
    }

    /// Starts the program with `--version`, without the environment of the service.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the CLI is asked what it is"
    )]
    pub async fn version_of(&self, program: PathBuf) -> Result<Version, NoVersion> {
        let mut command = Command::new(&program);
        command.arg("--version").env_clear().env("PATH", &self.path).stdin(Stdio::null());
        let asked = timeout(PATIENCE, command.kill_on_drop(true).output()).await;
        let output = match asked {
            Ok(Ok(output)) => output,
            Ok(Err(source)) => return Err(NoVersion::NotStarted { program, source }),
            Err(_) => return Err(NoVersion::TooSlow { program }),
        };
        let said = String::from_utf8_lossy(&output.stdout);
        parse(&said).ok_or_else(|| NoVersion::NotSaid {
            program,
            said: said.trim().chars().take(MAX_SAID_CHARS).collect(),
        })
    }
}

impl Version {
    /// Returns true if the measured behaviour should hold for this version.
    pub fn is_tested(self) -> bool {
        (self.major, self.minor) == (TESTED.major, TESTED.minor)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

fn parse(said: &str) -> Option<Version> {
    let mut numbers = said.split_whitespace().next()?.split('.').map(str::parse);
    let mut number = || numbers.next()?.ok();
    Some(Version { major: number()?, minor: number()?, patch: number()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_parsed_from_the_cli_output() {
        assert_eq!(parse("2.1.197 (Claude Code)\n"), Some(TESTED));
        assert_eq!(parse("claude 2.1"), None);
        let version = |major, minor| Version { major, minor, patch: 0 };
        assert!(version(2, 1).is_tested() && !version(2, 2).is_tested());
        assert!(!version(3, 1).is_tested());
    }

    #[test]
    fn a_bare_name_is_searched_in_the_clis_own_path_and_an_absolute_path_is_used_as_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("claude"), "").unwrap();
        let find = |program: &str| {
            let path = format!("/nowhere:{}", folder.path().display());
            Config { program: program.into(), path, ..Config::default() }.find_program()
        };
        assert!(matches!(find("claude"), Err(NotFound::InPath(_))), "the file is not executable");
        let sh = Config { program: "sh".into(), ..Config::default() }.find_program().unwrap();
        assert!(sh.ends_with("sh") && sh.is_absolute());
        assert!(matches!(find("bin/claude"), Err(NotFound::Relative(_))));
        assert!(matches!(find("/no/such/claude"), Err(NotFound::AtPlace(_))));
    }
}
