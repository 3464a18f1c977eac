//! Creates the cluster, completely or not at all.
//!
//! initdb works in a draft folder beside the home, and only a finished cluster is renamed into its place. A crash
//! leaves a draft. The next start removes it, even if the orphaned initdb still works in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use tokio::time::Instant;
use uuid::Uuid;

use super::address::SUPERUSER;
use super::binaries::Binaries;
use super::command::{self, Runner};
use super::home::{Home, make_dir, private_file_options};
use super::occupancy::Vacancy;
use super::process::{self, Signal};
use super::{Error, Purpose, log_file, poll};

/// Locales to try, in order. Both sort by bytes, independently of the system's libraries. C.UTF-8 classifies the
/// letters of all languages, but some systems lack it.
const LOCALES: [&[&str]; 2] =
    [&["--lc-collate=C", "--lc-ctype=C.UTF-8"], &["--lc-collate=C", "--lc-ctype=C"]];

pub(super) async fn create(
    home: &Home,
    binaries: &Binaries,
    runner: &Runner,
    purpose: Purpose,
) -> Result<(), Error> {
    home.check_free_for_a_cluster()?;
    let begun = Instant::now();
    let draft = Home::at(draft_beside(home));
    lay_out(&draft, runner)?;
    run_initdb(&draft, binaries, runner, purpose).await?;
    finish(&draft, home, runner)?;
    let (cluster, major) = (home.root().display(), binaries.major);
    tracing::info!(%cluster, major, took_ms = begun.elapsed().as_millis(), "private Postgres cluster created");
    Ok(())
}

/// Removes the drafts of interrupted attempts. The caller holds the folder's lock, so no draft can belong to a live service.
pub(super) async fn remove_drafts(home: &Home, deadline: Instant) -> Result<(), Error> {
    let Some((parent, prefix)) = draft_names(home) else {
        return Ok(());
    };
    let Ok(entries) = fs::read_dir(&parent) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            remove_draft(&Home::at(entry.path()), deadline).await?;
        }
    }
    Ok(())
}

/// Creates a folder of the server's account, for the socket or the cluster.
pub(super) fn make_servers_dir(path: &Path, runner: &Runner) -> Result<(), Error> {
    make_dir(path, 0o700)?;
    let found = fs::symlink_metadata(path).map_err(Error::folder("look at", path))?;
    if !found.is_dir() {
        // Through a link, root would give away the target of the link.
        return Err(Error::NotAFolder { path: path.to_path_buf() });
    }
    give_to_server(path, runner)
}

fn draft_beside(home: &Home) -> PathBuf {
    let (parent, prefix) = draft_names(home).unwrap_or_default();
    parent.join(format!("{prefix}{}", Uuid::new_v4().simple()))
}

fn draft_names(home: &Home) -> Option<(PathBuf, String)> {
    let name = home.root().file_name()?.to_str()?;
    Some((home.root().parent()?.to_path_buf(), format!("{name}.new-")))
}

fn lay_out(draft: &Home, runner: &Runner) -> Result<(), Error> {
    // The server's account has to pass through, but does not need to read.
    let mode = if runner.account.is_some() { 0o711 } else { 0o700 };
    make_dir(draft.root(), mode)?;
    make_servers_dir(&draft.data(), runner)?;
    make_servers_dir(&draft.run(), runner)?;
    let path = draft.password_file();
    // Two random uuids: 244 bits from the system's generator.
    let password = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let written =
        private_file_options().write(true).create_new(true).open(&path).and_then(|mut file| {
            writeln!(file, "{password}")?;
            file.sync_all()
        });
    written.map_err(Error::folder("write the password", &path))?;
    // initdb reads it as the server's account; `finish` takes it back.
    give_to_server(&path, runner)
}

async fn run_initdb(
    draft: &Home,
    binaries: &Binaries,
    runner: &Runner,
    purpose: Purpose,
) -> Result<(), Error> {
    let mut said = String::new();
    for locale in LOCALES {
        let program = binaries.program("initdb");
        let mut command = runner.command(&program, draft.root());
        command
            .arg("-D")
            .arg(draft.data())
            .arg("--pwfile")
            .arg(draft.password_file())
            .args(["--username", SUPERUSER, "--encoding=UTF8", "--locale=C", "--no-instructions"])
            .args(["--auth-local=scram-sha-256", "--auth-host=scram-sha-256"])
            .args(locale)
            .arg(match purpose {
                Purpose::Keep => "--data-checksums",
                Purpose::Throwaway => "--no-sync",
            });
        if let Some(vacancy) = Vacancy::claim(draft)? {
            command.stdin(vacancy.into_stdin());
        }
        let output =
            command::output(command).await.map_err(|source| Error::Run { program, source })?;
        if output.status.success() {
            return Ok(());
        }
        said = format!(
            "{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        if !said.contains("invalid locale") {
            break;
        }
    }
    let _ = fs::remove_dir_all(draft.root());
    Err(Error::Initdb { output: log_file::last_lines(&said) })
}

/// Moves the cluster to its place. initdb has synced its files; the folders and names around them are synced here.
fn finish(draft: &Home, home: &Home, runner: &Runner) -> Result<(), Error> {
    let password = draft.password_file();
    if runner.account.is_some() {
        lchown(&password, Some(0), Some(0)).map_err(Error::folder("take back", &password))?;
    }
    sync_dir(draft.root())?;
    fs::rename(draft.root(), home.root())
        .map_err(Error::folder("move the new cluster to", home.root()))?;
    sync_dir(home.root().parent().unwrap_or(home.root()))
}

fn sync_dir(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(Error::folder("sync", path))
}

fn give_to_server(path: &Path, runner: &Runner) -> Result<(), Error> {
    match &runner.account {
        Some(account) => lchown(path, Some(account.uid), Some(account.gid))
            .map_err(Error::folder("give away", path)),
        None => Ok(()),
    }
}

async fn remove_draft(draft: &Home, deadline: Instant) -> Result<(), Error> {
    let root = draft.root();
    tracing::info!(folder = %root.display(), "removing an unfinished cluster");
    let removed = poll::until(deadline, || {
        for pid in process::servers(root, &draft.cluster_name()) {
            process::send(pid, Signal::KILL);
        }
        if Vacancy::claim(draft)?.is_none() {
            return Ok(None);
        }
        match fs::remove_dir_all(root) {
            Ok(()) => Ok(Some(())),
            // A child of the initdb that was just killed may still have written a file.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(None),
            Err(error) => Err(Error::folder("remove", root)(error)),
        }
    });
    removed.await?.ok_or_else(|| Error::Occupied {
        folder: root.to_path_buf(),
        pids: process::servers(root, &draft.cluster_name()),
    })
}
