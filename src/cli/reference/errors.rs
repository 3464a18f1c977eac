//! The reference of error codes, from the API document.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde_json::Value;

use super::cells::cell;
use crate::http;

const HEAD: &str = "\
# Error codes

A refused request gets a problem document (`application/problem+json`, RFC 9457). `code` is stable: programs decide by it. `detail` says what failed
and what to do next. `retryable` is true if the same request can succeed later; `Retry-After` says when, where that is known. `errors` names the
invalid parts of the body as JSON Pointers.

| status | meaning | exit code of the command |
|---|---|---|
| 400, 413, 414, 415, 422, 431 | the request is invalid | 2 |
| 401, 403 | the key is missing, unknown, or may not do this | 4 |
| 404 | the thing does not exist, or the key may not see it | 3 |
| 409 | the request conflicts with the current state | 5 |
| 429, 503, 504 | try again later | 7 |
| 500 | a fault of the service or of its installation | 1 |

`dalsegno COMMAND --json` prints errors of commands as JSON, with a code for each exit code: `failed`, `usage`, `not_found`, `auth`, `conflict`,
`timed_out`, `unavailable`, `problems_found`, `cancelled`, `interrupted`.

Requests to paths without a route get `not_found` (404), requests with a method that a route does not have `method_not_allowed` (405).

## Codes

| code | status | meaning and next step |
|---|---|---|
";

/// The meaning of each code.
const MEANINGS: &[(&str, &str)] = &[
    ("agent_not_paused", "The agent is not paused, so there is nothing to resume."),
    ("agent_paused", "The agent is paused, so no turn begins: resume it first."),
    (
        "ambiguous_credential",
        "Several providers have a paused credential of this name: name the provider, too.",
    ),
    ("ambiguous_id", "The shortened id or handle fits several things: use more of its characters."),
    (
        "attachment_too_large",
        "An attachment, or all of a task together, has more bytes than a setting allows. `detail` names it.",
    ),
    (
        "bad_agent_file",
        "The agent file of a rerun has a problem: `detail` names line, key and what to write instead.",
    ),
    ("bad_argument", "A value is outside of its range. `detail` names the range."),
    (
        "bad_attachment",
        "An attachment has a name or a type that is not accepted, or a content that contradicts them. `detail` names the file and what is accepted.",
    ),
    ("bad_blackboard_key", "A key of the blackboard is empty or too long."),
    ("bad_body", "The body cannot be read, or the operation takes none."),
    ("bad_budget_key", "The key of the budget is missing, or a day has one."),
    ("bad_eval_name", "A name of an eval run is not a name: use small letters, digits, - and _."),
    ("bad_fact", "The attribute or the text of the fact is invalid."),
    (
        "bad_field",
        "A field of the body is missing, unknown, or has the wrong type or value. `errors` names it.",
    ),
    ("bad_filter", "The search text of the filter is empty or too long."),
    (
        "bad_flow_templates",
        "The list of flow templates has a text that is not a name, or more than 100 names.",
    ),
    (
        "bad_forwarding",
        "`Forwarded` and `X-Forwarded-For` name different clients: let the proxy set one of them.",
    ),
    ("bad_id", "The id in the path is not a UUID or a number."),
    ("bad_idempotency_key", "The idempotency key is empty, too long, or has invalid characters."),
    (
        "bad_inputs",
        "The inputs do not match the flow template: one is missing, unknown, or has no items.",
    ),
    ("bad_instance", "The name of the instance is invalid."),
    ("bad_item_name", "The name of the memory item is invalid."),
    ("bad_items", "Some items of the list are invalid, and none was added. `errors` names each."),
    ("bad_json", "The body is not valid JSON. `detail` names the line and column."),
    ("bad_key", "The API key is unknown, revoked or expired: send a valid one."),
    (
        "bad_last_event_id",
        "`Last-Event-ID` is not an id of an event: send the last one that the stream sent.",
    ),
    ("bad_name", "The name in the path is invalid."),
    (
        "bad_option",
        "An option of the rerun is out of its range, or names no model: `detail` has the limits.",
    ),
    ("bad_owner", "This kind of memory item needs an owner, or takes none."),
    (
        "bad_parameters",
        "A parameter has an invalid name or no value, or there are too many or too long ones. `detail` names the limit.",
    ),
    ("bad_query", "A query parameter is unknown or has an invalid value."),
    (
        "bad_result_schema",
        "The result schema is not a valid JSON Schema, refers to another document, or is too long. `detail` has the place in the schema.",
    ),
    ("bad_tags", "A tag is empty or too long, or there are too many."),
    (
        "bad_templates",
        "The file of the flow template has problems: `dalsegno flow check` lists them.",
    ),
    (
        "bad_timetable",
        "The cron expression, the time zone or the payload of the schedule is invalid.",
    ),
    ("bad_title", "The title of the memory item is empty, too long, or has several lines."),
    ("bad_user", "The name of the user is invalid."),
    ("bad_value", "The database refuses a value. `detail` names the rule."),
    (
        "bad_webhook_url",
        "The webhook's URL is invalid, or leads to an address that `webhooks.allow_private` excludes.",
    ),
    ("being_cancelled", "The task is being cancelled, so no further turn begins."),
    (
        "blackboard_changed",
        "The blackboard has a newer version: read it again, and repeat the change on it.",
    ),
    (
        "blackboard_too_large",
        "The blackboard would have too many bytes, keys or levels: store long content elsewhere.",
    ),
    (
        "body_too_large",
        "The body is longer than `http.max_body_bytes`, or `http.max_bulk_bytes` for lists.",
    ),
    ("broken_agent", "The agent's file has problems: `dalsegno agent check` lists them."),
    ("broken_node", "The node's file has problems: `dalsegno agent check` lists them."),
    ("budget_exceeded", "The budget of the campaign or task is used up: raise it."),
    (
        "built_in_schedule",
        "The schedule is built in: change its hour in `[scheduler]`, or pause it.",
    ),
    (
        "campaign_changed",
        "The texts of the campaign have a newer version: read it again, and repeat the edit on it.",
    ),
    ("campaign_closed", "The campaign is closed: create a new one."),
    (
        "conflict",
        "The job is in a state that does not allow this change. `detail` names the state.",
    ),
    (
        "context_not_exact",
        "A text of the call was erased or changed, so it cannot be sent again as it was. `detail` names the part.",
    ),
    (
        "context_not_stored",
        "The turn has no stored context or provider's transcript: it runs, its call was not made, or its worker was lost. `detail` has the reason.",
    ),
    (
        "count_differs",
        "The filter matches another number of tasks than `expected_count`: check the preview again.",
    ),
    ("credential_not_paused", "No credential of this name is paused."),
    ("database_busy", "The database has too many connections or a lock lasts too long: try again."),
    ("database_conflict", "Another transaction changed the same rows: try again at once."),
    (
        "database_full",
        "The database server ran out of disk space, memory or connections: see its log.",
    ),
    ("database_read_only", "The database server accepts no writes, because it is a standby."),
    (
        "database_unreachable",
        "The database cannot be reached: try again; `dalsegno doctor` names the cause.",
    ),
    ("duplicate_header", "A header that may occur once is sent several times."),
    ("empty_budget", "A budget must be more than 0: raise it, or leave it out."),
    (
        "empty_filter",
        "The filter would match every task: narrow it, or confirm with `expected_count`.",
    ),
    ("empty_text", "A text is empty."),
    (
        "entry_written",
        "The journal has an entry of this name, and entries cannot be replaced: use another name.",
    ),
    ("erased", "The prompt was erased with its campaign: add a new task in another campaign."),
    ("expired", "The expiry is in the past: give a future time."),
    ("fact_ended", "The fact has ended: use the current one."),
    ("fact_known", "The user has another fact with the same content."),
    ("facts_full", "The user has `facts.user_max` facts: revoke some, or raise the limit."),
    ("flow_ended", "The flow has ended: retry it from one of its steps."),
    ("flow_not_paused", "The flow is not paused, so there is nothing to resume."),
    ("flow_paused", "The flow is paused: resume it first."),
    (
        "foreign_origin",
        "Web pages of other origins may not call the service: send the request from a server. A proxy in front of the console has to pass on the header Host.",
    ),
    ("headers_too_large", "The headers are longer than `http.max_header_bytes`."),
    (
        "idempotency_conflict",
        "The idempotency key was used with other input: use another key, or repeat the first request unchanged.",
    ),
    (
        "idempotency_not_supported",
        "The answer contains a secret, which is not stored: send the request without an idempotency key.",
    ),
    (
        "instance_taken",
        "The agent has an instance of this name in the campaign: choose another one.",
    ),
    ("internal", "A fault of the service: its log has the cause under the `request_id`."),
    (
        "item_changed",
        "The memory item has a newer version: read it again, and repeat the change on it.",
    ),
    ("item_revoked", "The memory item is already revoked."),
    ("key_expired", "The new API key would already be expired: give a future time."),
    (
        "key_is_bound",
        "The API key is bound to campaigns, and this one is not among them, or the operation covers all.",
    ),
    ("key_name_taken", "An API key of this name exists: rotate or revoke it, or use another name."),
    ("key_replaced", "The API key was already rotated: rotate its successor."),
    ("key_revoked", "The API key is revoked and cannot be rotated: create a new one."),
    ("metadata_too_long", "The metadata has too many bytes."),
    ("migrations_pending", "The schema is not up to date: `dalsegno migrate up`."),
    ("missing_scope", "The API key lacks the scope of this operation."),
    ("no_audience", "The post has no readers: name agents, `operator` or `all`."),
    (
        "no_experiment_budget",
        "The model costs money, and the campaign has no budget for reruns: set one.",
    ),
    ("no_message", "The request is not a valid MCP message. `detail` has the reason."),
    ("no_object", "A blackboard and its patches are JSON objects."),
    ("no_parent", "The task cannot get children: it is neither running nor done."),
    ("no_tasks", "The list has no tasks."),
    ("no_words", "The search text has no words."),
    ("not_erased", "The campaign has no erasure."),
    (
        "not_json",
        "The body needs `Content-Type: application/json`; lists may be `application/x-ndjson`.",
    ),
    ("nothing_runs", "The session has no running turn."),
    (
        "nothing_to_undo",
        "The compaction is not the last one of its session, or was already undone.",
    ),
    ("nul_in_text", "A text contains the character U+0000, which the database cannot store."),
    (
        "option_not_supported",
        "The provider has no such option: leave it out, or name another provider.",
    ),
    ("queue_full", "`queue.max_waiting` tasks are waiting: try again later."),
    ("same_dimension", "Both dimensions of a report are the same: name another second one."),
    ("session_busy", "Another run has taken over the session: try again when it has ended."),
    ("session_closed", "The session is closed: use its successor."),
    ("session_expired", "The session has expired: the next task opens one that can be forked."),
    ("shutting_down", "The process is stopping: use another one."),
    ("starting", "The service waits for its database or its schema: try again."),
    ("task_ended", "The task has already ended."),
    ("task_not_ended", "The task has not ended: wait for it, or cancel it first."),
    (
        "task_not_waiting",
        "The task has been claimed or has ended: its priority has no effect any more.",
    ),
    (
        "task_requeued",
        "The task was enqueued again at the same time: check its state, then repeat the request.",
    ),
    ("text_too_long", "A text is longer than its limit. `detail` names the limit."),
    (
        "timeout",
        "The request took longer than `http.request_timeout_secs`, and may or may not have taken effect.",
    ),
    ("too_many_answers", "An eval run has more than 2000 answers: split the eval file."),
    (
        "too_many_bad_keys",
        "Too many requests with invalid API keys or cookies came from this address: wait.",
    ),
    ("too_many_edicts", "The campaign has the maximum number of edicts: revoke one first."),
    (
        "too_many_lines",
        "The report would have more than 10,000 lines: name a shorter period or one campaign.",
    ),
    ("too_many_names", "The post is addressed to too many names: `all` reaches all agents."),
    (
        "too_many_predecessors",
        "The task waits for too many others: let intermediate tasks wait for parts of them.",
    ),
    ("too_many_requests", "The API key has used up `http.requests_per_minute`: wait."),
    ("too_many_reruns", "The turn has as many reruns as it may have: fork the session."),
    ("too_many_tasks", "The list has too many tasks: send several lists."),
    (
        "too_many_tasks_in_flow",
        "The flow would have too many tasks: start several flows with shorter lists.",
    ),
    (
        "too_many_versions",
        "The memory item has the maximum number of versions: publish it under another name.",
    ),
    (
        "too_many_waiting",
        "`http.max_waiting` requests are waiting for tasks, or `http.max_page_streams` page streams are open: try again later.",
    ),
    (
        "too_many_waiting_per_client",
        "`http.max_waiting_per_client` requests of this key are waiting for tasks, or `http.max_page_streams_per_client` page streams of it are open: end some of them.",
    ),
    ("turn_not_done", "The turn has not ended with an answer: fork at one that has."),
    ("turn_refused", "The turn could not begin now. `detail` has the reason."),
    ("turn_runs", "A turn of the conversation is running: try again after its end."),
    ("unauthenticated", "The request has no API key: send `Authorization: Bearer KEY`."),
    ("unknown_agent", "No agent has this name. `detail` has the closest match."),
    ("unknown_archive", "The session has no such archive."),
    (
        "unknown_attachment",
        "No task of this campaign has a file of this name: `dalsegno task files` lists those of a task.",
    ),
    ("unknown_bulk_action", "The bulk action does not exist."),
    ("unknown_call", "The turn has no call of this number with a stored context."),
    ("unknown_campaign", "The campaign does not exist."),
    ("unknown_compaction", "The compaction does not exist."),
    ("unknown_delivery", "The delivery does not exist."),
    (
        "unknown_eval_run",
        "No such eval run is recorded in the campaign: `dalsegno eval run` records one.",
    ),
    ("unknown_fact", "The user has no such fact."),
    (
        "unknown_file",
        "No agent, skill, node or flow template has this name: `dalsegno agent files` lists them.",
    ),
    ("unknown_flow", "The flow does not exist."),
    (
        "unknown_host",
        "The host name of the request is not allowed: add it to `http.allowed_hosts`.",
    ),
    ("unknown_id", "Nothing has this id."),
    ("unknown_item", "The memory item does not exist."),
    ("unknown_job", "The job does not exist."),
    ("unknown_key", "The API key does not exist."),
    ("unknown_lane", "The lane does not exist."),
    ("unknown_names", "No agent has one of these names. `detail` lists them."),
    ("unknown_node", "No node has this name. `detail` has the closest match."),
    ("unknown_post", "The campaign has no such post."),
    ("unknown_predecessor", "A task to wait for does not exist in this campaign."),
    ("unknown_queue", "No queue has this name."),
    ("unknown_schedule", "No schedule has this name."),
    ("unknown_session", "The session does not exist."),
    ("unknown_sign_in", "The sign-in does not exist, or ended more than 30 days ago."),
    ("unknown_step", "The flow has no such step."),
    ("unknown_task", "The task does not exist."),
    (
        "unknown_task_file",
        "The task has no stored file of this name: `dalsegno task files` lists those that are stored, and why others are not.",
    ),
    ("unknown_template", "No flow template has this name."),
    (
        "unknown_turn",
        "The session has no turn of this number. Numbers continue those of the session before it.",
    ),
    ("unknown_version", "The thing has no such version."),
    ("unknown_webhook", "The webhook does not exist."),
    ("uri_too_long", "The URL is too long."),
    ("webhook_disabled", "The webhook is disabled: enable it first."),
];

/// Writes the reference.
pub(super) fn markdown() -> anyhow::Result<String> {
    let mut text = HEAD.to_owned();
    for (code, statuses) in codes()? {
        let statuses: Vec<_> = statuses.iter().map(String::as_str).collect();
        let meaning = meaning(&code).unwrap_or_default();
        text += &format!("| `{code}` | {} | {} |\n", statuses.join(", "), cell(meaning));
    }
    Ok(text)
}

fn meaning(code: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
}

/// Lists the codes of the API document with their statuses.
fn codes() -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
    let document: Value =
        serde_json::from_str(http::document()).context("cannot read the API document")?;
    let mut codes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let operations = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    let operations = operations.filter_map(Value::as_object).flat_map(|path| path.values());
    for answers in operations.filter_map(|operation| operation["responses"].as_object()) {
        for (status, answer) in answers {
            let schema = &answer["content"]["application/problem+json"]["schema"]["allOf"][1];
            let found = schema["properties"]["code"]["enum"].as_array().into_iter().flatten();
            for code in found.filter_map(Value::as_str) {
                codes.entry(code.to_owned()).or_default().insert(status.clone());
            }
        }
    }
    Ok(codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_meaning_and_every_meaning_a_code() {
        let codes: Vec<String> = codes().unwrap().into_keys().collect();
        let described: Vec<_> = MEANINGS.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, described);
    }
}
