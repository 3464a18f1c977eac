//! The catalogue of a running service: read again when a file has changed.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{Catalogue, Config, Problems};

/// Cheap to ask before every turn: it looks at the files' times and lengths once in
/// [`Config::look_every_ms`], and reads them only if those changed.
#[derive(Debug)]
pub struct Library {
    config: Config,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stamps: Vec<Stamp>,
    looked_at: Instant,
    /// What the files named besides when they were read last.
    named: Vec<PathBuf>,
    catalogue: Arc<Catalogue>,
    /// Of the files as they are now, where they are not what `catalogue` was made from.
    problems: Option<Problems>,
}

#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    len: u64,
    changed_at: Option<SystemTime>,
}

impl Library {
    /// A service does not start on files that have problems.
    pub fn open(config: &Config) -> Result<Self, Problems> {
        // Read twice, because only the files say which others there are to be watched.
        let named = RefCell::default();
        Catalogue::load_naming(config, &named)?;
        let named = named.into_inner();
        let stamps = stamps(config, &named);
        let catalogue = Arc::new(Catalogue::load(config)?);
        let state = State { stamps, looked_at: Instant::now(), named, catalogue, problems: None };
        Ok(Self { config: config.clone(), state: Mutex::new(state) })
    }

    /// The catalogue as the files say now; if they have problems, as they said when they last had none.
    pub fn current(&self) -> Arc<Catalogue> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked_at.elapsed() < Duration::from_millis(self.config.look_every_ms) {
            return Arc::clone(&state.catalogue);
        }
        state.looked_at = Instant::now();
        // Taken before the files are read: a change in between is seen the next time.
        let stamps = stamps(&self.config, &state.named);
        if state.stamps != stamps {
            state.stamps = stamps;
            let named = RefCell::default();
            let loaded = Catalogue::load_naming(&self.config, &named);
            // New names have no stamps yet, so the files are read once more at the next look.
            state.named = named.into_inner();
            match loaded {
                Ok(catalogue) => {
                    tracing::info!(
                        "the files of agents, skills and nodes have changed and were read again"
                    );
                    state.catalogue = Arc::new(catalogue);
                    state.problems = None;
                }
                Err(problems) => {
                    tracing::warn!(%problems, "the changed files of agents, skills and nodes are not used");
                    state.problems = Some(problems);
                }
            }
        }
        Arc::clone(&state.catalogue)
    }

    /// Why the files as they are now are not in use.
    pub fn problems(&self) -> Option<Problems> {
        self.current();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).problems.clone()
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
