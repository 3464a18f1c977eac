//! The one Postgres that all tests of a run share, started by the first and gone after the last.
//!
//! See `protocol` for how processes agree. Tests make databases of their own in it.

pub mod protocol;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};

use protocol::{Joined, SharedCluster};

/// Long enough for nextest to start its next process.
const GRACE: Duration = Duration::from_secs(2);

/// Held for the life of the process; the kernel gives it back on any kind of death.
static JOINED: OnceLock<Joined> = OnceLock::new();

/// A superuser on the database `postgres`.
pub async fn connect_options() -> PgConnectOptions {
    let joined = tokio::task::spawn_blocking(|| {
        JOINED.get_or_init(|| of_this_build().join().expect("the tests' Postgres"))
    });
    joined.await.expect("joining the tests' Postgres").options.clone()
}

/// What `DATABASE_URL` has to be for one of its databases.
pub fn url(database: &str) -> String {
    let options = join().options.clone().database(database);
    options.to_url_lossy().to_string()
}

/// A folder for a test that starts servers of its own. Whatever becomes of the test, the keeper ends
/// what still runs in there and removes it.
pub fn scratch_folder() -> tempfile::TempDir {
    let scratch = shared_folder().join("scratch");
    std::fs::create_dir_all(&scratch).expect("a place for scratch folders");
    tempfile::Builder::new().prefix("").tempdir_in(scratch).expect("a scratch folder")
}

/// The folder of this build that the server's account may enter. The keeper removes it after the last test.
pub fn shared_folder() -> PathBuf {
    join();
    of_this_build().data_dir
}

fn join() -> &'static Joined {
    JOINED.get_or_init(|| of_this_build().join().expect("the tests' Postgres"))
}

/// One cluster per build folder: clones of the repository have one each.
fn of_this_build() -> SharedCluster {
    let locks = Path::new(env!("CARGO_TARGET_TMPDIR")).join("test-postgres");
    SharedCluster {
        data_dir: short_folder(&locks),
        locks,
        grace: GRACE,
        keeper: env!("CARGO_BIN_EXE_test-postgres").into(),
    }
}

/// Short enough for a Unix socket, and reachable for the server's account when the tests run as
/// root, which a build folder often is not.
pub fn short_folder(key: &Path) -> PathBuf {
    let sum = Sha256::digest(key.as_os_str().as_encoded_bytes());
    let digest: String = sum.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let uid = rustix::process::geteuid().as_raw();
    roomy_folder().join(format!("dalsegno-test-{uid}-{digest}"))
}

/// Memory where there is plenty of it: dozens of durable clusters would wait for the disk most of the
/// time, and killing processes does not tell the two apart.
fn roomy_folder() -> &'static Path {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |found| found.f_bavail * found.f_frsize);
    match free > 4 << 30 {
        true => memory,
        false => Path::new("/tmp"),
    }
}
