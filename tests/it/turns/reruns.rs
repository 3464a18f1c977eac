//! Reruns of turns: the same request again, byte for byte, or changed by an option, paid from a budget of their own, and without a trace in
//! the conversation.

use chrono::TimeDelta;
use dalsegno::domain::{erasures, reruns as stored, sessions};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Fixture, faults::refuse_ledger};
use crate::{
    app::{eventually, noon},
    providers::fake_ollama::{FakeOllama, Play, Step},
};

const WRITER: &str = "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\nskills: [rhymes]\n\
                      tools: mcp__dalsegno__status, mcp__dalsegno__board_post\n---\nYou write.\n";
/// One unit of the currency for each token.
const PRICE: &str = r#"[{ provider = "ollama", model = "qwen3:8b", input = 1000000000000, output = 1000000000000 }]"#;
const RERUNS: &str = "select count(*) from dalsegno.reruns";
const REMOVE_PROMPTS: &str = "delete from dalsegno.context_text_uses where sha256 in
                              (select sha256 from dalsegno.context_texts where kind = 'agent_prompt')";

pub async fn on_ollama(fake: &FakeOllama, settings: &[(&str, &str)]) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let usual = [("ollama.base_url", url.as_str()), ("ollama.num_ctx", "16384")];
    let settings: Vec<_> = usual.into_iter().chain(settings.iter().copied()).collect();
    let fixture = Fixture::new(&settings).await;
    fixture.write_skill("rhymes", "---\nname: rhymes\ndescription: Rhymes\n---\nRhyme <&> it.\n");
    fixture.write_agent("writer", WRITER);
    fixture
}

/// Runs two turns of one session. Returns the session.
pub async fn converse(fixture: &Fixture) -> Uuid {
    fixture.done(&fixture.add("Write part one. <&>").await).await;
    let task = fixture.done(&fixture.add("Write part two.").await).await;
    fixture.settled().await;
    task.session_id.unwrap()
}

/// Runs `turn rerun` for a turn.
async fn rerun(fixture: &Fixture, session: Uuid, options: &[&str]) -> std::process::Output {
    let session = session.to_string();
    let command = ["turn", "rerun", session.as_str(), "--json"];
    fixture.run_configured(&[&command[..], options].concat()).await
}

/// Runs `turn rerun`, which must succeed. Returns its reruns.
async fn reruns(fixture: &Fixture, session: Uuid, options: &[&str]) -> Vec<Value> {
    let output = rerun(fixture, session, options).await;
    assert!(output.status.success(), "{output:?}");
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["reruns"].as_array().unwrap().clone()
}

fn refused(output: &std::process::Output, code: i32, words: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.contains(words), "{words}: {text}");
}

/// Returns all rows of the conversation, the tasks and the normal budget.
pub async fn rows(fixture: &Fixture) -> Value {
    let sql = "select jsonb_build_array(
        (select jsonb_agg(to_jsonb(s) order by s.id) from dalsegno.sessions as s),
        (select jsonb_agg(to_jsonb(m) order by m.session_id, m.seq) from dalsegno.messages as m),
        (select jsonb_agg(to_jsonb(t) order by t.session_id, t.number) from dalsegno.turns as t),
        (select jsonb_agg(to_jsonb(m) order by m.session_id, m.turn, m.call) from dalsegno.manifests as m),
        (select jsonb_agg(to_jsonb(t) order by t.id) from dalsegno.tasks as t),
        (select jsonb_agg(to_jsonb(p) order by p.id) from dalsegno.posts as p),
        (select jsonb_agg(to_jsonb(b) order by b.campaign_id) from dalsegno.campaign_budgets as b),
        (select jsonb_agg(to_jsonb(s) order by s.campaign_id, s.shard) from dalsegno.campaign_spending as s))";
    fixture.json(sql).await
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

#[tokio::test]
async fn a_rerun_sends_the_same_bytes_and_leaves_the_conversation_as_it_is() {
    let status = Play::Calls(vec![("status", json!({}))]);
    let answers = [Play::Says(&["One."]), status, Play::Says(&["Two ", "verses."])];
    let again = [Play::Says(&["Two ", "songs."]), Play::Says(&["Two ", "verses."])];
    let fake = FakeOllama::playing(answers.into_iter().chain(again)).await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    let before = rows(&fixture).await;
    let options = ["--turn", "2", "--call", "2", "--times", "2"];
    let done = reruns(&fixture, session, &options).await;
    assert_eq!(rows(&fixture).await, before);
    let bodies = fake.bodies();
    assert_eq!(bodies.len(), 5);
    assert_eq!((&bodies[3], &bodies[4]), (&bodies[2], &bodies[2]));
    let told: Vec<Value> =
        done.iter().map(|it| json!([it["number"], it["state"], it["answer"]])).collect();
    let expected = json!([[1, "done", "Two songs."], [2, "done", "Two verses."]]);
    assert_eq!(json!(told), expected);
    assert!(done.iter().all(|it| it["is_same_request"] == true && it["input_tokens"].is_i64()));
    let ledger =
        "select json_agg(json_build_array(purpose, turn, task_id) order by id) from dalsegno.usage
                   where id in (select ledger_id from dalsegno.reruns)";
    assert_eq!(fixture.json(ledger).await, json!([["rerun", 2, null], ["rerun", 2, null]]));
    let audited = "select json_agg(json_build_array(subject, data -> 'times')) from dalsegno.audit
                    where action = 'session.rerun'";
    assert_eq!(fixture.json(audited).await, json!([[session.to_string(), 2]]));
    let id = session.to_string();
    let output = fixture.run_configured(&["turn", "reruns", &id, "--turn", "2"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let has = [
        "RERUN  MODEL",
        "Answer of the turn:\n  Two verses.\n",
        "Rerun 1 (the same request, byte for byte):\n  Two [-verses.-]{+songs.+}\n",
        "Rerun 2 (the same request, byte for byte):\n  the same answer\n",
    ];
    for part in has {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The model has no price: neither the call nor its reruns cost 0.00.
    assert!(done.iter().all(|it| it["is_unpriced"] == true), "{done:?}");
    assert_eq!(text.matches(" no price ").count(), 4, "in each line, and in the note: {text}");
    assert!(text.contains("no price is set for models of the turn, rerun 1, rerun\n2."), "{text}");
    let ledger_id = done[0]["ledger_id"].to_string();
    let output = fixture.run_configured(&["context", "show", "--ledger", &ledger_id]).await;
    refused(&output, 3, "`dalsegno turn reruns");
    worker.stop().await;
}

#[tokio::test]
async fn options_change_only_what_they_name() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    reruns(&fixture, session, &["--turn", "2", "--temperature", "0.25"]).await;
    let done = reruns(&fixture, session, &["--turn", "2", "--model", "qwen3:4b"]).await;
    assert_eq!(
        (&done[0]["is_same_request"], &done[0]["model"]),
        (&json!(false), &json!("qwen3:4b"))
    );
    let bodies: Vec<Value> = fake.bodies().iter().map(|body| parsed(body)).collect();
    let own = &bodies[1];
    let mut warm = own.clone();
    warm["options"]["temperature"] = json!(0.25);
    assert_eq!(bodies[2], warm);
    let mut other = own.clone();
    other["model"] = json!("qwen3:4b");
    assert_eq!(bodies[3], other);
    for (options, words) in [
        (["--temperature", "3"], "not between 0 and 2"),
        (["--times", "21"], "1 to 20 at once"),
        (["--model", ""], "model"),
    ] {
        let output = rerun(&fixture, session, &[&["--turn", "2"], &options[..]].concat()).await;
        refused(&output, 2, words);
    }
    refused(&rerun(&fixture, session, &["--turn", "7"]).await, 3, "turn 7");
    let list = ["turn", "reruns", &session.to_string(), "--turn", "2", "--call", "7"];
    refused(&fixture.run_configured(&list).await, 3, "none with the number 7");
    assert_eq!(fixture.count(RERUNS).await, 2);
    worker.stop().await;
}

#[tokio::test]
async fn an_agent_file_replaces_the_texts_tools_and_options_of_the_agent() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    let file = fixture.folder().join("draft.md");
    let path = file.to_str().unwrap().to_owned();
    // The same file gives the same bytes.
    std::fs::write(&file, WRITER).unwrap();
    reruns(&fixture, session, &["--turn", "2", "--agent", &path]).await;
    let draft = WRITER
        .replace("You write.", "You write verse.")
        .replace("skills: [rhymes]\n", "temperature: 0.5\n")
        .replace(", mcp__dalsegno__board_post", "")
        .replace("name: writer", "name: poet");
    std::fs::write(&file, draft).unwrap();
    reruns(&fixture, session, &["--turn", "2", "--agent", &path]).await;
    let bodies = fake.bodies();
    assert_eq!(bodies[2], bodies[1]);
    let (own, changed) = (parsed(&bodies[1]), parsed(&bodies[3]));
    let system = |body: &Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system(&own).contains("Rhyme &lt;&amp;&gt; it.") || system(&own).contains("<skills"));
    let rest = |text: String, begin: &str| text.strip_prefix(begin).unwrap().to_owned();
    let skills_begin = system(&own).find("\n\n<skills").unwrap();
    let skills_end = system(&own).find("\n\n<campaign").unwrap();
    let without_skills =
        format!("{}{}", &system(&own)[..skills_begin], &system(&own)[skills_end..]);
    assert_eq!(rest(system(&changed), "You write verse."), rest(without_skills, "You write."));
    assert_eq!(
        changed["messages"].as_array().unwrap()[1..],
        own["messages"].as_array().unwrap()[1..]
    );
    assert_eq!(
        (own["tools"].as_array().unwrap().len(), changed["tools"].as_array().unwrap().len()),
        (2, 1)
    );
    assert_eq!(changed["options"]["temperature"], json!(0.5));
    std::fs::write(&file, WRITER.replace("[rhymes]", "[rymes]")).unwrap();
    let output = rerun(&fixture, session, &["--turn", "2", "--agent", &path]).await;
    refused(&output, 2, "there is no skill `rymes`");
    let on_claude =
        WRITER.replace("provider: ollama", "provider: claude").replace("qwen3:8b", "sonnet");
    let on_sim = WRITER.replace("provider: ollama", "provider: sim").replace("qwen3:8b", "sim-1");
    let options = ["--turn", "2", "--agent", &path, "--temperature", "1"];
    for (text, words) in
        [(on_claude, "Claude Code CLI has no option"), (on_sim, "the simulation has none")]
    {
        std::fs::write(&file, text).unwrap();
        refused(&rerun(&fixture, session, &options).await, 2, words);
    }
    worker.stop().await;
}

#[tokio::test]
async fn tool_calls_are_stored_and_not_executed() {
    let post = Play::Calls(vec![("board_post", json!({ "text": "The tide is low." }))]);
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&["Two."]), post]).await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    let before = rows(&fixture).await;
    let done = reruns(&fixture, session, &["--turn", "2"]).await;
    assert_eq!(rows(&fixture).await, before);
    assert_eq!(fake.bodies().len(), 3, "one call is made");
    let call = &done[0]["tool_calls"][0];
    assert_eq!(
        (&call["name"], &call["arguments"]["text"]),
        (&json!("board_post"), &json!("The tide is low."))
    );
    let id = session.to_string();
    let output = fixture.run_configured(&["turn", "reruns", &id, "--turn", "2"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("{+[calls board_post with"), "{text}");
    worker.stop().await;
}

#[tokio::test]
async fn a_model_with_a_price_is_paid_from_the_budget_for_experiments() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[("prices.models", PRICE)]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    let campaign = fixture.campaign.id.to_string();
    let before = rows(&fixture).await;
    let output = rerun(&fixture, session, &["--turn", "2"]).await;
    refused(&output, 5, &format!("dalsegno campaign budget {campaign} --experiments 1"));
    assert_eq!(fixture.count(RERUNS).await, 0);
    let budget = async |options: &[&str]| {
        let command = ["campaign", "budget", campaign.as_str(), "--json"];
        let output = fixture.run_configured(&[&command[..], options].concat()).await;
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["experiments"].clone()
    };
    // The first call takes less than half of what it may cost at most.
    budget(&["--experiments", "1"]).await;
    let output = rerun(&fixture, session, &["--turn", "2"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let failed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = failed["reruns"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("the whole limit of the budget of the campaign for reruns is 1.00"),
        "{error}"
    );
    assert!(
        error.contains(&format!("dalsegno campaign budget {campaign} --experiments ")),
        "{error}"
    );
    assert_eq!(fake.bodies().len(), 2, "no call is made");
    budget(&["--experiments", "1000000"]).await;
    let done = reruns(&fixture, session, &["--turn", "2", "--times", "2"]).await;
    let cost: i64 = done.iter().map(|it| it["cost_micros"].as_i64().unwrap()).sum();
    assert!(cost > 0);
    let after = budget(&[]).await;
    assert_eq!(after, json!({ "limit_micros": 1_000_000_000_000_i64, "spent_micros": cost }));
    assert_eq!(rows(&fixture).await, before, "the normal budget is as it was");
    assert_eq!(
        fixture
            .count("select count(*) from dalsegno.reruns where reserved_micros is not null")
            .await,
        0
    );
    budget(&["--no-experiments"]).await;
    refused(&rerun(&fixture, session, &["--turn", "2"]).await, 5, "--experiments");
    worker.stop().await;
}

#[tokio::test]
async fn a_reservation_of_another_rerun_is_waited_for() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[("prices.models", PRICE)]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    worker.stop().await;
    set_budget(&fixture, "20000").await;
    reruns(&fixture, session, &["--turn", "2", "--times", "2", "--no-wait"]).await;
    // Another conversation's rerun is in its call.
    let held = "update dalsegno.reruns set reserved_micros = 19999000000 where number = 2";
    sqlx::query(held).execute(&fixture.pool).await.unwrap();
    let worker = fixture.start_worker().await;
    let waits =
        "select count(*) from dalsegno.jobs where kind = 'rerun_turn' and wait_reason = 'snooze'";
    eventually("the rerun waits", async || (fixture.count(waits).await == 1).then_some(())).await;
    let causes =
        "select count(*) from dalsegno.runs where outcome = 'snooze' and wait_cause = 'limit'";
    assert!(fixture.count(causes).await > 0);
    assert_eq!(fake.bodies().len(), 2);
    sqlx::query("update dalsegno.reruns set reserved_micros = null where number = 2")
        .execute(&fixture.pool)
        .await
        .unwrap();
    eventually("both are done", async || {
        let due = "update dalsegno.jobs set run_at = now() where wait_reason = 'snooze'";
        sqlx::query(due).execute(&fixture.pool).await.unwrap();
        let done = fixture.count("select count(*) from dalsegno.reruns where state = 'done'").await;
        (done == 2).then_some(())
    })
    .await;
    worker.stop().await;
}

/// Sets the budget for reruns, in whole units of the currency.
async fn set_budget(fixture: &Fixture, units: &str) {
    let campaign = fixture.campaign.id.to_string();
    let set = ["campaign", "budget", campaign.as_str(), "--experiments", units];
    assert!(fixture.run_configured(&set).await.status.success());
}

#[tokio::test]
async fn of_two_reruns_that_reserve_at_once_the_second_sees_the_first() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[("prices.models", PRICE)]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    worker.stop().await;
    set_budget(&fixture, "10").await;
    reruns(&fixture, session, &["--turn", "2", "--times", "2", "--no-wait"]).await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    let queued = stored::list(&mut conn, session, 2).await.unwrap();
    let campaign_id = fixture.campaign.id;
    let mut first = fixture.pool.begin().await.unwrap();
    let six = Some(6_000_000);
    let reserved = stored::reserve(&mut first, campaign_id, &queued[0], six).await;
    assert_eq!(reserved.unwrap(), 6_000_000);
    let (pool, other) = (fixture.pool.clone(), queued[1].clone());
    let beside = tokio::spawn(async move {
        let mut second = pool.begin().await.unwrap();
        stored::reserve(&mut second, campaign_id, &other, six).await
    });
    let waits = "select count(*) from pg_stat_activity
                  where datname = current_database() and wait_event_type = 'Lock' and query like '%experiment_budgets%'";
    eventually("the second waits for the row of the budget", async || {
        (fixture.count(waits).await > 0).then_some(())
    })
    .await;
    first.commit().await.unwrap();
    let refused = beside.await.unwrap().unwrap_err();
    let stored::ReserveError::Refused(refusal) = refused else { panic!("{refused}") };
    assert_eq!(
        (refusal.reserved, refusal.needed, refusal.limit),
        (6_000_000, 6_000_000, 10_000_000)
    );
    assert!(refusal.may_pass_later());
}

#[tokio::test]
async fn a_rerun_whose_worker_is_killed_during_the_call_is_made_again_and_charged_once() {
    let plays = [Play::Says(&["One."]), Play::Says(&["Two."]), Play::NeverBegins];
    let fake = FakeOllama::playing(plays).await;
    let fixture = on_ollama(&fake, &[("prices.models", PRICE)]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    worker.stop().await;
    // Enough for one call and not for two: the reservation of the killed run must not stand in the way of the next.
    const LIMIT: i64 = 5_000;
    set_budget(&fixture, &LIMIT.to_string()).await;
    reruns(&fixture, session, &["--turn", "2", "--no-wait"]).await;
    let before = rows(&fixture).await;
    let victim = fixture.process(&[]);
    eventually("the call is under way", async || (fake.bodies().len() == 3).then_some(())).await;
    let held = "select coalesce(sum(reserved_micros), 0)::bigint from dalsegno.reruns";
    let held = fixture.count(held).await;
    assert!(held <= LIMIT * 1_000_000 && held * 2 > LIMIT * 1_000_000, "{held}");
    victim.kill().await;

    let heir = fixture.process(&[]);
    let done = "select count(*) from dalsegno.reruns where state = 'done' and answer <> '' and reserved_micros is null";
    eventually("the rerun is done", async || {
        fixture.end_crash_pauses().await;
        (fixture.count(done).await == 1).then_some(())
    })
    .await;
    assert_eq!(fake.bodies().len(), 4);
    assert_eq!(fake.bodies()[2], fake.bodies()[3], "the same request");
    let charged = "select count(*) from dalsegno.usage as u join dalsegno.reruns as r on r.ledger_id = u.id
                     join dalsegno.experiment_budgets as e on e.campaign_id = r.campaign_id
                    where u.purpose = 'rerun' and u.cost_micros = e.spent_micros and u.cost_micros > 0";
    assert_eq!(fixture.count(charged).await, 1);
    assert_eq!(
        fixture.count("select count(*) from dalsegno.usage where purpose = 'rerun'").await,
        1
    );
    assert_eq!(rows(&fixture).await, before, "the conversation is as it was");
    drop(heir);
}

#[tokio::test]
async fn a_paid_rerun_waits_for_the_database_and_is_not_made_again() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    refuse_ledger(&fixture.pool, 3, "57P01").await;
    let done = reruns(&fixture, session, &["--turn", "2"]).await;
    worker.stop().await;
    assert_eq!(done[0]["state"], "done", "{done:?}");
    let charged = "select count(*) from dalsegno.usage where purpose = 'rerun'";
    // Two turns and one rerun.
    assert_eq!((fake.chats().len(), fixture.count(charged).await), (3, 1));
}

#[tokio::test]
async fn a_failed_call_and_a_cancelled_job_are_shown_with_their_reasons() {
    let refuses = Play::Status(400, "", r#"{"error":"this prompt is not wanted"}"#);
    let fake = FakeOllama::playing([Play::Says(&["One."]), Play::Says(&["Two."]), refuses]).await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    let output = rerun(&fixture, session, &["--turn", "2"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("this prompt is not wanted"));
    worker.stop().await;
    reruns(&fixture, session, &["--turn", "2", "--no-wait"]).await;
    let cancel =
        "select dalsegno.cancel(id, 'not wanted') from dalsegno.jobs where kind = 'rerun_turn'";
    sqlx::query(cancel).execute(&fixture.pool).await.unwrap();
    let id = session.to_string();
    let output = fixture.run_configured(&["turn", "reruns", &id, "--turn", "2"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("has ended: not wanted"), "{text}");
}

#[tokio::test]
async fn erased_texts_cannot_be_sent_again_and_reruns_go_with_their_session() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    reruns(&fixture, session, &["--turn", "1"]).await;
    worker.stop().await;
    reruns(&fixture, session, &["--turn", "1", "--no-wait"]).await;
    sqlx::query(REMOVE_PROMPTS).execute(&fixture.pool).await.unwrap();
    refused(&rerun(&fixture, session, &["--turn", "2"]).await, 5, "`agent_prompt` is not stored");
    // Of a rerun that waits, the worker finds out.
    let worker = fixture.start_worker().await;
    let failed =
        "select count(*) from dalsegno.reruns where error like '%`agent_prompt` is not stored%'";
    eventually("it has failed", async || (fixture.count(failed).await == 1).then_some(())).await;
    worker.stop_only().await;
    assert_eq!(fixture.count(RERUNS).await, 2);
    let mut conn = fixture.pool.acquire().await.unwrap();
    sessions::expire(&mut conn, session, noon()).await.unwrap();
    drop(conn);
    fixture.advance(TimeDelta::days(1));
    assert_eq!(fixture.clean_up().await, 1);
    assert_eq!(fixture.count(RERUNS).await, 0);
}

#[tokio::test]
async fn a_run_that_has_lost_its_lease_does_not_fail_its_rerun() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    worker.stop().await;
    reruns(&fixture, session, &["--turn", "1", "--no-wait"]).await;
    // It fails before its call, and its end waits for the row.
    sqlx::query(REMOVE_PROMPTS).execute(&fixture.pool).await.unwrap();
    let mut lock = fixture.pool.begin().await.unwrap();
    sqlx::query("select from dalsegno.reruns for update").execute(&mut *lock).await.unwrap();
    let worker = fixture.start_worker().await;
    eventually("the end of the rerun waits", async || {
        let waits = "select count(*) from pg_stat_activity
                      where datname = current_database() and wait_event_type = 'Lock'
                        and query like 'update dalsegno.reruns%set state = case when%'";
        (fixture.count(waits).await == 1).then_some(())
    })
    .await;
    let taken = "update dalsegno.jobs set lease = lease + 1 where state = 'running'";
    assert_eq!(sqlx::query(taken).execute(&fixture.pool).await.unwrap().rows_affected(), 1);
    lock.rollback().await.unwrap();
    worker.stop_only().await;
    let queued = "select count(*) from dalsegno.reruns where state = 'queued' and error is null";
    assert_eq!(fixture.count(queued).await, 1);
}

#[tokio::test]
async fn a_run_that_has_lost_its_lease_keeps_the_reservation_of_the_next_run() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[("prices.models", PRICE)]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    worker.stop().await;
    set_budget(&fixture, "20000").await;
    reruns(&fixture, session, &["--turn", "2", "--no-wait"]).await;
    fake.play(Play::Stream(vec![Step::Gate, Step::HangUp]));
    let worker = fixture.start_worker().await;
    eventually("the call is under way", async || (fake.bodies().len() == 3).then_some(())).await;
    let taken = "update dalsegno.jobs set lease = lease + 1 where state = 'running'";
    assert_eq!(sqlx::query(taken).execute(&fixture.pool).await.unwrap().rows_affected(), 1);
    fake.open();
    worker.stop_only().await;
    let charged = "select count(*) from dalsegno.usage where purpose = 'rerun'";
    assert_eq!(fixture.count(charged).await, 1);
    let reserved = "select count(*) from dalsegno.reruns where reserved_micros is not null";
    assert_eq!(fixture.count(reserved).await, 1);
}

#[tokio::test]
async fn an_erasure_cancels_waiting_reruns_and_removes_the_others() {
    let fake = FakeOllama::start().await;
    let fixture = on_ollama(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let session = converse(&fixture).await;
    reruns(&fixture, session, &["--turn", "1"]).await;
    worker.stop().await;
    reruns(&fixture, session, &["--turn", "2", "--no-wait"]).await;
    let ids = "select id::text from dalsegno.reruns order by 1";
    let ids: Vec<String> = sqlx::query_scalar(ids).fetch_all(&fixture.pool).await.unwrap();
    let mut tx = fixture.pool.begin().await.unwrap();
    erasures::request(&mut tx, fixture.campaign.id, "by request", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let upkeep = fixture.upkeep().await;
    eventually("the campaign is erased", async || {
        let ended = "select count(*) from dalsegno.erasures where ended_at is not null";
        (fixture.count(ended).await == 1).then_some(())
    })
    .await;
    upkeep.stop_only().await;
    assert_eq!(fixture.count(RERUNS).await, 0);
    let counted = "select (contents -> 'reruns' -> 'rows')::bigint from dalsegno.erasures";
    assert_eq!(fixture.count(counted).await, 2, "the receipt counts them");
    let folders = "select external_session_id from dalsegno.erased_sessions where external_session_id is not null order by 1";
    let folders: Vec<String> = sqlx::query_scalar(folders).fetch_all(&fixture.pool).await.unwrap();
    assert_eq!(folders, ids, "each host looks for their folders");
    assert_eq!(
        fixture.count("select count(*) from dalsegno.jobs where kind = 'rerun_turn'").await,
        0
    );
    assert_eq!(fake.bodies().len(), 3);
}
