//! Removal of what agents have left in folders.
//!
//! Agents run under the worker's account. They leave folders that not even their owner may change or list: builds make their module cache
//! read-only, and test suites take all rights away. Such a folder gets its owner's rights back, and is removed then.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

const OWNER_RIGHTS: u32 = 0o700;

/// Removes a folder, file or link, which may be gone already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match remove_once(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            restore_rights(path);
            remove_once(path)
        }
        removed => removed,
    }
}

/// Returns true if a folder or file is gone, or an agent has taken the rights on it away.
pub(super) fn is_gone_or_closed(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

fn remove_once(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Gives the owner all rights on the folder and on those below it, without following links. The removal after it reports what is left.
fn restore_rights(path: &Path) {
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(metadata) = fs::symlink_metadata(&folder) else { continue };
        if !metadata.is_dir() {
            continue;
        }
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & OWNER_RIGHTS != OWNER_RIGHTS {
            let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(mode | OWNER_RIGHTS));
        }
        // After the change: a folder without rights cannot be listed.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        folders.extend(entries.flatten().filter(is_folder).map(|entry| entry.path()));
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::symlink;

    use rustix::{process::Uid, thread::set_thread_res_uid};

    use super::*;

    /// Runs `work` under an account to which the modes of folders apply. Root may do everything; the kernel keeps accounts by thread.
    pub(in crate::providers::claude) fn without_root<T: Send>(
        work: impl FnOnce() -> T + Send,
    ) -> T {
        let work = || {
            if rustix::process::geteuid().is_root() {
                let nobody = Uid::from_raw(65_534);
                set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            work()
        };
        std::thread::scope(|scope| scope.spawn(work).join().unwrap())
    }

    /// Creates a folder that every account may write.
    pub(in crate::providers::claude) fn open_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o777);
        folder
    }

    pub(in crate::providers::claude) fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn folders_without_rights_are_removed_and_links_are_not_followed() {
        let (all, other) = (open_folder(), open_folder());
        without_root(|| {
            let (folder, kept) = (all.path().join("session"), other.path().join("kept"));
            for name in ["cache/module/deep", "closed/deeper"] {
                fs::create_dir_all(folder.join(name)).unwrap();
                fs::write(folder.join(name).join("file"), "text").unwrap();
            }
            fs::create_dir(&kept).unwrap();
            fs::write(kept.join("file"), "text").unwrap();
            symlink(&kept, folder.join("cache/link")).unwrap();
            set_mode(&kept, 0o500);
            for (name, mode) in
                [("cache/module/deep", 0o500), ("cache/module", 0o555), ("cache", 0o555)]
            {
                set_mode(&folder.join(name), mode);
            }
            set_mode(&folder.join("closed"), 0);
            set_mode(&folder, 0o555);
            let refused = fs::remove_dir_all(&folder).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "the modes have no effect");
            remove(&folder).unwrap();
            assert!(!folder.exists());
            let mode = fs::metadata(&kept).unwrap().permissions().mode();
            assert_eq!((mode & 0o777, kept.join("file").exists()), (0o500, true));
            set_mode(&kept, 0o700);
            remove(&folder).unwrap();
        });
    }
}
