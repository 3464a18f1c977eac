//! Killed services, and recovery by the next one.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dalsegno::db::embedded;
use rustix::process::Signal;

use super::support::{EmbeddedSetup, Random, count, postmasters, send, servers, wait_for};
use crate::app::SOON;

/// Checks continuously that two servers never use one folder.
struct FolderGuard {
    over: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl FolderGuard {
    fn post(cluster: PathBuf) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut most = 0;
            while !seen_over.load(Ordering::Relaxed) {
                most = most.max(postmasters(&cluster).len());
                std::thread::park_timeout(Duration::from_millis(5));
            }
            most
        });
        Self { over, thread }
    }

    fn most_at_once(self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn acknowledged(lines: &[String]) -> impl Iterator<Item = i64> {
    lines.iter().filter_map(|line| line.strip_prefix("row ")?.parse().ok())
}

/// Kills services at random moments, then asks a last one for all acknowledged rows.
async fn check_kills(setup: &EmbeddedSetup, n_kills: usize, latest_ms: u64) {
    let mut random = Random::seeded();
    let sentry = FolderGuard::post(setup.home().join("data"));
    let mut rows = Vec::new();
    for _ in 0..n_kills {
        let service = setup.service();
        let mut lines = service.listen_for(Duration::from_millis(random.below(latest_ms)));
        lines.extend(service.kill());
        rows.extend(acknowledged(&lines));
    }
    let begun = Instant::now();
    let postgres = embedded::start(&setup.config).await.unwrap();
    println!("{} rows acknowledged, last start {:?}", rows.len(), begun.elapsed());
    if !rows.is_empty() {
        let mut connection =
            <sqlx::PgConnection as sqlx::Connection>::connect_with(&postgres.connect_options())
                .await
                .unwrap();
        let kept: Vec<i64> = sqlx::query_scalar("SELECT id FROM rows ORDER BY id")
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let lost: Vec<_> = rows.iter().filter(|id| kept.binary_search(id).is_err()).collect();
        assert!(lost.is_empty(), "lost {lost:?}");
    }
    postgres.stop().await.unwrap();
    assert!(sentry.most_at_once() <= 1, "two servers worked on one folder");
    let left: Vec<_> = fs::read_dir(&setup.config.data_dir)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left.len(), 2, "temporary files are left: {left:?}");
}

#[tokio::test]
async fn ten_kills_at_random_moments_of_start_and_run() {
    check_kills(&EmbeddedSetup::new(), 10, 1500).await;
}

#[tokio::test]
async fn ten_kills_in_the_first_moments() {
    check_kills(&EmbeddedSetup::new(), 10, 400).await;
}

#[tokio::test]
async fn ten_kills_while_an_existing_cluster_starts_or_stops() {
    let setup = EmbeddedSetup::new();
    let mut random = Random::seeded();
    let sentry = FolderGuard::post(setup.home().join("data"));
    setup.service().terminate();
    for round in 0..10 {
        let service = setup.service();
        if round % 2 == 0 {
            service.expect("row ");
            // Killed while it stops its server.
            send(service.child.id(), Signal::TERM);
            service.listen_for(Duration::from_millis(random.below(60)));
        } else {
            service.listen_for(Duration::from_millis(random.below(250)));
        }
        service.kill();
    }
    setup.service().terminate();
    assert!(sentry.most_at_once() <= 1);
}

#[tokio::test]
async fn a_running_server_is_taken_over() {
    let setup = EmbeddedSetup::new();
    let service = setup.service();
    let ready = service.expect("READY ");
    service.expect("row ");
    service.kill();
    let before = postmasters(&setup.cluster());
    assert!(ready.contains(&before[0].to_string()));
    let begun = Instant::now();
    let postgres = embedded::start(&setup.config).await.unwrap();
    println!("take-over {:?}", begun.elapsed());
    assert_eq!(postgres.describe().pid, before[0]);
    postgres.stop().await.unwrap();
    assert_eq!(servers(&setup.cluster()), Vec::<u32>::new());
}

#[tokio::test]
async fn a_stale_pid_file_that_names_a_foreign_process_is_removed() {
    let setup = EmbeddedSetup::new();
    embedded::start(&setup.config).await.unwrap().stop().await.unwrap();
    // The test's own process and its parent are alive, but not a Postgres.
    for pid in [std::process::id(), 1] {
        let record = setup.cluster().join("postmaster.pid");
        let text = format!(
            "{pid}\n{}\n1700000000\n5432\n{}\n\n  1 1\nready   \n",
            setup.cluster().display(),
            setup.home().join("run").display()
        );
        fs::write(&record, &text).unwrap();
        fs::write(setup.home().join("run/.s.PGSQL.5432.lock"), text).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(setup.cluster()).unwrap());
        chown(&record, Some(owner), None).unwrap();
        assert!(embedded::attach(&setup.config).await.unwrap().is_none());
        let postgres = embedded::start(&setup.config).await.unwrap();
        assert_eq!(count(postgres.connect_options(), "SELECT 1::bigint").await, 1);
        postgres.stop().await.unwrap();
    }
}

#[tokio::test]
async fn backends_that_outlive_service_and_server_are_waited_for_or_ended() {
    let setup = EmbeddedSetup::new();
    let service = setup.service();
    let ready = service.expect("READY ");
    service.expect("row ");
    let postmaster: u32 = ready.split(' ').nth(1).unwrap().parse().unwrap();
    let attached = embedded::attach(&setup.config).await.unwrap().unwrap();
    // A computing backend does not notice that its postmaster is dead.
    let busy = tokio::spawn(count(
        attached.connect_options(),
        "SELECT count(*) FROM generate_series(1, 10000000000)",
    ));
    let watcher = attached.connect_options();
    let deadline = Instant::now() + SOON;
    // Rows in a temporary file: it computes. Its text is in pg_stat_activity before that.
    while count(watcher.clone(), "SELECT count(*) FROM pg_ls_tmpdir()").await == 0 {
        assert!(Instant::now() < deadline);
    }
    send(postmaster, Signal::KILL);
    service.kill();
    busy.abort();
    let cluster = setup.cluster();
    let orphaned = wait_for(SOON, || postmasters(&cluster).is_empty().then_some(()));
    assert!(orphaned.is_some());
    assert!(!servers(&cluster).is_empty(), "the busy backend should have outlived its server");
    let begun = Instant::now();
    let postgres = embedded::start(&setup.config).await.unwrap();
    println!("start over an orphan {:?}", begun.elapsed());
    assert_eq!(count(postgres.connect_options(), "SELECT 1::bigint").await, 1);
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn the_server_inherits_neither_lock_nor_terminal() {
    let setup = EmbeddedSetup::new();
    let postgres = embedded::start(&setup.config).await.unwrap();
    let pid = postgres.describe().pid;
    let open: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok())
        .collect();
    assert!(open.iter().all(|path| !path.ends_with("service.lock")), "{open:?}");
    let group = rustix::process::getpgid(rustix::process::Pid::from_raw(pid as i32)).unwrap();
    assert_ne!(group, rustix::process::getpgrp());
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_whose_folder_was_moved_is_replaced() {
    let mut setup = EmbeddedSetup::new();
    let service = setup.service();
    service.expect("READY ");
    let rows: Vec<i64> = acknowledged(&[service.expect("row ")]).collect();
    service.kill();
    let moved = setup.folder.path().join("moved");
    fs::rename(&setup.config.data_dir, &moved).unwrap();
    setup.config.data_dir = moved;
    let postgres = embedded::start(&setup.config).await.unwrap();
    assert!(postgres.describe().address.contains("/moved/"));
    assert!(count(postgres.connect_options(), "SELECT max(id) FROM rows").await >= rows[0]);
    assert_eq!(postmasters(&setup.cluster()), [postgres.describe().pid]);
    postgres.stop().await.unwrap();
}
