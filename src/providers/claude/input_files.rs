//! The folder `in/` in the working directory of a session: files of the tasks of its conversation, for the agent to read.
//!
//! The agent may have changed or replaced anything there. Nothing here follows a symbolic link, and a file with another content is written
//! again. No process of the session runs meanwhile.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use uuid::Uuid;

use super::removal;

/// A file, and its path below the working directory.
#[derive(Debug, Clone)]
pub(super) struct InputFile {
    pub path: String,
    pub content: Arc<[u8]>,
}

/// Writes the files that are missing or differ.
pub(super) fn place(cwd: &Path, files: &[InputFile]) -> io::Result<()> {
    for file in files {
        place_one(cwd, file)?;
    }
    Ok(())
}

fn place_one(cwd: &Path, InputFile { path, content }: &InputFile) -> io::Result<()> {
    let mut folder = cwd.to_owned();
    let mut parts = relative_parts(path)?;
    let name = parts.pop().unwrap_or_default();
    for part in parts {
        folder.push(part);
        make_folder(&folder)?;
    }
    let place = folder.join(name);
    match fs::symlink_metadata(&place) {
        Ok(there) if there.is_file() && is_same(&place, content)? => return Ok(()),
        Ok(_) => removal::remove(&place)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // A turn that was cut off must not leave half a file under the name.
    let draft = folder.join(format!(".{}", Uuid::new_v4()));
    fs::write(&draft, content)?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o400))?;
    fs::rename(&draft, &place)
}

/// Splits a path. Names are checked when a task is added; here nothing may lead out of the folder.
fn relative_parts(path: &str) -> io::Result<Vec<PathBuf>> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Ok(PathBuf::from(name)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "a path leads out of its folder")),
    };
    Path::new(path).components().map(part).collect()
}

/// Makes a folder of the service, in place of anything else that the agent has put there.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(there) if there.is_dir() => {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        }
        Ok(_) => {
            fs::remove_file(folder)?;
            fs::DirBuilder::new().mode(0o700).create(folder)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::DirBuilder::new().mode(0o700).create(folder)
        }
        Err(error) => Err(error),
    }
}

fn is_same(place: &Path, content: &[u8]) -> io::Result<bool> {
    let n_bytes = fs::symlink_metadata(place)?.len();
    if n_bytes != u64::try_from(content.len()).unwrap_or(u64::MAX) {
        return Ok(false);
    }
    match fs::read(place) {
        Ok(there) => Ok(there == content),
        // The agent may have taken its own right to read it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn file(content: &[u8]) -> InputFile {
        InputFile { path: "in/ab/chart.png".to_owned(), content: content.into() }
    }

    #[test]
    fn files_are_read_only_and_written_again_if_they_differ() {
        let cwd = tempfile::tempdir().unwrap();
        let place_file = || place(cwd.path(), &[file(b"PNG")]).unwrap();
        let path = cwd.path().join("in/ab/chart.png");
        place_file();
        assert_eq!(fs::read(&path).unwrap(), b"PNG");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o400);
        fs::remove_file(&path).unwrap();
        fs::write(&path, b"XXX").unwrap();
        place_file();
        assert_eq!(fs::read(&path).unwrap(), b"PNG");
        fs::remove_file(&path).unwrap();
        fs::create_dir_all(path.join("deep")).unwrap();
        place_file();
        assert_eq!(fs::read(&path).unwrap(), b"PNG");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn links_of_the_agent_are_not_followed() {
        let (cwd, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(other.path(), cwd.path().join("in")).unwrap();
        place(cwd.path(), &[file(b"PNG")]).unwrap();
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
        let path = cwd.path().join("in/ab/chart.png");
        let secret = other.path().join("secret");
        fs::write(&secret, "PNG").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&secret, &path).unwrap();
        place(cwd.path(), &[file(b"PNG")]).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        let outside = InputFile { path: "../x".to_owned(), content: Arc::from(&b""[..]) };
        assert!(place(cwd.path(), &[outside]).is_err());
    }
}
