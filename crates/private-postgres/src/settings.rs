//! The server's settings: fit for a laptop, durable.
//!
//! They are written at each start, so that a newer program brings its newer settings along. Settings made with ALTER
//! SYSTEM live in the cluster and take precedence.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use super::home::{Home, private_file_options};
use super::{Error, Purpose};

/// `include` comes first because the last value of a setting wins: initdb recorded there what this machine supports
/// (shared memory, time zone data), and the lines below override it.
const COMMON: &str = "\
include 'data/postgresql.conf'

shared_buffers = 128MB
effective_cache_size = 1GB
random_page_cost = 1.1
jit = off
# Not /dev/shm: containers have little of it, and a killed server would leave its part there.
dynamic_shared_memory_type = mmap
password_encryption = 'scram-sha-256'
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'

# The service bounds the file that stderr goes to.
logging_collector = off
log_destination = 'stderr'
log_line_prefix = '%m [%p] '
log_min_messages = warning
log_checkpoints = off
log_connections = off
log_disconnections = off
";

const KEEP: &str = "\
max_connections = 100
fsync = on
full_page_writes = on
synchronous_commit = on
wal_compression = on
min_wal_size = 80MB
max_wal_size = 512MB
";

const THROWAWAY: &str = "\
max_connections = 300
fsync = off
full_page_writes = off
synchronous_commit = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 1GB
";

pub(super) fn write(home: &Home, purpose: Purpose) -> Result<(), Error> {
    let path = home.settings_file();
    let fitting = match purpose {
        Purpose::Keep => KEEP,
        Purpose::Throwaway => THROWAWAY,
    };
    let text = format!(
        "# Written by dalsegno at each start; change settings with ALTER SYSTEM instead.\n{COMMON}\n{fitting}"
    );
    let file = private_file_options().write(true).truncate(true).open(&path);
    file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // Readable for the server's account; it holds no secrets.
        file.set_permissions(Permissions::from_mode(0o644))
    })
    .map_err(Error::folder("write", &path))
}
