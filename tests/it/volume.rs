//! Volumes that are small enough to be filled.
//!
//! Each is mounted in its own mount namespace, which only one program and its children share. It vanishes with the last
//! of them, however the test ends. Without root, a user namespace allows the mount.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
};

/// A program of util-linux.
pub const PROGRAM: &str = "unshare";

const MOUNT: &str = "mount -t tmpfs -o mode=0777,size=$1m tmpfs \"$2\"; shift 2; exec \"$@\"";

/// Returns arguments with which [`PROGRAM`] runs another program with `folder` as a volume of this many MiB. The
/// program's own arguments follow.
pub fn arguments(mib: u32, folder: &Path, program: &str) -> Vec<String> {
    let namespaces: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["--mount"],
        false => &["--user", "--map-current-user", "--keep-caps", "--mount"],
    };
    let (mib, folder) = (mib.to_string(), folder.to_str().unwrap());
    let run = ["--", "sh", "-ec", MOUNT, "sh", &mib, folder, program];
    namespaces.iter().chain(&run).map(|word| (*word).to_owned()).collect()
}

/// A volume, reached through a process that sees it.
pub struct Volume {
    root: PathBuf,
}

impl Volume {
    pub fn seen_by(pid: u32, folder: &Path) -> Self {
        let root =
            PathBuf::from(format!("/proc/{pid}/root")).join(folder.strip_prefix("/").unwrap());
        // Otherwise the test would fill the disk of the machine.
        assert_ne!(
            fs::metadata(&root).unwrap().dev(),
            fs::metadata(folder).unwrap().dev(),
            "{} is not a separate volume",
            folder.display()
        );
        Self { root }
    }

    /// Creates a folder that belongs to the owner of `like`.
    pub fn make_folder(&self, name: &str, like: &Path) {
        let (folder, like) = (self.root.join(name), fs::metadata(like).unwrap());
        fs::create_dir(&folder).unwrap();
        chown(&folder, Some(like.uid()), Some(like.gid())).unwrap();
    }

    /// Fills all remaining space.
    pub fn fill(&self) {
        let path = self.ballast();
        let mut ballast = OpenOptions::new().create(true).append(true).open(path).unwrap();
        for n_bytes in [1 << 20, 4096, 1] {
            fill(&mut ballast, &vec![0; n_bytes]);
        }
    }

    /// Frees the space again.
    pub fn make_space(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.root.join("ballast")
    }
}

fn fill(ballast: &mut File, bytes: &[u8]) {
    loop {
        match ballast.write_all(bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return,
            Err(error) => panic!("{error}"),
        }
    }
}
