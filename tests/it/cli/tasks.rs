//! `dalsegno task`, without waiting.

use std::collections::BTreeSet;

use dalsegno::domain::tasks::Task;
use serde_json::{Value, json};

use super::{Fixture, text};
use crate::conversations::world::{HASH, TurnSettings};

#[tokio::test]
async fn a_task_is_added_shown_cancelled_and_retried() {
    let fixture = Fixture::new().await;
    let task = fixture.add("Part one.", &["--session", "fresh", "--budget-tokens", "500"]).await;
    assert_eq!((&task["state"], &task["created"]), (&json!("queued"), &json!(true)));
    assert_eq!(task["session_mode"], "fresh");
    assert_eq!(task["budget_tokens"], 500);
    let id = text(&task["id"]);
    let shown = fixture.json(&["task", "show", id]).await;
    assert_eq!((&shown["prompt"], &shown["turns"]), (&json!("Part one."), &json!([])));

    let cancelled = fixture.json(&["task", "cancel", id, "--reason", "not needed"]).await;
    assert_eq!(cancelled["cancel"], "at_once");
    let again = fixture.run(&["task", "cancel", id]).await;
    assert_eq!((again.code, again.has("already ended as cancelled")), (5, true), "{again:?}");
    let explained = fixture.json(&["task", "explain", id]).await;
    assert!(text(&explained["because"]).contains("before it ran: not needed"), "{explained}");
    assert!(text(&explained["next"]).contains(&format!("task retry {id}")), "{explained}");

    assert_eq!(fixture.json(&["task", "retry", id]).await["state"], "queued");
    let again = fixture.run(&["task", "retry", id]).await;
    assert_eq!((again.code, again.has("cannot retry task")), (5, true), "{again:?}");
    // No worker serves the queue: the task's explanation contains the queue's reason.
    let explained = fixture.run(&["task", "explain", id]).await;
    assert!(explained.has("no live worker serves the queue `turns`"), "{explained:?}");
}

#[tokio::test]
async fn a_waiting_task_shows_its_earliest_start_and_a_retry_of_its_job_removes_it() {
    let fixture = Fixture::new().await;
    let task = fixture.add("Part one.", &["--at", "2036-01-02T03:04:05Z", "--within", "24h"]).await;
    let id = text(&task["id"]);
    let shown = fixture.run(&["task", "show", id]).await;
    for words in [
        "waits       It does not start before 2036-01-02 03:04:05 UTC.",
        "not before  2036-01-02 03:04:05",
        "within      24 hours",
    ] {
        assert!(shown.has(words), "{words} in {shown:?}");
    }
    let explained = fixture.json(&["task", "explain", id]).await;
    let retry = format!("dalsegno job retry {}", task["job_id"]);
    assert!(text(&explained["next"]).contains(&retry), "{explained}");
    let retried = fixture.json(&["job", "retry", &task["job_id"].to_string()]).await;
    assert_eq!(retried["state"], "ready", "{retried}");
    let shown = fixture.json(&["task", "show", id]).await;
    // The time that the answer may take begins then.
    assert!(text(&shown["run_at"]) < "2036", "{shown}");
    let shown = fixture.run(&["task", "show", id]).await;
    assert!(!shown.has("not before") && shown.has("no live worker serves the queue"), "{shown:?}");
}

#[tokio::test]
async fn lists_are_filtered_by_the_names_of_instances_that_they_print() {
    let fixture = Fixture::new().await;
    let world = &fixture.world;
    world.turn("Part one.", TurnSettings::default()).await;
    let new = dalsegno::domain::tasks::New { instance: "2", ..world.ask("Part two.") };
    let second = world.add_new(&new).await.unwrap().task;
    world.begin(&second, world.lease(), TurnSettings::default()).await;
    for noun in ["task", "session"] {
        let of = async |agent: &str| {
            let found = fixture.json(&[noun, "ls", "--agent", agent]).await;
            let instance = |it: &Value| text(&it["instance"]).to_owned();
            found.as_array().unwrap().iter().map(instance).collect::<BTreeSet<_>>()
        };
        let named =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(of("copywriter").await, named(&["2", "main"]));
        assert_eq!(of("copywriter_2").await, named(&["2"]));
        assert_eq!(of("copywriter/main").await, named(&["main"]));
    }
    let both = ["task", "ls", "--agent", "copywriter_2", "--instance", "3"];
    let refused = fixture.run(&both).await;
    assert!(refused.code == 2 && refused.has("give only one of them"), "{refused:?}");
    let preview = ["task", "cancel", "--agent", "copywriter_2", "--dry-run"];
    assert_eq!(fixture.json(&preview).await["matched"], 1);
}

#[tokio::test]
async fn an_empty_list_of_an_unknown_agent_names_the_closest_one() {
    let fixture = Fixture::new().await;
    let note = "there is no agent `copywritr`: did you mean `copywriter`?";
    for command in [
        &["task", "ls", "--agent"][..],
        &["session", "ls", "--agent"],
        &["task", "cancel", "--agent"],
        &["memory", "ls", "--campaign", "Harbour", "--owner"],
    ] {
        let output = fixture.run(&[command, &["copywritr"]].concat()).await;
        assert!(output.code == 0 && output.stderr.contains(note), "{output:?}");
        let known = fixture.run(&[command, &["copywriter"]].concat()).await;
        assert!(known.code == 0 && !known.stderr.contains("no agent"), "{known:?}");
    }
}

#[tokio::test]
async fn tables_of_times_say_that_they_are_in_utc() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    for (command, columns) in [
        ("task", vec!["CREATED (UTC)", "ENDED (UTC)"]),
        ("session", vec!["USED (UTC)"]),
        ("campaign", vec!["CREATED (UTC)"]),
        ("flow", vec!["CREATED (UTC)", "ENDED (UTC)"]),
        ("bulk", vec!["CREATED (UTC)", "ENDED (UTC)"]),
        ("job", vec!["RUN AT (UTC)"]),
    ] {
        let output = fixture.run(&[command, "ls"]).await;
        let head = output.stdout.lines().next().unwrap_or_default();
        assert!(columns.iter().all(|column| head.contains(column)), "{command}: {output:?}");
    }
    let pauses = fixture.run(&["agent", "status"]).await;
    assert!(pauses.stdout.contains("SINCE (UTC)"), "{pauses:?}");
}

#[tokio::test]
async fn tasks_are_listed_by_their_end() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    fixture.add("Part two.", &["--tag", "sea"]).await;
    let listed = async |since: &str, more: &[&str]| {
        let args = [&["task", "ls", "--ended-since", since][..], more].concat();
        fixture.run(&args).await.stdout
    };
    let ended = listed("2020-01-01T00:00:00Z", &[]).await;
    assert!(ended.contains("Part one.") && !ended.contains("Part two."), "{ended}");
    let later = listed("2099-01-01T00:00:00Z", &[]).await;
    assert!(!later.contains("Part "), "{later}");
    let tagged = listed("2020-01-01T00:00:00Z", &["--tag", "sea"]).await;
    assert!(!tagged.contains("Part "), "{tagged}");
    let output = fixture.run(&["task", "retry", "--dry-run"]).await;
    assert!(output.stderr.contains("--state failed --ended-since 1h"), "{output:?}");
}

#[tokio::test]
async fn the_job_of_a_task_that_waits_for_others_is_explained_as_the_task() {
    let fixture = Fixture::new().await;
    let first = fixture.add("Part one.", &[]).await;
    let second = fixture.add("Part two.", &["--after", text(&first["id"])]).await;
    let job = second["job_id"].to_string();
    let of_task = fixture.json(&["task", "explain", text(&second["id"])]).await;
    let of_job = fixture.json(&["job", "explain", &job]).await;
    let waits = format!("It waits for 1 of 1 tasks: {}", text(&first["id"]));
    assert!(text(&of_job["because"]).starts_with(&waits), "{of_job}");
    for key in ["because", "next"] {
        assert_eq!(of_job[key], of_task[key], "{of_job}");
    }
    assert!(!text(&of_job["next"]).contains("job retry"), "{of_job}");
    let listed = fixture.run(&["job", "ls", "--state", "scheduled"]).await.stdout;
    let row = listed.lines().find(|line| line.starts_with(&job)).unwrap();
    assert!(row.ends_with(" -             another task") && !listed.contains("9999"), "{listed}");
}

#[tokio::test]
async fn retrying_the_job_of_a_failed_task_works_as_its_dead_letter_explains() {
    let fixture = Fixture::new().await;
    let task = fixture.add("Part one.", &[]).await;
    let (id, job) = (text(&task["id"]), task["job_id"].to_string());
    for sql in [
        "update dalsegno.tasks set state = 'failed', error = 'x', ended_at = now()",
        "with job as (delete from dalsegno.jobs returning *), payload as (delete from dalsegno.job_payloads returning *)
         insert into dalsegno.dead_jobs (id, enqueued_at, lease, priority, attempt, max_attempts, crash_count, queue, kind, lane_key, reason,
                                         payload, headers)
         select j.id, j.enqueued_at, 1, j.priority, 5, 5, 0, j.queue, j.kind, l.key, 'failed', p.payload, p.headers
           from job as j, payload as p, dalsegno.lanes as l where l.id = j.lane_id",
    ] {
        sqlx::query(sql).execute(&fixture.world.pool).await.unwrap();
    }
    let wrong = fixture.run(&["job", "explain", id]).await;
    assert!(wrong.code == 2 && wrong.has("for a task use `dalsegno task explain ID`"), "{wrong:?}");
    let explained = fixture.json(&["job", "explain", &job]).await;
    assert!(text(&explained["next"]).contains(&format!("dalsegno job retry {job}")), "{explained}");
    let cancelled = fixture.run(&["job", "cancel", &job]).await;
    assert!(cancelled.has("dead letter: there is nothing to cancel"), "{cancelled:?}");
    let retried = fixture.run(&["job", "retry", &job]).await;
    assert!(retried.has(&format!("task {id} is retried; its job is ")), "{retried:?}");
    assert_eq!(fixture.json(&["task", "show", id]).await["state"], "queued");
    assert_eq!(fixture.json(&["job", "ls", "--state", "dead"]).await, json!([]));
    // The old job names the new one.
    let new_job = fixture.json(&["task", "show", id]).await["job_id"].to_string();
    let explained = fixture.run(&["job", "explain", &job]).await;
    let advice = format!("Its task {id} was retried as job {new_job}: ");
    assert!(explained.has(&advice), "{explained:?}");
    let again = fixture.run(&["job", "retry", &job]).await;
    assert_eq!(
        (again.code, again.has("neither on the queue nor a dead letter")),
        (3, true),
        "{again:?}"
    );
}

#[tokio::test]
async fn a_done_task_shows_its_answer_and_its_attempts() {
    let fixture = Fixture::new().await;
    fixture.world.turn("Part one.", TurnSettings::default()).await;
    let listed = fixture.json(&["task", "ls", "--state", "done", "--agent", "copywriter"]).await;
    let id = text(&listed[0]["id"]);
    let shown = fixture.json(&["task", "show", id]).await;
    assert_eq!(shown["result"], "Answer to: Part one.");
    assert_eq!(
        (&shown["turns"][0]["number"], &shown["turns"][0]["state"]),
        (&json!(1), &json!("done"))
    );
    let output = fixture.run(&["task", "show", id]).await;
    assert!(output.stdout.ends_with("Answer to: Part one.\n"), "{output:?}");
    let explained = fixture.run(&["task", "explain", id]).await;
    assert!(explained.has("answered by turn 1 of session"), "{explained:?}");
}

#[tokio::test]
async fn a_task_names_the_worker_of_its_run_and_the_command_that_lists_its_other_runs() {
    let fixture = Fixture::new().await;
    let world = &fixture.world;
    let (task, before) = (world.add("Part one.").await, world.add("Part two.").await);
    let later = world.add("Part three.").await;
    let id = task.id.to_string();
    let show = async || fixture.run(&["task", "show", &id]).await.stdout;
    let field = |shown: &str, name: &str| {
        let mut lines = shown.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().map(|value| value.trim().trim_matches('`').to_owned())
    };
    assert_eq!(field(&show().await, "worker "), None, "no worker has run it");
    let worker = "insert into dalsegno.workers (id, started_at, lease_until, slots, pid, host, version, queues, kinds)
                  values ('00000000-0000-7000-8000-00000000000a', '2026-11-20 09:00+00', '2026-11-20 12:00:30+00', 3, 4711, 'host-a', '0.1.0', '{turns}', '{run_turn}')";
    sqlx::query(worker).execute(&world.pool).await.unwrap();
    let runs = "insert into dalsegno.runs (job_id, lease, started_at, ended_at, worker_id, attempt, outcome, queue, kind)
                select job_id, 1, ended_at - interval '5 seconds', ended_at, '00000000-0000-7000-8000-00000000000a', 1, 'snooze', 'turns', 'run_turn'
                  from (values ($1::bigint, '2026-11-20 12:00:05.5+00'::timestamptz), ($2, '2026-11-20 11:51+00'), ($3, '2026-11-20 12:10+00')) as r (job_id, ended_at)";
    let jobs = sqlx::query(runs).bind(task.job_id).bind(before.job_id).bind(later.job_id);
    jobs.execute(&world.pool).await.unwrap();
    let shown = show().await;
    assert_eq!(field(&shown, "worker ").as_deref(), Some("host-a (pid 4711)"), "{shown}");
    let command = field(&shown, "its runs ").unwrap();
    assert_eq!(
        command,
        "dalsegno worker activity --worker 00000000000a --until 2026-11-20T12:00:06Z"
    );
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let activity = fixture.run(&arguments).await.stdout;
    let lists = |other: &Task| activity.contains(&other.id.to_string()[24..]);
    assert!(lists(&task) && lists(&before) && !lists(&later), "{activity}");
    assert!(activity.contains("host-a") && activity.contains("Part two."), "{activity}");
    assert!(activity.contains("  put off  ") && !activity.contains("snooze"), "{activity}");
    assert!(activity.contains("2026-11-20 11:40:06 to 2026-11-20 12:00:06 UTC"), "{activity}");
    // Runs of a task that was retried since: its first job, and one that only a turn remembers.
    let retry =
        "update dalsegno.tasks set first_job_id = job_id, job_id = job_id + 1000000 where id = $1";
    sqlx::query(retry).bind(before.id).execute(&world.pool).await.unwrap();
    let lists_before = async || {
        let by_pid = ["worker", "activity", "--worker", "4711", "--until", "2026-11-20T12:00:06Z"];
        fixture.run(&by_pid).await.stdout.contains(&before.id.to_string()[24..])
    };
    assert!(lists_before().await, "by its first job");
    let forget = "update dalsegno.tasks set first_job_id = 0 where id = $1";
    sqlx::query(forget).bind(before.id).execute(&world.pool).await.unwrap();
    assert!(!lists_before().await, "no turn names the job");
    let turn = "insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at, ended_at, state)
                values (gen_random_uuid(), $1, 1, 1, $2, 1, now(), now(), 'done')";
    let turn = sqlx::query(turn).bind(before.id).bind(before.job_id);
    turn.execute(&world.pool).await.unwrap();
    assert!(lists_before().await, "by the job of its turn");
    let all = fixture.run(&["worker", "activity", "--until", "2026-11-20T12:00:06Z"]).await;
    assert!(all.has("00000000000a  host-a  4711"), "{all:?}");
    let listed = fixture.run(&["worker", "ls"]).await;
    assert!(listed.has("00000000000a  host-a  4711"), "{listed:?}");
    let unknown = fixture.run(&["worker", "activity", "--worker", "00000000000b"]).await;
    assert!(unknown.code == 3 && unknown.has("`dalsegno worker ls` lists them"), "{unknown:?}");

    let claim = "update dalsegno.jobs set state = 'running', lease = 2, worker_id = '00000000-0000-7000-8000-00000000000a', claimed_at = now(), wait_reason = null
                  where id = $1";
    sqlx::query(claim).bind(task.job_id).execute(&world.pool).await.unwrap();
    let shown = show().await;
    assert_eq!(field(&shown, "worker ").as_deref(), Some("host-a (pid 4711)"), "{shown}");
    let command = field(&shown, "its runs ").unwrap();
    assert_eq!(command, "dalsegno worker activity --worker 00000000000a", "it runs now");
}

#[tokio::test]
async fn a_task_names_the_version_of_the_prompt_of_its_last_turn_and_the_command_that_prints_it() {
    let fixture = Fixture::new().await;
    let world = &fixture.world;
    let task = world.add("Part one.").await;
    let id = task.id.to_string();
    let show = async || fixture.run(&["task", "show", &id]).await.stdout;
    let hash = async || fixture.json(&["task", "show", &id]).await["prompt_hash"].clone();
    assert!(!show().await.contains("version"), "no turn has run");
    assert_eq!(hash().await, Value::Null);
    let of_file = world.agent().prompt_hash.clone();
    let now = TurnSettings { prompt_hash: of_file.clone().leak(), ..TurnSettings::default() };
    let (resolved, begun) = world.begin(&task, world.lease(), now).await;
    world.commit(&begun, "Answer.", now).await.unwrap();
    let shown = show().await;
    let lines: Vec<_> =
        shown.lines().map(|line| line.split_once("  ").unwrap_or_default()).collect();
    let field =
        |name: &str| lines.iter().find(|(it, _)| *it == name).map(|(_, value)| value.trim());
    let short = &of_file[..12];
    assert_eq!(field("version"), Some(&*format!("{short} of the agent's prompt")), "{shown}");
    let command = format!("dalsegno agent versions copywriter --show {short}");
    assert_eq!(field("its prompt"), Some(&*format!("`{command}`")), "{shown}");
    let lines = shown.lines().take_while(|line| !line.starts_with("TURN"));
    assert_eq!(lines.filter(|line| line.chars().count() > 80).count(), 0, "{shown}");
    assert_eq!(hash().await, json!(of_file));
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let printed = fixture.run(&arguments).await;
    assert_eq!(printed.stdout.trim(), world.agent().prompt.trim(), "{printed:?}");
    // A later turn in a session that was made with another prompt.
    let other = world.turn("Part two.", TurnSettings::default()).await;
    assert_ne!(other.session.id, resolved.session.id);
    let later = "insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at, ended_at, state)
                 values ($1, $2, 50, 2, $3, 50, now(), now(), 'done')";
    let later = sqlx::query(later).bind(other.session.id).bind(task.id).bind(task.job_id);
    later.execute(&world.pool).await.unwrap();
    assert_eq!(hash().await, json!(HASH));
    assert!(show().await.contains("`dalsegno agent versions copywriter --show aaaaaaaaaaaa`"));
}

#[tokio::test]
async fn a_prompt_is_read_from_a_file_or_standard_input() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "--json"];
    std::fs::write(fixture.path().join("prompt.txt"), "From a file.\n").unwrap();
    let from_file = fixture.run(&[&add[..], &["--prompt-file", "prompt.txt"]].concat()).await;
    assert_eq!(from_file.json()["prompt"], "From a file.\n");
    let from_input = fixture.run_with(&[&add[..], &["-"]].concat(), "From a pipe.\n").await;
    assert_eq!(from_input.json()["prompt"], "From a pipe.\n");
    // After `--`, a text like an option is a prompt.
    let dashes = fixture.run(&[&add[..], &["--", "--help me"]].concat()).await;
    assert_eq!(dashes.json()["prompt"], "--help me");
}

#[tokio::test]
async fn the_same_key_and_input_return_the_same_task() {
    let fixture = Fixture::new().await;
    let first = fixture.add("Part one.", &["--idempotency-key", "k-1"]).await;
    let second = fixture.add("Part one.", &["--idempotency-key", "k-1"]).await;
    assert_eq!(first["id"], second["id"]);
    assert_eq!((&first["created"], &second["created"]), (&json!(true), &json!(false)));
    let campaign = fixture.campaign();
    let other = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "Part two."];
    let output = fixture.run(&[&other[..], &["--idempotency-key", "k-1"]].concat()).await;
    assert_eq!((output.code, output.has("used for another task")), (5, true), "{output:?}");
    assert_eq!(fixture.json(&["task", "ls"]).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_id_may_be_abbreviated_to_its_beginning_or_its_end() {
    let fixture = Fixture::new().await;
    let task = fixture.add("Part one.", &[]).await;
    let id = text(&task["id"]);
    assert_eq!(fixture.json(&["task", "show", &id[..20]]).await["id"], task["id"]);
    // The prefix is shared by the ids of half a million hours.
    let second = fixture.add("Part two.", &[]).await;
    assert_eq!(second["id"].as_str().unwrap()[..4], id[..4]);
    let output = fixture.run(&["task", "show", &id[..4]]).await;
    assert_eq!((output.code, output.has("more than one task matches")), (2, true), "{output:?}");
    for words in [id, text(&second["id"]), "copywriter/main, queued: Part two."] {
        assert!(output.stderr.contains(words), "{words}: {output:?}");
    }
    // Lists print the last digits of ids.
    let listed = fixture.run(&["task", "ls"]).await;
    for task in [&task, &second] {
        let end = text(&task["id"]).rsplit('-').next().unwrap();
        assert!(
            listed.stdout.contains(end) && !listed.stdout.contains(text(&task["id"])),
            "{listed:?}"
        );
        assert_eq!(fixture.json(&["task", "show", end]).await["id"], task["id"]);
        let capitals = &end[4..].to_uppercase();
        assert_eq!(fixture.json(&["task", "show", capitals]).await["id"], task["id"]);
    }
    let output = fixture.run(&["task", "show", "ffff"]).await;
    assert_eq!((output.code, output.has("there is no task ffff")), (3, true), "{output:?}");
    assert!(output.has("the end of an id needs at least 8 digits"), "{output:?}");
}

#[tokio::test]
async fn metadata_has_one_value_for_each_key() {
    let fixture = Fixture::new().await;
    let twice = ["--metadata", "order=17", "--metadata", "customer=acme", "--metadata", "order=18"];
    let add = ["task", "add", "--campaign", "Harbour", "--agent", "copywriter", "Part one."];
    for command in
        [&add[..], &["task", "ls"], &["campaign", "create", "Spring"], &["campaign", "ls"]]
    {
        let output = fixture.run(&[command, &twice].concat()).await;
        assert_eq!(
            (output.code, output.has("names the key `order` twice")),
            (2, true),
            "{output:?}"
        );
        let once = fixture.run(&[command, &twice[..4]].concat()).await;
        assert_eq!(once.code, 0, "{once:?}");
    }
}

#[tokio::test]
async fn tasks_are_listed_page_by_page() {
    let fixture = Fixture::new().await;
    let mut added = Vec::new();
    for prompt in ["one", "two", "three"] {
        added.push(fixture.world.add(prompt).await.id.to_string());
    }
    added.reverse();
    let ids = |page: &Value| -> Vec<String> {
        page.as_array().unwrap().iter().map(|task| text(&task["id"]).to_owned()).collect()
    };
    let first = ids(&fixture.json(&["task", "ls", "--limit", "2"]).await);
    let second = ids(&fixture.json(&["task", "ls", "--limit", "2", "--after", &first[1]]).await);
    assert_eq!([first, second].concat(), added);
}

#[tokio::test]
async fn a_prompt_search_stops_after_some_pages_without_a_match_and_names_the_next_page() {
    let fixture = Fixture::new().await;
    fixture.add("The tide comes in.", &[]).await;
    let many = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt)
                select ('ffff' || substr(gen_random_uuid()::text, 5))::uuid, $1, -n, 'copywriter', 'Wait.'
                  from generate_series(1, 10500) as n";
    sqlx::query(many).bind(fixture.world.campaign.id).execute(&fixture.world.pool).await.unwrap();
    let output = fixture.run(&["task", "ls", "--text", "tide", "--json"]).await;
    assert_eq!((output.code, output.json()), (0, json!([])), "{output:?}");
    let (_, place) = output.stderr.split_once("`--after ").unwrap();
    let place = place.split('`').next().unwrap();
    let rest = fixture.json(&["task", "ls", "--text", "tide", "--after", place]).await;
    assert_eq!(rest[0]["prompt"], "The tide comes in.");
}

#[tokio::test]
async fn a_name_with_a_number_addresses_that_instance() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let add = ["task", "add", "--campaign", &campaign, "--json", "Part one.", "--agent"];
    let asked = async |more: &[&str]| fixture.run(&[&add[..], more].concat()).await;
    let task = asked(&["copywriter_2"]).await.json();
    assert_eq!((&task["agent"], &task["instance"]), (&json!("copywriter"), &json!("2")));
    let same = asked(&["copywriter", "--instance", "2"]).await.json();
    assert_eq!((&same["agent"], &same["instance"]), (&json!("copywriter"), &json!("2")));
    let two = asked(&["copywriter_2", "--instance", "3"]).await;
    assert!(two.code != 0 && two.has("give only one of them"), "{two:?}");
    let listed = fixture.run(&["task", "ls"]).await;
    assert!(listed.has("copywriter_2"), "{listed:?}");
}

#[tokio::test]
async fn many_tasks_are_previewed_and_then_cancelled_by_list_options() {
    let fixture = Fixture::new().await;
    for (prompt, tag) in [("Part one.", "late"), ("Part two.", "late"), ("Part three.", "early")] {
        fixture.add(prompt, &["--tag", tag, "--metadata", "order=17"]).await;
    }
    let late = ["task", "cancel", "--tag", "late", "--metadata", "order=17", "--since", "1d"];
    let output = fixture.run(&[&late[..], &["--dry-run"]].concat()).await;
    assert!(output.has("2 tasks match; nothing was done"), "{output:?}");
    assert!(output.has("Part two.") && !output.has("Part three."), "{output:?}");
    let output = fixture.run(&["task", "cancel", "--tag", "nowhere"]).await;
    assert!(output.code == 0 && output.has("no tasks match; nothing was done"), "{output:?}");
    assert_eq!(fixture.json(&["bulk", "ls"]).await, json!([]));
    let output = fixture.run(&late).await;
    assert!(output.code == 0 && output.has("a worker will cancel 2 tasks"), "{output:?}");
    let listed = fixture.json(&["bulk", "ls"]).await;
    let id = text(&listed[0]["id"]);
    assert_eq!(fixture.json(&["bulk", "show", id]).await["filter"]["tags"], json!(["late"]));
    let nothing = fixture.run(&["task", "cancel"]).await;
    assert!(nothing.code == 2 && nothing.has("--state queued --since 1d"), "{nothing:?}");
    let task = fixture.json(&["task", "ls", "--tag", "early"]).await;
    assert_eq!(
        (&task[0]["metadata"], task.as_array().unwrap().len()),
        (&json!({ "order": "17" }), 1)
    );
    let both = fixture.run(&["task", "retry", text(&task[0]["id"]), "--state", "failed"]).await;
    assert!(both.code == 2 && both.has("not both"), "{both:?}");
    for command in ["ls", "cancel"] {
        let two = fixture.run(&["task", command, "--tag", "late,early"]).await;
        assert!(two.code == 2 && two.has("invalid tag `late,early`"), "{two:?}");
    }
    let output = fixture.run(&late).await;
    assert_eq!(output.code, 0, "{output:?}");
    let after = fixture.json(&["bulk", "ls", "--limit", "1"]).await;
    let first = fixture.json(&["bulk", "ls", "--after", text(&after[0]["id"])]).await;
    assert_eq!((text(&first[0]["id"]), first.as_array().unwrap().len()), (id, 1));
}

#[tokio::test]
async fn a_change_with_an_idempotency_key_needs_an_absolute_time() {
    let fixture = Fixture::new().await;
    fixture.add("Part one.", &[]).await;
    let cancel = ["task", "cancel", "--state", "queued", "--idempotency-key", "k"];
    let state = ["memory", "facts", "state", "ann", "Diet", "No meat.", "--idempotency-key", "k"];
    let cases = [
        (&cancel[..], ["--since", "1d"], ["--since", "2026-01-01T00:00:00Z"]),
        (&cancel, ["--until", "0s"], ["--until", "2100-01-01T00:00:00Z"]),
        (&state, ["--expires-in", "90d"], ["--expires-at", "2100-01-01T00:00:00Z"]),
    ];
    for (n, (command, from_now, absolute)) in cases.into_iter().enumerate() {
        let output = fixture.run(&[command, &from_now].concat()).await;
        let next = format!("give the absolute time: {} 20", absolute[0]);
        assert!(output.code == 2 && output.has(&next), "{from_now:?}: {output:?}");
        // The two cancellations are different changes.
        let (key, rest) = (format!("k-{n}"), &command[..command.len() - 1]);
        let repeated = [rest, &[key.as_str()], &absolute].concat();
        let first = fixture.json(&repeated).await;
        let again = fixture.run(&[&repeated[..], &["--json"]].concat()).await;
        assert!(again.stderr.contains("used before"), "{again:?}");
        assert_eq!(again.json(), first);
    }
    assert_eq!(fixture.json(&["bulk", "ls"]).await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_task_shows_the_flow_templates_that_were_set_for_it() {
    let fixture = Fixture::new().await;
    let set = ["--flow-template", "reviewed-text", "--flow-template", "article-series"];
    let task = fixture.add("Plan.", &set).await;
    let shown = fixture.run(&["task", "show", text(&task["id"])]).await;
    assert!(shown.has("reviewed-text, article-series"), "{shown:?}");
    let campaign = fixture.campaign();
    let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "Plan."];
    let refused = fixture.run(&[&add[..], &["--flow-template", "nothing"]].concat()).await;
    assert!(refused.code != 0 && refused.has("there is no flow template `nothing`"), "{refused:?}");
}

#[tokio::test]
async fn a_task_is_added_with_parameters_which_its_key_compares() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let add = async |parameter: &str| {
        let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "--json"];
        let more = ["--parameter", parameter, "--idempotency-key", "k-1", "Part one."];
        fixture.run(&[&add[..], &more].concat()).await
    };
    let added = add("agent_mode=plan").await;
    let added: Value = serde_json::from_str(&added.stdout).unwrap();
    let id = text(&added["id"]);
    let shown = fixture.json(&["task", "show", id]).await;
    assert_eq!(shown["parameters"], json!({ "agent_mode": "plan" }));
    let printed = fixture.run(&["task", "show", id]).await;
    assert!(printed.has(r#"{"agent_mode":"plan"}"#), "{printed:?}");
    let again: Value = serde_json::from_str(&add("agent_mode=plan").await.stdout).unwrap();
    assert_eq!((&again["id"], &again["created"]), (&added["id"], &json!(false)));
    assert_eq!(add("agent_mode=write").await.code, 5, "another request under the key");
    let bad = add("Agent mode=1").await;
    let printed = format!("{bad:?}");
    assert!(bad.code == 2 && printed.contains("invalid name of a parameter"), "{printed}");
}
