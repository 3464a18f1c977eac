//! One conversation on several hosts: each has its own folder, and they share only the database.

use std::fs::File;

use dalsegno::domain::sessions::State;
use rustix::{
    fs::{FlockOperation, fcntl_lock},
    process::Signal,
};
use sqlx::PgPool;
use tokio::signal::unix::{SignalKind, signal};

use super::Setup;
use crate::{
    app::{SOON, execute},
    restore::{dump, restore},
};

#[tokio::test]
async fn a_conversation_alternates_between_two_hosts() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    for turn in 0..6 {
        let host = fixture.folder().join(format!("host-{}", turn % 2)).display().to_string();
        let worker = fixture.start_worker_with(&[("service.data_dir", &host)]).await;
        let task = setup.run_prompt(&format!("Part {turn}, please.")).await;
        assert!(task.result.unwrap().contains(&format!("[{} messages]", 2 * turn + 1)));
        fixture.settled().await;
        worker.stop().await;
        let said = setup.api.last_messages();
        assert_eq!(said.len(), 2 * turn + 1, "{said:?}");
        for earlier in 0..=turn {
            assert!(said[2 * earlier].contains(&format!("Part {earlier}, please.")), "{said:?}");
        }
    }
    let sessions = fixture.sessions().await;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].state, State::Idle);
    assert_eq!(
        setup.session_starts().await,
        ["new", "restored", "restored", "restored", "restored", "restored"]
    );
}

#[tokio::test]
async fn on_the_same_host_nothing_is_restored_and_only_growth_is_stored() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    for turn in 0..3 {
        setup.run_prompt(&format!("Part {turn}, please.")).await;
    }
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(setup.session_starts().await, ["new", "resumed", "resumed"]);
    let chunks = fixture.json(
        "select jsonb_agg(octet_length(bytes) order by from_byte) from dalsegno.transcript_chunks",
    );
    let sizes: Vec<u64> = serde_json::from_value(chunks.await).unwrap();
    assert_eq!(sizes.len(), 3);
    assert!(sizes[2] < sizes[0] + sizes[1], "{sizes:?}");
    let whole = fixture.count("select n_bytes from dalsegno.transcript_files").await;
    assert_eq!(whole.unsigned_abs(), sizes.iter().sum::<u64>());
}

#[tokio::test]
async fn a_file_lost_after_the_check_is_restored_from_the_database() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let mut worker = fixture.process(&[]);
    setup.run_prompt("The harbour is called Vik.").await;
    fixture.settled().await;
    // The holder of the lock is told to give up after the first check of the files, before the second.
    let mut told = signal(SignalKind::quit()).unwrap();
    let id = fixture.json("select to_jsonb(external_session_id) from dalsegno.sessions").await;
    let folder = fixture.folder().join("data/claude").join(id.as_str().unwrap());
    let lock = File::options().write(true).open(folder.join("lock")).unwrap();
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let task = fixture.add("What is it called?").await;
    tokio::time::timeout(SOON, told.recv()).await.unwrap().unwrap();
    std::fs::remove_dir_all(folder.join("config/projects")).unwrap();
    drop(lock);
    fixture.ended_after_pause(&task).await;
    fixture.settled().await;
    worker.signal(Signal::TERM);
    worker.ended().await;
    assert_eq!(setup.session_starts().await, ["new", "restored"]);
    assert_eq!(setup.api.last_messages().len(), 3);
}

#[tokio::test]
async fn a_lost_transcript_is_rebuilt_from_the_stored_messages_under_its_name() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("The harbour is called Vik.").await;
    let before = fixture.json("select to_jsonb(external_session_id) from dalsegno.sessions").await;
    fixture.settled().await;
    worker.stop().await;
    sqlx::query("delete from dalsegno.transcript_files").execute(&fixture.pool).await.unwrap();
    let host = fixture.folder().join("another").display().to_string();
    let worker = fixture.start_worker_with(&[("service.data_dir", &host)]).await;
    setup.run_prompt("What is it called?").await;
    fixture.settled().await;
    worker.stop().await;
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("The harbour is called Vik."));
    assert_eq!(setup.session_starts().await, ["new", "rewritten"]);
    let after = fixture.json("select to_jsonb(external_session_id) from dalsegno.sessions").await;
    assert_eq!(after, before);
    assert_eq!(fixture.sessions().await.len(), 1);
}

/// The files of the host contain a turn that the restored database does not have.
#[tokio::test]
async fn local_messages_beyond_a_restored_database_are_cut_off() {
    let Some(mut setup) = Setup::new(&[]).await else { return };
    let worker = setup.fixture.start_worker().await;
    setup.run_prompt("The harbour is called Vik.").await;
    setup.fixture.settled().await;
    worker.stop().await;
    let options = (*setup.fixture.pool.connect_options()).clone();
    let dumped = dump(&options).await;
    let worker = setup.fixture.start_worker().await;
    setup.run_prompt("From now on it is called Bergen.").await;
    setup.fixture.settled().await;
    worker.stop().await;
    setup.fixture.pool.close().await;
    execute(&options, "drop schema dalsegno cascade").await;
    restore(&options, &dumped).await;
    setup.fixture.pool = PgPool::connect_with(options).await.unwrap();
    let worker = setup.fixture.start_worker().await;
    setup.run_prompt("What is it called?").await;
    setup.fixture.settled().await;
    worker.stop().await;
    let said = setup.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("Vik") && !format!("{said:?}").contains("Bergen"), "{said:?}");
    assert_eq!(setup.session_starts().await, ["new", "restored"]);
}
