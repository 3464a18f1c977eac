//! Removal of the folders of sessions, with the processes that wait in them.

use std::fs;

use dalsegno::providers::{EventSink, Provider as _, claude::Claude};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::host::{DEADLINE, Host, StoredConversation};
use crate::app::eventually;

/// Runs a turn, after which a process waits for the next one. Returns the session.
async fn start_ahead(host: &Host, claude: &Claude) -> Uuid {
    let mut stored = StoredConversation::new();
    stored.conversation.is_warm = true;
    let request = stored.request("One.", false);
    let turn = claude.run(request, EventSink::discard(), CancellationToken::new());
    tokio::time::timeout(DEADLINE, turn).await.unwrap().unwrap();
    // The guard, which has taken its lock, and the CLI under it.
    eventually("a process waits", async || (host.processes().len() >= 2).then_some(())).await;
    stored.conversation.external_id
}

#[tokio::test]
async fn the_process_that_waits_for_the_next_turn_ends_with_the_folder() {
    let host = Host::with_fault("none").await;
    let claude = host.claude();
    let session = start_ahead(&host, &claude).await;
    // An agent may remove anything there.
    fs::remove_file(host.sessions.path().join(session.to_string()).join("lock")).unwrap();
    assert!(claude.remove_folder(session).await.unwrap() > Some(0));
    host.is_quiet().await;
    assert!(host.is_empty());
    assert_eq!(claude.remove_folder(session).await.unwrap(), None);
}

#[tokio::test]
async fn a_process_that_another_worker_of_the_host_has_started_ends_with_the_folder() {
    let host = Host::with_fault("none").await;
    let other = host.claude();
    let session = start_ahead(&host, &other).await;
    assert!(host.claude().remove_folder(session).await.unwrap() > Some(0));
    host.is_quiet().await;
    assert!(host.is_empty());
}
