//! Reruns on the CLI: in a conversation of their own, which is forgotten.

use std::{fs, os::unix::fs::PermissionsExt as _};

use chrono::TimeDelta;
use dalsegno::{domain::erasures, jobs::sweep_erased};
use rustix::process::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Setup;
use crate::{
    app::{eventually, noon},
    erasure::files_with,
    providers::claude::{cli::Cli, host::processes_of},
};

#[tokio::test]
async fn a_rerun_has_the_history_and_no_tools_and_leaves_the_conversation_as_it_is() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    let worker = fixture.start_worker().await;
    setup.run_prompt("The harbour is called Vik.").await;
    let second = setup.run_prompt("It has a mole.").await;
    fixture.settled().await;
    let session = fixture.session(&second).await.id;
    let id = session.to_string();
    let run = async |arguments: &[&str]| fixture.run_configured(arguments).await;
    let rerun = ["turn", "rerun", id.as_str(), "--turn", "2", "--json"];
    let refused = run(&[&rerun[..], &["--temperature", "1"]].concat()).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let refused = run(&rerun).await;
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    let campaign = fixture.campaign.id.to_string();
    assert!(run(&["campaign", "budget", &campaign, "--experiments", "5"]).await.status.success());
    let rows = "select jsonb_build_array(
        (select jsonb_agg(to_jsonb(s)) from dalsegno.sessions as s),
        (select jsonb_agg(to_jsonb(m) order by m.seq) from dalsegno.messages as m),
        (select jsonb_agg(to_jsonb(t) order by t.number) from dalsegno.turns as t),
        (select jsonb_agg(to_jsonb(f) order by f.name) from dalsegno.transcript_files as f))";
    let before = fixture.json(rows).await;
    let output = run(&rerun).await;
    assert!(output.status.success(), "{output:?}");
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(done["reruns"][0]["state"], json!("done"), "{done}");
    assert_eq!(fixture.json(rows).await, before);
    let said = setup.api.last_messages().join("\n");
    for words in ["called Vik.", "It has a mole."] {
        assert!(said.contains(words), "{words}: {said}");
    }
    setup.run_prompt("It has a light.").await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(setup.session_starts().await, ["new", "resumed", "resumed"]);
}

#[tokio::test]
async fn a_rerun_that_waits_for_a_credential_sets_no_money_aside() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    let worker = fixture.start_worker().await;
    let task = setup.run_prompt("The harbour is called Vik.").await;
    fixture.settled().await;
    let (id, campaign) = (fixture.session(&task).await.id, fixture.campaign.id);
    let (id, campaign) = (id.to_string(), campaign.to_string());
    let run = async |arguments: &[&str]| {
        let output = fixture.run_configured(arguments).await;
        assert!(output.status.success(), "{output:?}");
    };
    run(&["campaign", "budget", &campaign, "--experiments", "5"]).await;
    let pause = "insert into dalsegno.paused_credentials values ('claude', $1, $2, 'its limit')";
    for credential in ["main", "spare"] {
        let until = noon() + TimeDelta::hours(5);
        sqlx::query(pause).bind(credential).bind(until).execute(&fixture.pool).await.unwrap();
    }
    run(&["turn", "rerun", &id, "--turn", "1", "--no-wait"]).await;
    eventually("the rerun waits", async || {
        let waits =
            "select count(*) from dalsegno.jobs where kind = 'rerun_turn' and wait_reason = 'snooze'";
        (fixture.count(waits).await == 1).then_some(())
    })
    .await;
    let reserved = "select count(*) from dalsegno.reruns where reserved_micros is not null";
    assert_eq!(fixture.count(reserved).await, 0);
    worker.stop().await;
}

/// Nothing removes the files of a killed worker. They contain the whole conversation.
#[tokio::test]
async fn an_erasure_removes_the_files_of_a_rerun_whose_worker_was_killed() {
    const WORD: &str = "Vikholmen";
    let setup = Setup::on(&Cli::Fake, &[]).await.unwrap();
    let fixture = &setup.fixture;
    let mut first = fixture.process(&[]);
    setup.run_prompt(&format!("The harbour is called {WORD}.")).await;
    let task = setup.run_prompt("It has a mole.").await;
    fixture.settled().await;
    first.signal(Signal::TERM);
    first.ended().await;
    let session = fixture.session(&task).await.id.to_string();
    let campaign = fixture.campaign.id;
    let program = fixture.folder().join("hanging-claude");
    let hangs = format!(
        "#!/bin/sh\nFAKE_CLAUDE='hangs in the turn' exec '{}' \"$@\"\n",
        Cli::Fake.program().display()
    );
    fs::write(&program, hangs).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let killed = fixture.process(&[("claude.program", program.to_str().unwrap())]);
    for command in [
        &["campaign", "budget", &campaign.to_string(), "--experiments", "5"][..],
        &["turn", "rerun", &session, "--turn", "2", "--no-wait"],
    ] {
        let output = fixture.run_configured(command).await;
        assert!(output.status.success(), "{output:?}");
    }
    let rerun = "select id from dalsegno.reruns";
    let rerun: Uuid = sqlx::query_scalar(rerun).fetch_one(&fixture.pool).await.unwrap();
    let all = fixture.folder().join("data/claude");
    let folder = all.join(rerun.to_string());
    eventually("the transcript is written", async || {
        (folder.exists() && !files_with(&folder, WORD).is_empty()).then_some(())
    })
    .await;
    killed.kill().await;
    let words = folder.display().to_string();
    eventually("no process is left", async || processes_of(&words).is_empty().then_some(())).await;
    assert!(!files_with(&folder, WORD).is_empty(), "the worker has removed the files");

    let mut tx = fixture.pool.begin().await.unwrap();
    erasures::request(&mut tx, campaign, "by request", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let upkeep = fixture.upkeep().await;
    eventually("the campaign is erased", async || {
        let ended = "select count(*) from dalsegno.erasures where ended_at is not null";
        (fixture.count(ended).await == 1).then_some(())
    })
    .await;
    upkeep.stop_only().await;
    let services = fixture.services(&[]);
    assert_eq!(sweep_erased(&services, &fixture.pool, "here").await.unwrap(), 1);
    assert_eq!(files_with(&all, WORD), [""; 0]);
}
