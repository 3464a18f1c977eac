//! The folder of the cluster and its contents.
//!
//! ```text
//! <data_dir>/service.lock        held by the service
//! <data_dir>/postgres/           the home; or a symlink to one below `fallback_dir`
//!     data/                      the cluster itself: the server's account only
//!     run/                       the Unix socket: the server's account only
//!     server.conf                written at each start
//!     password                   of the superuser, mode 0600
//!     server.log, server.log.1   bounded
//!     occupied                   locked by every living server process
//! ```
//!
//! If the service runs as root, everything except `data` and `run` belongs to root. The server's account is less
//! trusted than root and must not be able to place a symlink where root is going to write.

use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::account::{Account, can_reach};
use super::{Config, Error};

#[derive(Debug, Clone)]
pub(super) struct Home {
    root: PathBuf,
}

impl Home {
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    pub fn settings_file(&self) -> PathBuf {
        self.root.join("server.conf")
    }

    pub fn password_file(&self) -> PathBuf {
        self.root.join("password")
    }

    pub fn log_file(&self) -> PathBuf {
        self.root.join("server.log")
    }

    pub fn occupied_file(&self) -> PathBuf {
        self.root.join("occupied")
    }

    /// Returns the major version that made the cluster, or `None` if there is no cluster yet.
    pub fn cluster_major(&self) -> Result<Option<u32>, Error> {
        let path = self.data().join("PG_VERSION");
        match fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse() {
                Ok(major) => Ok(Some(major)),
                Err(_) => Err(self.not_a_cluster()),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::folder("read", &path)(error)),
        }
    }

    /// Refuses a folder that holds something other than a cluster.
    pub fn check_free_for_a_cluster(&self) -> Result<(), Error> {
        let is_taken = fs::read_dir(&self.root).is_ok_and(|mut entries| entries.next().is_some());
        if is_taken { Err(self.not_a_cluster()) } else { Ok(()) }
    }

    /// Returns a name that identifies this cluster's processes, even if only their titles can be seen.
    pub fn cluster_name(&self) -> String {
        format!("dalsegno-{}", digest(&self.root))
    }

    fn not_a_cluster(&self) -> Error {
        Error::NotACluster { folder: self.root.clone() }
    }
}

/// Finds the existing home without changing anything. Returns `None` if there has never been one.
pub(super) fn find(data_dir: &Path) -> Result<Option<Home>, Error> {
    let entry = entry_in(data_dir);
    let found = match fs::symlink_metadata(&entry) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::folder("look at", &entry)(error)),
    };
    if !found.is_symlink() {
        return Ok(Some(Home::at(entry)));
    }
    let target = fs::read_link(&entry).map_err(Error::folder("read the link", &entry))?;
    let target = data_dir.join(target);
    Ok(Some(Home::at(target.canonicalize().unwrap_or(target))))
}

/// Chooses the place of a home. A symlink is placed before its target exists, so that a start after a crash in between
/// continues from there.
pub(super) fn choose(
    config: &Config,
    data_dir: &Path,
    account: Option<&Account>,
) -> Result<Home, Error> {
    if let Some(home) = find(data_dir)? {
        return check_reach(home, account);
    }
    match account {
        Some(account) if !can_reach(account, data_dir) => relocate(config, data_dir, account),
        _ => Ok(Home::at(entry_in(data_dir))),
    }
}

/// Creates a folder with exactly this mode, independent of the umask; an existing one stays as it is.
pub(super) fn make_dir(path: &Path, mode: u32) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let made = fs::DirBuilder::new().recursive(true).create(path);
    made.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .map_err(Error::folder("create", path))
}

/// Returns options that open files of the home for writing: created private, and never through a symlink. The home may
/// belong to another user, who must not be able to redirect the service's writes.
pub(super) fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

fn entry_in(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres")
}

fn check_reach(home: Home, account: Option<&Account>) -> Result<Home, Error> {
    let parent = home.root().parent().unwrap_or(home.root());
    match account {
        Some(account) if parent.exists() && !can_reach(account, parent) => {
            Err(Error::Unreachable { account: account.name.clone(), folder: parent.to_path_buf() })
        }
        _ => Ok(home),
    }
}

/// Chooses a home below the fallback folder. A taken name belongs to a data folder that was moved or deleted. Its data
/// must be neither adopted nor removed, so the next free name is used.
fn relocate(config: &Config, data_dir: &Path, account: &Account) -> Result<Home, Error> {
    make_dir(&config.fallback_dir, 0o755)?;
    let base =
        config.fallback_dir.canonicalize().map_err(Error::folder("find", &config.fallback_dir))?;
    if !can_reach(account, &base) {
        return Err(Error::Unreachable { account: account.name.clone(), folder: base });
    }
    let name = digest(data_dir);
    let free = std::iter::once(base.join(&name))
        .chain((2..).map(|n| base.join(format!("{name}-{n}"))))
        .find(|path| fs::symlink_metadata(path).is_err())
        .unwrap_or_else(|| base.join(&name));
    let entry = entry_in(data_dir);
    symlink(&free, &entry).map_err(Error::folder("link", &entry))?;
    tracing::info!(
        account = %account.name,
        data_dir = %data_dir.display(),
        cluster = %free.display(),
        "the server's user cannot enter the data folder: storing the cluster in the fallback folder, with a link"
    );
    Ok(Home::at(free))
}

/// Returns sixteen hex digits that identify a path.
fn digest(path: &Path) -> String {
    let sum = Sha256::digest(path.as_os_str().as_bytes());
    hex::encode(&sum[..8])
}
