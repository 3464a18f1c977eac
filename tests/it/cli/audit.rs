//! Audit lines of all commands that change something.

use serde_json::{Value, json};

use super::{Fixture, compact, text};
use crate::{app::noon, conversations::world::TurnSettings, schedules::put_nightly};

async fn newest(fixture: &Fixture) -> (i64, Value) {
    let lines = fixture.json(&["audit", "ls"]).await;
    let id = lines[0]["id"].as_i64().unwrap_or(0);
    (id, lines[0].clone())
}

#[tokio::test]
async fn every_changing_command_writes_an_audit_line() {
    let fixture = Fixture::new().await;
    let world = &fixture.world;
    put_nightly(&world.pool, noon()).await;
    world.turn("Part one.", TurnSettings::default()).await;
    let session = world.turn("Part two.", TurnSettings::default()).await.session.id;
    compact(&world.pool, session).await;
    let running = world.add("Part three.").await;
    world.begin(&running, world.lease(), TurnSettings::default()).await;
    world.keep_sessions().await;
    let instance = dalsegno::domain::tasks::New { instance: "second", ..world.ask("Part four.") };
    let task = world.add_new(&instance).await.unwrap().task;
    let instance = dalsegno::domain::tasks::New { instance: "third", ..world.ask("Part five.") };
    let job = world.add_new(&instance).await.unwrap().task.job_id.to_string();
    let (campaign, session, id) = (fixture.campaign(), session.to_string(), task.id.to_string());
    let lane = format!("{campaign}/copywriter/third");
    let rest = "insert into dalsegno.paused_credentials (provider, credential, until, why)
                values ('claude', 'main', now() + interval '1000 years', 'it is used up')";
    sqlx::query(rest).execute(&world.pool).await.unwrap();
    let add = ["schedule", "add", "news", "--campaign", &campaign, "--agent", "copywriter"];
    let add = [&add[..], &["--cron", "0 0 8 * * *", "SECRET PROMPT"]].concat();
    let item = fixture.path().join("item.md");
    std::fs::write(&item, "---\nkind: record\nname: prices\ntitle: T\n---\nSECRET PROMPT\n")
        .unwrap();
    let item = item.display().to_string();
    let fact = async |of: &str, text: &str| {
        crate::facts::state(&world.pool, "ann", (of, text)).await.unwrap().id.to_string()
    };
    let (city, diet) = (fact("City", "Lives in Bergen.").await, fact("Diet", "No meat.").await);
    let commands: Vec<(Vec<&str>, &str, &str)> = vec![
        (vec!["campaign", "create", "Spring", "--brief", "SECRET PROMPT"], "campaign.create", ""),
        (
            vec!["board", "post", "--campaign", &campaign, "SECRET PROMPT"],
            "campaign.post",
            &campaign,
        ),
        (
            vec!["campaign", "edit", &campaign, "--brief", "SECRET PROMPT"],
            "campaign.edit",
            &campaign,
        ),
        (vec!["campaign", "pause", &campaign], "campaign.pause", &campaign),
        (vec!["campaign", "resume", &campaign], "campaign.resume", &campaign),
        (vec!["campaign", "budget", &campaign, "--tokens", "9000"], "campaign.limit", &campaign),
        (vec!["budget", "set", "day", "--money", "9"], "budget.set", "day"),
        (
            vec![
                "blackboard",
                "set",
                &campaign,
                "--expected-version",
                "0",
                r#"{"plan":"SECRET PROMPT"}"#,
            ],
            "blackboard.set",
            &campaign,
        ),
        (
            vec![
                "memory",
                "publish",
                "--campaign",
                &campaign,
                "edict",
                "tone",
                "--title",
                "T",
                "SECRET PROMPT",
            ],
            "memory.publish",
            &campaign,
        ),
        (
            vec!["memory", "revoke", "--campaign", &campaign, "edict", "tone"],
            "memory.revoke",
            &campaign,
        ),
        (vec!["memory", "import", "--campaign", &campaign, &item], "memory.import", &campaign),
        (
            vec!["memory", "facts", "user", "--campaign", &campaign, "ann"],
            "campaign.user",
            &campaign,
        ),
        (
            vec!["memory", "facts", "user", "--campaign", &campaign, "--none"],
            "campaign.user",
            &campaign,
        ),
        (vec!["memory", "facts", "state", "ann", "Tone", "SECRET PROMPT"], "fact.state", ""),
        (vec!["memory", "facts", "edit", "ann", &city, "SECRET PROMPT it is"], "fact.edit", &city),
        (vec!["memory", "facts", "revoke", "ann", &diet], "fact.revoke", &diet),
        (vec!["memory", "facts", "forget", "ann", "--yes"], "user.forget", "ann"),
        (vec!["blackboard", "patch", &campaign, r#"{"plan":null}"#], "blackboard.patch", &campaign),
        (vec!["agent", "pause", "planner", "--campaign", &campaign], "agent.pause", &campaign),
        (vec!["agent", "resume", "planner", "--campaign", &campaign], "agent.resume", &campaign),
        (vec!["agent", "pause", "planner", "--everywhere"], "agent.pause", "planner"),
        (vec!["agent", "resume", "planner", "--everywhere"], "agent.resume", "planner"),
        (
            vec!["agent", "interrupt", "planner", "--campaign", &campaign, "--soft"],
            "agent.interrupt",
            &campaign,
        ),
        (vec!["agent", "reset", "--campaign", &campaign, "planner"], "agent.reset", &campaign),
        (
            vec!["agent", "reset", "--campaign", &campaign, "--all", "--fresh"],
            "agent.reset",
            &campaign,
        ),
        (add, "schedule.put", "news"),
        (vec!["schedule", "rm", "news"], "schedule.remove", "news"),
        (vec!["schedule", "run", "cleanup"], "schedule.run", "cleanup"),
        (vec!["schedule", "pause", "cleanup"], "schedule.pause", "cleanup"),
        (vec!["schedule", "resume", "cleanup"], "schedule.resume", "cleanup"),
        (vec!["cleanup"], "cleanup.run", ""),
        (vec!["credential", "resume", "main"], "credential.resume", "main"),
        (vec!["session", "interrupt", &session], "session.interrupt", &session),
        (vec!["session", "uncompact", &session], "session.uncompact", &session),
        (vec!["session", "compact", &session], "session.compact", &session),
        (vec!["session", "reset", &session], "session.reset", &session),
        (vec!["session", "fork", &session, "--at", "1"], "session.fork", &session),
        (vec!["task", "cancel", &id], "task.cancel", &id),
        (vec!["task", "retry", &id], "task.retry", &id),
        (vec!["task", "budget", &id, "--tokens", "9000"], "task.limit", &id),
        (vec!["queue", "pause", "turns", "--reason", "x"], "queue.pause", "turns"),
        (vec!["queue", "resume", "turns"], "queue.resume", "turns"),
        (vec!["queue", "pause", "g", "--group"], "group.pause", "g"),
        (vec!["queue", "resume", "g", "--group"], "group.resume", "g"),
        (vec!["lane", "hold", &lane], "lane.hold", &lane),
        (vec!["lane", "release", &lane], "lane.release", &lane),
        (vec!["job", "hold", &job], "job.hold", &job),
        (vec!["job", "release", &job], "job.release", &job),
        (vec!["job", "retry", &job], "job.retry", &job),
        (vec!["job", "cancel", &job], "job.cancel", &job),
        (vec!["key", "create", "ci", "--scope", "read"], "key.create", ""),
        (vec!["key", "rotate", "ci", "--overlap", "0s"], "key.rotate", ""),
        (vec!["campaign", "close", &campaign], "campaign.close", &campaign),
        (vec!["campaign", "erase", &campaign, "--yes"], "campaign.erase", &campaign),
    ];
    let mut commands = commands;
    let hook = fixture.json(&["webhook", "add", "https://example.com/"]).await;
    let hook = text(&hook["id"]);
    let start = ["flow", "start", "reviewed-text", "--campaign", &campaign];
    let start = [&start[..], &["--input", "task=SECRET PROMPT"]].concat();
    let flow = fixture.json(&start).await;
    let flow = text(&flow["id"]);
    let mut before = newest(&fixture).await.0;
    let since = ["webhook", "replay", "--webhook", hook, "--since", "2026-01-01T00:00:00Z"];
    commands.splice(
        0..0,
        [
            (start, "flow.start", ""),
            (vec!["flow", "pause", flow], "flow.pause", flow),
            (vec!["flow", "resume", flow], "flow.resume", flow),
            (vec!["flow", "retry", flow, "--from", "write"], "flow.retry", flow),
            (vec!["flow", "cancel", flow], "flow.cancel", flow),
            (vec!["webhook", "rotate", hook], "webhook.rotate", hook),
            (vec!["webhook", "test", hook], "webhook.test", hook),
            (since.to_vec(), "webhook.replay", hook),
            (vec!["webhook", "disable", hook], "webhook.disable", hook),
            (vec!["webhook", "enable", hook], "webhook.enable", hook),
            (vec!["webhook", "rm", hook], "webhook.remove", hook),
            (vec!["webhook", "add", "https://example.com/"], "webhook.add", ""),
        ],
    );
    for (command, action, subject) in commands {
        let output = fixture.run(&command).await;
        assert_eq!(output.code, 0, "{command:?}: {output:?}");
        let (id, line) = newest(&fixture).await;
        assert_eq!((id > before, &line["action"]), (true, &json!(action)), "{command:?}: {line}");
        assert_eq!(line["actor_kind"], "cli", "{line}");
        assert!(text(&line["actor"]).contains('@'), "{line}");
        let is_it = subject.is_empty() || line["subject"] == *subject;
        assert!(is_it && !text(&line["subject"]).is_empty(), "{command:?}: {line}");
        before = id;
    }
    let revoked = fixture.json(&["key", "revoke", "ci"]).await;
    let n_revoked = fixture.json(&["audit", "ls", "--action", "key.revoke"]).await;
    assert_eq!(n_revoked.as_array().unwrap().len(), revoked.as_array().unwrap().len());
    let all = fixture.run(&["audit", "ls", "--since", "1h", "--limit", "1000"]).await;
    assert!(all.has("campaign.create") && !all.has("SECRET PROMPT"), "{all:?}");
    let later = fixture.json(&["audit", "ls", "--since", "2100-01-01T00:00:00Z"]).await;
    assert_eq!(later, json!([]));
}

#[tokio::test]
async fn reading_writes_no_audit_line_and_a_task_names_its_author() {
    let fixture = Fixture::new().await;
    let task = fixture.add("Part one.", &[]).await;
    let campaign = fixture.campaign();
    for look in [
        &["campaign", "budget", &campaign][..],
        &["key", "ls"],
        &["cleanup", "--dry-run"],
        &["session", "ls"],
    ] {
        assert_eq!(fixture.run(look).await.code, 0, "{look:?}");
    }
    assert_eq!(fixture.json(&["audit", "ls"]).await, json!([]));
    let shown = fixture.json(&["task", "show", text(&task["id"])]).await;
    assert!(text(&shown["added_by"]).starts_with("cli:"), "{shown}");
}

#[tokio::test]
async fn changes_of_limits_are_in_words_and_found_by_the_campaign() {
    let fixture = Fixture::new().await;
    let budget = ["campaign", "budget", "Harbour", "--warn-tokens", "8000"];
    assert_eq!(fixture.run(&budget).await.code, 0);
    assert_eq!(fixture.run(&["budget", "set", "day", "--money", "9"]).await.code, 0);
    let of_campaign = fixture.run(&["audit", "ls", "--campaign", "Harbour"]).await;
    assert!(of_campaign.has("soft limit none → 8000 tokens"), "{of_campaign:?}");
    assert!(of_campaign.has("Harbour") && !of_campaign.has("9.00"), "{of_campaign:?}");
    let of_budgets = fixture.run(&["audit", "ls", "--action", "budget"]).await;
    assert!(of_budgets.has("  none → 9.00") && !of_budgets.has("{"), "{of_budgets:?}");
    let json = fixture.json(&["audit", "ls", "--campaign", "Harbour"]).await;
    assert_eq!(json[0]["data"]["soft"]["tokens"], 8000, "{json}");
    let both = fixture.run(&["audit", "ls", "--campaign", "Harbour", "--subject", "x"]).await;
    assert_eq!(both.code, 2, "{both:?}");
}
