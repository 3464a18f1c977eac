//! Summaries of expired sessions: equal with and without a cleanup.

use chrono::TimeDelta;
use dalsegno::context::compaction::REFERENCE;
use dalsegno::domain::agents::SessionMode as Mode;
use dalsegno::domain::{
    audit::Actor,
    cleanups::{self, Walk},
    compactions::{self, AcceptedSummary, Cause, Compaction},
    conversations,
    conversations::{Decision, ResolvedSession, resolve},
    erasures,
    session_summaries::ExpiryRule,
    sessions::{self, Config, Reason},
    tasks,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use super::{after_expiry, cleanup, config, memory_config, preview, settings_after_expiry, walk};
use crate::{
    app::noon,
    conversations::world::{TurnSettings, World, inheritance, opening, wanted},
    erasure::{ERASED_WORD, tables_with},
};

const SUMMARY: &str = "## Goal\nA story of the harbour, which was built in 1817.";

/// Runs a turn of the copywriter in one of its instances, which has a conversation of its own.
async fn turn(world: &World, instance: &str, prompt: &str, now: TurnSettings) -> ResolvedSession {
    let task = world.add_new(&tasks::New { instance, ..world.ask(prompt) }).await.unwrap().task;
    let (resolved, begun) = world.begin(&task, world.lease(), now).await;
    world.commit(&begun, &format!("Answer to: {prompt}"), now).await.unwrap();
    resolved
}

/// Sets up a conversation with, on request, an applied summary of its first turns and a prepared one.
async fn conversation(world: &World, instance: &str, is_applied: bool, is_prepared: bool) -> Uuid {
    let id = turn(world, instance, "Part one.", TurnSettings::default()).await.session.id;
    turn(world, instance, "Must: mention the red lamp.", TurnSettings::default()).await;
    if is_applied {
        summarise(world, id, 4, SUMMARY, true).await;
    }
    turn(world, instance, "Part three.", TurnSettings::default()).await;
    if is_prepared {
        summarise(world, id, 6, &format!("{SUMMARY} The third part is told."), false).await;
    }
    id
}

/// Prompts that are verbatim beside a summary.
fn prompts() -> Value {
    json!({ "kept": [{ "seq": 1, "text": "Part one." }], "sentences": [], "archived": 0 })
}

async fn summarise(world: &World, id: Uuid, to_seq: i64, summary: &str, is_shown: bool) {
    let mut tx = world.pool.begin().await.unwrap();
    let parent = sessions::get(&mut *tx, id).await.unwrap().generation;
    let generation = sessions::next_generation(&mut *tx, id).await.unwrap();
    let (pins, none) = (json!([{ "kind": "date", "text": "1817", "voice": "person" }]), json!([]));
    let prompts = prompts();
    let accepted = AcceptedSummary {
        summary,
        pins: &pins,
        rung: "first",
        tokens_after: 10,
        flow: None,
        prompts: Some(&prompts),
    };
    let compaction = compactions::New {
        session_id: id,
        generation,
        parent,
        from_seq: to_seq - 1,
        to_seq,
        cause: Cause::Auto,
        turn: 2,
        model: Some("sim-1"),
        tokens_before: 100,
        refusals: &none,
        node: None,
        accepted: Some(accepted),
    };
    compactions::insert(&mut *tx, &compaction, noon()).await.unwrap();
    if is_shown {
        compactions::apply(&mut tx, id, generation, noon()).await.unwrap();
    }
    tx.commit().await.unwrap();
}

/// Returns the initial state of the successor, without ids.
async fn begins_with(
    world: &World,
    resolved: &ResolvedSession,
) -> (Compaction, Vec<String>, i64, i32) {
    assert_eq!(resolved.decision, Decision::Rebuild(Reason::Expired));
    let session = world.session(resolved.session.id).await;
    assert_eq!((session.opened_because, session.generation), (Reason::Expired, 1));
    let inherited = compactions::get(&world.pool, session.id, 1).await.unwrap().unwrap();
    let transcript = world.transcript(session.id).await;
    (inherited, transcript, resolved.session.last_seq, resolved.session.turn_count)
}

async fn n_kept(pool: &PgPool) -> i64 {
    let count = "select count(*) from dalsegno.session_summaries";
    sqlx::query_scalar(count).fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn a_successor_begins_with_the_same_summary_with_and_without_a_cleanup() {
    let world = World::new().await;
    for (name, is_applied, is_prepared) in
        [("extract", false, false), ("shown", true, false), ("prepared", true, true)]
    {
        let (early, late) = (format!("{name}-early"), format!("{name}-late"));
        conversation(&world, &early, is_applied, is_prepared).await;
        let gone = conversation(&world, &late, is_applied, is_prepared).await;

        let first = turn(&world, &early, "Part four.", settings_after_expiry()).await;
        assert_eq!(n_kept(&world.pool).await, 0, "the successor has inherited the summary");
        let seen = preview(&world.pool).await;
        let done = cleanup(&world.pool, walk(), 10).await;
        assert_eq!((seen.sessions, seen.summaries_kept), (1, 1), "{name}");
        assert_eq!((done.sessions, done.summaries_kept), (1, 1), "{name}");
        assert!(sessions::get(&world.pool, gone).await.is_err());
        assert_eq!(n_kept(&world.pool).await, 1);
        let second = turn(&world, &late, "Part four.", settings_after_expiry()).await;
        assert_eq!(n_kept(&world.pool).await, 0);

        let (one, other) = (begins_with(&world, &first).await, begins_with(&world, &second).await);
        assert_eq!(one, other, "{name}");
        let (inherited, transcript, last_seq, turn_count) = one;
        assert_eq!(
            (inherited.cause, inherited.to_seq, last_seq, turn_count),
            (Cause::Inherited, 6, 6, 3)
        );
        assert_eq!(transcript, ["User: Part four.", "Assistant: Answer to: Part four."]);
        assert_eq!(inherited.prompts, is_applied.then(prompts), "{name}");
        let summary = inherited.summary.unwrap();
        match name {
            "extract" => {
                for said in ["Part one.", "Must: mention the red lamp.", "Answer to: Part three."] {
                    assert!(summary.contains(said), "{summary}");
                }
            }
            "shown" => {
                assert!(summary.starts_with(SUMMARY), "{summary}");
                assert!(summary.contains("Answer to: Part three."), "{summary}");
            }
            _ => assert_eq!(summary, format!("{SUMMARY} The third part is told.")),
        }
        // The session is gone, and the link to it is not shown.
        let link = "select predecessor_id from dalsegno.sessions where id = $1";
        let link: Option<Uuid> =
            sqlx::query_scalar(link).bind(second.session.id).fetch_one(&world.pool).await.unwrap();
        assert_eq!(link, Some(gone));
        assert_eq!(world.session(second.session.id).await.predecessor_id, None);
    }
}

/// A reference to the archive makes room for one task, and the cleanup deletes the archive.
#[tokio::test]
async fn instead_of_a_reference_the_summary_before_it_is_kept_with_excerpts() {
    let world = World::new().await;
    for (name, has_summary, is_shown) in
        [("shown", true, true), ("prepared", true, false), ("alone", false, true)]
    {
        let (early, late) = (format!("{name}-early"), format!("{name}-late"));
        for instance in [&early, &late] {
            let id = conversation(&world, instance, has_summary, false).await;
            summarise(&world, id, 6, REFERENCE, is_shown).await;
        }
        let first = turn(&world, &early, "Part four.", settings_after_expiry()).await;
        assert_eq!(cleanup(&world.pool, walk(), 10).await.summaries_kept, 1, "{name}");
        let second = turn(&world, &late, "Part four.", settings_after_expiry()).await;
        let (one, other) = (begins_with(&world, &first).await, begins_with(&world, &second).await);
        assert_eq!(one, other, "{name}");
        let summary = one.0.summary.unwrap();
        assert!(!summary.contains(REFERENCE), "{name}: {summary}");
        assert_eq!(summary.starts_with(SUMMARY), has_summary, "{name}: {summary}");
        // Messages that the summary replaces are not repeated.
        assert_eq!(summary.contains("Part one."), !has_summary, "{name}: {summary}");
        assert!(summary.contains("Answer to: Part three."), "{name}: {summary}");
    }
}

/// Earlier versions have copied references. Without it, nothing would say that messages are missing.
#[tokio::test]
async fn a_reference_to_messages_of_a_predecessor_is_kept() {
    let world = World::new().await;
    let id = conversation(&world, "main", false, false).await;
    summarise(&world, id, 4, REFERENCE, true).await;
    sqlx::query("update dalsegno.compactions set cause = 'inherited'")
        .execute(&world.pool)
        .await
        .unwrap();
    let next = turn(&world, "main", "Part four.", settings_after_expiry()).await;
    let summary = begins_with(&world, &next).await.0.summary.unwrap();
    assert!(summary.starts_with(REFERENCE), "{summary}");
    assert!(!summary.contains("Part one."), "{summary}");
}

/// The conversation expires repeatedly.
#[tokio::test]
async fn old_messages_are_passed_on_from_summary_to_summary() {
    let world = World::new().await;
    let at = |days| TurnSettings { at: noon() + TimeDelta::days(days), ..TurnSettings::default() };
    turn(&world, "main", "Must: mention the red lamp.", TurnSettings::default()).await;
    for round in 1..=4 {
        let now = at(round * 8);
        if round % 2 == 0 {
            let walk = Walk::new(now.at, &config(), &memory_config());
            assert_eq!(cleanup(&world.pool, walk, 10).await.summaries_kept, 1);
        }
        let next = turn(&world, "main", &format!("Part {round}."), now).await;
        let (inherited, ..) = begins_with(&world, &next).await;
        let summary = inherited.summary.unwrap();
        assert!(summary.contains("Must: mention the red lamp."), "round {round}: {summary}");
    }
}

/// Its prompt would be rejected again, before each task.
#[tokio::test]
async fn a_rejected_prompt_is_not_remembered() {
    let world = World::new().await;
    for instance in ["both", "alone"] {
        turn(&world, instance, "Rejected words.", TurnSettings::default()).await;
    }
    turn(&world, "both", "Part two.", TurnSettings::default()).await;
    sqlx::query("update dalsegno.sessions set rejected_turns = '{1}'")
        .execute(&world.pool)
        .await
        .unwrap();
    assert_eq!(preview(&world.pool).await.summaries_kept, 1);
    assert_eq!(cleanup(&world.pool, walk(), 10).await.summaries_kept, 1);
    let next = turn(&world, "both", "Part three.", settings_after_expiry()).await;
    let summary = begins_with(&world, &next).await.0.summary.unwrap();
    assert!(summary.contains("Part two.") && !summary.contains("Rejected words."), "{summary}");
}

#[tokio::test]
async fn nothing_is_kept_of_expired_sessions_when_configured_so() {
    let world = World::new().await;
    let config = Config { expired: ExpiryRule::Fresh, ..config() };
    conversation(&world, "early", true, false).await;
    conversation(&world, "late", true, false).await;
    let begin = async |instance: &'static str| {
        let new = tasks::New { instance, ..world.ask("Part four.") };
        let task = world.add_new(&new).await.unwrap().task;
        let mut tx = world.pool.begin().await.unwrap();
        let rule = conversations::Inheritance {
            forgotten_until: config.forgotten_until(after_expiry()),
            ..inheritance(i64::MAX, after_expiry())
        };
        let now = settings_after_expiry();
        let (opening, wanted, lease) = (opening(&task, now), wanted(&task, now), world.lease());
        let resolved = resolve(&mut tx, &opening, &wanted, lease, &rule).await.unwrap();
        tx.commit().await.unwrap();
        resolved
    };
    let first = begin("early").await;
    let walk = || Walk::new(after_expiry(), &config, &memory_config());
    let mut conn = world.pool.acquire().await.unwrap();
    let seen = cleanups::preview(&mut conn, walk()).await.unwrap();
    let done = cleanup(&world.pool, walk(), 10).await;
    assert_eq!((seen.sessions, seen.summaries_kept), (1, 0));
    assert_eq!((done.sessions, done.summaries_kept, n_kept(&world.pool).await), (1, 0, 0));
    for resolved in [first, begin("late").await] {
        assert!(!resolved.inherited_summary);
        let session = &resolved.session;
        assert_eq!((session.generation, session.turn_count, session.last_seq), (0, 0, 0));
        assert!(world.transcript(session.id).await.is_empty());
    }
}

#[tokio::test]
async fn an_unused_summary_is_removed_after_its_retention() {
    let world = World::new().await;
    for instance in ["early", "late", "never"] {
        conversation(&world, instance, false, false).await;
    }
    assert_eq!(cleanup(&world.pool, walk(), 10).await.summaries_kept, 3);
    let expired = noon() + TimeDelta::days(7);
    let at = |days| expired + TimeDelta::days(days) + TimeDelta::hours(1);
    let first = turn(
        &world,
        "early",
        "Part four.",
        TurnSettings { at: at(179), ..TurnSettings::default() },
    )
    .await;
    assert!(first.inherited_summary);
    let late =
        turn(&world, "late", "Part four.", TurnSettings { at: at(180), ..TurnSettings::default() })
            .await;
    assert_eq!(
        (late.decision, late.inherited_summary),
        (Decision::Create { ephemeral: false }, false)
    );

    let old = Walk::new(at(180), &config(), &memory_config());
    let mut conn = world.pool.acquire().await.unwrap();
    assert_eq!(cleanups::preview(&mut conn, old.clone()).await.unwrap().summaries_removed, 2);
    assert_eq!(cleanups::remove_summaries(&mut conn, &walk(), 10).await.unwrap(), 0);
    assert_eq!(cleanups::remove_summaries(&mut conn, &old, 1).await.unwrap(), 1);
    assert_eq!(cleanups::remove_summaries(&mut conn, &old, 10).await.unwrap(), 1);
    assert_eq!(n_kept(&world.pool).await, 0);
}

/// The service was down for longer than summaries are kept.
#[tokio::test]
async fn sessions_expired_too_long_ago_are_forgotten_with_and_without_a_cleanup() {
    let world = World::new().await;
    let at = TurnSettings { at: noon() + TimeDelta::days(400), ..TurnSettings::default() };
    conversation(&world, "early", true, false).await;
    conversation(&world, "late", true, false).await;
    let first = turn(&world, "early", "Part four.", at).await;
    assert_eq!(
        (first.decision, first.inherited_summary),
        (Decision::Rebuild(Reason::Expired), false)
    );
    let walk = Walk::new(at.at, &config(), &memory_config());
    let done = cleanup(&world.pool, walk, 10).await;
    assert_eq!((done.sessions, done.summaries_kept), (1, 0));
    let second = turn(&world, "late", "Part four.", at).await;
    assert!(!second.inherited_summary);
    for resolved in [first, second] {
        assert_eq!(world.transcript(resolved.session.id).await.len(), 2);
        assert_eq!(world.session(resolved.session.id).await.turns, 1);
    }
}

#[tokio::test]
async fn nothing_is_kept_that_no_successor_could_inherit() {
    let world = World::new().await;
    // A reset without memory also removes the kept summary.
    conversation(&world, "reset", false, false).await;
    cleanup(&world.pool, walk(), 10).await;
    let id = turn(&world, "reset", "Part four.", settings_after_expiry()).await.session.id;
    let mut conn = world.pool.acquire().await.unwrap();
    sessions::ask_rebuild(&mut conn, id, Reason::Fresh).await.unwrap();
    // A fresh session, one of a task alone, one of a closed campaign, and an empty one.
    conversation(&world, "fresh", false, false).await;
    cleanup(&world.pool, walk(), 10).await;
    assert_eq!(n_kept(&world.pool).await, 1);
    let new = tasks::New {
        instance: "fresh",
        session_mode: Some(Mode::Fresh),
        ..world.ask("Forget all.")
    };
    let task = world.add_new(&new).await.unwrap().task;
    let (fresh, begun) = world.begin(&task, world.lease(), settings_after_expiry()).await;
    assert!(!fresh.inherited_summary);
    world.commit(&begun, "Forgotten.", settings_after_expiry()).await.unwrap();
    assert_eq!(n_kept(&world.pool).await, 0);
    let alone = world.add_mode("Alone.", Mode::None).await;
    let (_, begun) = world.begin(&alone, world.lease(), TurnSettings::default()).await;
    world.commit(&begun, "Done.", TurnSettings::default()).await.unwrap();
    let empty = "insert into dalsegno.sessions (id, campaign_id, agent_type, instance, provider, model, prompt_hash, fence_seed,
                        created_at, used_at, expires_at)
                 select gen_random_uuid(), $1, 'copywriter', 'empty', 'sim', 'm', repeat('a', 64), decode(repeat('00', 32), 'hex'),
                        $2, $2, $2";
    sqlx::query(empty).bind(world.campaign.id).bind(noon()).execute(&world.pool).await.unwrap();
    let much_later = after_expiry() + TimeDelta::days(20);
    let walk = || Walk::new(much_later, &config(), &memory_config());
    let seen = cleanups::preview(&mut conn, walk()).await.unwrap();
    let done = cleanup(&world.pool, walk(), 10).await;
    // Messages of the fresh session are summarised like others.
    assert_eq!((seen.summaries_kept, done.summaries_kept, n_kept(&world.pool).await), (1, 1, 1));
    let kept: String =
        sqlx::query_scalar("select instance || excerpts::text from dalsegno.session_summaries")
            .fetch_one(&world.pool)
            .await
            .unwrap();
    assert!(kept.starts_with("fresh") && !kept.contains("Part one."), "{kept}");

    turn(&world, "closed", "Part one.", TurnSettings::default()).await;
    sqlx::query("update dalsegno.campaigns set status = 'closed', closed_at = now()")
        .execute(&world.pool)
        .await
        .unwrap();
    let done = cleanup(&world.pool, walk(), 10).await;
    assert_eq!((done.sessions, done.summaries_kept), (1, 0));
}

#[tokio::test]
async fn agents_with_fresh_resets_remember_nothing_of_expired_sessions() {
    let world = World::new().await;
    let reset = async |agent, fresh| {
        let (who, whom) = (Actor::cli("ann", "host"), (world.campaign.id, agent));
        conversations::reset_agents(&world.pool, &who, whom, fresh, after_expiry()).await.unwrap();
        n_kept(&world.pool).await
    };
    turn(&world, "main", "Part one.", TurnSettings::default()).await;
    assert_eq!(cleanup(&world.pool, walk(), 10).await.summaries_kept, 1);
    assert_eq!(reset(Some("copywriter"), false).await, 1);
    assert_eq!(reset(Some("planner"), true).await, 1);
    assert_eq!(reset(Some("copywriter"), true).await, 0);
}

#[tokio::test]
async fn an_erasure_removes_the_kept_summaries_of_expired_sessions() {
    let world = World::new().await;
    turn(&world, "main", &format!("Write of {ERASED_WORD}."), TurnSettings::default()).await;
    cleanup(&world.pool, walk(), 10).await;
    let kept =
        |found: &[(String, i64)]| found.iter().any(|(table, _)| table == "session_summaries");
    assert!(kept(&tables_with(&world.pool, ERASED_WORD).await));
    let mut tx = world.pool.begin().await.unwrap();
    erasures::request(&mut tx, world.campaign.id, "by request", noon()).await.unwrap();
    let mut step = Some(erasures::Step::FIRST);
    while let Some(now) = step {
        let more = erasures::next_batch(&mut tx, world.campaign.id, now).await.unwrap();
        step = if more { Some(now) } else { now.next() };
    }
    erasures::finish(&mut tx, world.campaign.id, 0, noon()).await.unwrap();
    let receipt = erasures::get(&mut tx, world.campaign.id).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(receipt.removed["summaries"], 1);
    let left = tables_with(&world.pool, ERASED_WORD).await;
    assert!(!kept(&left), "{left:?}");
}
