//! Commands for operators, compared on the database and over HTTP by `remote.rs`: queues, lanes, jobs, workers,
//! cleanups, credentials, keys, webhooks and the audit log.

use dalsegno::domain::audit::{self, Action, Actor};
use serde_json::json;
use sqlx::PgPool;

use super::campaign_commands::Step;
use crate::app::noon;

/// Returns each operation with its command, in an order in which each has an effect. `schedule run cleanup` has made a
/// job before.
pub fn steps() -> Vec<Step> {
    vec![
        ("pause_queue", vec!["queue", "pause", "turns", "--reason", "moving"]),
        ("list_queues", vec!["queue", "ls"]),
        ("show_queue", vec!["queue", "show", "turns"]),
        ("show_queue", vec!["queue", "show", "none"]),
        ("resume_queue", vec!["queue", "resume", "turns"]),
        ("pause_group", vec!["queue", "pause", "spring", "--group"]),
        ("resume_group", vec!["queue", "resume", "spring", "--group"]),
        ("list_workers", vec!["worker", "ls"]),
        ("list_lanes", vec!["lane", "ls"]),
        ("list_lanes", vec!["lane", "ls", "--held", "--after", "a", "--limit", "3"]),
        ("show_lane", vec!["lane", "show", "a/b c"]),
        ("show_lane", vec!["lane", "show", "cleanup"]),
        ("hold_lane", vec!["lane", "hold", "cleanup", "--reason", "moving"]),
        ("hold_lane", vec!["lane", "hold", "cleanup", "--reason", ""]),
        ("release_lane", vec!["lane", "release", "cleanup"]),
        ("release_lane", vec!["lane", "release", "none"]),
        ("list_rate_limits", vec!["rate-limit", "ls"]),
        ("list_credentials", vec!["credential", "ls"]),
        ("resume_credential", vec!["credential", "resume", "main"]),
        (
            "list_audit",
            vec!["audit", "ls", "--actor", "ops@host", "--since", "2026-01-01T00:00:00Z"],
        ),
        ("list_audit", vec!["audit", "ls", "--until", "2026-01-01T00:00:00Z"]),
        ("list_audit", vec!["audit", "ls", "--actor", "stranger", "--subject", "x"]),
        // Without `--at` it is for the real moment, which is not that of the service's clock.
        ("preview_cleanup", vec!["cleanup", "--dry-run", "--at", "2026-11-20T12:00:00Z"]),
        ("run_cleanup", vec!["cleanup"]),
        ("list_cleanup_runs", vec!["cleanup", "runs"]),
        ("list_cleanup_runs", vec!["cleanup", "runs", "--after", "7", "--limit", "3"]),
        ("list_jobs", vec!["job", "ls", "--queue", "upkeep"]),
        ("list_jobs", vec!["job", "ls", "--state", "ready", "--limit", "1"]),
        ("list_jobs", vec!["job", "ls", "--waits-for", "slot"]),
        ("list_jobs", vec!["job", "ls", "--after", "7", "--kind", "cleanup", "--lane", "cleanup"]),
        ("list_jobs", vec!["job", "ls", "--campaign", "Harbour"]),
        ("show_job", vec!["job", "show", "1"]),
        ("show_job", vec!["job", "show", "99"]),
        ("hold_job", vec!["job", "hold", "1", "--reason", "moving"]),
        ("explain_job", vec!["job", "explain", "1"]),
        ("explain_job", vec!["job", "explain", "99"]),
        ("release_job", vec!["job", "release", "1"]),
        ("retry_job", vec!["job", "retry", "1"]),
        ("retry_job", vec!["job", "retry", "99"]),
        ("cancel_job", vec!["job", "cancel", "1"]),
        ("cancel_job", vec!["job", "cancel", "99"]),
        ("create_key", vec!["key", "create", "ci", "--scope", "read"]),
        ("create_key", vec!["key", "create", "ci", "--scope", "read", "--campaign", "Nowhere"]),
        ("rotate_key", vec!["key", "rotate", "ci", "--overlap", "365d"]),
        ("rotate_key", vec!["key", "rotate", "ci", "--overlap", "0s"]),
        ("rotate_key", vec!["key", "rotate", "none"]),
        ("list_keys", vec!["key", "ls"]),
        ("list_keys", vec!["key", "ls", "--limit", "1"]),
        ("list_keys", vec!["key", "ls", "--after", "00000000dead"]),
        ("revoke_key", vec!["key", "revoke", "ci"]),
        ("revoke_key", vec!["key", "revoke", "none"]),
        ("list_sign_ins", vec!["sign-in", "ls"]),
        ("list_sign_ins", vec!["sign-in", "ls", "--limit", "1"]),
        ("end_sign_in", vec!["sign-in", "end", SIGN_IN]),
        ("end_sign_in", vec!["sign-in", "end", "019aa2f4-0000-7000-8000-00000000dead"]),
        ("show_overview", vec!["overview"]),
        ("search_texts", vec!["search", "harbour"]),
        ("search_texts", vec!["search", "\"the part\" or part", "--kind", "task", "--limit", "1"]),
        (
            "search_texts",
            vec!["search", "part", "--agent", "copywriter", "--since", "2026-01-01T00:00:00Z"],
        ),
        ("search_texts", vec!["search", "..."]),
        ("add_webhook", vec!["webhook", "add", "https://example.com/", "--kind", "task.done"]),
        ("add_webhook", vec!["webhook", "add", "https://127.0.0.1/", "--campaign", "Harbour"]),
        ("list_webhooks", vec!["webhook", "ls"]),
        ("show_webhook", vec!["webhook", "show", "HOOK"]),
        ("show_webhook", vec!["webhook", "show", "019aa2f4-0000-7000-8000-00000000dead"]),
        ("rotate_webhook", vec!["webhook", "rotate", "HOOK", "--overlap-hours", "0"]),
        ("test_webhook", vec!["webhook", "test", "HOOK"]),
        ("list_deliveries", vec!["webhook", "deliveries", "--webhook", "HOOK", "--failed"]),
        ("list_deliveries", vec!["webhook", "deliveries"]),
        (
            "show_webhook_message",
            vec!["webhook", "listen", "http://127.0.0.1:1/hook", "--after", "0", "--limit", "1"],
        ),
        (
            "show_webhook_message",
            vec!["webhook", "listen", "http://127.0.0.1:1/hook", "--campaign", "Nowhere"],
        ),
        (
            "replay_webhook",
            vec!["webhook", "replay", "--webhook", "HOOK", "--since", "2026-01-01T00:00:00Z"],
        ),
        ("replay_delivery", vec!["webhook", "replay", "DELIVERY"]),
        ("replay_delivery", vec!["webhook", "replay", "019aa2f4-0000-7000-8000-00000000dead"]),
        ("disable_webhook", vec!["webhook", "disable", "HOOK"]),
        ("enable_webhook", vec!["webhook", "enable", "HOOK"]),
        ("remove_webhook", vec!["webhook", "rm", "HOOK"]),
    ]
}

/// The id of a sign-in that both sides have.
const SIGN_IN: &str = "019aa2f4-0000-7000-8000-0000000000c1";

/// Writes an audit line and a sign-in that are equal on both sides.
pub async fn fill(pool: &PgPool) {
    let sign_in = "insert into dalsegno.sign_ins (id, created_at, expires_at, admin_key_sha256, sha256)
                   values ($1::uuid, $2, $2 + interval '12 hours', sha256('key'), sha256('cookie'))";
    sqlx::query(sign_in).bind(SIGN_IN).bind(noon()).execute(pool).await.unwrap();
    let (who, data) = (Actor::cli("ops", "host"), json!({ "reason": "moving" }));
    audit::write(pool, &who, Action::QueuePause, "turns", data, noon()).await.unwrap();
}
