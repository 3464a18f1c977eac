//! Every operation is reached from the console, or listed with the reason why not.

use std::collections::BTreeSet;

use dalsegno::operations;

use super::source;

/// Operations that no page runs, with the reason.
const ELSEWHERE: &[(&str, &str)] = &[
    ("follow_task", "pages follow one stream of all events, which they share between tabs"),
    ("follow_feed", "pages follow one stream of all events, which they share between tabs"),
    ("add_many_tasks", "for lists that programs make; a person adds one task, or starts a flow"),
    (
        "record_eval_run",
        "`eval run` records the results: the checks are in the eval file, which the service does not have",
    ),
    ("find_memory", "finds an item by its name for programs; pages link items by their ids"),
    (
        "view_session",
        "the messages in the form of other systems; the page of the session shows them beside the transcript",
    ),
    (
        "list_archives",
        "the messages that compactions have replaced stay in the transcript, which the page of the session shows",
    ),
    (
        "read_archive",
        "the messages that compactions have replaced stay in the transcript, which the page of the session shows",
    ),
    (
        "show_compaction",
        "the answer to one request, for the command that waits; the session lists its compactions",
    ),
    (
        "show_webhook_message",
        "for `webhook listen`, which sends the message to the host of its user",
    ),
    ("show_queue", "the list of queues has the same fields"),
    ("list_workers", "the activity of workers has the same fields"),
    ("show_bulk_action", "the list of bulk actions has the same fields"),
    (
        "pause_group",
        "groups are campaigns here: their page pauses them, with the status of the campaign",
    ),
    (
        "resume_group",
        "groups are campaigns here: their page resumes them, with the status of the campaign",
    ),
];

#[test]
fn every_operation_is_reached_from_the_console_or_listed_with_the_reason_why_not() {
    let mut reached: BTreeSet<String> = source::of_forms();
    reached.extend(source::of_pages().into_iter().map(str::to_owned));
    let ids: BTreeSet<&str> = operations::ALL.iter().map(|entry| entry.spec.id).collect();
    let listed: BTreeSet<&str> = ELSEWHERE.iter().map(|(id, _)| *id).collect();
    let lost: Vec<_> =
        ids.iter().filter(|id| !reached.contains(**id) && !listed.contains(*id)).collect();
    assert!(lost.is_empty(), "no page runs {lost:?}: add an action or a page, or a reason");
    let stale: Vec<_> =
        listed.iter().filter(|id| reached.contains(**id) || !ids.contains(*id)).collect();
    assert!(
        stale.is_empty(),
        "a page runs {stale:?}, or no such operation exists: remove the reason"
    );
    let unknown: Vec<_> = reached.iter().filter(|id| !ids.contains(id.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
