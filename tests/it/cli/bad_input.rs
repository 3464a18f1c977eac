//! Invalid input: each mistake has its exit code and its message, and nothing is stored.

use dalsegno::domain::{Amount, amount::Limit};
use serde_json::{Value, json};

use super::Fixture;

#[tokio::test]
async fn each_error_in_a_task_has_its_exit_code_and_message() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let nil = "00000000-0000-0000-0000-000000000000";
    std::fs::write(fixture.path().join("long.txt"), "x".repeat(262_145)).unwrap();
    let table: [(&[&str], i32, &str); 11] = [
        (&["--campaign", nil, "--agent", "copywriter", "x"], 3, "there is no campaign 0000"),
        (&["--campaign", "eeee", "--agent", "copywriter", "x"], 3, "there is no campaign eeee"),
        (&["--campaign", "spring", "--agent", "copywriter", "x"], 3, "there is no campaign spring"),
        (
            &["--campaign", &campaign, "--agent", "copywritter", "x"],
            3,
            "did you mean `copywriter`?",
        ),
        (&["--campaign", &campaign, "--agent", "zzz", "x"], 3, "there are copywriter, planner"),
        (&["--campaign", &campaign, "--agent", "copywriter", " \n"], 2, "the prompt is empty"),
        (
            &["--campaign", &campaign, "--agent", "copywriter", "--prompt-file", "long.txt"],
            2,
            "the prompt has 262145 bytes, at most 262144 are allowed",
        ),
        (
            &["--campaign", &campaign, "--agent", "copywriter", "--prompt-file", "none.txt"],
            2,
            "cannot read none.txt",
        ),
        (
            &["--campaign", &campaign, "--agent", "copywriter", "x", "--budget-tokens", "0"],
            2,
            "the budget 0 must be more than 0",
        ),
        (&["--campaign", &campaign, "--agent", "copywriter"], 2, "required"),
        // The option limits a wait.
        (
            &["--campaign", &campaign, "--agent", "copywriter", "x", "--timeout", "5s"],
            2,
            "<--wait|--follow>",
        ),
    ];
    for (arguments, code, words) in table {
        let output = fixture.run(&[&["task", "add"], arguments].concat()).await;
        assert_eq!((output.code, output.has(words)), (code, true), "{arguments:?}: {output:?}");
        assert_eq!(output.stdout, "", "{arguments:?}");
    }
    assert_eq!(fixture.json(&["task", "ls"]).await, json!([]));
}

#[tokio::test]
async fn a_timestamp_out_of_range_is_a_usage_error() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let nil = "00000000-0000-0000-0000-000000000000";
    let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "x"];
    let replay = ["webhook", "replay", "--webhook", nil];
    for (command, flag) in [(&add[..], "--at"), (&["audit", "ls"], "--since"), (&replay, "--since")]
    {
        for far in ["-4713-01-01T00:00:00Z", "+10000-01-01T00:00:00Z"] {
            let flag = format!("{flag}={far}");
            let output = fixture.run(&[command, &[&flag]].concat()).await;
            assert_eq!(
                (output.code, output.has("from 0001 to 9999")),
                (2, true),
                "{flag}: {output:?}"
            );
        }
    }
    assert_eq!(fixture.json(&["task", "ls"]).await, json!([]));
}

#[tokio::test]
async fn a_campaign_without_budget_refuses_tasks() {
    let limit = Limit { micros: Some(1_000_000), tokens: None };
    let fixture = Fixture::with_limit(limit).await;
    let spent = Amount { micros: 1_000_000, tokens: 5 };
    fixture.world.spend_all(spent).await;
    let campaign = fixture.campaign();
    let add = ["task", "add", "--campaign", &campaign, "--agent", "copywriter", "x", "--json"];
    let output = fixture.run(&add).await;
    assert_eq!(output.code, 5, "{output:?}");
    let error: Value = serde_json::from_str(&output.stderr).unwrap();
    assert_eq!((&error["code"], &error["retryable"]), (&json!("conflict"), &json!(false)));
    let words = error["error"].as_str().unwrap();
    assert!(
        words.contains("1.00 of 1.00 are spent") && words.contains("campaign budget"),
        "{words}"
    );
}

#[tokio::test]
async fn an_unknown_id_is_reported_with_the_command_that_lists_ids() {
    let fixture = Fixture::new().await;
    let nil = "00000000-0000-0000-0000-000000000000";
    for (verbs, list) in [
        (&["campaign", "show"][..], "campaign ls"),
        (&["campaign", "pause"], "campaign ls"),
        (&["campaign", "budget"], "campaign ls"),
        (&["task", "show"], "task ls"),
        (&["task", "cancel"], "task ls"),
        (&["task", "retry"], "task ls"),
        (&["task", "explain"], "task ls"),
        (&["session", "show"], "session ls"),
        (&["session", "transcript"], "session ls"),
        (&["session", "reset"], "session ls"),
        (&["session", "uncompact"], "session ls"),
        (&["session", "interrupt"], "session ls"),
        (&["turn", "ls"], "session ls"),
    ] {
        let output = fixture.run(&[verbs, &[nil]].concat()).await;
        assert_eq!(
            (output.code, output.has(&format!("dalsegno {list}"))),
            (3, true),
            "{verbs:?}: {output:?}"
        );
    }
}

#[tokio::test]
async fn a_public_address_needs_an_api_key_or_an_explicit_setting() {
    let fixture = Fixture::new().await;
    let listen = ["serve", "--set", "http.listen=[::]:0"];
    let output = fixture.run(&listen).await;
    assert_eq!((output.code, output.has("no API key exists")), (2, true), "{output:?}");
    assert!(output.has("http.allow_unauthenticated = true"), "{output:?}");
    // The keys are in the database, which `config check` does not read.
    let check = ["config", "check", "--set", "http.listen=0.0.0.0:7770"];
    assert_eq!(fixture.run(&check).await.code, 0);
}

#[tokio::test]
async fn settings_on_both_sides_of_a_command_are_refused() {
    let fixture = Fixture::new().await;
    let [first, second] = ["log.filter=warn", "http.listen=127.0.0.1:0"];
    let split = ["--set", first, "config", "check", "--set", second];
    let output = fixture.run(&split).await;
    assert_eq!((output.code, output.has("write all of them after it")), (2, true), "{output:?}");
    for whole in [
        ["--set", first, "--set", second, "config", "check"],
        ["config", "check", "--set", first, "--set", second],
    ] {
        assert_eq!(fixture.run(&whole).await.code, 0, "{whole:?}");
    }
}

/// Errors can contain text of a caller or a model, too.
#[tokio::test]
async fn errors_contain_no_control_characters() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let name = "a\u{1b}]0;title\u{7}\u{202e}b";
    let output = fixture.run(&["task", "add", "--campaign", &campaign, "--agent", name, "x"]).await;
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("a\u{fffd}]0;title\u{fffd}\u{fffd}b"), "{output:?}");
    assert!(!output.stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{output:?}");
}

#[tokio::test]
async fn a_slow_database_is_reported_as_unavailable_with_the_next_step() {
    let fixture = Fixture::new().await;
    let task = fixture.world.add("Part one.").await;
    let mut holder = fixture.world.pool.begin().await.unwrap();
    let lock = "select from dalsegno.jobs where id = $1 for update";
    sqlx::query(lock).bind(task.job_id).execute(&mut *holder).await.unwrap();
    let url = fixture.world.url();
    let more = if url.contains('?') { '&' } else { '?' };
    let url = format!("database.url={url}{more}options[lock_timeout]=50");
    let id = task.id.to_string();
    let cancel = ["task", "cancel", &id, "--set", &url];
    let output = fixture.run(&cancel).await;
    assert_eq!((output.code, output.has("try again in a moment")), (7, true), "{output:?}");
    let output = fixture.run(&[&cancel[..], &["--json"]].concat()).await;
    let error: Value = serde_json::from_str(&output.stderr).unwrap();
    assert_eq!((&error["code"], &error["retryable"]), (&json!("unavailable"), &json!(true)));
    assert!(error["next"].as_str().unwrap().contains("dalsegno doctor"), "{error}");
}
