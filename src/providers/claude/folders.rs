//! The folders that sessions have left on this host.

use std::{
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

use super::{Claude, Error, launch::CallFolder, removal, turn::run_blocking_in};

impl Claude {
    /// Returns the names of folders that have not changed for `quiet`, nor for twice the longest call: no call uses them any more.
    pub async fn quiet_folders(&self, quiet: Duration) -> Result<Vec<Uuid>, Error> {
        self.quiet_folders_in(&self.surroundings.sessions, quiet).await
    }

    /// Returns the quiet folders in another folder that calls work in.
    pub async fn quiet_folders_in(&self, all: &Path, quiet: Duration) -> Result<Vec<Uuid>, Error> {
        let longest = Duration::from_secs(self.config.total_timeout_secs);
        let before: SystemTime =
            (self.surroundings.clock.machine_now() - quiet.max(longest * 2)).into();
        let folder = all.to_owned();
        run_blocking_in("list folders", all, move || quiet_since(&folder, before)).await
    }

    /// Removes the folder of a session, and returns its size in bytes; `None`: it has none. Only for sessions that no call will name again: a
    /// process that runs in the folder, or waits there for the next turn, is ended first.
    pub async fn remove_folder(&self, session: Uuid) -> Result<Option<u64>, Error> {
        // It has the conversation in its memory.
        drop(self.ahead.take(session));
        let folder = self.surroundings.sessions.join(session.to_string());
        let removed = folder.clone();
        run_blocking_in("remove files", &folder, move || {
            CallFolder::end_call_in(&removed)?;
            remove(&removed)
        })
        .await
    }

    /// Removes a folder in another folder that calls work in.
    pub async fn remove_folder_in(&self, all: &Path, name: Uuid) -> Result<Option<u64>, Error> {
        let folder = all.join(name.to_string());
        let removed = folder.clone();
        run_blocking_in("remove files", &folder, move || remove(&removed)).await
    }
}

/// Removes a folder, and returns its size in bytes; `None`: there is none, or another process of this host has removed it.
fn remove(folder: &Path) -> io::Result<Option<u64>> {
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let n_bytes = bytes_in(folder)?;
    removal::remove(folder).map(|()| Some(n_bytes))
}

fn quiet_since(sessions: &Path, before: SystemTime) -> io::Result<Vec<Uuid>> {
    let entries = match fs::read_dir(sessions) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut quiet = Vec::new();
    for entry in entries {
        let entry = entry?;
        // Entries with other names do not belong to sessions.
        let name = entry.file_name().to_str().and_then(|name| name.parse::<Uuid>().ok());
        if let Some(name) = name
            && entry.file_type()?.is_dir()
            && newest_in(&entry.path())? < before
        {
            quiet.push(name);
        }
    }
    Ok(quiet)
}

fn newest_in(folder: &Path) -> io::Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    each_below(folder, &mut |metadata| newest = newest.max(metadata.modified().unwrap_or(newest)))?;
    Ok(newest)
}

fn bytes_in(folder: &Path) -> io::Result<u64> {
    let mut n_bytes = 0;
    each_below(folder, &mut |metadata| {
        if metadata.is_file() {
            n_bytes += metadata.len();
        }
    })?;
    Ok(n_bytes)
}

/// Visits the folder itself and everything below it, without following links. Entries that vanish meanwhile are skipped, and folders that
/// an agent has made unreadable are not listed.
fn each_below(path: &Path, look: &mut impl FnMut(&fs::Metadata)) -> io::Result<()> {
    let mut paths = vec![path.to_owned()];
    while let Some(path) = paths.pop() {
        let looked = fs::symlink_metadata(&path).and_then(|metadata| {
            look(&metadata);
            if metadata.is_dir() {
                for entry in fs::read_dir(&path)? {
                    paths.push(entry?.path());
                }
            }
            Ok(())
        });
        match looked {
            Err(error) if removal::is_gone_or_closed(error.kind()) => {}
            looked => looked?,
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::claude::removal::tests::{open_folder, set_mode, without_root};

    #[test]
    fn unreadable_folders_of_an_agent_do_not_keep_others_from_being_listed() {
        let (all, name) = (open_folder(), Uuid::new_v4());
        without_root(|| {
            let folder = all.path().join(name.to_string());
            for below in ["closed", "listed"] {
                fs::create_dir_all(folder.join(below)).unwrap();
                fs::write(folder.join(below).join("file"), [b'x'; 1000]).unwrap();
            }
            set_mode(&folder.join("closed"), 0);
            // Its files can be listed, and not examined.
            set_mode(&folder.join("listed"), 0o400);
            fs::write(folder.join("file"), "text").unwrap();
            let later = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
            assert_eq!(quiet_since(all.path(), later).unwrap(), [name]);
            assert!(quiet_since(all.path(), SystemTime::UNIX_EPOCH).unwrap().is_empty());
            assert_eq!(bytes_in(&folder).unwrap(), 4);
            removal::remove(&folder).unwrap();
        });
    }
}
