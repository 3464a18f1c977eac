//! The reader of the files that an installation writes: agents, skills, nodes, templates of flows, and what they name.
//!
//! Only regular files are read: a FIFO holds up its reader, and a device never ends.

use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// The longest file of an agent, a skill, a node or a template.
pub const MAX_BYTES: u64 = 1_000_000;

/// The advice for a file that cannot be read.
pub const FIX: &str = "a regular file of UTF-8 text with at most 1,000,000 bytes";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("cannot be read: it is not UTF-8 text")]
    NotUtf8,
    #[error("cannot be read: it is not a regular file")]
    NotRegular,
    #[error("is too long: at most {max_bytes} bytes are allowed")]
    TooLong { max_bytes: u64 },
}

pub fn read(path: &Path, max_bytes: u64) -> Result<String, Error> {
    // Before it is opened: opening a device can have effects.
    check(&path.metadata()?, max_bytes)?;
    // Another file may have taken its place since: opening a FIFO must not wait for its writer.
    let mut options = File::options();
    let file = options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    check(&file.metadata()?, max_bytes)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(Error::TooLong { max_bytes });
    }
    String::from_utf8(bytes).map_err(|_| Error::NotUtf8)
}

fn check(metadata: &Metadata, max_bytes: u64) -> Result<(), Error> {
    match metadata.is_file() {
        false => Err(Error::NotRegular),
        true if metadata.len() > max_bytes => Err(Error::TooLong { max_bytes }),
        true => Ok(()),
    }
}
