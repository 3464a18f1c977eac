//! The two CLIs: the real one in its pinned version, and the scripted one.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use crate::required_packages::RequiredPackage;

/// The pinned version, in its only place. `docs/reference/claude-cli.md` describes its behaviour.
pub const VERSION: &str = "2.1.197";
const PACKAGE: &str = "@anthropic-ai/claude-code";
const REQUIRED_PACKAGE: RequiredPackage = RequiredPackage {
    package: "the CLI of Claude (npm: @anthropic-ai/claude-code)",
    command: "cargo test --test it claude::real, online, with npm",
};
const INSTALL_LIMIT: Duration = Duration::from_secs(240);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cli {
    Real(PathBuf),
    Fake,
}

impl Cli {
    /// Returns the real CLI. `None`, with a printed line, if it cannot be installed; in CI it panics.
    pub fn real() -> Option<Self> {
        static REAL: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        match REAL.get_or_init(|| installed().map_err(|error| error.to_string())) {
            Ok(path) => Some(Self::Real(path.clone())),
            Err(error) => REQUIRED_PACKAGE.skip(error),
        }
    }

    pub fn program(&self) -> PathBuf {
        match self {
            Self::Real(path) => path.clone(),
            Self::Fake => env!("CARGO_BIN_EXE_fake-claude").into(),
        }
    }
}

fn installed() -> io::Result<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("claude-cli").join(VERSION);
    if let Ok(program) = program_in(&folder) {
        return Ok(program);
    }
    // Renamed when complete, because parallel runs may install it, and any may be killed.
    let new = target.join("claude-cli").join(format!("new-{}", uuid::Uuid::new_v4()));
    fs::create_dir_all(&new)?;
    let result = npm_install(&new).and_then(|()| match fs::rename(&new, &folder) {
        Err(error) if !folder.exists() => Err(error),
        _ => program_in(&folder),
    });
    let _ = fs::remove_dir_all(&new);
    result
}

fn npm_install(folder: &Path) -> io::Result<()> {
    let mut npm = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(folder)
        .arg(format!("{PACKAGE}@{VERSION}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let deadline = Instant::now() + INSTALL_LIMIT;
    loop {
        match npm.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(format!("npm ended with {status}"))),
            None if Instant::now() > deadline => {
                npm.kill()?;
                npm.wait()?;
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Finds the program, which is in the package of the platform; the main package only looks for it.
fn program_in(folder: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(folder.join("node_modules/@anthropic-ai"))? {
        let program = entry?.path().join("claude");
        if program.is_file() {
            return Ok(program);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
