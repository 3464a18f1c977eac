//! A primary that is killed during the work, and its standby that takes over, with real streaming replication.

use std::{fs, io::Write as _, process::Command};

use dalsegno::{
    db::{self, embedded},
    jobs::trial::{Note, NoteEnd},
};
use sqlx::{ConnectOptions as _, PgPool};

use super::{
    checker::Expected,
    proxy::Proxy,
    supervisor::{SLOTS, WorkerSupervisor},
    trial::{Trial, open},
};
use crate::{
    app::{eventually, execute},
    embedded::{
        orphaned_server::OrphanedServer,
        support::{EmbeddedSetup, count},
    },
};

/// A primary, its standby, and one address that leads to the writable server.
struct ReplicatedServers {
    primary: OrphanedServer,
    standby: embedded::EmbeddedServer,
    proxy: Proxy,
    // Dropped last.
    _standby_place: EmbeddedSetup,
}

impl ReplicatedServers {
    async fn start() -> Self {
        let (place, standby_place) = (EmbeddedSetup::new(), EmbeddedSetup::new());
        let postgres = embedded::start(&place.config).await.unwrap();
        let pool = PgPool::connect_with(postgres.connect_options()).await.unwrap();
        db::migrate(&pool).await.unwrap();
        pool.close().await;
        postgres.stop().await.unwrap();
        copy(&place, &standby_place);
        let primary = OrphanedServer::on(place).await;
        follow(&standby_place, &primary);
        let standby = embedded::start(&standby_place.config).await.unwrap();
        let proxy = Proxy::start(&primary.options).await;
        let pair = Self { primary, standby, proxy, _standby_place: standby_place };
        let streams = "select count(*) from pg_stat_replication where state = 'streaming'";
        pair.on_primary("the standby follows", streams, 1).await;
        pair
    }

    fn url(&self) -> String {
        self.proxy.url(&self.primary.options)
    }

    /// Makes commits wait for the standby.
    async fn make_synchronous(&self) {
        let set = "alter system set synchronous_standby_names = '*'; select pg_reload_conf()";
        for statement in set.split("; ") {
            execute(&self.primary.options, statement).await;
        }
        let waits = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        self.on_primary("commits wait for the standby", waits, 1).await;
    }

    /// Waits until the standby has everything, and disconnects it.
    async fn detach_standby(&self) {
        let written = "select (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint";
        let written = count(self.primary.options.clone(), written).await;
        let replayed = "select (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint";
        eventually("the standby has everything", async || {
            (count(self.standby.connect_options(), replayed).await >= written).then_some(())
        })
        .await;
        let set = "alter system set primary_conninfo = ''; select pg_reload_conf()";
        for statement in set.split("; ") {
            execute(&self.standby.connect_options(), statement).await;
        }
        self.on_primary("nothing follows", "select count(*) from pg_stat_replication", 0).await;
    }

    async fn fail_over(&self) {
        self.primary.kill();
        execute(&self.standby.connect_options(), "select pg_promote()").await;
        self.proxy.redirect_to(&self.standby.connect_options());
    }

    async fn end(self) {
        self.standby.stop().await.unwrap();
    }

    async fn on_primary(&self, what: &str, sql: &'static str, n: i64) {
        eventually(what, async || {
            (count(self.primary.options.clone(), sql).await == n).then_some(())
        })
        .await;
    }
}

/// Copies the cluster of a stopped server, with its password and settings.
fn copy(from: &EmbeddedSetup, to: &EmbeddedSetup) {
    assert!(!from.home().is_symlink(), "{:?} is not the new primary", from.home());
    fs::create_dir(&to.config.data_dir).unwrap();
    let copied = Command::new("cp").arg("-a").arg(from.home()).arg(to.home()).status();
    assert!(copied.unwrap().success());
}

fn follow(standby: &EmbeddedSetup, primary: &OrphanedServer) {
    let (options, data) = (&primary.options, standby.cluster());
    let url = options.to_url_lossy();
    let host = options
        .get_socket()
        .map_or(options.get_host().to_owned(), |socket| socket.to_str().unwrap().to_owned());
    let (port, user) = (options.get_port(), options.get_username());
    let word = url.password().unwrap();
    let line =
        format!("\nprimary_conninfo = 'host={host} port={port} user={user} password={word}'\n");
    let settings = fs::OpenOptions::new().append(true).open(data.join("postgresql.auto.conf"));
    settings.unwrap().write_all(line.as_bytes()).unwrap();
    fs::write(data.join("standby.signal"), "").unwrap();
}

#[tokio::test]
async fn a_synchronous_failover_loses_no_job_and_no_run() {
    let pair = ReplicatedServers::start().await;
    pair.make_synchronous().await;
    let trial = Trial::on_own_server(pair.url()).await;
    let mut supervisor = WorkerSupervisor::start(&trial, 2, &[]);
    supervisor.ready().await;
    for at in 0..6 * SLOTS {
        let lane = (at % 3 > 0).then(|| format!("lane {}", at % 7));
        let end = if at % 4 == 0 { NoteEnd::Batched } else { NoteEnd::Own };
        let note = Note { millis: 300, end, ..Note::default() };
        trial.note(lane.as_deref(), note).await;
    }
    trial.until("jobs are running", SLOTS as i64, "SELECT count(*) FROM trial.starts").await;
    pair.fail_over().await;
    trial.settle(&mut supervisor, 0).await;
    assert_eq!(supervisor.n_replaced, 0, "a worker ended:\n{}", supervisor.logs());
    trial.check(&Expected::default()).await;
    drop(supervisor);
    trial.end().await;
    pair.end().await;
}

/// The tail that the standby had not received is gone, with its jobs and runs, whose ids are assigned again. A run of
/// the tail that continues in a worker changes nothing.
#[tokio::test]
async fn an_asynchronous_failover_loses_only_its_unreplicated_tail() {
    let pair = ReplicatedServers::start().await;
    let trial = Trial::on_own_server(pair.url()).await;
    let mut supervisor = WorkerSupervisor::start(&trial, 1, &[]);
    supervisor.ready().await;
    for at in 0..2 * SLOTS {
        trial.note((at % 2 > 0).then_some("lane 1"), Note::default()).await;
    }
    trial.settle(&mut supervisor, 0).await;
    let waits = Note { millis: 1_500, ..Note::default() };
    for _ in 0..SLOTS - 1 {
        trial.note(None, waits.clone()).await;
    }
    let begun = (3 * SLOTS - 1) as i64;
    trial.until("some run", begun, "SELECT count(*) FROM trial.starts").await;
    pair.detach_standby().await;
    let n_kept = trial.n_acknowledged();
    // It ignores the request to stop, and commits after another job has got its id.
    let gate = trial.gate("the number is given out again");
    let deaf = Note { gate: Some(gate.clone()), deaf: true, ..Note::default() };
    let running = trial.note(None, deaf).await;
    trial.until("the job runs", begun + 1, "SELECT count(*) FROM trial.starts").await;
    let lease = "SELECT max(lease) FROM trial.starts";
    let lease = trial.count(lease).await;
    pair.fail_over().await;
    assert_eq!(trial.expect_lost(n_kept), [running]);
    // The standby's sequences are ahead of the replicated rows by a few numbers at most; this resets them.
    let standby = pair.standby.connect_options();
    let drawn = format!(
        "select setval('dalsegno.job_ids', {running}, false), setval('dalsegno.leases', {lease} / increment_by * increment_by, false)
           from pg_sequences where sequencename = 'leases'"
    );
    execute(&standby, &drawn).await;
    let again = eventually("the database takes writes", async || {
        trial.try_note(None, Note { millis: 500, ..Note::default() }).await.ok()
    })
    .await;
    assert_eq!(again, running, "the id is assigned again");
    open(&gate);
    trial
        .until("the run of the lost tail is refused", 1, "SELECT count(*) FROM trial.refusals")
        .await;
    trial.settle(&mut supervisor, 0).await;
    assert_eq!(supervisor.n_replaced, 0, "a worker ended:\n{}", supervisor.logs());
    let journal = trial.check(&Expected::default()).await;
    assert_eq!(journal.refusals, [(running, lease)]);
    drop(supervisor);
    trial.end().await;
    pair.end().await;
}
