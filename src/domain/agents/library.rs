//! The catalogue of a running service, reloaded when a file changes.
//!
//! One caller at a time reads the files, on a thread from which the runtime has moved all other tasks. Turns wait for it for a moment, without
//! a thread; other callers get the catalogue of the last reading. So a folder that hangs delays a few turns and not the process. While files
//! are read, only the lock `Library::files` is held for longer.

use std::{
    cell::RefCell,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard},
    time::timeout_at,
};

use super::{Catalogue, Config, Problems, catalogue::skill_file};
use crate::domain::files::{self, MAX_BYTES, read};

/// Time for which a changed file is compared by its contents. A file system whose times are this coarse can give the same time to two
/// versions of a file.
const SETTLING: Duration = Duration::from_secs(2);
/// Longest time for which a turn waits for another caller that reads the files: a folder may hang.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The files of agents, skills and nodes, with the catalogue made of them. A check compares the metadata of the files, and reads them only
/// if these have changed.
#[derive(Debug)]
pub struct Library {
    config: Config,
    /// Locked by the caller that checks and reads the files.
    files: AsyncMutex<Files>,
    /// The start of the check that runs.
    checking_since: Mutex<Option<Instant>>,
    known: Mutex<Arc<Catalogue>>,
}

/// The state of the files at the last check.
#[derive(Debug)]
struct Files {
    /// Sorted by path.
    stamps: Vec<Stamp>,
    /// The start of the check.
    looked_at: Instant,
    /// Further paths that the files named at the last reading.
    named: Vec<PathBuf>,
}

/// A file at a check.
#[derive(Debug)]
struct Stamp {
    path: PathBuf,
    version: FileVersion,
    /// Until [`SETTLING`] is over.
    recent: Option<RecentChange>,
}

/// The metadata of a file by which its versions differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    len: u64,
    modified_at: Option<SystemTime>,
    /// Changes also if a program sets the time of the modification: seconds and nanoseconds.
    changed_at: (i64, i64),
    /// Changes if another file takes the name.
    inode: u64,
}

/// A change of a file that was seen a moment ago.
#[derive(Debug, Clone, Copy)]
struct RecentChange {
    seen_at: Instant,
    /// `None`: the file cannot be read.
    content_hash: Option<u64>,
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
        let looked_at = Instant::now();
        let stamps = stamps(config, &named, &[]);
        let catalogue = Arc::new(Catalogue::load(config)?);
        warn_problems(&catalogue);
        Ok(Self {
            config: config.clone(),
            files: AsyncMutex::new(Files { stamps, looked_at, named }),
            checking_since: Mutex::new(None),
            known: Mutex::new(catalogue),
        })
    }

    /// Returns the catalogue of the files as they were at most [`Config::look_every_ms`] ago. If a folder cannot be used, this is the last
    /// usable one, with the problems of the folder.
    pub fn current(&self) -> Arc<Catalogue> {
        self.check_if_due();
        Arc::clone(&self.lock_catalogue())
    }

    /// Returns the catalogue of the files as they are now, for a turn that begins. Callers at the same time share a check.
    pub async fn latest(&self) -> Arc<Catalogue> {
        let called_at = Instant::now();
        // A check that began since then has seen all that was saved before the call.
        if let Some(mut files) = self.wait_for_files(called_at).await
            && files.looked_at < called_at
        {
            run_blocking(|| self.check(&mut files));
        }
        Arc::clone(&self.lock_catalogue())
    }

    /// Locks the files. `None`: another caller has been reading them for too long.
    async fn wait_for_files(&self, called_at: Instant) -> Option<AsyncMutexGuard<'_, Files>> {
        let mut files = pin!(self.files.lock());
        loop {
            let since = self.checking_since();
            let end = since.unwrap_or(called_at).min(called_at) + MAX_WAIT;
            if let Ok(files) = timeout_at(end.into(), files.as_mut()).await {
                return Some(files);
            }
            // If another check has begun meanwhile, it is not the one that takes so long.
            if self.checking_since() == since {
                return None;
            }
        }
    }

    fn checking_since(&self) -> Option<Instant> {
        *self.checking_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_if_due(&self) {
        // Otherwise another caller is checking the files.
        let Ok(mut files) = self.files.try_lock() else { return };
        if files.looked_at.elapsed() >= Duration::from_millis(self.config.look_every_ms) {
            run_blocking(|| self.check(&mut files));
        }
    }

    fn check(&self, files: &mut Files) {
        let set_since = |since| {
            *self.checking_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
        };
        files.looked_at = Instant::now();
        set_since(Some(files.looked_at));
        self.reload_if_changed(files);
        set_since(None);
    }

    fn reload_if_changed(&self, files: &mut Files) {
        // Taken before the files are read: a change in between is seen the next time.
        let stamps = stamps(&self.config, &files.named, &files.stamps);
        let is_changed = are_changed(&files.stamps, &stamps);
        files.stamps = stamps;
        files.stamps.iter_mut().for_each(Stamp::settle);
        if !is_changed {
            return;
        }
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

/// Takes the metadata of all files: one call to the system for each, and two for a skill. Files that were new or changed in `before` a moment
/// ago are read, too.
fn stamps(config: &Config, named: &[PathBuf], before: &[Stamp]) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    let mut add = |path: PathBuf, metadata: &fs::Metadata| {
        stamps.push(Stamp::of(path, metadata, before));
    };
    for path in named {
        if let Ok(metadata) = fs::metadata(path) {
            add(path.clone(), &metadata);
        }
    }
    each_file(&config.folder, files::markdown, &mut add);
    each_file(&config.skills_folder, skill_file, &mut add);
    each_file(&config.nodes_folder, files::markdown, &mut add);
    stamps.sort_by(|a, b| a.path.cmp(&b.path));
    stamps
}

/// Adds the files of a folder that the catalogue reads, which `place` finds for the entries.
fn each_file(
    folder: &Path,
    place: fn(&Path) -> Option<(String, PathBuf)>,
    add: &mut impl FnMut(PathBuf, &fs::Metadata),
) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for (_, path) in entries.flatten().filter_map(|entry| place(&entry.path())) {
        if let Ok(metadata) = fs::metadata(&path) {
            add(path, &metadata);
        }
    }
}

fn are_changed(before: &[Stamp], now: &[Stamp]) -> bool {
    let is_same = |(before, now): (&Stamp, &Stamp)| before.is_same(now);
    before.len() != now.len() || !before.iter().zip(now).all(is_same)
}

impl Stamp {
    fn of(path: PathBuf, metadata: &fs::Metadata, before: &[Self]) -> Self {
        let version = FileVersion::of(metadata);
        let known = before.binary_search_by(|stamp| stamp.path.cmp(&path));
        let known = known.ok().and_then(|place| before.get(place));
        let seen_at = match known {
            Some(known) if known.version == version => known.recent.map(|recent| recent.seen_at),
            _ => Some(Instant::now()),
        };
        let recent =
            seen_at.map(|seen_at| RecentChange { seen_at, content_hash: content_hash(&path) });
        Self { path, version, recent }
    }

    fn is_same(&self, now: &Self) -> bool {
        let has_same_contents = match (&self.recent, &now.recent) {
            (Some(before), Some(now)) => before.content_hash == now.content_hash,
            _ => true,
        };
        self.path == now.path && self.version == now.version && has_same_contents
    }

    /// Ends the comparison of the contents, once a later version has another time.
    fn settle(&mut self) {
        self.recent = self.recent.filter(|recent| recent.seen_at.elapsed() < SETTLING);
    }
}

impl FileVersion {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            len: metadata.len(),
            modified_at: metadata.modified().ok(),
            changed_at: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }
}

fn content_hash(path: &Path) -> Option<u64> {
    let content = read(path, MAX_BYTES).ok()?;
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::domain::agents::Provider;

    fn config(folder: &Path) -> Config {
        let at = |name| folder.join(name);
        Config {
            folder: at("agents"),
            skills_folder: at("skills"),
            nodes_folder: at("nodes"),
            // Only turns look.
            look_every_ms: u64::MAX,
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
        }
    }

    fn write(path: &Path, words: &str, modified_at: SystemTime) {
        let text = format!("---\nname: writer\ndescription: Writes\n---\n{words}\n");
        fs::write(path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(modified_at).unwrap();
    }

    /// The file keeps its length and the time of its modification.
    #[tokio::test]
    async fn a_turn_has_what_was_saved_right_after_another_read() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        fs::create_dir(&config.folder).unwrap();
        let path = config.folder.join("writer.md");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let has = |catalogue: Arc<Catalogue>, words: &str| {
            catalogue.agent("writer").is_ok_and(|agent| agent.prompt.contains(words))
        };
        write(&path, "You write one.", at);
        let library = Library::open(&config).unwrap();
        for words in ["You write two.", "You write six.", "You write ten."] {
            write(&path, words, at);
            assert!(has(library.latest().await, words), "{words}");
            assert!(has(library.current(), words), "of the last check: {words}");
        }
        fs::write(&path, "no front matter").unwrap();
        assert!(library.latest().await.agent("writer").is_err());
    }

    /// The runtime has one thread: a wait that keeps it ends only with its time, and without the change.
    #[tokio::test]
    async fn a_turn_that_waits_for_another_check_keeps_no_thread() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        fs::create_dir(&config.folder).unwrap();
        let path = config.folder.join("writer.md");
        write(&path, "You write one.", SystemTime::UNIX_EPOCH);
        let library = Library::open(&config).unwrap();
        let files = library.files.lock().await;
        let change = async {
            write(&path, "You write two.", SystemTime::UNIX_EPOCH);
            drop(files);
        };
        let (catalogue, ()) = tokio::join!(library.latest(), change);
        assert!(catalogue.agent("writer").unwrap().prompt.contains("two"));
    }

    #[test]
    fn only_files_that_the_catalogue_reads_are_watched() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let skill = config.skills_folder.join("style");
        fs::create_dir(&config.folder).unwrap();
        fs::create_dir_all(&skill).unwrap();
        let read = [config.folder.join("writer.md"), skill.join("SKILL.md")];
        let others = [config.folder.join("photo.jpg"), config.skills_folder.join("notes.txt")];
        for path in read.iter().chain(&others) {
            fs::write(path, "words").unwrap();
        }
        let watched: Vec<PathBuf> =
            stamps(&config, &[], &[]).into_iter().map(|stamp| stamp.path).collect();
        assert_eq!(watched, read);
    }

    /// Two versions with all times alike, as on a file system that stores whole seconds.
    #[test]
    fn a_recent_change_is_compared_by_its_contents_until_times_can_differ() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        fs::create_dir(&config.folder).unwrap();
        let path = config.folder.join("writer.md");
        let at = SystemTime::UNIX_EPOCH;
        write(&path, "You write one.", at);
        let mut before = stamps(&config, &[], &[]);
        assert!(!are_changed(&before, &stamps(&config, &[], &before)));
        write(&path, "You write two.", at);
        before[0].version = FileVersion::of(&fs::metadata(&path).unwrap());
        let now = stamps(&config, &[], &before);
        assert!(are_changed(&before, &now));
        assert!(!are_changed(&now, &stamps(&config, &[], &now)));
        // Once it has settled, its metadata is enough, and it is not read.
        before[0].recent = None;
        let now = stamps(&config, &[], &before);
        assert!(now[0].recent.is_none() && !are_changed(&before, &now));
    }

    /// A file on a lost network share, for example.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_hanging_file_blocks_its_reader_and_turns_only_for_a_moment() {
        let nowhere = tempfile::tempdir().unwrap();
        let config = Config { look_every_ms: 0, ..config(nowhere.path()) };
        let library = Arc::new(Library::open(&config).unwrap());
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (release, released) = mpsc::channel::<()>();
        let reader = tokio::spawn({
            let library = Arc::clone(&library);
            async move {
                let _files = library.files.lock().await;
                begin.send(()).unwrap();
                run_blocking(|| released.recv())
            }
        });
        begun.await.unwrap();
        let (tell, hear) = mpsc::channel();
        tokio::spawn(async move {
            let of_turn = library.latest().await.agents().count();
            tell.send(of_turn.min(library.current().agents().count()))
        });
        // On a thread of its own: a runtime that hangs has no timers.
        let hear = move || hear.recv_timeout(Duration::from_secs(10));
        let other = tokio::task::spawn_blocking(hear).await.unwrap();
        assert!(other.is_ok_and(|n_agents| n_agents > 0), "the read waits for the file");
        assert!(!reader.is_finished());
        drop(release);
        assert!(reader.await.unwrap().is_err());
    }
}
