//! The Postgres that all tests of a run share, started by the first and stopped after the last.
//!
//! See `protocol` for how processes agree. Each test creates its own databases in it.

pub mod protocol;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};

use protocol::{Membership, SharedCluster};

/// Time in which nextest starts its next process.
const GRACE: Duration = Duration::from_secs(2);

/// Held until the process ends; the kernel releases it at any kind of death.
static MEMBERSHIP: OnceLock<Membership> = OnceLock::new();

/// Returns the options of a superuser on the database `postgres`.
pub async fn connect_options() -> PgConnectOptions {
    let joined = tokio::task::spawn_blocking(|| {
        MEMBERSHIP.get_or_init(|| of_this_build().join().expect("the tests' Postgres"))
    });
    joined.await.expect("joining the tests' Postgres").options.clone()
}

/// Returns the `DATABASE_URL` of one of its databases.
pub fn url(database: &str) -> String {
    let options = join().options.clone().database(database);
    options.to_url_lossy().to_string()
}

/// Creates a folder for a test that starts its own servers. The keeper stops servers that are left in it, and removes
/// it, even if the test is killed.
pub fn scratch_folder() -> tempfile::TempDir {
    let scratch = shared_folder().join("scratch");
    std::fs::create_dir_all(&scratch).expect("a place for scratch folders");
    tempfile::Builder::new().prefix("").tempdir_in(scratch).expect("a scratch folder")
}

/// Returns the folder of this build that the server's account may enter. The keeper removes it after the last test.
pub fn shared_folder() -> PathBuf {
    join();
    of_this_build().data_dir
}

fn join() -> &'static Membership {
    MEMBERSHIP.get_or_init(|| of_this_build().join().expect("the tests' Postgres"))
}

/// Returns the cluster of this build folder: each clone of the repository has one.
fn of_this_build() -> SharedCluster {
    let locks = Path::new(env!("CARGO_TARGET_TMPDIR")).join("test-postgres");
    SharedCluster {
        data_dir: short_folder(&locks),
        locks,
        grace: GRACE,
        keeper: env!("CARGO_BIN_EXE_test-postgres").into(),
    }
}

/// Returns a folder with a path short enough for a Unix socket. The server's account can reach it when the tests run as
/// root, unlike many build folders.
pub fn short_folder(key: &Path) -> PathBuf {
    let sum = Sha256::digest(key.as_os_str().as_encoded_bytes());
    let digest: String = sum.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let uid = rustix::process::geteuid().as_raw();
    roomy_folder().join(format!("dalsegno-test-{uid}-{digest}"))
}

/// Selects a folder in memory if there is enough of it. Dozens of durable clusters would mostly wait for the disk, and
/// killing processes does not test durability against power loss.
fn roomy_folder() -> &'static Path {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |found| found.f_bavail * found.f_frsize);
    match free > 4 << 30 {
        true => memory,
        false => Path::new("/tmp"),
    }
}
