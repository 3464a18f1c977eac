//! `dalsegno cleanup`: removes expired sessions.

use std::str::FromStr;

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    output::{Output, format_table, format_wrapped, format_wrapped_table, time_cell},
    progress::{Progress, WaitFlag, wait_for_end},
    server::{Server, with_server},
    session::serialised_name,
    words::time,
};
use crate::{
    clock::{Clock as _, SystemClock},
    domain::{
        audit::describe_label,
        cleanups::{CleanupRun, Preview, UNCOUNTED},
        schedules::NIGHTLY_CLEANUP,
        sessions::DueReason,
        text::count,
        timestamp,
    },
    operations::{ListCleanupRuns, PreviewCleanup, RunCleanup, ShowSchedule},
};

/// Printed below an empty list.
const NO_RUNS: &str = "no cleanups: `dalsegno cleanup` runs one now, and `dalsegno schedule show cleanup` names the time of the next one";

/// Without a command: makes a worker remove now what the nightly cleanup would remove.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Cleanup {
    /// Shows what would be removed and why, and removes nothing.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Time of the cleanup that --dry-run shows: 2026-11-23T02:00:00Z, or `next` for the next nightly run. Default: now.
    #[arg(long, value_name = "TIME|next", requires = "dry_run")]
    at: Option<PreviewTime>,
    #[command(flatten)]
    wait: WaitFlag,
    #[command(subcommand)]
    command: Option<CleanupCommand>,
}

/// The time of a cleanup that is previewed.
#[derive(Debug, Clone, Copy)]
enum PreviewTime {
    At(DateTime<Utc>),
    /// That of the next nightly run.
    Next,
}

impl FromStr for PreviewTime {
    type Err = timestamp::Error;

    fn from_str(text: &str) -> Result<Self, timestamp::Error> {
        match text {
            "next" => Ok(Self::Next),
            text => timestamp::parse(text).map(Self::At),
        }
    }
}

#[derive(Debug, Subcommand)]
enum CleanupCommand {
    /// Lists past cleanups with what they removed and kept, the newest first.
    Runs(Runs),
}

#[derive(Debug, Args)]
struct Runs {
    /// Continues after this cleanup: the last id of the previous page.
    #[arg(long, value_name = "ID")]
    after: Option<i64>,
    /// Maximum number of cleanups, up to 1000.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

pub(super) async fn run(cleanup: &Cleanup, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(cleanup, context, server).await).await
}

async fn run_on_server(
    cleanup: &Cleanup,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match &cleanup.command {
        Some(CleanupCommand::Runs(Runs { after, limit })) => {
            let page = |cursor: Option<String>, limit| ListCleanupRuns {
                cursor: cursor.map_or(*after, |cursor| cursor.parse().ok()),
                limit: Some(limit),
            };
            let runs = server.items(*limit, page).await?;
            output.print_rows(&runs, after.is_some(), NO_RUNS, || format_runs(&runs));
        }
        None if cleanup.dry_run => {
            let (at, next) = match (cleanup.at, output.is_structured()) {
                (Some(PreviewTime::At(at)), _) => (Some(at), None),
                (Some(PreviewTime::Next), _) => {
                    (Some(next_slot(server).await?.ok_or_else(no_next)?), None)
                }
                // The server previews its own moment, which only the text would name.
                (None, true) => (None, None),
                // The next run is only a hint: the preview does not fail without it.
                (None, false) => {
                    (Some(SystemClock.now()), next_slot(server).await.unwrap_or_default())
                }
            };
            let preview = server.call(PreviewCleanup { at }).await?;
            output.print_data(&preview, || {
                let moment = at.map(|at| format_moment(at, next)).unwrap_or_default();
                format_preview(&preview, &moment)
            });
        }
        None => {
            // Counted before the run, which removes what is counted.
            let due = match cleanup.wait.wait {
                Some(_) => server.call(PreviewCleanup { at: None }).await?.sessions,
                None => 0,
            };
            let job = server.call(RunCleanup {}).await?;
            if let Some(limit) = cleanup.wait.wait {
                return wait_for_run(job.job_id, due, limit, output, server).await;
            }
            output.print_data(&job, || {
                format!(
                    "job {} is {}; `dalsegno cleanup runs` lists its result",
                    job.job_id, job.state
                )
            });
        }
    }
    Ok(Exit::Ok)
}

/// Waits for the end of a cleanup, and prints what it removed.
async fn wait_for_run(
    job_id: i64,
    due: i64,
    limit: TimeDelta,
    output: Output,
    server: &Server,
) -> Result<Exit, Failure> {
    let count = |n: i64| u64::try_from(n).unwrap_or_default();
    let look = async || {
        let newest = server.call(ListCleanupRuns { cursor: None, limit: None }).await?.items;
        let run = newest.into_iter().find(|run| run.job_id == Some(job_id));
        let done = run.as_ref().map_or(0, |run| run.sessions);
        let has_ended = run.as_ref().is_some_and(|run| run.ended_at.is_some());
        Ok((run, Progress { done: count(done), total: count(due) }, has_ended))
    };
    let (run, exit) = wait_for_end("sessions", limit, output, look).await?;
    output.print_data(&run, || match &run {
        Some(run) => format_runs(std::slice::from_ref(run)),
        None => format!("job {job_id} waits for a worker: `dalsegno job explain {job_id}`"),
    });
    Ok(exit)
}

/// Returns the time of the next nightly run. `None`: the schedule does not exist yet, is paused, or has no further moment.
async fn next_slot(server: &Server) -> Result<Option<DateTime<Utc>>, Failure> {
    let show = ShowSchedule { name: NIGHTLY_CLEANUP.to_owned() };
    let schedule = match server.call(show).await {
        Ok(shown) => shown.schedule,
        Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
        Err(failure) => return Err(failure),
    };
    Ok(schedule.next_slot.filter(|_| schedule.pause_reason.is_none()))
}

fn no_next() -> Failure {
    let error = anyhow!(
        "the next cleanup has no time: its schedule is paused or does not exist yet; `dalsegno schedule show {NIGHTLY_CLEANUP}` shows it"
    );
    Failure::new(Exit::Conflict, error)
}

/// Names the moment of a preview, and the time of the next run, if it is another one.
fn format_moment(at: DateTime<Utc>, next: Option<DateTime<Utc>>) -> String {
    let mut text = format!("as of {} UTC\n", time(at));
    if let Some(next) = next {
        text.push_str(&format!(
            "next run: {} UTC; `dalsegno cleanup --dry-run --at next` previews it\n",
            time(next)
        ));
    }
    text
}

fn format_preview(preview: &Preview, moment: &str) -> String {
    let keep_days = preview.keep_days;
    let mut text = match preview.sessions {
        0 => format!("no session would be removed\n{moment}"),
        n => format!(
            "{} would be removed, with {}, {} bytes; nothing was removed\n{moment}\n{}",
            count(n, "session", "sessions"),
            count(preview.messages, "message", "messages"),
            preview.bytes,
            groups(preview)
        ),
    };
    if preview.summaries_kept > 0 {
        text.push_str(&format!(
            "\n{} would be kept for the next task, until {} after the expiry\n",
            count(
                preview.summaries_kept,
                "summary of an expired session",
                "summaries of expired sessions"
            ),
            count(keep_days.summaries, "day", "days")
        ));
    }
    if preview.summaries_removed > 0 {
        text.push_str(&format!(
            "\n{} would be removed, which no task used in time\n",
            count(preview.summaries_removed, "kept summary", "kept summaries")
        ));
    }
    if preview.events > 0 {
        text.push_str(&format!(
            "\n{} of the feed would be removed, older than {}\n",
            count(preview.events, "event", "events"),
            count(keep_days.events, "day", "days")
        ));
    }
    if preview.memory_items > 0 {
        text.push_str(&format!(
            "\n{} would be removed, revoked or expired for {}\n",
            count(preview.memory_items, "memory item", "memory items"),
            count(keep_days.memory_items, "day", "days")
        ));
    }
    if preview.posts_archived > 0 {
        text.push_str(&format!(
            "\n{} of boards would be archived (`board.keep_days`, `board.keep_posts`)\n",
            count(preview.posts_archived, "old post", "old posts")
        ));
    }
    if preview.posts_held > 0 {
        text.push_str(&format!(
            "\n{} would stay on a board: an agent has not seen it, or a task answers it\n",
            count(preview.posts_held, "old post", "old posts")
        ));
    }
    text.push_str(&format!("\n{}", format_wrapped("", UNCOUNTED)));
    if !preview.kept.is_empty() {
        let rows = preview.kept.iter().map(|(kept, n)| [serialised_name(kept), n.to_string()]);
        text.push_str(&format!(
            "\nexpired as well, but would be kept\n{}",
            format_table(&["WHY", "SESSIONS"], rows)
        ));
    }
    text
}

fn groups(preview: &Preview) -> String {
    let rows = preview.groups.iter().map(|group| {
        let why = match group.because {
            DueReason::Expired => "expired".to_owned(),
            DueReason::Closed => format!("closed for {} days", preview.keep_days.closed_sessions),
        };
        let counts = [group.sessions, group.messages, group.bytes].map(|n| n.to_string());
        let [sessions, messages, bytes] = counts;
        [group.provider.clone(), why, sessions, messages, bytes, time_cell(group.oldest)]
    });
    format_table(&["PROVIDER", "WHY", "SESSIONS", "MESSAGES", "BYTES", "OLDEST (UTC)"], rows)
}

fn format_runs(runs: &[CleanupRun]) -> String {
    let row = |run: &CleanupRun| {
        let took = run.duration_secs.map_or_else(|| "-".to_owned(), |secs| format!("{secs:.1} s"));
        let cells = [
            run.id.to_string(),
            time_cell(run.started_at),
            took,
            run.outcome.clone().unwrap_or_else(|| "runs".to_owned()),
        ];
        (cells, format_result(run))
    };
    let head = ["ID", "STARTED (UTC)", "TOOK", "OUTCOME"];
    format_wrapped_table(&head, runs.iter().map(row), "REMOVED AND KEPT")
}

/// Names the caller of a run and its result. Folders are removed by each host itself.
fn format_result(run: &CleanupRun) -> String {
    let removed = format_removed(run);
    match &run.requested_by {
        Some(label) => format!("by {}: {removed}", describe_label(label)),
        None => removed,
    }
}

/// Lists what a run removed and kept, without zeros.
fn format_removed(run: &CleanupRun) -> String {
    let counts = [
        (run.sessions, "session", "sessions"),
        (run.messages, "message", "messages"),
        (run.events, "event", "events"),
        (run.memory_items, "memory item", "memory items"),
        (run.summaries_removed, "old summary", "old summaries"),
        (run.posts_archived, "post archived", "posts archived"),
        (run.summaries_kept, "summary kept", "summaries kept"),
        (run.bytes, "byte", "bytes"),
    ];
    let mut parts: Vec<String> = counts
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| count(n, one, many))
        .collect();
    if run.kind == "folders" {
        let folders = count(run.folders, "folder", "folders");
        parts.insert(0, format!("{folders} on {}", run.host));
    }
    let kept = format_kept(run);
    if !kept.is_empty() {
        parts.push(format!("due, but kept: {kept}"));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

fn format_kept(run: &CleanupRun) -> String {
    let kept = run.kept.as_object().into_iter().flatten();
    let words: Vec<String> =
        kept.map(|(why, n)| format!("{n} {}", why.replace('_', " "))).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_names_its_caller_and_leaves_out_zeros() {
        let run = |requested_by: Option<&str>, sessions: i64| -> CleanupRun {
            serde_json::from_value(json!({
                "id": 1, "kind": "sessions", "job_id": 7, "requested_by": requested_by, "host": "", "started_at": "2026-11-20T02:00:00Z",
                "ended_at": null, "duration_secs": null, "outcome": null, "sessions": sessions, "messages": 12 * sessions, "bytes": 0,
                "folders": 0, "events": 0, "memory_items": 0, "summaries_kept": sessions, "summaries_removed": 0, "posts_archived": 0,
                "removed": [], "kept": if sessions > 0 { json!({ "in_use": 2 }) } else { json!({}) },
            }))
            .unwrap()
        };
        assert_eq!(format_result(&run(Some("schedule"), 0)), "by schedule: nothing");
        assert_eq!(format_result(&run(Some("anonymous"), 0)), "by a caller without a key: nothing");
        assert_eq!(format_result(&run(None, 0)), "nothing");
        let asked = run(Some("cli:ann@vm"), 1);
        assert_eq!(
            format_result(&asked),
            "by ann on the command line of vm: 1 session, 12 messages, 1 summary kept, due, but kept: 2 in use"
        );
        let far = run(Some("cli:deploy@ip-10-0-12-34.eu-central-1"), 0);
        let text = format_runs(&[asked, far]);
        assert!(text.contains("OUTCOME  REMOVED AND KEPT\n"), "{text}");
        assert!(text.contains("ip-10-0-12-34.eu-central-1: nothing\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
