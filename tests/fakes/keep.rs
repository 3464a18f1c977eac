//! The life of a keeper; see `protocol` for the rules it lives by.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use dalsegno::db::embedded;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest as _, Sha256};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions,
};

use crate::protocol::{Result, SharedCluster, lock, remove_if_there, try_lock};

/// Long enough for any process to notice that it was killed.
const STRAYS_LIMIT: Duration = Duration::from_secs(5);

/// Runs until nobody uses the cluster any more; a second keeper for it returns at once.
pub fn keep(cluster: &SharedCluster) -> Result<()> {
    // Out of the terminal's reach: Ctrl-C ends the tests, and the keeper notices by itself.
    rustix::process::setsid()?;
    let keeper = cluster.open("keeper")?;
    if !try_lock(&keeper)? {
        return Ok(());
    }
    make_own_folder(&cluster.data_dir)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let postgres = embedded::start(&cluster.config()).await?;
        derive_key_in_one_round(&postgres.connect_options()).await?;
        fs::write(cluster.ready(), "")?;
        let _users = wait_until_unused(cluster).await?;
        fs::remove_file(cluster.ready())?;
        postgres.stop().await?;
        end_strays(&cluster.data_dir);
        remove_cluster(&cluster.data_dir)
    })
}

/// Stores the same password with one round of SCRAM in place of 4096. The client repeats the rounds for each connection, in a debug
/// build 50 ms of them: more than the rest of what a small test does.
async fn derive_key_in_one_round(options: &PgConnectOptions) -> Result<()> {
    let url = options.to_url_lossy();
    let password = url.password().ok_or("the server's superuser has no password")?;
    let salt = [0; 16];
    // `Hi` of RFC 5802, of which the first round takes the salt with the number 1 behind it.
    let salted = hmac(password.as_bytes(), &[&salt[..], &1u32.to_be_bytes()].concat())?;
    let stored_key = Sha256::digest(hmac(&salted, b"Client Key")?);
    let server_key = hmac(&salted, b"Server Key")?;
    let [salt, stored_key, server_key] =
        [&salt[..], &stored_key, &server_key].map(|bytes| STANDARD.encode(bytes));
    let secret = format!("SCRAM-SHA-256$1:{salt}${stored_key}:{server_key}");
    let mut connection = PgConnection::connect_with(options).await?;
    let change = format!("alter role current_user password '{secret}'");
    sqlx::raw_sql(AssertSqlSafe(change)).execute(&mut connection).await?;
    Ok(connection.close().await?)
}

fn hmac(key: &[u8], text: &[u8]) -> Result<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key)?;
    mac.update(text);
    Ok(mac.finalize().into_bytes().to_vec())
}

async fn wait_until_unused(cluster: &SharedCluster) -> Result<File> {
    let users = cluster.open("users")?;
    let mut unused_since = None;
    loop {
        if try_lock(&users)? {
            if unused_since.get_or_insert_with(Instant::now).elapsed() >= cluster.grace {
                return Ok(users);
            }
            lock(&users, FlockOperation::Unlock)?;
        } else {
            unused_since = None;
        }
        tokio::time::sleep(cluster.grace / 10).await;
    }
}

/// The name can be guessed, so a folder of that name may be somebody else's.
fn make_own_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("{} belongs to somebody else; remove it", path.display()).into());
    }
    // Rather open: as root, the server's account has to pass through.
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

/// Ends the servers that killed tests have left in their scratch folders, and waits for their end.
fn end_strays(data_dir: &Path) {
    let deadline = Instant::now() + STRAYS_LIMIT;
    loop {
        let strays = postgres_processes_below(data_dir);
        if strays.is_empty() || Instant::now() > deadline {
            return;
        }
        for stray in strays {
            let _ = kill_process(stray, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Where there is no `/proc`, strays are left to be ended by hand.
fn postgres_processes_below(folder: &Path) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let works_below = |process: &Path| {
        fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
            && fs::read_to_string(process.join("comm"))
                .is_ok_and(|name| name.contains("postgres") || name.contains("initdb"))
    };
    entries
        .flatten()
        .filter(|entry| works_below(&entry.path()))
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

fn remove_cluster(data_dir: &Path) -> Result<()> {
    // Elsewhere only when /tmp itself is closed to the server's account.
    if let Ok(target) = fs::read_link(data_dir.join("postgres")) {
        fs::remove_dir_all(&target)?;
        remove_if_there(&target.with_added_extension("lock"))?;
    }
    Ok(fs::remove_dir_all(data_dir)?)
}
