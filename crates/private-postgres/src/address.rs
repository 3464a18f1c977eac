//! The address of the server: a Unix socket in its home, or a port on loopback.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::home::Home;
use super::pidfile::PidFile;
use super::{Error, Listen};

pub(super) const SUPERUSER: &str = "dalsegno";
pub(super) const DATABASE: &str = "dalsegno";

/// Part of the socket's file name only.
const SOCKET_PORT: u16 = 5432;

/// The kernel's limit is 107 bytes on Linux and 103 on macOS.
const SOCKET_PATH_LIMIT: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Socket { folder: PathBuf, port: u16 },
    Loopback { port: u16 },
}

impl Address {
    pub fn choose(listen: Listen, home: &Home) -> Result<Self, Error> {
        let folder = home.run();
        let path = folder.join(format!(".s.PGSQL.{SOCKET_PORT}"));
        let fits =
            path.as_os_str().len() <= SOCKET_PATH_LIMIT && path.to_str().is_some_and(is_plain);
        match listen {
            Listen::Socket if !fits => {
                Err(Error::SocketPathTooLong { path, limit: SOCKET_PATH_LIMIT })
            }
            Listen::Socket | Listen::Auto if fits => Ok(Self::Socket { folder, port: SOCKET_PORT }),
            _ => Self::free_port(),
        }
    }

    /// Chooses another port for a server whose port was taken in the meantime; a socket stays as it is.
    pub fn with_new_port(&self) -> Result<Self, Error> {
        match self {
            Self::Socket { .. } => Ok(self.clone()),
            Self::Loopback { .. } => Self::free_port(),
        }
    }

    /// Returns the address that a running server has recorded.
    pub fn from_pid_file(record: &PidFile) -> Self {
        match &record.socket_folder {
            Some(folder) => Self::Socket { folder: folder.clone(), port: record.port },
            None => Self::Loopback { port: record.port },
        }
    }

    /// Returns the arguments that make a server listen on this address only.
    pub fn server_settings(&self) -> [String; 3] {
        match self {
            Self::Socket { folder, port } => [
                "listen_addresses=".to_owned(),
                format!("unix_socket_directories={}", folder.display()),
                format!("port={port}"),
            ],
            Self::Loopback { port } => [
                "listen_addresses=127.0.0.1".to_owned(),
                "unix_socket_directories=".to_owned(),
                format!("port={port}"),
            ],
        }
    }

    /// Sets all options that sqlx would otherwise take from `PG*` variables. Certificates are not set: without TLS they
    /// have no effect. For PGOPTIONS see `ambient`.
    pub fn connect_options(&self, password: &SecretString) -> PgConnectOptions {
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .username(SUPERUSER)
            .password(password.expose_secret())
            .database(DATABASE)
            .application_name("dalsegno")
            .ssl_mode(PgSslMode::Disable);
        match self {
            Self::Socket { folder, port } => options.socket(folder).port(*port),
            Self::Loopback { port } => options.port(*port),
        }
    }

    fn free_port() -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let address = listener.and_then(|listener| listener.local_addr());
        let address =
            address.map_err(Error::folder("find a free port on", "127.0.0.1".as_ref()))?;
        Ok(Self::Loopback { port: address.port() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket { folder, port } => write!(f, "{}/.s.PGSQL.{port}", folder.display()),
            Self::Loopback { port } => write!(f, "127.0.0.1:{port}"),
        }
    }
}

pub(super) fn read_password(home: &Home) -> Result<SecretString, Error> {
    let path = home.password_file();
    let text = fs::read_to_string(&path).map_err(Error::folder("read the password", &path))?;
    Ok(SecretString::from(text.trim().to_owned()))
}

/// Returns true if the path can stand in `unix_socket_directories`: that is a comma-separated list with its own
/// quoting, and a leading `@` has another meaning.
fn is_plain(path: &str) -> bool {
    path.chars().all(|c| !matches!(c, ',' | '"' | '\n') && !c.is_whitespace())
}
