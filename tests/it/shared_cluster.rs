//! The protocol of the shared cluster under load and with killed processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::app::SOON;
use crate::cluster::{self, protocol::SharedCluster, short_folder};
use crate::embedded::support::{Random, postmasters, wait_for};

struct TestCluster {
    _folder: tempfile::TempDir,
    locks: PathBuf,
    data_dir: PathBuf,
    grace_ms: u64,
}

impl TestCluster {
    fn new(grace_ms: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let locks = folder.path().join("locks");
        let data_dir = short_folder(&locks);
        Self { _folder: folder, locks, data_dir, grace_ms }
    }

    #[expect(clippy::disallowed_methods, reason = "tests start the programs that they look at")]
    fn user(&self) -> Child {
        Command::new(env!("CARGO_BIN_EXE_test-postgres"))
            .arg("use")
            .args([&self.locks, &self.data_dir])
            .arg(self.grace_ms.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn shared(&self) -> SharedCluster {
        SharedCluster {
            locks: self.locks.clone(),
            data_dir: self.data_dir.clone(),
            grace: Duration::from_millis(self.grace_ms),
            keeper: env!("CARGO_BIN_EXE_test-postgres").into(),
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.locks.join("keeper.log")).unwrap_or_default()
    }

    fn assert_nothing_left(&self) {
        let gone = wait_for(SOON, || {
            (!self.data_dir.exists() && postmasters(&self.cluster()).is_empty()).then_some(())
        });
        assert!(
            gone.is_some(),
            "left behind: {:?} {:?} {}",
            self.data_dir,
            postmasters(&self.cluster()),
            self.log()
        );
    }

    fn cluster(&self) -> PathBuf {
        self.data_dir.join("postgres/data")
    }

    /// Returns the pids of this arena's keepers.
    fn keepers(&self) -> Vec<i32> {
        let locks = self.locks.to_str().unwrap();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid: &i32| {
                let command =
                    std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"))
                        .unwrap_or_default();
                let command = String::from_utf8_lossy(&command).into_owned();
                command.contains("\0keep\0") && command.contains(locks)
            })
            .collect()
    }
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn assert_served(user: Child, test_cluster: &TestCluster) {
    let output = user.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        test_cluster.log()
    );
}

#[tokio::test]
async fn a_test_gets_a_superuser() {
    let begun = Instant::now();
    let options = cluster::connect_options().await;
    println!("joined after {:?}", begun.elapsed());
    let pool = sqlx::PgPool::connect_with(options).await.unwrap();
    let (superuser, database): (bool, String) = sqlx::query_as(
        "SELECT usesuper, current_database()::text FROM pg_user WHERE usename = current_user",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!((superuser, database.as_str()), (true, "postgres"));
}

#[test]
fn users_that_arrive_while_a_keeper_ends_are_all_served() {
    // The grace period is so short that nearly every wave meets a keeper that is about to end.
    let test_cluster = TestCluster::new(20);
    let mut random = Random::seeded();
    for _ in 0..5 {
        let wave: Vec<Child> = (0..4).map(|_| test_cluster.user()).collect();
        for user in wave {
            assert_served(user, &test_cluster);
        }
        // Waits until about the end of the keeper.
        let pause = Duration::from_millis(random.below(120));
        wait_for(pause, || None::<()>);
        assert!(postmasters(&test_cluster.cluster()).len() <= 1);
    }
    test_cluster.assert_nothing_left();
}

#[test]
fn a_killed_run_leaves_nothing_behind() {
    let test_cluster = TestCluster::new(200);
    let mut random = Random::seeded();
    let mut users: Vec<Child> = (0..3).map(|_| test_cluster.user()).collect();
    wait_for(Duration::from_millis(random.below(1500)), || None::<()>);
    for user in &mut users {
        user.kill().unwrap();
        user.wait().unwrap();
    }
    test_cluster.assert_nothing_left();
}

#[test]
fn the_next_run_takes_over_from_a_killed_keeper() {
    let test_cluster = TestCluster::new(200);
    // While this process is a user, no keeper can end before it is killed.
    let joined = test_cluster.shared().join().unwrap();
    let keepers = test_cluster.keepers();
    assert_eq!(keepers.len(), 1, "{}", test_cluster.log());
    kill(keepers[0]);
    let gone = wait_for(SOON, || test_cluster.keepers().is_empty().then_some(()));
    assert!(gone.is_some(), "{:?}", test_cluster.keepers());
    drop(joined);
    let server = postmasters(&test_cluster.cluster());
    assert_eq!(server.len(), 1, "{}", test_cluster.log());
    let joined = test_cluster.shared().join().unwrap();
    assert_eq!(postmasters(&test_cluster.cluster()), server, "the server continues");
    drop(joined);
    test_cluster.assert_nothing_left();
}
