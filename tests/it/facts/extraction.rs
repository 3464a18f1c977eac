//! Extraction of facts from sessions: sources, times and results.

use chrono::TimeDelta;
use dalsegno::{
    domain::{
        agents::SessionMode as Mode,
        amount::Limit,
        cleanups::{self, Walk},
        erasures,
        facts::{self, EndReason, Outcome, Source, Trust},
        sessions,
        tasks::{Links, Task},
        transaction::begin,
    },
    queue::admin,
};
use rustix::process::Signal;

use super::{
    USER, all,
    setup::{
        extractions, fixture, make_jobs_due, request, run_in_own_session, set_user,
        wait_for_extractions, wait_for_retry,
    },
    texts,
};
use crate::{
    app::{eventually, noon},
    erasure::{ERASED_WORD, tables_with},
    turns::{
        faults::refuse_writes,
        fixture::{Fixture, WRITER},
    },
};

const CALLS: &str = "select count(*) from dalsegno.usage where purpose = 'facts'";
const VEGAN: &str = "The diet of the user: vegan.";

#[tokio::test]
async fn statements_of_people_are_extracted_when_a_session_is_closed() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let task = run_in_own_session(&fixture, "My diet is vegan. Write part one.").await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    let facts = all(&fixture.pool, USER, true).await;
    let [fact] = facts.as_slice() else { panic!("{facts:?}") };
    assert_eq!((fact.attribute.as_str(), fact.text.as_str()), ("diet", VEGAN));
    assert_eq!((fact.source, fact.trust), (Source::Extracted, Trust::Agent));
    assert_eq!(fact.author, "writer");
    assert_eq!((fact.campaign_id, fact.task_id), (Some(fixture.campaign.id), Some(task.id)));
    assert_eq!((fact.session_id, fact.turn), (task.session_id, Some(1)));
    assert_eq!(fact.valid_from, task.created_at);
    let read = extractions(&fixture).await;
    assert_eq!((read.len(), read[0].requests, read[0].found, read[0].new), (1, 1, 1, 1));
    assert_eq!(fixture.count(CALLS).await, 1);
    let kinds: Vec<_> = fixture.feed().await.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "facts.read").count(), 1, "{kinds:?}");
}

#[tokio::test]
async fn paid_facts_wait_for_the_database_and_are_not_asked_for_again() {
    let fixture = fixture(&[]).await;
    let extractions = "insert on dalsegno.fact_extractions for each row";
    refuse_writes(&fixture.pool, extractions, 3, "57P01").await;
    let worker = fixture.start_worker().await;
    run_in_own_session(&fixture, "My diet is vegan. Write.").await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(fixture.count("select last_value from public.refused").await, 4);
    assert_eq!(texts(&fixture.pool, USER).await, [VEGAN]);
    assert_eq!(fixture.count(CALLS).await, 1);
}

#[tokio::test]
async fn nothing_is_extracted_unless_agent_configuration_and_campaign_allow_it() {
    let by_file = fixture(&[]).await;
    by_file.write_agent("writer", WRITER);
    let by_configuration = fixture(&[("facts.extract", "false")]).await;
    let by_campaign = Fixture::new(&[("facts.extract", "true")]).await;
    by_campaign.write_agent("writer", super::setup::AGENT);
    for fixture in [by_file, by_configuration, by_campaign] {
        let worker = fixture.start_worker().await;
        run_in_own_session(&fixture, "My diet is vegan.").await;
        wait_for_extractions(&fixture).await;
        worker.stop().await;
        assert!(all(&fixture.pool, USER, true).await.is_empty());
        assert_eq!(fixture.count(CALLS).await, 0);
        assert!(extractions(&fixture).await.is_empty());
    }
}

#[tokio::test]
async fn of_two_contradicting_sessions_the_newer_wins_and_the_older_fact_stays() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let first = run_in_own_session(&fixture, "My city is Bergen. Write.").await;
    wait_for_extractions(&fixture).await;
    fixture.advance(TimeDelta::hours(1));
    let second = run_in_own_session(&fixture, "My city is Porto. Write.").await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, ["The city of the user: Porto."]);
    let facts = all(&fixture.pool, USER, true).await;
    let older = facts.iter().find(|fact| fact.valid_until.is_some()).unwrap();
    assert_eq!(older.text, "The city of the user: Bergen.");
    assert_eq!(older.ended_because, Some(EndReason::Contradicted));
    assert_eq!((older.valid_from, older.valid_until), (first.created_at, Some(second.created_at)));
}

/// A session that is rebuilt and continued: each request is read once.
#[tokio::test]
async fn an_extracted_stretch_is_not_extracted_again() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    let session = first.session_id.unwrap();
    request(&fixture, session).await;
    wait_for_extractions(&fixture).await;
    request(&fixture, session).await;
    fixture.done(&fixture.add("My city is Bergen. Write.").await).await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    sessions::reset(&mut conn, session, false, fixture.advance(TimeDelta::hours(1))).await.unwrap();
    let third = fixture.done(&fixture.add("Write on.").await).await;
    assert_ne!(third.session_id, Some(session));
    wait_for_extractions(&fixture).await;
    // Inherited messages are not the successor's own.
    request(&fixture, third.session_id.unwrap()).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    let requests: Vec<_> =
        extractions(&fixture).await.iter().map(|it| (it.requests, it.new)).collect();
    assert_eq!(requests, [(1, 1), (1, 1), (1, 0)]);
    assert_eq!(texts(&fixture.pool, USER).await.len(), 2);
}

/// Folded messages leave the view, while the session continues.
#[tokio::test]
async fn compacted_messages_are_extracted_once() {
    let fixture = fixture(&[("sim.window_tokens", "2500")]).await;
    let file = "---\nname: writer\ndescription: Writes\nlearns_facts: true\nreserve_tokens: 300\n---\nYou write.\n";
    fixture.write_agent("writer", file);
    let worker = fixture.start_worker().await;
    let filler = "The harbour has a mole, a light, two cranes and a customs house.";
    let mut last = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    let folded = async || {
        fixture.count("select count(*) from dalsegno.compactions where outcome = 'applied'").await
    };
    let mut n_asked = 1;
    while folded().await < 2 {
        n_asked += 1;
        assert!(n_asked < 40, "nothing is compacted");
        let prompt = format!("Write part {n_asked}. {filler} [[sim: words 60]]");
        last = fixture.done(&fixture.add(&prompt).await).await;
    }
    fixture.settled().await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    let session = fixture.session(&last).await;
    assert!(session.generation > 1 && session.predecessor_id.is_none(), "{session:?}");
    assert_eq!(fixture.sessions().await.len(), 1, "the session was never closed");
    assert_eq!(texts(&fixture.pool, USER).await, [VEGAN]);
    // Each request is in at most one stretch, and the one with the fact is in the first.
    let read = extractions(&fixture).await;
    assert!(read.len() >= 2, "{read:?}");
    let found: Vec<_> = read.iter().map(|it| (it.found, it.new)).collect();
    assert_eq!(found[0], (1, 1));
    assert!(found[1..].iter().all(|it| *it == (0, 0)), "{found:?}");
    assert!(read.windows(2).all(|two| two[1].from_seq >= two[0].to_seq), "{read:?}");
    assert!(read.iter().map(|it| it.requests).sum::<i32>() <= n_asked, "{read:?}");
}

/// Its messages are deleted by then; the prompts of its tasks are kept.
#[tokio::test]
async fn an_expired_session_is_extracted_after_its_removal() {
    let fixture = fixture(&[("sessions.ttl_days.sim", "7")]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    fixture.settled().await;
    let later = fixture.advance(TimeDelta::days(40));
    let config = fixture.config();
    let mut walk = Walk::new(later, &config.sessions, &config.memory);
    let mut tx = begin(&fixture.pool).await.unwrap();
    let page = walk.page(&mut tx, 10).await.unwrap().unwrap();
    let gone = cleanups::remove(&mut tx, &walk, page.going).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(gone.sessions, 1);
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert!(sessions::get(&fixture.pool, task.session_id.unwrap()).await.is_err());
    assert_eq!(texts(&fixture.pool, USER).await, [VEGAN]);
}

#[tokio::test]
async fn an_invalid_answer_is_refused_with_its_reason_and_nothing_is_lost() {
    let fixture = fixture(&[]).await;
    let careless = fixture.start_worker_with(&[("sim.facts", "no_json")]).await;
    let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    request(&fixture, task.session_id.unwrap()).await;
    wait_for_retry(&fixture).await;
    careless.stop().await;
    let read = extractions(&fixture).await;
    assert_eq!((read.len(), read[0].outcome, read[0].new), (1, Outcome::Refused, 0));
    assert!(read[0].reason.as_deref().unwrap().contains("not written as JSON"), "{read:?}");
    // Both requests are in the ledger.
    assert_eq!(fixture.count(CALLS).await, 2);
    assert!(all(&fixture.pool, USER, true).await.is_empty());
    let kinds: Vec<_> = fixture.feed().await.into_iter().map(|event| event.kind).collect();
    assert!(kinds.iter().any(|kind| kind == "facts.refused"), "{kinds:?}");
    let worker = fixture.start_worker().await;
    make_jobs_due(&fixture).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, [VEGAN]);
    assert_eq!(extractions(&fixture).await[0].outcome, Outcome::Done);
}

/// Runs more prompts than one reading takes. The first and the last state a fact.
async fn run_many_prompts(fixture: &Fixture) -> Task {
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    for _ in 0..49 {
        fixture.done(&fixture.add("Write on.").await).await;
    }
    fixture.done(&fixture.add("My city is Porto. Write.").await).await;
    worker.stop().await;
    first
}

#[tokio::test]
async fn a_refused_stretch_is_extracted_before_later_ones() {
    let fixture = fixture(&[("sim.window_tokens", "200000")]).await;
    let first = run_many_prompts(&fixture).await;
    let settings = [("sim.window_tokens", "200000"), ("sim.facts", "no_json")];
    let careless = fixture.start_worker_with(&settings).await;
    request(&fixture, first.session_id.unwrap()).await;
    wait_for_retry(&fixture).await;
    careless.stop().await;
    let worker = fixture.start_worker().await;
    make_jobs_due(&fixture).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, ["The city of the user: Porto.", VEGAN]);
    let mut read: Vec<_> =
        extractions(&fixture).await.iter().map(|it| (it.to_seq, it.requests, it.outcome)).collect();
    read.sort_by_key(|(to_seq, ..)| *to_seq);
    let read: Vec<_> = read.into_iter().map(|(_, requests, outcome)| (requests, outcome)).collect();
    assert_eq!(read, [(50, Outcome::Done), (1, Outcome::Done)]);
}

#[tokio::test]
async fn a_stretch_refused_every_time_is_abandoned_and_available_to_the_next_extraction() {
    let fixture = fixture(&[]).await;
    let careless = fixture.start_worker_with(&[("sim.facts", "no_json")]).await;
    let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    request(&fixture, task.session_id.unwrap()).await;
    eventually("the stretch is abandoned", async || {
        make_jobs_due(&fixture).await;
        let sql = "select count(*) from dalsegno.jobs where kind = 'extract_facts'";
        (fixture.count(sql).await == 0).then_some(())
    })
    .await;
    careless.stop().await;
    // Two calls in each of five attempts.
    assert_eq!(fixture.count(CALLS).await, 10);
    let outcomes: Vec<_> = extractions(&fixture).await.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Refused]);
    let worker = fixture.start_worker().await;
    request(&fixture, task.session_id.unwrap()).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, [VEGAN]);
}

#[tokio::test]
async fn a_temporary_provider_error_leaves_the_stretch_to_the_next_attempt() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    worker.stop().await;
    let shaky = fixture.start_worker_with(&[("sim.faults", "[\"error 500 once\"]")]).await;
    request(&fixture, task.session_id.unwrap()).await;
    wait_for_retry(&fixture).await;
    // Nothing is refused because of the fault.
    assert!(extractions(&fixture).await.is_empty());
    make_jobs_due(&fixture).await;
    wait_for_extractions(&fixture).await;
    shaky.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, [VEGAN]);
    let outcomes: Vec<_> = extractions(&fixture).await.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Done]);
    assert_eq!(fixture.count(CALLS).await, 2);
}

/// Waits for the dead letter, after all attempts.
async fn wait_for_dead_letter(fixture: &Fixture) -> i64 {
    let find_dead = "select id from dalsegno.dead_jobs where kind = 'extract_facts'";
    eventually("the stretch is abandoned", async || {
        make_jobs_due(fixture).await;
        sqlx::query_scalar(find_dead).fetch_optional(&fixture.pool).await.unwrap()
    })
    .await
}

/// An outage refuses nothing; a provider's refusal is in the list of readings.
#[tokio::test]
async fn a_stretch_without_an_answer_is_a_dead_letter_until_a_person_retries_it() {
    for (fault, refused) in [("error 500", 0), ("error 400", 1)] {
        let fixture = fixture(&[]).await;
        let worker = fixture.start_worker().await;
        let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
        worker.stop().await;
        let away = fixture.start_worker_with(&[("sim.faults", &format!("[\"{fault}\"]"))]).await;
        request(&fixture, task.session_id.unwrap()).await;
        let dead = wait_for_dead_letter(&fixture).await;
        away.stop().await;
        assert_eq!(extractions(&fixture).await.len(), refused, "{fault}");
        let worker = fixture.start_worker().await;
        admin::retry_job(&fixture.pool, dead).await.unwrap();
        wait_for_extractions(&fixture).await;
        worker.stop().await;
        assert_eq!(texts(&fixture.pool, USER).await, [VEGAN], "{fault}");
        assert_eq!(extractions(&fixture).await[0].outcome, Outcome::Done, "{fault}");
    }
}

/// The refused prompt is not lost.
#[tokio::test]
async fn a_stretch_that_every_provider_declines_blocks_no_later_one() {
    let settings = [("sim.window_tokens", "200000")];
    let fixture = fixture(&settings).await;
    let first = run_many_prompts(&fixture).await;
    let away = fixture.start_worker_with(&[settings[0], ("sim.faults", "[\"error 400\"]")]).await;
    request(&fixture, first.session_id.unwrap()).await;
    let dead = wait_for_dead_letter(&fixture).await;
    away.stop().await;
    let worker = fixture.start_worker_with(&settings).await;
    make_jobs_due(&fixture).await;
    wait_for_extractions(&fixture).await;
    assert_eq!(texts(&fixture.pool, USER).await, ["The city of the user: Porto."]);
    admin::retry_job(&fixture.pool, dead).await.unwrap();
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, ["The city of the user: Porto.", VEGAN]);
    let read: Vec<_> =
        extractions(&fixture).await.iter().map(|it| (it.requests, it.outcome)).collect();
    assert_eq!(read, [(50, Outcome::Done), (1, Outcome::Done)]);
}

#[tokio::test]
async fn an_invented_statement_is_left_out() {
    let fixture = fixture(&[("sim.facts", "invents")]).await;
    let worker = fixture.start_worker().await;
    run_in_own_session(&fixture, "My diet is vegan. Write.").await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, [VEGAN]);
    assert_eq!(extractions(&fixture).await[0].found, 1);
}

/// A prompt by an agent is the agent's own text, and may repeat facts that it was told.
#[tokio::test]
async fn requests_between_agents_are_not_extracted() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let parent = run_in_own_session(&fixture, "Write.").await;
    let links = Links { parent_id: Some(parent.id), ..Links::default() };
    let (mode, limit) = (Some(Mode::None), Limit::default());
    let child = fixture.add_linked("writer", "main", "My diet is vegan.", mode, limit, links);
    fixture.done(&child.await.unwrap()).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert!(all(&fixture.pool, USER, true).await.is_empty());
}

/// Facts are about the user for whom the campaign worked at that time.
#[tokio::test]
async fn requests_from_before_the_campaign_had_a_user_are_not_extracted() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    let later = fixture.advance(TimeDelta::hours(1));
    let mut tx = begin(&fixture.pool).await.unwrap();
    facts::set_user(&mut tx, fixture.campaign.id, "ben", later).await.unwrap();
    tx.commit().await.unwrap();
    fixture.advance(TimeDelta::hours(1));
    fixture.done(&fixture.add("My city is Porto. Write.").await).await;
    request(&fixture, task.session_id.unwrap()).await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert!(all(&fixture.pool, USER, true).await.is_empty());
    assert_eq!(texts(&fixture.pool, "ben").await, ["The city of the user: Porto."]);
}

/// The job has read the user, and its model has answered; it waits before it writes.
#[tokio::test]
async fn a_user_forgotten_during_an_extraction_stays_forgotten() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    let later = fixture.advance(TimeDelta::hours(1));
    let mut forgetting = begin(&fixture.pool).await.unwrap();
    facts::forget(&mut forgetting, USER, later).await.unwrap();
    request(&fixture, task.session_id.unwrap()).await;
    wait_for_user_lock(&fixture).await;
    forgetting.commit().await.unwrap();
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert!(all(&fixture.pool, USER, true).await.is_empty());
    let read = extractions(&fixture).await;
    assert_eq!((read.len(), read[0].found, read[0].new), (1, 1, 0));
}

#[tokio::test]
async fn facts_are_dropped_when_the_campaign_loses_its_user_during_the_extraction() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    // A writer about the user blocks the job, and the campaign gets another user meanwhile.
    let mut writing = begin(&fixture.pool).await.unwrap();
    let campaign_id = fixture.campaign.id;
    facts::lock_user_of(&mut writing, campaign_id, USER).await.unwrap();
    request(&fixture, task.session_id.unwrap()).await;
    wait_for_user_lock(&fixture).await;
    let mut unsetting = begin(&fixture.pool).await.unwrap();
    assert!(facts::unset_user(&mut unsetting, campaign_id).await.unwrap());
    unsetting.commit().await.unwrap();
    writing.commit().await.unwrap();
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    assert!(all(&fixture.pool, USER, true).await.is_empty());
    assert_eq!(extractions(&fixture).await[0].found, 1);
}

/// Waits until the job waits for the lock of the user.
async fn wait_for_user_lock(fixture: &Fixture) {
    eventually("the job waits for the user", async || {
        let sql = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                     and database = (select oid from pg_database where datname = current_database())";
        (fixture.count(sql).await == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_worker_killed_during_an_extraction_has_written_nothing_and_the_next_writes_once() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("My diet is vegan. Write.").await).await;
    worker.stop().await;
    let mut slow = fixture.process(&[("sim.latency_ms", "600000")]);
    request(&fixture, task.session_id.unwrap()).await;
    eventually("the job runs", async || {
        let sql =
            "select count(*) from dalsegno.jobs where kind = 'extract_facts' and state = 'running'";
        (fixture.count(sql).await == 1).then_some(())
    })
    .await;
    slow.signal(Signal::KILL);
    slow.ended().await;
    assert!(all(&fixture.pool, USER, true).await.is_empty());
    let worker = fixture.start_worker().await;
    // The lease of the killed run has to expire first.
    eventually("another worker extracts it", async || {
        let sql = "select count(*) from dalsegno.fact_extractions";
        (fixture.count(sql).await > 0).then_some(())
    })
    .await;
    worker.stop().await;
    assert_eq!(texts(&fixture.pool, USER).await, [VEGAN]);
    let read = extractions(&fixture).await;
    assert_eq!((read.len(), read[0].new), (1, 1));
}

#[tokio::test]
async fn no_fact_of_an_erased_campaign_is_found() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    let call = format!(
        "call records_publish {{\"name\": \"{ERASED_WORD}\", \"title\": \"{ERASED_WORD}\", \"text\": \"{ERASED_WORD}\"}}"
    );
    run_in_own_session(&fixture, &format!("My diet is {ERASED_WORD}. Write. [[sim: {call}]]"))
        .await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    let set = "select dalsegno.change_budget('user', $1, 'UTC', '{\"tokens\": 9}', now())";
    sqlx::query(set).bind(USER).execute(&fixture.pool).await.unwrap();
    assert_eq!(fixture.count("select count(*) from dalsegno.budgets").await, 1);
    let before = tables_with(&fixture.pool, ERASED_WORD).await;
    for table in ["audit", "facts", "memory_items"] {
        assert!(before.iter().any(|(found, _)| found == table), "{table}: {before:?}");
    }
    let mut tx = begin(&fixture.pool).await.unwrap();
    erasures::request(&mut tx, fixture.campaign.id, "by request", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let upkeep = fixture.upkeep().await;
    eventually("the campaign is erased", async || {
        let mut conn = fixture.pool.acquire().await.unwrap();
        erasures::get(&mut conn, fixture.campaign.id).await.unwrap().ended_at
    })
    .await;
    upkeep.stop().await;
    assert_eq!(tables_with(&fixture.pool, ERASED_WORD).await, []);
    // The budget has the name of the user, whom no other campaign has.
    assert_eq!(fixture.count("select count(*) from dalsegno.budgets").await, 0);
    // The actor and the tool of a call are kept.
    let calls = "select count(*) from dalsegno.audit where action = 'tool.call' and data = '{}'";
    assert_eq!(fixture.count(calls).await, 1);
}

#[tokio::test]
async fn an_erasure_removes_the_facts_of_its_campaign_and_keeps_the_others() {
    let fixture = fixture(&[]).await;
    let worker = fixture.start_worker().await;
    run_in_own_session(&fixture, "My diet is vegan.").await;
    wait_for_extractions(&fixture).await;
    worker.stop().await;
    super::state(&fixture.pool, USER, ("Tone", "Wants short sentences.")).await.unwrap();
    set_user(&fixture, USER).await;
    let mut tx = begin(&fixture.pool).await.unwrap();
    facts::remove_some_records(&mut tx, fixture.campaign.id, 100).await.unwrap();
    let gone = facts::remove_some(&mut tx, fixture.campaign.id, 100).await;
    tx.commit().await.unwrap();
    assert_eq!(gone.unwrap(), 1);
    assert_eq!(texts(&fixture.pool, USER).await, ["Wants short sentences."]);
    for table in ["campaign_users", "fact_extractions", "fact_showings"] {
        let sql = format!("select count(*) from dalsegno.{table}");
        let n: i64 =
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&fixture.pool).await.unwrap();
        assert_eq!(n, 0, "{table}");
    }
}
