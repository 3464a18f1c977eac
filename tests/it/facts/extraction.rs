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
        tasks::Links,
        transaction::begin,
    },
    queue::admin,
};
use rustix::process::Signal;

use super::{
    ANN, all,
    stage::{all_read, ask_alone, be_due, comes_again, ground, readings, request, set_user},
    texts,
};
use crate::{
    app::{eventually, noon},
    erasure::{PLANTED, found},
    turns::ground::{Ground, WRITER},
};

const CALLS: &str = "select count(*) from dalsegno.usage where purpose = 'facts'";
const VEGAN: &str = "The diet of the user: vegan.";

#[tokio::test]
async fn what_people_say_of_themselves_is_read_when_a_session_is_closed() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let task = ask_alone(&ground, "My diet is vegan. Write part one.").await;
    all_read(&ground).await;
    worker.stop().await;
    let facts = all(&ground.pool, ANN, true).await;
    let [fact] = facts.as_slice() else { panic!("{facts:?}") };
    assert_eq!((fact.attribute.as_str(), fact.text.as_str()), ("diet", VEGAN));
    assert_eq!((fact.source, fact.trust), (Source::Extracted, Trust::Agent));
    assert_eq!(fact.author, "writer");
    assert_eq!((fact.campaign_id, fact.task_id), (Some(ground.campaign.id), Some(task.id)));
    assert_eq!((fact.session_id, fact.turn), (task.session_id, Some(1)));
    assert_eq!(fact.valid_from, task.created_at);
    let read = readings(&ground).await;
    assert_eq!((read.len(), read[0].requests, read[0].found, read[0].new), (1, 1, 1, 1));
    assert_eq!(ground.count(CALLS).await, 1);
    let kinds: Vec<_> = ground.feed().await.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "facts.read").count(), 1, "{kinds:?}");
}

#[tokio::test]
async fn nothing_is_read_unless_file_configuration_and_campaign_want_it() {
    let by_file = ground(&[]).await;
    by_file.write_agent("writer", WRITER);
    let by_configuration = ground(&[("facts.extract", "false")]).await;
    let by_campaign = Ground::new(&[("facts.extract", "true")]).await;
    by_campaign.write_agent("writer", super::stage::AGENT);
    for ground in [by_file, by_configuration, by_campaign] {
        let worker = ground.work().await;
        ask_alone(&ground, "My diet is vegan.").await;
        all_read(&ground).await;
        worker.stop().await;
        assert!(all(&ground.pool, ANN, true).await.is_empty());
        assert_eq!(ground.count(CALLS).await, 0);
        assert!(readings(&ground).await.is_empty());
    }
}

#[tokio::test]
async fn of_two_sessions_that_contradict_each_other_the_newer_wins_and_the_older_stays() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let first = ask_alone(&ground, "My city is Bergen. Write.").await;
    all_read(&ground).await;
    ground.advance(TimeDelta::hours(1));
    let second = ask_alone(&ground, "My city is Porto. Write.").await;
    all_read(&ground).await;
    worker.stop().await;
    assert_eq!(texts(&ground.pool, ANN).await, ["The city of the user: Porto."]);
    let facts = all(&ground.pool, ANN, true).await;
    let older = facts.iter().find(|fact| fact.valid_until.is_some()).unwrap();
    assert_eq!(older.text, "The city of the user: Bergen.");
    assert_eq!(older.ended_because, Some(EndReason::Contradicted));
    assert_eq!((older.valid_from, older.valid_until), (first.created_at, Some(second.created_at)));
}

/// A session that is rebuilt and continued: each request is read once.
#[tokio::test]
async fn a_stretch_that_was_read_is_not_read_again() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let first = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    let session = first.session_id.unwrap();
    request(&ground, session).await;
    all_read(&ground).await;
    request(&ground, session).await;
    ground.done(&ground.add("My city is Bergen. Write.").await).await;
    let mut conn = ground.pool.acquire().await.unwrap();
    sessions::reset(&mut conn, session, false, ground.advance(TimeDelta::hours(1))).await.unwrap();
    let third = ground.done(&ground.add("Write on.").await).await;
    assert_ne!(third.session_id, Some(session));
    all_read(&ground).await;
    // Inherited messages are not the successor's own.
    request(&ground, third.session_id.unwrap()).await;
    all_read(&ground).await;
    worker.stop().await;
    let requests: Vec<_> = readings(&ground).await.iter().map(|it| (it.requests, it.new)).collect();
    assert_eq!(requests, [(1, 1), (1, 1), (1, 0)]);
    assert_eq!(texts(&ground.pool, ANN).await.len(), 2);
}

/// Folded messages leave the view, while the session continues.
#[tokio::test]
async fn what_a_compaction_folds_is_read_once() {
    let ground = ground(&[("sim.window_tokens", "2500")]).await;
    let file = "---\nname: writer\ndescription: Writes\nlearns_facts: true\nreserve_tokens: 300\n---\nYou write.\n";
    ground.write_agent("writer", file);
    let worker = ground.work().await;
    let filler = "The harbour has a mole, a light, two cranes and a customs house.";
    let mut last = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    let folded = async || {
        ground.count("select count(*) from dalsegno.compactions where outcome = 'applied'").await
    };
    let mut n_asked = 1;
    while folded().await < 2 {
        n_asked += 1;
        assert!(n_asked < 40, "nothing is folded");
        let prompt = format!("Write part {n_asked}. {filler} [[sim: words 60]]");
        last = ground.done(&ground.add(&prompt).await).await;
    }
    ground.settled().await;
    all_read(&ground).await;
    worker.stop().await;
    let session = ground.session(&last).await;
    assert!(session.generation > 1 && session.predecessor_id.is_none(), "{session:?}");
    assert_eq!(ground.sessions().await.len(), 1, "it was never closed");
    assert_eq!(texts(&ground.pool, ANN).await, [VEGAN]);
    // Each request is in at most one stretch, and the one with the fact is in the first.
    let read = readings(&ground).await;
    assert!(read.len() >= 2, "{read:?}");
    let found: Vec<_> = read.iter().map(|it| (it.found, it.new)).collect();
    assert_eq!(found[0], (1, 1));
    assert!(found[1..].iter().all(|it| *it == (0, 0)), "{found:?}");
    assert!(read.windows(2).all(|two| two[1].from_seq >= two[0].to_seq), "{read:?}");
    assert!(read.iter().map(|it| it.requests).sum::<i32>() <= n_asked, "{read:?}");
}

/// Its messages are deleted by then; the prompts of its tasks are kept.
#[tokio::test]
async fn a_session_that_expires_is_read_although_it_is_gone() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    ground.settled().await;
    let later = ground.advance(TimeDelta::days(40));
    let config = ground.config();
    let mut walk = Walk::new(later, &config.sessions, &config.memory);
    let mut tx = begin(&ground.pool).await.unwrap();
    let page = walk.page(&mut tx, 10).await.unwrap().unwrap();
    let gone = cleanups::remove(&mut tx, &walk, page.going).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(gone.sessions, 1);
    all_read(&ground).await;
    worker.stop().await;
    assert!(sessions::get(&ground.pool, task.session_id.unwrap()).await.is_err());
    assert_eq!(texts(&ground.pool, ANN).await, [VEGAN]);
}

#[tokio::test]
async fn an_answer_that_is_none_is_refused_with_its_reason_and_nothing_is_lost() {
    let ground = ground(&[]).await;
    let careless = ground.work_with(&[("sim.facts", "no_json")]).await;
    let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    request(&ground, task.session_id.unwrap()).await;
    comes_again(&ground).await;
    careless.stop().await;
    let read = readings(&ground).await;
    assert_eq!((read.len(), read[0].outcome, read[0].new), (1, Outcome::Refused, 0));
    assert!(read[0].reason.as_deref().unwrap().contains("not written as JSON"), "{read:?}");
    // Both requests are in the ledger.
    assert_eq!(ground.count(CALLS).await, 2);
    assert!(all(&ground.pool, ANN, true).await.is_empty());
    let kinds: Vec<_> = ground.feed().await.into_iter().map(|event| event.kind).collect();
    assert!(kinds.iter().any(|kind| kind == "facts.refused"), "{kinds:?}");
    let worker = ground.work().await;
    be_due(&ground).await;
    all_read(&ground).await;
    worker.stop().await;
    assert_eq!(texts(&ground.pool, ANN).await, [VEGAN]);
    assert_eq!(readings(&ground).await[0].outcome, Outcome::Done);
}

/// There are more prompts than one reading takes.
#[tokio::test]
async fn what_was_refused_is_read_before_what_stands_behind_it() {
    let ground = ground(&[("sim.window_tokens", "200000")]).await;
    let worker = ground.work().await;
    let first = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    for _ in 0..49 {
        ground.done(&ground.add("Write on.").await).await;
    }
    ground.done(&ground.add("My city is Porto. Write.").await).await;
    worker.stop().await;
    let settings = [("sim.window_tokens", "200000"), ("sim.facts", "no_json")];
    let careless = ground.work_with(&settings).await;
    request(&ground, first.session_id.unwrap()).await;
    comes_again(&ground).await;
    careless.stop().await;
    let worker = ground.work().await;
    be_due(&ground).await;
    all_read(&ground).await;
    worker.stop().await;
    assert_eq!(texts(&ground.pool, ANN).await, ["The city of the user: Porto.", VEGAN]);
    let mut read: Vec<_> =
        readings(&ground).await.iter().map(|it| (it.to_seq, it.requests, it.outcome)).collect();
    read.sort_by_key(|(to_seq, ..)| *to_seq);
    let read: Vec<_> = read.into_iter().map(|(_, requests, outcome)| (requests, outcome)).collect();
    assert_eq!(read, [(50, Outcome::Done), (1, Outcome::Done)]);
}

#[tokio::test]
async fn what_is_refused_every_time_is_given_up_and_is_there_for_the_next_reading() {
    let ground = ground(&[]).await;
    let careless = ground.work_with(&[("sim.facts", "no_json")]).await;
    let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    request(&ground, task.session_id.unwrap()).await;
    eventually("it is given up", async || {
        be_due(&ground).await;
        let sql = "select count(*) from dalsegno.jobs where kind = 'extract_facts'";
        (ground.count(sql).await == 0).then_some(())
    })
    .await;
    careless.stop().await;
    // Two calls in each of five attempts.
    assert_eq!(ground.count(CALLS).await, 10);
    let outcomes: Vec<_> = readings(&ground).await.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Refused]);
    let worker = ground.work().await;
    request(&ground, task.session_id.unwrap()).await;
    all_read(&ground).await;
    worker.stop().await;
    assert_eq!(texts(&ground.pool, ANN).await, [VEGAN]);
}

#[tokio::test]
async fn what_a_provider_cannot_do_just_now_is_left_to_the_next_attempt() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    worker.stop().await;
    let shaky = ground.work_with(&[("sim.faults", "[\"error 500 once\"]")]).await;
    request(&ground, task.session_id.unwrap()).await;
    comes_again(&ground).await;
    // Nothing is refused because of the fault.
    assert!(readings(&ground).await.is_empty());
    be_due(&ground).await;
    all_read(&ground).await;
    shaky.stop().await;
    assert_eq!(texts(&ground.pool, ANN).await, [VEGAN]);
    let outcomes: Vec<_> = readings(&ground).await.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Done]);
    assert_eq!(ground.count(CALLS).await, 2);
}

/// Waits for the dead letter, after all attempts.
async fn given_up(ground: &Ground) -> i64 {
    let find_dead = "select id from dalsegno.dead_jobs where kind = 'extract_facts'";
    eventually("it is given up", async || {
        be_due(ground).await;
        sqlx::query_scalar(find_dead).fetch_optional(&ground.pool).await.unwrap()
    })
    .await
}

/// An outage refuses nothing; a provider's refusal is in the list of readings.
#[tokio::test]
async fn what_no_provider_has_answered_is_a_dead_letter_and_read_when_a_person_says_so() {
    for (fault, refused) in [("error 500", 0), ("error 400", 1)] {
        let ground = ground(&[]).await;
        let worker = ground.work().await;
        let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
        worker.stop().await;
        let away = ground.work_with(&[("sim.faults", &format!("[\"{fault}\"]"))]).await;
        request(&ground, task.session_id.unwrap()).await;
        let dead = given_up(&ground).await;
        away.stop().await;
        assert_eq!(readings(&ground).await.len(), refused, "{fault}");
        let worker = ground.work().await;
        admin::retry_job(&ground.pool, dead).await.unwrap();
        all_read(&ground).await;
        worker.stop().await;
        assert_eq!(texts(&ground.pool, ANN).await, [VEGAN], "{fault}");
        assert_eq!(readings(&ground).await[0].outcome, Outcome::Done, "{fault}");
    }
}

/// The refused prompt is not lost.
#[tokio::test]
async fn what_no_provider_will_answer_keeps_nothing_behind_it_from_being_read() {
    let settings = [("sim.window_tokens", "200000")];
    let ground = ground(&settings).await;
    let worker = ground.work().await;
    let first = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    for _ in 0..49 {
        ground.done(&ground.add("Write on.").await).await;
    }
    ground.done(&ground.add("My city is Porto. Write.").await).await;
    worker.stop().await;
    let away = ground.work_with(&[settings[0], ("sim.faults", "[\"error 400\"]")]).await;
    request(&ground, first.session_id.unwrap()).await;
    let dead = given_up(&ground).await;
    away.stop().await;
    let worker = ground.work_with(&settings).await;
    be_due(&ground).await;
    all_read(&ground).await;
    assert_eq!(texts(&ground.pool, ANN).await, ["The city of the user: Porto."]);
    admin::retry_job(&ground.pool, dead).await.unwrap();
    all_read(&ground).await;
    worker.stop().await;
    assert_eq!(texts(&ground.pool, ANN).await, ["The city of the user: Porto.", VEGAN]);
    let read: Vec<_> = readings(&ground).await.iter().map(|it| (it.requests, it.outcome)).collect();
    assert_eq!(read, [(50, Outcome::Done), (1, Outcome::Done)]);
}

#[tokio::test]
async fn what_nobody_has_said_is_left_out() {
    let ground = ground(&[("sim.facts", "invents")]).await;
    let worker = ground.work().await;
    ask_alone(&ground, "My diet is vegan. Write.").await;
    all_read(&ground).await;
    worker.stop().await;
    assert_eq!(texts(&ground.pool, ANN).await, [VEGAN]);
    assert_eq!(readings(&ground).await[0].found, 1);
}

/// A prompt by an agent is the agent's own text, and may repeat facts that it was told.
#[tokio::test]
async fn what_agents_ask_of_each_other_is_not_read() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let parent = ask_alone(&ground, "Write.").await;
    let links = Links { parent_id: Some(parent.id), ..Links::default() };
    let (mode, limit) = (Some(Mode::None), Limit::default());
    let child = ground.add_linked("writer", "main", "My diet is vegan.", mode, limit, links);
    ground.done(&child.await.unwrap()).await;
    all_read(&ground).await;
    worker.stop().await;
    assert!(all(&ground.pool, ANN, true).await.is_empty());
}

/// Facts are about the user for whom the campaign worked at that time.
#[tokio::test]
async fn what_was_asked_before_a_campaign_worked_for_somebody_is_not_read_for_them() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    let later = ground.advance(TimeDelta::hours(1));
    let mut tx = begin(&ground.pool).await.unwrap();
    facts::set_user(&mut tx, ground.campaign.id, "ben", later).await.unwrap();
    tx.commit().await.unwrap();
    ground.advance(TimeDelta::hours(1));
    ground.done(&ground.add("My city is Porto. Write.").await).await;
    request(&ground, task.session_id.unwrap()).await;
    all_read(&ground).await;
    worker.stop().await;
    assert!(all(&ground.pool, ANN, true).await.is_empty());
    assert_eq!(texts(&ground.pool, "ben").await, ["The city of the user: Porto."]);
}

/// The job has read the user, and its model has answered; it waits before it writes.
#[tokio::test]
async fn who_is_forgotten_while_a_model_reads_stays_forgotten() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    let later = ground.advance(TimeDelta::hours(1));
    let mut forgetting = begin(&ground.pool).await.unwrap();
    facts::forget(&mut forgetting, ANN, later).await.unwrap();
    request(&ground, task.session_id.unwrap()).await;
    one_waits(&ground).await;
    forgetting.commit().await.unwrap();
    all_read(&ground).await;
    worker.stop().await;
    assert!(all(&ground.pool, ANN, true).await.is_empty());
    let read = readings(&ground).await;
    assert_eq!((read.len(), read[0].found, read[0].new), (1, 1, 0));
}

#[tokio::test]
async fn what_was_asked_for_somebody_is_not_kept_when_the_campaign_works_for_nobody_meanwhile() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    // A writer about the user blocks the job, and the campaign gets another user meanwhile.
    let mut writing = begin(&ground.pool).await.unwrap();
    let campaign_id = ground.campaign.id;
    facts::lock_user_of(&mut writing, campaign_id, ANN).await.unwrap();
    request(&ground, task.session_id.unwrap()).await;
    one_waits(&ground).await;
    let mut unsetting = begin(&ground.pool).await.unwrap();
    assert!(facts::unset_user(&mut unsetting, campaign_id).await.unwrap());
    unsetting.commit().await.unwrap();
    writing.commit().await.unwrap();
    all_read(&ground).await;
    worker.stop().await;
    assert!(all(&ground.pool, ANN, true).await.is_empty());
    assert_eq!(readings(&ground).await[0].found, 1);
}

/// Waits until the job waits for the lock of the user.
async fn one_waits(ground: &Ground) {
    eventually("the job waits for the user", async || {
        let sql = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                     and database = (select oid from pg_database where datname = current_database())";
        (ground.count(sql).await == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_is_killed_while_a_model_reads_has_written_nothing_and_the_next_one_writes_once()
 {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let task = ground.done(&ground.add("My diet is vegan. Write.").await).await;
    worker.stop().await;
    let mut slow = ground.process(&[("sim.latency_ms", "600000")]);
    request(&ground, task.session_id.unwrap()).await;
    eventually("the job runs", async || {
        let sql =
            "select count(*) from dalsegno.jobs where kind = 'extract_facts' and state = 'running'";
        (ground.count(sql).await == 1).then_some(())
    })
    .await;
    slow.signal(Signal::KILL);
    slow.ended().await;
    assert!(all(&ground.pool, ANN, true).await.is_empty());
    let worker = ground.work().await;
    // The lease of the killed run has to expire first.
    eventually("another worker reads it", async || {
        let sql = "select count(*) from dalsegno.fact_extractions";
        (ground.count(sql).await > 0).then_some(())
    })
    .await;
    worker.stop().await;
    assert_eq!(texts(&ground.pool, ANN).await, [VEGAN]);
    let read = readings(&ground).await;
    assert_eq!((read.len(), read[0].new), (1, 1));
}

#[tokio::test]
async fn nothing_that_was_said_or_written_by_a_tool_is_found_when_the_campaign_is_erased() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    let call = format!(
        "call records_publish {{\"name\": \"{PLANTED}\", \"title\": \"{PLANTED}\", \"text\": \"{PLANTED}\"}}"
    );
    ask_alone(&ground, &format!("My diet is {PLANTED}. Write. [[sim: {call}]]")).await;
    all_read(&ground).await;
    worker.stop().await;
    let before = found(&ground.pool, PLANTED).await;
    for table in ["audit", "facts", "memory_items"] {
        assert!(before.iter().any(|(found, _)| found == table), "{table}: {before:?}");
    }
    let mut tx = begin(&ground.pool).await.unwrap();
    erasures::request(&mut tx, ground.campaign.id, "by request", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let upkeep = ground.upkeep().await;
    eventually("it is erased", async || {
        let mut conn = ground.pool.acquire().await.unwrap();
        erasures::get(&mut conn, ground.campaign.id).await.unwrap().ended_at
    })
    .await;
    upkeep.stop().await;
    assert_eq!(found(&ground.pool, PLANTED).await, []);
    // The actor and the tool of a call are kept.
    let calls = "select count(*) from dalsegno.audit where action = 'tool.call' and data = '{}'";
    assert_eq!(ground.count(calls).await, 1);
}

#[tokio::test]
async fn an_erasure_takes_what_was_said_in_the_campaign_and_what_others_said_stays() {
    let ground = ground(&[]).await;
    let worker = ground.work().await;
    ask_alone(&ground, "My diet is vegan.").await;
    all_read(&ground).await;
    worker.stop().await;
    super::state(&ground.pool, ANN, ("Tone", "Wants short sentences.")).await.unwrap();
    set_user(&ground, ANN).await;
    let mut tx = begin(&ground.pool).await.unwrap();
    facts::remove_some_records(&mut tx, ground.campaign.id, 100).await.unwrap();
    let gone = facts::remove_some(&mut tx, ground.campaign.id, 100).await;
    tx.commit().await.unwrap();
    assert_eq!(gone.unwrap(), 1);
    assert_eq!(texts(&ground.pool, ANN).await, ["Wants short sentences."]);
    for table in ["campaign_users", "fact_extractions", "fact_showings"] {
        let sql = format!("select count(*) from dalsegno.{table}");
        let n: i64 =
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&ground.pool).await.unwrap();
        assert_eq!(n, 0, "{table}");
    }
}
