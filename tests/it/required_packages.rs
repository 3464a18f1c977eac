//! Packages from registries that tests need. A test without its package prints one line with the command that installs
//! it.

use std::io::Write as _;

/// A package, and the command that installs it.
#[derive(Debug, Clone, Copy)]
pub struct RequiredPackage {
    pub package: &'static str,
    pub command: &'static str,
}

pub const PSQL: RequiredPackage =
    RequiredPackage { package: "psql", command: "apt-get install postgresql-client" };
pub const PYTHON: RequiredPackage =
    RequiredPackage { package: "Python", command: "apt-get install python3 python3-venv" };
pub const NODE: RequiredPackage =
    RequiredPackage { package: "Node", command: "apt-get install nodejs npm" };

impl RequiredPackage {
    /// Returns a line with the missing package, the command, and the first line of the error.
    pub fn line(&self, error: &str) -> String {
        let Self { package, command } = self;
        let says_why = |line: &&str| line.to_lowercase().contains("error");
        let reason = error.lines().find(says_why).or(error.lines().next()).unwrap_or("").trim();
        format!("{package} is missing; run: {command} ({reason})")
    }

    /// Looks for the program in `PATH`; without it, the test is skipped.
    pub fn program(&self, name: &str) -> Option<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if std::env::split_paths(&path).any(|folder| folder.join(name).is_file()) {
            return Some(());
        }
        self.skip(&format!("no folder of PATH has {name}"))
    }

    /// Prints the line past libtest, which hides the output of passing tests. In CI it panics.
    #[expect(
        clippy::explicit_write,
        reason = "libtest hides what `eprintln!` writes in a test that passes"
    )]
    pub fn skip<T>(&self, error: &str) -> Option<T> {
        let line = self.line(error);
        let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!is_ci, "{line}");
        writeln!(std::io::stderr(), "SKIPPED: {line}").unwrap();
        None
    }
}

#[test]
fn a_missing_package_is_reported_in_one_line_with_its_install_command() {
    let pip = "\"pip\": WARNING: Retrying after connection broken\nERROR: No matching distribution found for psycopg\n";
    let need =
        RequiredPackage { package: "psycopg (PyPI)", command: "cargo test --test it packages" };
    let expected = "psycopg (PyPI) is missing; run: cargo test --test it packages (ERROR: No matching distribution found for psycopg)";
    assert_eq!(need.line(pip), expected);
    assert!(!need.line("").contains('\n'));
}
