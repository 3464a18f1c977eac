//! Faults that the real CLI does not show on demand: each has its error, and leaves no process behind.

use std::time::Duration;

use dalsegno::providers::{Class, Flag};
use tokio_util::sync::CancellationToken;

use super::host::{Host, StoredConversation};
use crate::providers::requests::RETRY;

/// Faults after which the CLI hangs until it is killed. Others end by themselves.
const HANGS: [&str; 1] = ["hangs after its result"];

/// Runs one turn with the fault, and checks that no process is left.
async fn fails(fault: &str) -> (&'static str, Class, String) {
    fails_with(Host::with_fault(fault).await).await
}

async fn fails_with(host: Host) -> (&'static str, Class, String) {
    let error = host
        .ask(StoredConversation::new().request("Hello.", false))
        .await
        .expect_err("the turn fails");
    assert!(host.processes().is_empty(), "no process is left after the call");
    (error.code, error.class, error.to_string())
}

/// Runs a turn that gets its answer in spite of the fault.
async fn answers(fault: &str) -> (Vec<Flag>, Option<u64>) {
    let mut host = Host::with_fault(fault).await;
    host.config.exit_timeout_secs = if HANGS.contains(&fault) { 1 } else { 600 };
    let mut stored = StoredConversation::new();
    let outcome = stored.turn(&host, "Hello.").await;
    assert_eq!(outcome.message.text, "You said: Hello. [1 messages]", "{fault}");
    assert!(host.processes().is_empty(), "{fault}");
    (outcome.conversation.unwrap().flags, outcome.spent[0].cost_micros)
}

#[tokio::test]
async fn a_hanging_cli_is_stopped_at_every_stage() {
    for fault in ["hangs at start", "hangs at start, deaf"] {
        let mut host = Host::with_fault(fault).await;
        host.config.first_line_timeout_secs = 1;
        let (code, class, _) = fails_with(host).await;
        assert_eq!((code, class), ("claude.never_began", RETRY), "{fault}");
    }
    for fault in ["hangs in the turn", "hangs in the turn, deaf"] {
        let mut host = Host::with_fault(fault).await;
        host.config.idle_timeout_secs = 1;
        let (code, class, _) = fails_with(host).await;
        assert_eq!((code, class), ("claude.silent", RETRY), "{fault}");
    }
}

#[tokio::test]
async fn a_turn_does_not_begin_without_a_required_server() {
    // Before it gets the prompt, and between the prompt and the begin of the turn.
    for fault in ["does not reach its server, and hangs", "loses its server, and hangs"] {
        let host = Host::with_fault(fault).await;
        let mut stored = StoredConversation::new();
        stored.conversation.grants.required_servers = vec!["board".to_owned()];
        let error = host.ask(stored.request("Hello.", false)).await.unwrap_err();
        assert_eq!((error.code, error.class), ("claude.unserved", RETRY), "{fault}");
        assert!(error.is_unasked, "a failed call has no text and no tool effects");
        assert!(error.to_string().contains("board"), "{error}");
        assert!(host.processes().is_empty());
    }
}

#[tokio::test]
async fn a_cli_that_does_not_report_its_servers_is_stopped() {
    for (fault, wanted) in [
        ("hangs at start, deaf", "claude.never_began"),
        ("says nothing and ends", "claude.no_result"),
        ("dies at start", "claude.broke_down"),
    ] {
        let mut host = Host::with_fault(fault).await;
        if wanted == "claude.never_began" {
            host.config.first_line_timeout_secs = 1;
        }
        let mut stored = StoredConversation::new();
        stored.conversation.grants.required_servers = vec!["board".to_owned()];
        let error = host.ask(stored.request("Hello.", false)).await.unwrap_err();
        assert_eq!((error.code, error.class), (wanted, RETRY), "{fault}");
        assert!(host.processes().is_empty());
    }
}

#[tokio::test]
async fn a_turn_with_its_required_servers_begins() {
    let host = Host::with_fault("none").await;
    let mut stored = StoredConversation::new();
    stored.conversation.grants.required_servers = vec!["board".to_owned()];
    let outcome = stored.turn(&host, "Hello.").await;
    assert_eq!(outcome.message.text, "You said: Hello. [1 messages]");
}

#[tokio::test]
async fn a_turn_over_the_total_timeout_is_stopped() {
    let host = Host::with_fault("hangs in the turn").await;
    let mut request = StoredConversation::new().request("Hello.", false);
    request.timeouts.total = Some(Duration::from_millis(700));
    let error = host.ask(request).await.unwrap_err();
    assert_eq!((error.code, error.class), ("claude.too_long", RETRY));
    assert!(host.processes().is_empty());
}

#[tokio::test]
async fn an_answer_is_kept_despite_later_failures() {
    assert_eq!(answers("hangs after its result").await, (vec![Flag::Hung], Some(250)));
    for fault in [
        "code 3 after its result",
        "dies after its result",
        "two results",
        "one more result of another turn",
        "garbage",
        "floods errors",
    ] {
        assert_eq!(answers(fault).await, (Vec::new(), Some(250)), "{fault}");
    }
}

#[tokio::test]
async fn an_invalid_cost_is_unknown() {
    for fault in ["a cost of NaN", "a cost of null"] {
        assert_eq!(answers(fault).await, (vec![Flag::CostUnknown], None), "{fault}");
    }
}

#[tokio::test]
async fn a_cli_that_ends_without_a_result_gave_no_answer() {
    for fault in ["no result", "says nothing and ends", "ends in the turn"] {
        let (code, class, _) = fails(fault).await;
        assert_eq!((code, class), ("claude.no_result", RETRY), "{fault}");
    }
    // As if it could not allocate memory.
    for fault in ["dies at start", "is killed in the turn"] {
        assert_eq!(fails(fault).await.0, "claude.broke_down", "{fault}");
        let mut host = Host::with_fault(fault).await;
        host.config.memory_max_bytes = 0;
        assert_eq!(fails_with(host).await.0, "claude.no_result", "{fault}");
    }
}

#[tokio::test]
async fn refused_flags_fail_the_task_without_a_retry() {
    let (code, class, message) = fails("refuses its flags").await;
    assert_eq!((code, class), ("claude.refused", Class::Fail));
    assert!(message.contains("unknown option '--nonsense'"), "{message}");
}

#[tokio::test]
async fn an_answer_for_another_session_is_discarded() {
    let (code, class, _) = fails("answers for another session").await;
    assert_eq!((code, class), ("claude.wrong_session", RETRY));
}

#[tokio::test]
async fn an_answer_that_the_cli_did_not_store_is_retried() {
    let (code, class, message) = fails("stores nothing").await;
    assert_eq!((code, class), ("claude.not_persisted", RETRY));
    assert!(message.contains("disk"), "{message}");
}

#[tokio::test]
async fn a_missing_program_is_reported_by_name() {
    let mut host = Host::with_fault("").await;
    host.config.program = "/no/such/claude".into();
    let error = host.ask(StoredConversation::new().request("Hello.", false)).await.unwrap_err();
    assert_eq!((error.code, error.class), ("claude.not_started", RETRY));
    assert!(error.to_string().contains("/no/such/claude"), "{error}");
}

#[tokio::test]
async fn endless_output_is_cut_and_not_buffered() {
    let (code, class, _) = fails("one long line").await;
    assert_eq!((code, class), ("claude.too_much", RETRY));
    let before = peak_memory_mb();
    let mut host = Host::with_fault("floods").await;
    host.config.output_max_bytes = 96 << 20;
    let error = host.ask(StoredConversation::new().request("Hello.", false)).await.unwrap_err();
    assert_eq!(error.code, "claude.too_much");
    assert!(host.processes().is_empty());
    // The line limit is 32 MB; other tests run in parallel.
    let grown = peak_memory_mb().saturating_sub(before);
    assert!(grown < 90, "{grown} MB more");
}

#[tokio::test]
async fn a_cancelled_turn_ends_with_all_its_processes() {
    for fault in ["hangs at start, deaf", "hangs in the turn, deaf", "leaves children and hangs"] {
        let host = Host::with_fault(fault).await;
        let cancel = CancellationToken::new();
        let trigger = cancel.clone();
        let started = async {
            let n_expected = if fault == "leaves children and hangs" { 6 } else { 2 };
            crate::app::eventually("the call runs", async || {
                (host.processes().len() >= n_expected).then_some(())
            })
            .await;
            trigger.cancel();
        };
        let call = host.ask_with(StoredConversation::new().request("Hello.", false), cancel);
        let ((result, _), ()) = tokio::join!(call, started);
        assert_eq!(result.unwrap_err().class, Class::Cancelled, "{fault}");
        assert!(host.processes().is_empty(), "{fault}");
    }
}

#[tokio::test]
async fn processes_of_a_turn_end_with_it() {
    assert_eq!(answers("leaves children").await.0, []);
}

#[tokio::test]
async fn a_dropped_call_leaves_no_process() {
    let host = Host::with_fault("leaves children and hangs").await;
    let call = host.ask(StoredConversation::new().request("Hello.", false));
    let started = crate::app::eventually("the call runs", async || {
        (host.processes().len() >= 6).then_some(())
    });
    tokio::select! {
        result = call => panic!("the call ended by itself: {result:?}"),
        () = started => {}
    }
    host.is_quiet().await;
}

/// Returns the peak memory of this process.
fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
