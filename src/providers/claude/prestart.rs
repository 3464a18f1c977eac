//! Processes of the CLI that are started before their turn, for agents that ask for it.
//!
//! After a successful turn the CLI is started again, resumed at the new head, and waits at its input. That saves most of the time that a
//! turn needs before its first request. The process serves one turn, and only one that would have started it in exactly the same way.
//! Another head, prompt, model, tool or credential gives another fingerprint, and the process is killed.
//!
//! Races: a turn takes the process of its session out before it touches the session's folders, and so does the removal of the folder. The
//! reaper removes files under the same lock, so neither sees half of the other's work. The process itself reads only its own session.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::launch::{CallFolder, Child};

const REAP_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct PrestartPool {
    max: usize,
    idle: Duration,
    waiting: Arc<Mutex<HashMap<Uuid, PrestartedProcess>>>,
}

/// A process that waits for its prompt.
#[derive(Debug)]
pub(super) struct PrestartedProcess {
    child: Child,
    fingerprint: Fingerprint,
    since: Instant,
    /// Files of the process. They are removed with it, unless a turn takes them over.
    ground: CallFolder,
}

/// Digest of everything that a process was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl PrestartPool {
    pub(super) fn new(max: usize, idle: Duration) -> Self {
        Self { max, idle, waiting: Arc::default() }
    }

    /// Takes out the process of a session. The caller then has the session's folders to itself.
    pub(super) fn take(&self, session: Uuid) -> Option<PrestartedProcess> {
        lock(&self.waiting).remove(&session)
    }

    pub(super) fn has_room(&self) -> bool {
        self.max > 0
    }

    /// Adds a waiting process. If there are too many, the one that has waited longest is killed.
    pub(super) fn put(&self, session: Uuid, waiting: PrestartedProcess) {
        let mut all = lock(&self.waiting);
        let is_first = all.is_empty();
        all.insert(session, waiting);
        if all.len() > self.max {
            let oldest = all.iter().min_by_key(|(_, waiting)| waiting.since).map(|(id, _)| *id);
            oldest.and_then(|id| all.remove(&id));
        }
        if is_first {
            tokio::spawn(reap(Arc::downgrade(&self.waiting), self.idle));
        }
    }
}

impl PrestartedProcess {
    pub(super) fn new(child: Child, fingerprint: Fingerprint, ground: CallFolder) -> Self {
        Self { child, fingerprint, since: Instant::now(), ground }
    }

    /// Returns `None` if the process has ended meanwhile, by itself or because another worker took its session over.
    pub(super) fn if_running(self) -> Option<Self> {
        self.child.is_running().then_some(self)
    }

    /// Returns the call whose files the process has read.
    pub(super) fn call(&self) -> Uuid {
        self.ground.call()
    }

    /// Returns the child if it was started with `wanted` and still runs. Otherwise it is killed.
    pub(super) fn into_child(mut self, wanted: Fingerprint) -> Option<Child> {
        self.ground.hand_over();
        (self.fingerprint == wanted && self.child.is_running()).then_some(self.child)
    }
}

impl Fingerprint {
    /// Hashes everything that a process is started with. `files` is the digest of the files that it reads at its start.
    pub(super) fn of(
        arguments: &[OsString],
        variables: &[(OsString, OsString)],
        cwd: &Path,
        credential: &str,
        files: [u8; 32],
    ) -> Self {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        arguments.iter().for_each(|argument| add(argument.as_encoded_bytes()));
        for (name, value) in variables {
            add(name.as_encoded_bytes());
            add(value.as_encoded_bytes());
        }
        add(cwd.as_os_str().as_encoded_bytes());
        add(credential.as_bytes());
        add(&files);
        Self(hash.finalize().into())
    }
}

/// Removes processes that have waited too long or ended. Returns when none waits any more; the next one starts it again.
async fn reap(all: Weak<Mutex<HashMap<Uuid, PrestartedProcess>>>, idle: Duration) {
    loop {
        sleep(REAP_EVERY.min(idle)).await;
        let Some(all) = all.upgrade() else { return };
        let mut waiting = lock(&all);
        waiting.retain(|_, waiting| waiting.since.elapsed() < idle && waiting.child.is_running());
        if waiting.is_empty() {
            return;
        }
    }
}

fn lock(
    waiting: &Mutex<HashMap<Uuid, PrestartedProcess>>,
) -> MutexGuard<'_, HashMap<Uuid, PrestartedProcess>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
