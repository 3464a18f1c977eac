//! Whether any process of a server lives in a home, told by the kernel.
//!
//! The service locks the file `occupied` and hands the locked file to the server as its standard
//! input. Every process that the server forks inherits it, so the lock is free exactly when the
//! last of them has ended: also backends that outlive a killed postmaster, also across the pid
//! namespaces of containers, also on systems without `/proc`. A server that somebody started by
//! hand does not hold it; for that one there is Postgres's own interlock.

use std::fs::File;
use std::process::Stdio;

use super::Error;
use super::home::{Home, own_file};
use super::lock::try_lock;

/// Proof that no server process lives in the home, and that none can come while it is held.
#[derive(Debug)]
pub(super) struct Vacancy {
    file: File,
}

impl Vacancy {
    pub fn claim(home: &Home) -> Result<Option<Self>, Error> {
        let path = home.occupied_file();
        let file = own_file().write(true).open(&path).map_err(Error::folder("open", &path))?;
        Ok(try_lock(&file, &path)?.then_some(Self { file }))
    }

    /// The standard input of the process that moves in.
    pub fn into_stdin(self) -> Stdio {
        Stdio::from(self.file)
    }
}
