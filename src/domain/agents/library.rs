//! The catalogue of a running service, reloaded when a file changes.
//!
//! One caller at a time reads the files, on a thread from which the runtime has moved all other tasks. Other callers get the catalogue of
//! the last reading, so that a folder that hangs delays one turn and not the process. While files are read, only the lock `Library::files`
//! is held.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
    time::{Duration, Instant, SystemTime},
};

use tokio::runtime::{Handle, RuntimeFlavor};

use super::{Catalogue, Config, Problems};

/// The files of agents, skills and nodes, with the catalogue made of them. Cheap to call before every turn: it checks times and lengths of
/// the files once per [`Config::look_every_ms`], and reads the files only if those have changed.
#[derive(Debug)]
pub struct Library {
    config: Config,
    /// Locked by the caller that checks and reads the files.
    files: Mutex<Files>,
    known: Mutex<Arc<Catalogue>>,
}

/// The state of the files at the last check.
#[derive(Debug)]
struct Files {
    stamps: Vec<Stamp>,
    looked_at: Instant,
    /// Further paths that the files named at the last reading.
    named: Vec<PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    len: u64,
    changed_at: Option<SystemTime>,
}

impl Library {
    /// # Errors
    ///
    /// A folder cannot be read, or contains no agent. Problems of single files are logged as warnings, and their agents are refused.
    pub fn open(config: &Config) -> Result<Self, Problems> {
        // Read twice, because only the first reading tells which further files have to be watched.
        let named = RefCell::default();
        Catalogue::load_naming(config, &named)?;
        let named = named.into_inner();
        let stamps = stamps(config, &named);
        let catalogue = Arc::new(Catalogue::load(config)?);
        warn_problems(&catalogue);
        Ok(Self {
            config: config.clone(),
            files: Mutex::new(Files { stamps, looked_at: Instant::now(), named }),
            known: Mutex::new(catalogue),
        })
    }

    /// Returns the catalogue of the files as they are now. If a folder cannot be used, this is the last usable one, with the problems of the
    /// folder.
    pub fn current(&self) -> Arc<Catalogue> {
        self.reload_if_due();
        Arc::clone(&self.lock_catalogue())
    }

    fn reload_if_due(&self) {
        let mut files = match self.files.try_lock() {
            Ok(files) => files,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another caller is checking the files.
            Err(TryLockError::WouldBlock) => return,
        };
        if files.looked_at.elapsed() >= Duration::from_millis(self.config.look_every_ms) {
            files.looked_at = Instant::now();
            run_blocking(|| self.reload_if_changed(&mut files));
        }
    }

    fn reload_if_changed(&self, files: &mut Files) {
        // Taken before the files are read: a change in between is seen the next time.
        let stamps = stamps(&self.config, &files.named);
        if files.stamps == stamps {
            return;
        }
        files.stamps = stamps;
        let named = RefCell::default();
        let loaded = Catalogue::load_naming(&self.config, &named);
        // New names have no stamps yet, so the files are read once more at the next look.
        files.named = named.into_inner();
        let mut known = self.lock_catalogue();
        match loaded {
            Ok(mut catalogue) => {
                tracing::info!("read the changed files of agents, skills and nodes");
                catalogue.keep_last_versions(&known);
                warn_problems(&catalogue);
                *known = Arc::new(catalogue);
            }
            Err(problems) => {
                tracing::warn!(%problems, "cannot use the changed files of agents, skills and nodes");
                *known = Arc::new(known.with_problems(problems));
            }
        }
    }

    fn lock_catalogue(&self) -> MutexGuard<'_, Arc<Catalogue>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn warn_problems(catalogue: &Catalogue) {
    for agent in catalogue.broken_agents() {
        tracing::warn!(agent, "this agent is refused: its file has problems");
    }
    let problems = catalogue.problems();
    if !problems.is_empty() {
        tracing::warn!(%problems, "files of agents, skills or nodes are refused until they are fixed");
    }
}

/// Runs blocking work. A runtime with several threads first moves this thread's other tasks to another one.
fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

fn stamps(config: &Config, named: &[PathBuf]) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    named.iter().for_each(|path| stamps.extend(stamp(path.clone())));
    stamp_folder(&config.folder, &mut stamps);
    stamp_folder(&config.skills_folder, &mut stamps);
    stamp_folder(&config.nodes_folder, &mut stamps);
    stamps.sort_by(|a, b| a.path.cmp(&b.path));
    stamps
}

fn stamp_folder(folder: &Path, stamps: &mut Vec<Stamp>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let path = if path.is_dir() { path.join("SKILL.md") } else { path };
        stamps.extend(stamp(path));
    }
}

fn stamp(path: PathBuf) -> Option<Stamp> {
    let metadata = fs::metadata(&path).ok()?;
    Some(Stamp { path, len: metadata.len(), changed_at: metadata.modified().ok() })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::domain::agents::Provider;

    /// A file on a lost network share, for example.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_hanging_file_blocks_only_its_own_reader() {
        let nowhere = tempfile::tempdir().unwrap();
        let at = |name| nowhere.path().join(name);
        let config = Config {
            folder: at("agents"),
            skills_folder: at("skills"),
            nodes_folder: at("nodes"),
            look_every_ms: 0,
            known_providers: Vec::new(),
            session_holders: Vec::new(),
            provider: Provider::parse("sim").unwrap(),
            model: "sim-1".to_owned(),
            variables: Vec::new(),
            fallback_after: 3,
            fallback_secs: 900,
            max_rounds: 16,
            max_same_calls: 3,
            tool_timeout_secs: 60,
            tool_result_max_chars: 24_000,
        };
        let library = Arc::new(Library::open(&config).unwrap());
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (release, released) = mpsc::channel::<()>();
        let reader = tokio::spawn({
            let library = Arc::clone(&library);
            async move {
                let _files = library.files.lock().unwrap();
                begin.send(()).unwrap();
                run_blocking(|| released.recv())
            }
        });
        begun.await.unwrap();
        let (tell, hear) = mpsc::channel();
        tokio::spawn(async move { tell.send(library.current().agents().count()) });
        // On a thread of its own: a runtime that hangs has no timers.
        let hear = move || hear.recv_timeout(Duration::from_secs(10));
        let other = tokio::task::spawn_blocking(hear).await.unwrap();
        assert!(other.is_ok_and(|n_agents| n_agents > 0), "the read waits for the file");
        assert!(!reader.is_finished());
        drop(release);
        assert!(reader.await.unwrap().is_err());
    }
}
