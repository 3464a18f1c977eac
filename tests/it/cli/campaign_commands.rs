//! Commands about campaigns and their work, compared on the database and over HTTP by `remote.rs`.

use std::path::Path;

use dalsegno::domain::task_files::{self, NewFiles};
use sqlx::PgPool;
use uuid::Uuid;

use super::compact;
use crate::{
    app::noon,
    conversations::world::{TurnSettings, World},
};

/// An operation, and a command that calls it.
pub type Step = (&'static str, Vec<&'static str>);

const UNKNOWN: &str = "019aa2f4-0000-7000-8000-00000000dead";

/// Sets up a conversation with a compaction, and a waiting task.
pub async fn fill(world: &World) {
    world.turn("Part one.", TurnSettings::default()).await;
    let session = world.turn("Part two.", TurnSettings::default()).await.session.id;
    compact(&world.pool, session).await;
    world.keep_sessions().await;
    world.add("Part three.").await;
    let done: Uuid = sqlx::query_scalar("select id from dalsegno.tasks where prompt = 'Part one.'")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    let mut files = NewFiles::default();
    files.add("charts/a.csv", b"a,b");
    files.add_problem(b"long", "it is too long".to_owned());
    task_files::store_contents(&world.pool, &files, noon()).await.unwrap();
    task_files::record(&world.pool, (done, 1), &files, noon()).await.unwrap();
}

/// Returns the steps in an order in which each has an effect.
pub fn steps() -> Vec<Step> {
    let first = [campaigns(), sessions(), agents(), tasks(), intake(), boards()].concat();
    [first, memory(), facts(), flows()].concat()
}

/// Returns the steps that leave little for others to do.
pub fn last_steps() -> Vec<Step> {
    vec![
        ("close_campaign", vec!["campaign", "close", "Harbour"]),
        ("pause_campaign", vec!["campaign", "pause", "Harbour"]),
        ("erase_campaign", vec!["campaign", "erase", "Harbour", "--yes"]),
        ("show_erasure", vec!["campaign", "erase", "Harbour"]),
    ]
}

/// Returns the command with the ids of this database.
pub async fn named(command: &[&str], pool: &PgPool) -> Vec<String> {
    let mut named = Vec::new();
    for word in command {
        let query = match *word {
            "SESSION" => {
                "select id from dalsegno.sessions where forked_from_session is null order by id limit 1"
            }
            "TASK" => "select id from dalsegno.tasks where prompt = 'Part three.'",
            "BULK" => "select id from dalsegno.bulk_actions order by id limit 1",
            "DONE" => "select id from dalsegno.tasks where prompt = 'Part one.' and state = 'done'",
            "HOOK" => "select id from dalsegno.webhooks order by id limit 1",
            "DELIVERY" => "select id from dalsegno.webhook_deliveries order by id desc limit 1",
            "FACT" => "select id from dalsegno.facts order by id desc limit 1",
            "POST" => "select id from dalsegno.posts order by id limit 1",
            "FLOW" => "select id from dalsegno.flows order by id limit 1",
            word => {
                named.push(word.to_owned());
                continue;
            }
        };
        let id: Uuid = sqlx::query_scalar(query).fetch_one(pool).await.unwrap();
        named.push(id.to_string());
    }
    named
}

fn campaigns() -> Vec<Step> {
    let both = ["--tokens", "9000", "--money", "5"];
    vec![
        ("list_campaigns", vec!["campaign", "ls"]),
        ("list_campaigns", vec!["campaign", "ls", "--limit", "1"]),
        ("list_campaigns", vec!["campaign", "ls", "--after", "Nowhere"]),
        ("show_campaign", vec!["campaign", "show", "Harbour"]),
        ("show_campaign", vec!["campaign", "show", "Nowhere"]),
        ("show_campaign", vec!["campaign", "show", UNKNOWN]),
        (
            "edit_campaign",
            vec![
                "campaign",
                "edit",
                "Harbour",
                "--brief",
                "Nine parts.",
                "--expected-version",
                "1",
            ],
        ),
        (
            "edit_campaign",
            vec!["campaign", "edit", "Harbour", "--no-client-context", "--expected-version", "1"],
        ),
        ("edit_campaign", vec!["campaign", "edit", "Harbour", "--brief", "Nine parts."]),
        ("list_campaign_versions", vec!["campaign", "versions", "Harbour"]),
        ("list_campaign_versions", vec!["campaign", "versions", "Harbour", "--before", "2"]),
        ("show_campaign_version", vec!["campaign", "versions", "Harbour", "--show", "1"]),
        ("show_campaign_version", vec!["campaign", "versions", "Harbour", "--show", "7"]),
        ("compare_campaign_versions", vec!["campaign", "versions", "Harbour", "--diff", "1"]),
        ("create_campaign", vec!["campaign", "create", "Spring", "--budget-tokens", "9000"]),
        ("create_campaign", vec!["campaign", "create", " "]),
        ("create_campaign", vec!["campaign", "create", "Tide", "--tag", "a", "--metadata", "b=c"]),
        ("create_campaign", vec!["campaign", "create", "Tide", "--tag", "Not this"]),
        ("list_campaigns", vec!["campaign", "ls", "--tag", "a", "--metadata", "b=c"]),
        ("list_campaigns", vec!["campaign", "ls", "--tag", "b"]),
        ("create_campaign", vec!["campaign", "create", "Once", "--idempotency-key", "once"]),
        ("create_campaign", vec!["campaign", "create", "Twice", "--idempotency-key", "once"]),
        (
            "reset_agents",
            vec!["agent", "reset", "--campaign", "Harbour", "--all", "--idempotency-key", "once"],
        ),
        ("show_campaign", vec!["campaign", "show", "Spring"]),
        ("pause_campaign", vec!["campaign", "pause", "Harbour", "--reason", "moving"]),
        ("resume_campaign", vec!["campaign", "resume", "Harbour"]),
        ("change_budget", vec!["campaign", "budget", "Harbour", "--tokens", "0"]),
        ("change_budget", [&["campaign", "budget", "Harbour"][..], &both].concat()),
        ("change_budget", vec!["campaign", "budget", "Harbour", "--no-tokens", "--no-money"]),
        ("change_budget", vec!["campaign", "budget", "Harbour", "--experiments", "0"]),
        ("change_budget", vec!["campaign", "budget", "Harbour", "--experiments", "2.5"]),
        ("show_campaign", vec!["campaign", "budget", "Harbour"]),
        ("set_budget", vec!["budget", "set", "day", "--money", "2", "--warn-money", "1.5"]),
        ("set_budget", vec!["budget", "set", "agent", "copywriter", "--tokens", "9000"]),
        ("set_budget", vec!["budget", "set", "agent", "copywritter", "--tokens", "9000"]),
        ("set_budget", vec!["budget", "set", "user", "ann", "--on-limit", "fail", "--tokens", "9"]),
        ("set_budget", vec!["budget", "set", "user", "a n n", "--tokens", "9"]),
        ("set_budget", vec!["budget", "set", "agent", "--tokens", "9000"]),
        ("change_budget", vec!["budget", "set", "campaign", "Harbour", "--warn-tokens", "8000"]),
        // Campaigns of one moment have no fixed order.
        ("list_budgets", vec!["budget", "ls", "--owner", "day"]),
        ("list_budgets", vec!["budget", "show", "day"]),
        ("show_campaign", vec!["budget", "show", "campaign", "Harbour"]),
        ("set_budget", vec!["budget", "set", "day", "--no-money", "--no-warn-money"]),
        ("show_erasure", vec!["campaign", "erase", "Harbour"]),
        ("show_erasure", vec!["campaign", "erase", UNKNOWN]),
        ("put_campaign_user", vec!["memory", "facts", "user", "--campaign", "Harbour", "ann"]),
        ("put_campaign_user", vec!["memory", "facts", "user", "--campaign", "Harbour", "?"]),
        ("show_campaign_user", vec!["memory", "facts", "user", "--campaign", "Harbour"]),
        ("put_campaign_user", vec!["memory", "facts", "user", "--campaign", "Harbour", "--none"]),
    ]
}

fn sessions() -> Vec<Step> {
    let filters = ["--campaign", "Harbour", "--agent", "copywriter", "--open", "--limit", "1"];
    vec![
        ("list_sessions", [&["session", "ls"][..], &filters].concat()),
        ("list_sessions", vec!["session", "ls", "--after", "SESSION"]),
        ("show_session", vec!["session", "show", "SESSION"]),
        ("show_session", vec!["session", "show", UNKNOWN]),
        ("show_session", vec!["session", "show", "00000000dead"]),
        ("read_transcript", vec!["session", "transcript", "SESSION"]),
        (
            "read_transcript",
            vec!["session", "transcript", "SESSION", "--after", "1", "--limit", "2"],
        ),
        ("view_session", vec!["session", "transcript", "SESSION", "--view"]),
        ("list_archives", vec!["session", "archives", "SESSION"]),
        ("read_archive", vec!["session", "archives", "SESSION", "1", "--limit", "1"]),
        ("read_archive", vec!["session", "archives", "SESSION", "7"]),
        ("report_costs", vec!["cost"]),
        ("report_costs", vec!["cost", "--by", "campaign,day", "--since", "7d", "--top", "5"]),
        ("report_costs", vec!["cost", "--by", "user", "--campaign", "Harbour", "--csv"]),
        ("list_calls", vec!["cost", "--calls", "--agent", "copywriter", "--limit", "2"]),
        ("list_calls", vec!["cost", "--calls", "--costliest", "--since", "7d", "--user", ""]),
        ("report_fidelity", vec!["fidelity", "report", "--campaign", "Harbour"]),
        ("report_fidelity", vec!["fidelity", "report", "--campaign", UNKNOWN]),
        ("list_checked_turns", vec!["fidelity", "turns", "--campaign", "Harbour"]),
        (
            "list_checked_turns",
            vec![
                "fidelity",
                "turns",
                "--campaign",
                "Harbour",
                "--after",
                "00000000-0000-0000-0000-000000000000_1",
            ],
        ),
        ("list_turns", vec!["turn", "ls", "SESSION"]),
        ("list_turns", vec!["turn", "ls", "SESSION", "--after", "2", "--limit", "1"]),
        ("list_turns", vec!["turn", "ls", UNKNOWN]),
        ("show_turn", vec!["turn", "show", "SESSION", "1"]),
        ("show_turn", vec!["turn", "show", "SESSION", "7"]),
        ("rerun_turn", vec!["turn", "rerun", "SESSION", "--turn", "1", "--no-wait"]),
        ("rerun_turn", vec!["turn", "rerun", "SESSION", "--turn", "7", "--no-wait"]),
        ("rerun_turn", vec!["turn", "rerun", "SESSION", "--turn", "1", "--times", "21"]),
        ("list_reruns", vec!["turn", "reruns", "SESSION", "--turn", "1"]),
        ("list_reruns", vec!["turn", "reruns", UNKNOWN, "--turn", "1"]),
        ("show_context", vec!["context", "show", "SESSION"]),
        ("show_context", vec!["context", "show", "SESSION", "--turn", "7"]),
        ("show_provider_transcript", vec!["context", "show", "SESSION", "--transcript"]),
        (
            "show_provider_transcript",
            vec!["context", "show", "SESSION", "--turn", "7", "--transcript"],
        ),
        ("show_ledger_context", vec!["context", "show", "--ledger", "999999"]),
        ("verify_contexts", vec!["context", "verify", "SESSION"]),
        ("compare_contexts", vec!["context", "diff", "SESSION", "1", "2"]),
        ("preview_task_context", vec!["context", "preview", UNKNOWN]),
        ("preview_task_context", vec!["context", "preview", "TASK"]),
        (
            "preview_agent_context",
            vec!["context", "preview", "--agent", "nobody", "--campaign", "Harbour"],
        ),
        ("explain_session", vec!["session", "explain", "SESSION"]),
        ("explain_session", vec!["session", "explain", UNKNOWN]),
        (
            "estimate_task",
            vec![
                "task",
                "add",
                "--estimate",
                "--campaign",
                "Harbour",
                "--agent",
                "copywriter",
                "Write part two.",
            ],
        ),
        (
            "estimate_flow",
            vec![
                "flow",
                "start",
                "article-series",
                "--campaign",
                "Harbour",
                "--input",
                "topic=The harbour",
                "--input",
                "parts=Moles",
                "--estimate",
            ],
        ),
        ("estimate_session", vec!["session", "estimate", UNKNOWN]),
        ("compare_compaction", vec!["session", "compaction", "SESSION"]),
        ("compare_compaction", vec!["session", "compaction", "SESSION", "7"]),
        ("uncompact_session", vec!["session", "uncompact", "SESSION"]),
        ("compact_session", vec!["session", "compact", "SESSION"]),
        ("show_compaction", vec!["session", "compact", UNKNOWN]),
        ("interrupt_session", vec!["session", "interrupt", "SESSION", "--soft"]),
        ("fork_session", vec!["session", "fork", "SESSION", "--at", "1"]),
        ("fork_session", vec!["session", "fork", "SESSION", "--at", "7"]),
        ("fork_session", vec!["session", "fork", "SESSION", "--as", "Main"]),
        ("fork_session", vec!["session", "fork", "SESSION", "--as", "main"]),
        ("reset_session", vec!["session", "reset", "SESSION", "--fresh"]),
    ]
}

fn agents() -> Vec<Step> {
    let pause = |agent| vec!["agent", "pause", agent, "--campaign", "Harbour"];
    vec![
        ("list_agent_statuses", vec!["agent", "status", "--campaign", "Harbour"]),
        ("list_agent_statuses", vec!["agent", "status", "--campaign", UNKNOWN]),
        ("pause_agent", pause("copywriter")),
        ("pause_agent", pause("copywritter")),
        ("pause_agent_everywhere", vec!["agent", "pause", "copywriter", "--everywhere"]),
        ("list_agent_pauses", vec!["agent", "status"]),
        ("list_agents", vec!["agent", "ls"]),
        ("list_agents", vec!["agent", "nodes"]),
        ("list_files", vec!["agent", "files"]),
        ("show_file", vec!["agent", "file", "skill", "editorial-style"]),
        ("show_file", vec!["agent", "file", "agent", "copywritter"]),
        ("list_prompt_versions", vec!["agent", "versions", "copywriter"]),
        ("list_prompt_versions", vec!["agent", "versions", "copywritter"]),
        ("show_prompt_version", vec!["agent", "versions", "copywriter", "--show", "file"]),
        ("show_prompt_version", vec!["agent", "versions", "copywriter", "--show", "0123"]),
        ("resume_agent", vec!["agent", "resume", "copywriter", "--campaign", "Harbour"]),
        ("resume_agent_everywhere", vec!["agent", "resume", "copywriter", "--everywhere"]),
        ("interrupt_agent", vec!["agent", "interrupt", "copywriter", "--campaign", "Harbour"]),
        ("reset_agent", vec!["agent", "reset", "--campaign", "Harbour", "copywriter"]),
        ("reset_agents", vec!["agent", "reset", "--campaign", "Harbour", "--all", "--fresh"]),
    ]
}

fn tasks() -> Vec<Step> {
    let filters = ["--campaign", "Harbour", "--agent", "copywriter", "--state", "done"];
    vec![
        ("list_tasks", [&["task", "ls"][..], &filters].concat()),
        ("list_tasks", vec!["task", "ls", "--after", "TASK", "--limit", "1"]),
        ("show_task", vec!["task", "show", "TASK"]),
        ("show_task", vec!["task", "show", UNKNOWN]),
        ("list_task_files", vec!["task", "files", "DONE"]),
        ("list_task_files", vec!["task", "files", UNKNOWN]),
        ("download_task_file", vec!["task", "files", "DONE", "--save", "saved"]),
        ("explain_task", vec!["task", "explain", "TASK"]),
        ("cancel_task", vec!["task", "cancel", "TASK", "--reason", "moving"]),
        ("retry_task", vec!["task", "retry", "TASK"]),
        ("change_task_priority", vec!["task", "priority", "TASK", "7"]),
        ("change_task_priority", vec!["task", "priority", UNKNOWN, "7"]),
        ("change_task_budget", vec!["task", "budget", "TASK", "--tokens", "9000", "--no-money"]),
        ("show_task", vec!["task", "budget", "TASK"]),
        ("cancel_task", vec!["task", "cancel"]),
        ("cancel_task", vec!["task", "cancel", "TASK", "--agent", "copywriter"]),
        ("preview_bulk_action", vec!["task", "cancel", "--campaign", "Harbour", "--dry-run"]),
        (
            "preview_bulk_action",
            vec!["task", "retry", "--state", "failed", "--since", "1d", "--dry-run"],
        ),
        ("preview_bulk_action", vec!["task", "retry", "--text", "nothing says this"]),
        (
            "preview_bulk_action",
            vec!["task", "cancel", "--except-campaign", "Harbour", "--dry-run"],
        ),
        (
            "create_bulk_action",
            vec!["task", "retry", "--text", "nothing says this", "--idempotency-key", "again"],
        ),
        (
            "create_bulk_action",
            vec![
                "task",
                "cancel",
                "--tag",
                "unheard",
                "--reason",
                "moving",
                "--idempotency-key",
                "moving",
            ],
        ),
        ("list_bulk_actions", vec!["bulk", "ls", "--limit", "1"]),
        ("show_bulk_action", vec!["bulk", "show", "BULK"]),
        ("show_bulk_action", vec!["bulk", "show", UNKNOWN]),
    ]
}

fn intake() -> Vec<Step> {
    let add = |more: &[&'static str]| {
        let add = ["task", "add", "--campaign", "Harbour", "--agent", "copywriter"];
        [&add[..], more].concat()
    };
    let add_file = |file| {
        vec!["task", "add", "--campaign", "Harbour", "--file", file, "--idempotency-key", "f"]
    };
    let children = |id| {
        vec!["task", "children", id, "--file", "tasks.ndjson", "Join.", "--idempotency-key", "c"]
    };
    vec![
        (
            "add_task",
            add(&["Part four.", "--budget-tokens", "900", "--at", "2027-01-01T00:00:00Z"]),
        ),
        ("add_task", add(&["Part five.", "--idempotency-key", "k-1"])),
        ("add_task", add(&["Part six.", "--idempotency-key", "k-1"])),
        ("add_task", add(&["Part seven.", "--after", "TASK", "--on-failure", "cancel"])),
        ("add_task", add(&["Part eight.", "--after", UNKNOWN])),
        ("add_task", vec!["task", "add", "--campaign", "Harbour", "--agent", "copywritter", "x"]),
        ("add_task", add(&["Part nine.", "--wait", "--timeout", "1s"])),
        ("follow_task", add(&["Part ten.", "--follow", "--timeout", "1s"])),
        ("add_task", add(&["Part eleven.", "--tag", "x", "--tag", "y", "--metadata", "order=17"])),
        ("list_tasks", vec!["task", "ls", "--tag", "x", "--tag", "y", "--metadata", "order=17"]),
        ("list_tasks", vec!["task", "ls", "--tag", "z"]),
        ("list_tasks", vec!["task", "ls", "--text", "ELEVEN", "--since", "52w"]),
        ("list_tasks", vec!["task", "ls", "--until", "2026-11-20T00:00:00Z", "--instance", "main"]),
        ("list_tasks", vec!["task", "ls", "--text", ""]),
        ("add_many_tasks", add_file("tasks.ndjson")),
        ("add_many_tasks", add_file("wrong.ndjson")),
        ("show_task", vec!["task", "show", "TASK", "--wait", "0s"]),
        ("hand_out", children("DONE")),
        ("hand_out", children(UNKNOWN)),
        ("follow_feed", vec!["feed", "--after", "0", "--limit", "3"]),
        ("follow_feed", vec!["feed", "--after", "0", "--limit", "2", "--kind", "task.queued"]),
        ("follow_feed", vec!["feed", "--after", "0", "--limit", "1", "--campaign", "Nowhere"]),
        ("follow_feed", vec!["feed", "--after", "0", "--limit", "1", "--kind", "task.nope"]),
    ]
}

/// Writes the files for commands that read them.
pub fn write_files(folder: &Path) {
    let lines = "{\"agent\": \"copywriter\", \"prompt\": \"Part one.\"}\n\n{\"agent\": \"planner\", \"prompt\": \"Plan.\"}\n";
    std::fs::write(folder.join("tasks.ndjson"), lines).unwrap();
    let wrong = lines.replace("planner", "plannner");
    std::fs::write(folder.join("wrong.ndjson"), wrong).unwrap();
}

fn boards() -> Vec<Step> {
    let set = ["blackboard", "set", "Harbour", "{\"plan\": 1}", "--expected-version", "0"];
    vec![
        ("show_blackboard", vec!["blackboard", "show", "Harbour"]),
        ("set_blackboard", set.to_vec()),
        ("patch_blackboard", vec!["blackboard", "patch", "Harbour", "{\"plan\": null}"]),
        ("patch_blackboard", vec!["blackboard", "patch", "Harbour", "[]"]),
        ("show_blackboard", vec!["blackboard", "show", "Harbour", "--version", "1"]),
        ("show_blackboard", vec!["blackboard", "show", "Harbour", "--version", "7"]),
        ("list_blackboard_changes", vec!["blackboard", "history", "Harbour", "--before", "2"]),
        (
            "add_post",
            vec![
                "board",
                "post",
                "--campaign",
                "Harbour",
                "@copywriter and @stranger: what is new?",
            ],
        ),
        (
            "add_post",
            vec![
                "board",
                "post",
                "--campaign",
                "Harbour",
                "Tides.",
                "--to",
                "all",
                "--reply-to",
                "POST",
            ],
        ),
        (
            "add_post",
            vec!["board", "post", "--campaign", "Harbour", "Tides.", "--to", "copywritter"],
        ),
        ("add_post", vec!["board", "post", "--campaign", UNKNOWN, "Tides."]),
        ("show_board_archive", vec!["board", "archive", "--campaign", "Harbour"]),
        ("show_board_archive", vec!["board", "archive", "--campaign", UNKNOWN]),
        (
            "add_post",
            vec!["board", "post", "--campaign", "Harbour", "Once.", "--idempotency-key", "once"],
        ),
        (
            "add_post",
            vec!["board", "post", "--campaign", "Harbour", "Twice.", "--idempotency-key", "once"],
        ),
        ("list_posts", vec!["board", "history", "--campaign", "Harbour", "--viewer", "copywriter"]),
        (
            "list_posts",
            vec!["board", "history", "--campaign", "Harbour", "--viewer", "copywritter"],
        ),
        ("list_posts", vec!["board", "tail", "--campaign", "Harbour", "--timeout", "1s"]),
    ]
}

fn memory() -> Vec<Step> {
    let publish = |kind, name, text| {
        vec!["memory", "publish", "--campaign", "Harbour", kind, name, "--title", "The tone", text]
    };
    let journal = [&publish("journal", "day-one", "It rains.")[..], &["--owner", "copywriter_2"]];
    let late = [&publish("edict", "tone", "Long.")[..], &["--expected-version", "7"]].concat();
    let show = vec!["memory", "show", "--campaign", "Harbour", "edict", "tone"];
    let shown = |more: &[&'static str]| [&show[..], more].concat();
    vec![
        ("publish_memory", publish("edict", "tone", "Write short sentences.")),
        ("publish_memory", publish("edict", "tone", "Be brief.\u{202e}")),
        ("publish_memory", journal.concat()),
        ("publish_memory", publish("edict", "../x", "Text.")),
        ("publish_memory", publish("journal", "n", "Text.")),
        ("publish_memory", late),
        ("list_memory", vec!["memory", "ls", "--campaign", "Harbour"]),
        (
            "list_memory",
            vec!["memory", "ls", "--campaign", "Harbour", "--owner", "copywriter_2", "--ended"],
        ),
        (
            "list_memory",
            vec!["memory", "ls", "--campaign", UNKNOWN, "--kind", "edict", "--limit", "1"],
        ),
        ("find_memory", show.clone()),
        ("find_memory", vec!["memory", "show", "--campaign", "Harbour", "record", "none"]),
        ("find_memory", vec!["memory", "show", "--campaign", "Harbour", "journal", "day-one"]),
        ("show_memory", shown(&["--version", "1"])),
        ("show_memory", shown(&["--version", "7"])),
        ("list_memory_versions", shown(&["--versions"])),
        ("search_memory", vec!["memory", "search", "--campaign", "Harbour", "brief"]),
        ("search_memory", vec!["memory", "search", "--campaign", "Harbour", "-brief"]),
        ("export_memory", vec!["memory", "export", "--campaign", "Harbour", "kept", "--overwrite"]),
        ("import_memory", vec!["memory", "import", "--campaign", "Harbour", "kept"]),
        ("revoke_memory", vec!["memory", "revoke", "--campaign", "Harbour", "edict", "tone"]),
        ("import_memory", vec!["memory", "import", "--campaign", "Harbour", "kept"]),
        ("import_memory", vec!["memory", "import", "--campaign", "Harbour", "kept", "--replace"]),
        ("revoke_memory", vec!["memory", "revoke", "--campaign", "Harbour", "edict", "none"]),
    ]
}

fn facts() -> Vec<Step> {
    let facts = |words: &[&'static str]| [&["memory", "facts"], words].concat();
    vec![
        ("state_fact", facts(&["state", "ann", "City", "Lives in Bergen."])),
        ("state_fact", facts(&["state", "ann", "city", "Lives in Porto."])),
        ("state_fact", facts(&["state", "ann", "City", "Lives in Porto."])),
        ("state_fact", facts(&["state", "?", "City", "Lives in Porto."])),
        ("list_facts", facts(&["ls", "ann"])),
        ("list_facts", facts(&["ls", "ann", "--ended", "--limit", "1"])),
        ("search_facts", facts(&["search", "ann", "porto"])),
        ("search_facts", facts(&["search", "ann", "!"])),
        ("edit_fact", facts(&["edit", "ann", "FACT", "Lives in Faro."])),
        ("show_fact", facts(&["show", "ann", "FACT"])),
        ("show_fact", facts(&["show", "bea", "FACT"])),
        ("list_fact_uses", facts(&["uses", "ann", "FACT"])),
        ("list_fact_uses", facts(&["uses", "bea", "FACT"])),
        ("revoke_fact", facts(&["revoke", "ann", "FACT"])),
        ("revoke_fact", facts(&["revoke", "ann", UNKNOWN])),
        ("list_extractions", facts(&["readings", "Harbour"])),
        ("list_extractions", facts(&["readings", UNKNOWN])),
        ("forget_user", facts(&["forget", "ann"])),
        ("forget_user", facts(&["forget", "ann", "--yes"])),
    ]
}

fn flows() -> Vec<Step> {
    let start = |template| {
        vec!["flow", "start", template, "--campaign", "Harbour", "--input", "task=Write."]
    };
    vec![
        ("list_flow_templates", vec!["flow", "templates"]),
        ("start_flow", start("reviewed-text")),
        ("start_flow", start("reviewed-texts")),
        ("list_flows", vec!["flow", "ls", "--campaign", "Harbour", "--state", "running"]),
        ("show_flow", vec!["flow", "show", "FLOW"]),
        ("show_flow", vec!["flow", "show", UNKNOWN]),
        ("pause_flow", vec!["flow", "pause", "FLOW"]),
        ("resume_flow", vec!["flow", "resume", "FLOW"]),
        ("retry_flow", vec!["flow", "retry", "FLOW", "--from", "review"]),
        ("retry_flow", vec!["flow", "retry", "FLOW", "--from", "revew"]),
        ("cancel_flow", vec!["flow", "cancel", "FLOW"]),
    ]
}
