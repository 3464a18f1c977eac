//! The keeper of the tests' cluster, and a user of it for the tests of the protocol itself.
//!
//! `test-postgres keep <locks> <data_dir> <grace_ms>` and `test-postgres use <locks> <data_dir> <grace_ms>`.

#![expect(clippy::print_stdout, reason = "the test reads what it prints")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use sqlx::{Connection, PgConnection};

#[path = "keeper.rs"]
mod keeper;
#[path = "../it/cluster/protocol.rs"]
mod protocol;

use protocol::SharedCluster;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [verb, locks, data_dir, grace_ms] = arguments.as_slice() else {
        return Err("usage: test-postgres keep|use <locks> <data_dir> <grace_ms>".into());
    };
    let cluster = SharedCluster {
        locks: locks.into(),
        data_dir: data_dir.into(),
        grace: Duration::from_millis(grace_ms.parse()?),
        keeper: std::env::current_exe()?,
    };
    match verb.as_str() {
        "keep" => keeper::keep(&cluster),
        "use" => use_once(&cluster),
        other => Err(format!("unknown verb {other}").into()),
    }
}

/// Joins, checks that the cluster answers, and leaves by ending.
fn use_once(cluster: &SharedCluster) -> Result<(), Box<dyn Error>> {
    let joined = cluster.join()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pid: i32 = runtime.block_on(async {
        let mut connection = PgConnection::connect_with(&joined.options).await?;
        let pid = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(pid)
    })?;
    println!("used {pid} of {}", Path::new(&cluster.data_dir).display());
    Ok(())
}
