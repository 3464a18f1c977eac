//! A real PgBouncer in front of a test's database.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};
use tokio::process::{Child, Command};

use crate::{app::eventually, cluster::scratch_folder, required_packages::RequiredPackage};

/// With prepared statements: 1.21 or newer.
pub const NEW: &str = "new";
/// Without prepared statements: older.
pub const OLD: &str = "old";

/// The settings of docs/how-to/pgbouncer.md, with few server connections, so that clients have to share them.
pub const DOCUMENTED: &str = "pool_mode = transaction
max_prepared_statements = 200
max_client_conn = 1000
default_pool_size = 4";

const REQUIRED_PACKAGE: RequiredPackage = RequiredPackage {
    package: "PgBouncer (built from Debian's sources)",
    command: "scripts/pgbouncer",
};

/// A running PgBouncer. Killed when dropped.
pub struct PgBouncer {
    folder: tempfile::TempDir,
    database: String,
    user: String,
    _child: Child,
}

impl PgBouncer {
    /// Starts it. `None`, with a printed line, if it is not built; in CI it panics.
    pub async fn start(version: &str, server: &PgConnectOptions, settings: &str) -> Option<Self> {
        let program = program(version)?;
        let folder = scratch_folder();
        let socket = server.get_socket().expect("the tests' Postgres listens on a socket");
        let owner = std::fs::metadata(socket).unwrap();
        // It refuses to run as root, and its account creates the sockets.
        std::os::unix::fs::chown(folder.path(), Some(owner.uid()), Some(owner.gid())).unwrap();
        let database = server.get_database().unwrap().to_owned();
        let config = folder.path().join("pgbouncer.ini");
        std::fs::write(&config, ini(server, socket, &folder, owner.uid(), settings)).unwrap();
        let log = std::fs::File::create(folder.path().join("stderr")).unwrap();
        let child = Command::new(program)
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let user = server.get_username().to_owned();
        let pgbouncer = Self { folder, database, user, _child: child };
        eventually("PgBouncer listens", async || pgbouncer.socket().exists().then_some(())).await;
        Some(pgbouncer)
    }

    /// Returns the `DATABASE_URL` through it.
    pub fn url(&self) -> String {
        let (user, database) = (&self.user, &self.database);
        format!(
            "postgres://{user}@localhost/{database}?host={}&port=6432",
            self.folder.path().display()
        )
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.6432")
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }
}

fn ini(
    server: &PgConnectOptions,
    socket: &Path,
    folder: &tempfile::TempDir,
    uid: u32,
    settings: &str,
) -> String {
    let url = server.to_url_lossy();
    let (name, user) = (server.get_database().unwrap(), server.get_username());
    let (socket, port) = (socket.display(), server.get_port());
    let password = url.password().map_or(String::new(), |word| format!(" password={word}"));
    let account = match rustix::process::getuid().is_root() {
        true => format!("user = {}\n", account(uid)),
        false => String::new(),
    };
    format!(
        "[databases]\n{name} = host={socket} port={port} dbname={name} user={user}{password}\n\
         [pgbouncer]\nunix_socket_dir = {}\nlisten_port = 6432\nauth_type = any\n{account}{settings}\n",
        folder.path().display()
    )
}

fn account(uid: u32) -> String {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
    let mut names = accounts.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    });
    names.next().expect("the account of the tests' Postgres has a name")
}

fn program(version: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("pgbouncer").join(version).join("pgbouncer");
    if program.exists() {
        return Some(program);
    }
    REQUIRED_PACKAGE.skip(&format!("there is no {}", program.display()))
}
