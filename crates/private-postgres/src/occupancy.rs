//! Tells by a kernel lock if any server process lives in a home.
//!
//! The service locks the file `occupied` and hands the locked file to the server as its standard input. Every process
//! that the server forks inherits it, so the lock is free exactly when the last of them has ended. This covers backends
//! that outlive a killed postmaster, the pid namespaces of containers, and systems without `/proc`. A server that a
//! person started by hand does not hold it; Postgres's own interlock covers that one.

use std::fs::File;
use std::process::Stdio;

use super::Error;
use super::home::{Home, private_file_options};
use super::lock::try_lock;

/// Proof that no server process lives in the home, and that none can start while it is held.
#[derive(Debug)]
pub(super) struct Vacancy {
    file: File,
}

impl Vacancy {
    pub fn claim(home: &Home) -> Result<Option<Self>, Error> {
        let path = home.occupied_file();
        let file =
            private_file_options().write(true).open(&path).map_err(Error::folder("open", &path))?;
        Ok(try_lock(&file, &path)?.then_some(Self { file }))
    }

    /// Turns the lock into the standard input of the new server process.
    pub fn into_stdin(self) -> Stdio {
        Stdio::from(self.file)
    }
}
