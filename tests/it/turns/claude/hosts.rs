//! One conversation on several hosts: each has its own folder, and they share only the database.

use std::fs::File;

use dalsegno::domain::sessions::State;
use rustix::{
    fs::{FlockOperation, fcntl_lock},
    process::Signal,
};
use sqlx::PgPool;
use tokio::signal::unix::{SignalKind, signal};

use super::Stage;
use crate::{
    app::{SOON, execute},
    restore::{dump, restore},
};

#[tokio::test]
async fn a_conversation_alternates_between_two_hosts() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    for turn in 0..6 {
        let host = ground.folder().join(format!("host-{}", turn % 2)).display().to_string();
        let worker = ground.work_with(&[("service.data_dir", &host)]).await;
        let task = stage.says(&format!("Part {turn}, please.")).await;
        assert!(task.result.unwrap().contains(&format!("[{} messages]", 2 * turn + 1)));
        ground.settled().await;
        worker.stop().await;
        let said = stage.api.last_messages();
        assert_eq!(said.len(), 2 * turn + 1, "{said:?}");
        for earlier in 0..=turn {
            assert!(said[2 * earlier].contains(&format!("Part {earlier}, please.")), "{said:?}");
        }
    }
    let sessions = ground.sessions().await;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].state, State::Idle);
    assert_eq!(
        stage.began().await,
        ["new", "restored", "restored", "restored", "restored", "restored"]
    );
}

#[tokio::test]
async fn on_the_same_host_nothing_is_restored_and_only_growth_is_stored() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let worker = ground.work().await;
    for turn in 0..3 {
        stage.says(&format!("Part {turn}, please.")).await;
    }
    ground.settled().await;
    worker.stop().await;
    assert_eq!(stage.began().await, ["new", "resumed", "resumed"]);
    let chunks = ground.json(
        "select jsonb_agg(octet_length(bytes) order by from_byte) from dalsegno.transcript_chunks",
    );
    let sizes: Vec<u64> = serde_json::from_value(chunks.await).unwrap();
    assert_eq!(sizes.len(), 3);
    assert!(sizes[2] < sizes[0] + sizes[1], "{sizes:?}");
    let whole = ground.count("select n_bytes from dalsegno.transcript_files").await;
    assert_eq!(whole.unsigned_abs(), sizes.iter().sum::<u64>());
}

#[tokio::test]
async fn a_file_lost_after_the_check_is_restored_from_the_database() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let mut worker = ground.process(&[]);
    stage.says("The harbour is called Vik.").await;
    ground.settled().await;
    // The holder of the lock is told to give up after the first check of the files, before the second.
    let mut told = signal(SignalKind::quit()).unwrap();
    let id = ground.json("select to_jsonb(external_session_id) from dalsegno.sessions").await;
    let folder = ground.folder().join("data/claude").join(id.as_str().unwrap());
    let lock = File::options().write(true).open(folder.join("lock")).unwrap();
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let task = ground.add("What is it called?").await;
    tokio::time::timeout(SOON, told.recv()).await.unwrap().unwrap();
    std::fs::remove_dir_all(folder.join("config/projects")).unwrap();
    drop(lock);
    ground.patiently_ended(&task).await;
    ground.settled().await;
    worker.signal(Signal::TERM);
    worker.ended().await;
    assert_eq!(stage.began().await, ["new", "restored"]);
    assert_eq!(stage.api.last_messages().len(), 3);
}

#[tokio::test]
async fn a_lost_transcript_is_rebuilt_from_the_stored_messages_under_its_name() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let ground = &stage.ground;
    let worker = ground.work().await;
    stage.says("The harbour is called Vik.").await;
    let before = ground.json("select to_jsonb(external_session_id) from dalsegno.sessions").await;
    ground.settled().await;
    worker.stop().await;
    sqlx::query("delete from dalsegno.transcript_files").execute(&ground.pool).await.unwrap();
    let host = ground.folder().join("another").display().to_string();
    let worker = ground.work_with(&[("service.data_dir", &host)]).await;
    stage.says("What is it called?").await;
    ground.settled().await;
    worker.stop().await;
    let said = stage.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("The harbour is called Vik."));
    assert_eq!(stage.began().await, ["new", "rewritten"]);
    let after = ground.json("select to_jsonb(external_session_id) from dalsegno.sessions").await;
    assert_eq!(after, before);
    assert_eq!(ground.sessions().await.len(), 1);
}

/// The files of the host contain a turn that the restored database does not have.
#[tokio::test]
async fn local_messages_beyond_a_restored_database_are_cut_off() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let worker = stage.ground.work().await;
    stage.says("The harbour is called Vik.").await;
    stage.ground.settled().await;
    worker.stop().await;
    let options = (*stage.ground.pool.connect_options()).clone();
    let dumped = dump(&options).await;
    let worker = stage.ground.work().await;
    stage.says("From now on it is called Bergen.").await;
    stage.ground.settled().await;
    worker.stop().await;
    stage.ground.pool.close().await;
    execute(&options, "drop schema dalsegno cascade").await;
    restore(&options, &dumped).await;
    stage.ground.pool = PgPool::connect_with(options).await.unwrap();
    let worker = stage.ground.work().await;
    stage.says("What is it called?").await;
    stage.ground.settled().await;
    worker.stop().await;
    let said = stage.api.last_messages();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("Vik") && !format!("{said:?}").contains("Bergen"), "{said:?}");
    assert_eq!(stage.began().await, ["new", "restored"]);
}
