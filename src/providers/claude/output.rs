//! The folder `out/` in the working directory of a session: files that the agent writes for the readers of its task.
//!
//! The folder belongs to a task. Another attempt at the same task finds the files of the one before, which the transcript may mention; the
//! next task begins with an empty folder. Nothing here follows a symbolic link: an agent could make one to a file that it may not read.

use std::{
    ffi::CStr,
    fs::{self, File},
    io::{self, Read as _},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat},
    io::Errno,
};
use uuid::Uuid;

use super::{removal, transcript::write_private};
use crate::providers::{OutputFile, OutputFiles, OutputLimits, OutputSpace, SkipReason};

pub(super) const FOLDER: &str = "out";
/// File in the folder of a session with the name of the turn that `out/` belongs to.
const OWNER: &str = "output-of";
/// Entries that are looked at, besides the limits of the settings. A program can create very many.
const MAX_ENTRIES: usize = 10_000;
/// Longest path, which also limits the depth. Longer names are refused later.
const MAX_PATH_BYTES: usize = 1024;

const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Empties the folder, unless it belongs to this turn.
pub(super) fn begin(session: &Path, folder: &Path, turn: &str) -> io::Result<()> {
    let owner = session.join(OWNER);
    let is_same = match fs::read_to_string(&owner) {
        Ok(name) => name == turn,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    let is_folder = match fs::symlink_metadata(folder) {
        Ok(metadata) => Some(metadata.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match is_folder {
        Some(true) if is_same => return Ok(()),
        Some(true) => remove(session, folder)?,
        Some(false) => fs::remove_file(folder)?,
        None => {}
    }
    fs::create_dir(folder)?;
    write_private(&owner, turn.as_bytes())
}

/// Removes the folder. One with files that this account may not remove is moved aside, to go with the session's folder.
fn remove(session: &Path, folder: &Path) -> io::Result<()> {
    if removal::remove(folder).is_ok() {
        return Ok(());
    }
    fs::rename(folder, session.join(format!("{OWNER}-{}", Uuid::new_v4())))
}

/// Reads the files below the folder, in the order of their names.
pub(super) fn read(folder: &Path, limits: OutputLimits) -> io::Result<OutputFiles> {
    let mut reader =
        Reader { found: OutputFiles::default(), space: OutputSpace::new(limits), n_entries: 0 };
    match openat(CWD, folder, READ | OFlags::DIRECTORY, Mode::empty()) {
        Ok(opened) => reader.read_folder(&opened, &[])?,
        Err(Errno::NOENT) => {}
        // A file or a link in place of the folder.
        Err(Errno::NOTDIR | Errno::LOOP) => reader.skip(b"", not_regular("not a folder")),
        Err(error) => return Err(error.into()),
    }
    Ok(reader.found)
}

struct Reader {
    found: OutputFiles,
    space: OutputSpace,
    n_entries: usize,
}

impl Reader {
    fn read_folder(&mut self, folder: &OwnedFd, path: &[u8]) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                self.n_entries += 1;
                if self.n_entries > MAX_ENTRIES {
                    self.skip(path, SkipReason::TooManyEntries { max: MAX_ENTRIES });
                    break;
                }
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            let path =
                [path, name.to_bytes()].join(if path.is_empty() { "" } else { "/" }.as_bytes());
            if let Err(reason) = self.read_entry(folder.as_fd(), &name, &path) {
                self.skip(&path, reason);
            }
        }
        Ok(())
    }

    fn read_entry(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        path: &[u8],
    ) -> Result<(), SkipReason> {
        // Opening a pipe would wait for its writer.
        let opened = openat(folder, name, READ | OFlags::NONBLOCK, Mode::empty());
        let opened = opened.map_err(|error| match error {
            Errno::LOOP => not_regular("a symbolic link"),
            Errno::NXIO => not_regular("a socket"),
            error => unreadable(&error.into()),
        })?;
        let stat = fstat(&opened).map_err(|error| unreadable(&error.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.read_file(opened).map(|content| {
                self.found.files.push(OutputFile { name: path.to_owned(), content });
            }),
            FileType::Directory if path.len() > MAX_PATH_BYTES => {
                Err(unreadable(&io::ErrorKind::InvalidFilename.into()))
            }
            FileType::Directory => {
                self.read_folder(&opened, path).map_err(|error| unreadable(&error))
            }
            FileType::Fifo => Err(not_regular("a pipe")),
            _ => Err(not_regular("a device")),
        }
    }

    fn read_file(&mut self, opened: OwnedFd) -> Result<Vec<u8>, SkipReason> {
        let file = File::from(opened);
        let n_bytes = file.metadata().map_err(|error| unreadable(&error))?.len();
        self.space.check(n_bytes)?;
        let mut content = Vec::with_capacity(usize::try_from(n_bytes).unwrap_or_default());
        let most = self.space.max_file_bytes().saturating_add(1);
        file.take(most).read_to_end(&mut content).map_err(|error| unreadable(&error))?;
        // It may have grown since.
        let n_bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        self.space.check(n_bytes)?;
        self.space.take(n_bytes);
        Ok(content)
    }

    fn skip(&mut self, path: &[u8], reason: SkipReason) {
        self.found.skip(path.to_owned(), reason);
    }
}

fn not_regular(kind: &'static str) -> SkipReason {
    SkipReason::NotRegular { kind }
}

fn unreadable(error: &io::Error) -> SkipReason {
    SkipReason::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt as _, fs::symlink, net::UnixListener},
    };

    use rustix::fs::mknodat;

    use super::*;

    const LIMITS: OutputLimits =
        OutputLimits { max_files: 10, max_file_bytes: 100, max_turn_bytes: 1_000 };

    fn names(found: &OutputFiles) -> Vec<String> {
        let name = |file: &OutputFile| String::from_utf8_lossy(&file.name).into_owned();
        found.files.iter().map(name).collect()
    }

    fn reasons(found: &OutputFiles) -> Vec<String> {
        let words = |name: &[u8], reason: &SkipReason| {
            format!("{}: {reason}", String::from_utf8_lossy(name))
        };
        found.skipped.iter().map(|it| words(&it.name, &it.reason)).collect()
    }

    #[test]
    fn regular_files_are_read_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("b/c")).unwrap();
        for (name, text) in [("z", "last"), ("b/c/d.txt", "deep"), ("a", "first"), ("empty", "")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::write(folder.path().join(OsStr::from_bytes(b"\xff\n")), "odd").unwrap();
        let found = read(folder.path(), LIMITS).unwrap();
        assert_eq!(names(&found), ["a", "b/c/d.txt", "empty", "z", "\u{fffd}\n"]);
        assert_eq!(found.files[1].content, b"deep");
        assert!(found.skipped.is_empty());
    }

    #[test]
    fn links_pipes_and_sockets_are_left_out_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("/etc/passwd", at("link")).unwrap();
        symlink("/etc", at("folder")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        let found = read(folder.path(), LIMITS).unwrap();
        assert_eq!(names(&found), [""; 0]);
        let only = "and only regular files are kept";
        assert_eq!(
            reasons(&found),
            [
                format!("folder: it is a symbolic link, {only}"),
                format!("link: it is a symbolic link, {only}"),
                format!("pipe: it is a pipe, {only}"),
                format!("socket: it is a socket, {only}"),
            ]
        );
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        symlink(outside.path(), at("out")).unwrap();
        let found = read(&at("out"), LIMITS).unwrap();
        assert_eq!(reasons(&found), [format!(": it is not a folder, {only}")]);
    }

    #[test]
    fn long_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        // A sparse file of 1 TB.
        File::create(folder.path().join("huge")).unwrap().set_len(1 << 40).unwrap();
        fs::write(folder.path().join("small"), "small").unwrap();
        let found = read(folder.path(), LIMITS).unwrap();
        assert_eq!(names(&found), ["small"]);
        let huge = "huge: it has 1099511627776 bytes, more than output_files.max_file_bytes (100)";
        assert_eq!(reasons(&found), [huge]);
    }

    #[test]
    fn the_folder_is_emptied_for_the_next_task_and_not_for_a_retry() {
        let session = tempfile::tempdir().unwrap();
        let folder = session.path().join(FOLDER);
        begin(session.path(), &folder, "task-1").unwrap();
        fs::write(folder.join("a"), "kept").unwrap();
        begin(session.path(), &folder, "task-1").unwrap();
        assert_eq!(names(&read(&folder, LIMITS).unwrap()), ["a"]);
        begin(session.path(), &folder, "task-2").unwrap();
        assert!(read(&folder, LIMITS).unwrap().is_empty());
        fs::remove_dir(&folder).unwrap();
        symlink("/etc", &folder).unwrap();
        begin(session.path(), &folder, "task-2").unwrap();
        assert!(fs::symlink_metadata(&folder).unwrap().is_dir());
    }
}
