//! Passes a credential to the CLI, hidden from the programs that the CLI starts.
//!
//! The programs that a process starts can read its environment, and so can every tool that reads files. So the worker writes the credential
//! into the guard's standard input, before everything else. The guard puts it into a pipe, and only the number of the pipe into the CLI's
//! environment. The CLI empties the pipe when it starts.

use std::{
    io::{self, PipeReader, Write as _},
    os::fd::AsRawFd as _,
    process::Stdio,
};

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::process::ChildStdin;

/// Maximum size of a credential: a pipe takes that much before it is read.
const MAX_BYTES: usize = 32 << 10;

/// Returns a standard input that begins with the credential.
pub(super) fn input_with(secret: &str) -> io::Result<(Stdio, ChildStdin)> {
    if secret.len() > MAX_BYTES || secret.contains('\n') {
        return Err(io::Error::other("a credential must be one line of at most 32 KiB"));
    }
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(secret.as_bytes())?;
    writer.write_all(b"\n")?;
    let writer = std::process::ChildStdin::from(std::os::fd::OwnedFd::from(writer));
    Ok((reader.into(), ChildStdin::from_std(writer)?))
}

/// Returns the credential in a pipe that the next child inherits, and the pipe's number there.
pub(super) fn pipe_of_input() -> io::Result<(PipeReader, String)> {
    let secret = first_line()?;
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(&secret)?;
    fcntl_setfd(&reader, FdFlags::empty())?;
    let number = reader.as_raw_fd().to_string();
    Ok((reader, number))
}

/// Reads the first line, and no byte more: the rest is for the CLI.
fn first_line() -> io::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while rustix::io::read(io::stdin(), &mut byte)? == 1 {
        if byte[0] == b'\n' {
            return Ok(line);
        }
        line.push(byte[0]);
        if line.len() > MAX_BYTES {
            break;
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
