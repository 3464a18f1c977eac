//! The process that keeps the tests' Postgres; see `protocol` for its rules.

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

/// Time in which a killed process ends.
const STRAYS_LIMIT: Duration = Duration::from_secs(5);

/// Keeps the cluster until it has no users. A second keeper of it returns at once.
pub fn keep(cluster: &SharedCluster) -> Result<()> {
    // Detached from the terminal: Ctrl-C ends the tests, and the keeper then ends by itself.
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

/// Stores the password with one SCRAM round instead of 4096. The client computes the rounds for each connection, which
/// takes 50 ms in a debug build, more than the rest of a small test.
async fn derive_key_in_one_round(options: &PgConnectOptions) -> Result<()> {
    let url = options.to_url_lossy();
    let password = url.password().ok_or("the server's superuser has no password")?;
    let salt = [0; 16];
    // `Hi` of RFC 5802: its first round hashes the salt followed by the number 1.
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

/// Creates the folder, or checks its owner: the name can be guessed, so another user may have created it.
fn make_own_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("{} belongs to another user; remove it", path.display()).into());
    }
    // Readable for all: as root, the server's account has to pass through.
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

/// Stops the servers that killed tests have left in their scratch folders, and waits for their end.
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

/// Lists the servers below a folder. Without `/proc` it finds none.
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
    // The folder is elsewhere only if the server's account cannot use /tmp.
    if let Ok(target) = fs::read_link(data_dir.join("postgres")) {
        fs::remove_dir_all(&target)?;
        remove_if_there(&target.with_added_extension("lock"))?;
    }
    Ok(fs::remove_dir_all(data_dir)?)
}
