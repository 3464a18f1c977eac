//! Stored facts: contradicted, edited, revoked and forgotten.

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::domain::{
    campaign_control,
    facts::{self, EndReason, Error, Fact, ForgetResult, RecordOutcome, Source, Trust},
    search::Question,
    text,
};
use uuid::Uuid;

use super::{SESSION, USER, all, config, read, read_in, state, texts};
use crate::{
    app::noon,
    conversations::world::{TurnSettings, World},
};

fn hours(hours: i64) -> DateTime<Utc> {
    noon() + TimeDelta::hours(hours)
}

fn question(words: &str) -> Question<'_> {
    Question { words, limit: 10, meaning: None }
}

fn new(recorded: RecordOutcome) -> Fact {
    match recorded {
        RecordOutcome::New(fact) => *fact,
        other => panic!("the fact is not new: {other:?}"),
    }
}

#[tokio::test]
async fn the_newer_of_two_contradicting_facts_holds_and_the_older_keeps_its_time() {
    let world = World::new().await;
    let old = new(read(&world, ("Diet", "Eats no meat."), hours(-5)).await);
    let newer = new(read(&world, ("diet", "Eats fish."), hours(-2)).await);
    assert_eq!(texts(&world.pool, USER).await, ["Eats fish."]);
    let facts = all(&world.pool, USER, true).await;
    let [first, second] = facts.as_slice() else { panic!("{facts:?}") };
    assert_eq!((first.id, first.valid_until), (newer.id, None));
    assert_eq!((second.id, second.text.as_str()), (old.id, "Eats no meat."));
    assert_eq!((second.valid_from, second.valid_until), (hours(-5), Some(hours(-2))));
    assert_eq!(
        (second.ended_because, second.replaced_by),
        (Some(EndReason::Contradicted), Some(newer.id))
    );
    assert_eq!((newer.source, newer.trust), (Source::Extracted, Trust::Agent));
    assert_eq!((newer.session_id, newer.turn), (Some(SESSION), Some(3)));
}

/// A session that is read late must not overwrite facts that were stated after it.
#[tokio::test]
async fn a_late_fact_takes_its_place_in_time() {
    let world = World::new().await;
    new(read(&world, ("City", "Lives in Bergen."), hours(-9)).await);
    new(read(&world, ("City", "Lives in Porto."), hours(-1)).await);
    let late = new(read(&world, ("City", "Lives in Graz."), hours(-4)).await);
    assert_eq!(late.valid_until, Some(hours(-1)));
    assert_eq!(texts(&world.pool, USER).await, ["Lives in Porto."]);
    let mut times: Vec<_> = all(&world.pool, USER, true)
        .await
        .into_iter()
        .map(|fact| (fact.valid_from, fact.valid_until, fact.text))
        .collect();
    times.sort();
    assert_eq!(
        times,
        [
            (hours(-9), Some(hours(-4)), "Lives in Bergen.".to_owned()),
            (hours(-4), Some(hours(-1)), "Lives in Graz.".to_owned()),
            (hours(-1), None, "Lives in Porto.".to_owned()),
        ]
    );
    // The fact was known at that time, so it is not new, although it has ended since.
    assert!(matches!(
        read(&world, ("Home", "lives in Graz"), hours(-3)).await,
        RecordOutcome::Known(id) if id == late.id
    ));
}

#[tokio::test]
async fn equal_facts_in_different_wording_are_stored_once() {
    let world = World::new().await;
    let first = new(read(&world, ("Diet", "Eats no meat."), hours(-5)).await);
    for (attribute, text) in [
        ("Diet", "Eats no meat."),
        ("diet", "eats NO meat"),
        ("Food that she likes", "«Eats», no  meat!"),
    ] {
        let again = read(&world, (attribute, text), hours(-1)).await;
        assert_eq!(again, RecordOutcome::Known(first.id), "{attribute} {text}");
    }
    let said = state(&world.pool, USER, ("Diet", "Eats no meat")).await;
    assert!(matches!(said, Err(Error::Known(id)) if id == first.id));
    // For another user it is new.
    state(&world.pool, "ben", ("Diet", "Eats no meat.")).await.unwrap();
    assert_eq!(all(&world.pool, USER, true).await.len(), 1);
}

#[tokio::test]
async fn facts_of_different_attributes_are_stored_separately_and_significant_marks_count() {
    let world = World::new().await;
    for (attribute, text) in [
        ("City", "Porto."),
        ("Birthplace", "Porto."),
        ("Language", "C"),
        ("Language", "C++"),
        ("Language", "C#"),
        ("Temperature", "-5"),
        ("Temperature", "5"),
    ] {
        new(read(&world, (attribute, text), noon()).await);
    }
    let holding = texts(&world.pool, USER).await;
    assert_eq!(holding, ["5", "C#", "Porto.", "Porto."]);
    let known = read(&world, ("birthplace", "porto"), hours(-1)).await;
    assert!(!matches!(known, RecordOutcome::New(_)), "{known:?}");
}

#[tokio::test]
async fn a_fact_shown_to_a_session_is_not_new_when_the_session_repeats_it() {
    let world = World::new().await;
    let old = new(read(&world, ("City", "Lives in Bergen."), hours(-9)).await);
    let shown = (SESSION, world.campaign.id);
    facts::record_showings(&world.pool, shown, &[old.id, Uuid::nil()], hours(-8)).await.unwrap();
    facts::record_showings(&world.pool, shown, &[old.id], hours(-7)).await.unwrap();
    let elsewhere = Uuid::from_u128(78);
    let porto = read_in(elsewhere, &world, ("City", "Lives in Porto."), hours(-5)).await;
    let porto = new(porto);
    let repeated = read(&world, ("City", "lives in bergen"), hours(-2)).await;
    assert_eq!(repeated, RecordOutcome::AlreadyShown(old.id));
    assert_eq!(texts(&world.pool, USER).await, ["Lives in Porto."]);
    // A user who was told Porto, and then states Bergen, has moved back.
    facts::record_showings(&world.pool, shown, &[porto.id], hours(-2)).await.unwrap();
    new(read(&world, ("City", "Lives in Bergen."), hours(-1)).await);
    assert_eq!(texts(&world.pool, USER).await, ["Lives in Bergen."]);
}

#[tokio::test]
async fn two_changes_of_mind_in_one_session_are_both_recorded() {
    let world = World::new().await;
    let short = new(read(&world, ("Tone", "Wants it short."), hours(-9)).await);
    let shown = (SESSION, world.campaign.id);
    facts::record_showings(&world.pool, shown, &[short.id], hours(-8)).await.unwrap();
    new(read(&world, ("Tone", "Wants it long."), hours(-5)).await);
    new(read(&world, ("Tone", "Wants it short."), hours(-1)).await);
    assert_eq!(texts(&world.pool, USER).await, ["Wants it short."]);
    assert_eq!(all(&world.pool, USER, true).await.len(), 3);
}

#[tokio::test]
async fn people_state_edit_and_revoke_facts_and_nothing_is_overwritten() {
    let world = World::new().await;
    let stated = state(&world.pool, USER, ("Tone", "Wants short sentences.")).await.unwrap();
    assert_eq!((stated.source, stated.trust), (Source::Stated, Trust::Operator));
    let mut conn = world.pool.acquire().await.unwrap();
    let (config, by) = (config(), "key:ci");
    let settings = (&config, "english");
    let text = "Wants long sentences.";
    let edited =
        facts::edit(&mut conn, (USER, stated.id), text, by, settings, hours(1)).await.unwrap();
    assert_eq!(
        (edited.source, edited.attribute.as_str(), edited.author.as_str()),
        (Source::Edited, "Tone", by)
    );
    let before = facts::get(&mut *conn, USER, stated.id).await.unwrap();
    assert_eq!(
        (before.text.as_str(), before.ended_because),
        ("Wants short sentences.", Some(EndReason::Edited))
    );
    assert_eq!((before.valid_until, before.replaced_by), (Some(hours(1)), Some(edited.id)));
    let twice = facts::edit(&mut conn, (USER, stated.id), "Else.", by, settings, hours(2)).await;
    assert!(matches!(twice, Err(Error::Ended(_))), "{twice:?}");
    let foreign = facts::revoke(&mut conn, "ben", edited.id, hours(2)).await;
    assert!(matches!(foreign, Err(Error::NoFact { .. })), "{foreign:?}");
    let revoked = facts::revoke(&mut conn, USER, edited.id, hours(2)).await.unwrap();
    assert_eq!(revoked.ended_because, Some(EndReason::Revoked));
    assert!(texts(&world.pool, USER).await.is_empty());
    assert_eq!(all(&world.pool, USER, true).await.len(), 2);
}

#[tokio::test]
async fn facts_per_user_are_limited_and_replacing_stays_possible() {
    let world = World::new().await;
    for n in 0..config().user_max {
        new(read(&world, (&format!("Thing {n}"), &format!("Likes thing {n}.")), hours(-5)).await);
    }
    assert_eq!(read(&world, ("Else", "Likes else."), hours(-4)).await, RecordOutcome::Full);
    let full = state(&world.pool, USER, ("Else", "Likes else.")).await;
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    new(read(&world, ("Thing 7", "Likes thing 7 no more."), hours(-3)).await);
}

#[tokio::test]
async fn an_expired_fact_frees_its_place_and_is_not_revoked() {
    let world = World::new().await;
    for n in 0..config().user_max {
        new(read(&world, (&format!("Thing {n}"), &format!("Likes thing {n}.")), hours(-5)).await);
    }
    let expire = "update dalsegno.facts set expires_at = $1 where attribute = 'Thing 7'";
    sqlx::query(expire).bind(hours(-1)).execute(&world.pool).await.unwrap();
    new(read(&world, ("Else", "Likes else."), hours(-4)).await);
    assert_eq!(read(&world, ("More", "Likes more."), hours(-4)).await, RecordOutcome::Full);
    sqlx::query("delete from dalsegno.facts where attribute = 'Else'")
        .execute(&world.pool)
        .await
        .unwrap();
    new(read(&world, ("Thing 7", "Likes thing 7."), hours(-1)).await);
    let facts = all(&world.pool, USER, true).await;
    let ended = facts.iter().find(|fact| fact.valid_until.is_some()).unwrap();
    assert_eq!(ended.valid_until, Some(hours(-1)));
    assert_eq!(ended.ended_because, Some(EndReason::Expired));
}

#[tokio::test]
async fn an_invalid_fact_is_refused_with_the_reason() {
    let world = World::new().await;
    let long = "a ".repeat(300);
    for (user, attribute, text) in [
        ("../etc", "Diet", "Eats."),
        ("", "Diet", "Eats."),
        ("ann'; drop table facts", "Diet", "Eats."),
        (USER, "…", "Eats."),
        (USER, "Diet", "Eats\0."),
        (USER, "Diet", "One.\nTwo."),
        (USER, "Diet", long.as_str()),
    ] {
        let refused = state(&world.pool, user, (attribute, text)).await;
        assert!(
            matches!(refused, Err(Error::User(_) | Error::Words { .. })),
            "{user:?} {attribute:?} {text:?}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_search_finds_current_facts_of_the_user_best_first() {
    let world = World::new().await;
    for fact in [
        ("Diet", "Eats no meat, because of the climate."),
        ("City", "Lives in Bergen."),
        ("Weather", "The climate in Bergen is wet, and Bergen is dear to her."),
    ] {
        state(&world.pool, USER, fact).await.unwrap();
    }
    state(&world.pool, "ben", ("City", "Lives in Bergen too.")).await.unwrap();
    let mut conn = world.pool.acquire().await.unwrap();
    let mut find = async |words: &str| {
        let hits =
            facts::search(&mut conn, USER, question(words), "english", noon()).await.unwrap();
        hits.into_iter().map(|hit| hit.fact.attribute).collect::<Vec<_>>()
    };
    assert_eq!(find("climates Bergen").await, ["Weather"]);
    // No fact has all of these words.
    let some = find("lives on which meats?").await;
    assert!(some.contains(&"City".to_owned()) && some.contains(&"Diet".to_owned()), "{some:?}");
    assert_eq!(find("bergen -climate").await, ["City"]);
    assert!(find("submarine").await.is_empty());
    for odd in ["'; drop --", "\\ x", ":* & | !", "\"unclosed bergen"] {
        facts::search(&mut conn, USER, question(odd), "english", noon()).await.ok();
    }
    let nothing = facts::search(&mut conn, USER, question("…"), "english", noon()).await;
    assert!(matches!(nothing, Err(Error::Text(text::Error::NoWords))), "{nothing:?}");
    let all_else = facts::search(&mut conn, USER, question("-submarine"), "english", noon()).await;
    assert!(matches!(all_else, Err(Error::Text(text::Error::NoWords))), "{all_else:?}");
}

#[tokio::test]
async fn concurrent_writers_leave_one_fact_per_attribute() {
    let world = World::new().await;
    let both = (0..20).map(|n| {
        let (pool, text) = (world.pool.clone(), format!("Lives in town {}.", n % 10));
        async move {
            match state(&pool, USER, ("City", &text)).await {
                Ok(_) | Err(Error::Known(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    futures_util::future::join_all(both).await;
    assert_eq!(texts(&world.pool, USER).await.len(), 1);
    let contradicted = all(&world.pool, USER, true).await;
    assert!(contradicted.len() >= 10, "{contradicted:?}");
}

#[tokio::test]
async fn the_user_of_a_campaign_is_set_changed_and_removed() {
    let world = World::new().await;
    let mut conn = world.pool.acquire().await.unwrap();
    let id = world.campaign.id;
    assert_eq!(facts::user_of(&mut *conn, id).await.unwrap(), None);
    facts::set_user(&mut conn, id, USER, hours(0)).await.unwrap();
    facts::set_user(&mut conn, id, USER, hours(1)).await.unwrap();
    assert_eq!(facts::user_of(&mut *conn, id).await.unwrap().unwrap().since, hours(0));
    facts::set_user(&mut conn, id, "ben", hours(2)).await.unwrap();
    let user = facts::user_of(&mut *conn, id).await.unwrap().unwrap();
    assert_eq!((user.user.as_str(), user.since), ("ben", hours(2)));
    assert!(facts::unset_user(&mut conn, id).await.unwrap());
    assert!(!facts::unset_user(&mut conn, id).await.unwrap());
    assert!(matches!(facts::set_user(&mut conn, id, "a b", hours(3)).await, Err(Error::User(_))));
}

#[tokio::test]
async fn forgetting_a_user_removes_all_facts_at_once() {
    let world = World::new().await;
    let mut conn = world.pool.acquire().await.unwrap();
    facts::set_user(&mut conn, world.campaign.id, USER, hours(-9)).await.unwrap();
    let shown = new(read(&world, ("City", "Lives in Bergen."), hours(-8)).await);
    new(read(&world, ("City", "Lives in Porto."), hours(-7)).await);
    state(&world.pool, "ben", ("City", "Lives in Porto.")).await.unwrap();
    facts::record_showings(&mut *conn, (SESSION, world.campaign.id), &[shown.id], noon())
        .await
        .unwrap();
    let told = Uuid::from_u128(78);
    facts::record_showings(&mut *conn, (told, world.campaign.id), &[shown.id], noon())
        .await
        .unwrap();
    let forgotten = facts::forget(&mut conn, USER, hours(0)).await.unwrap();
    // Texts of sessions stay; the result names the sessions, so that the caller can tell.
    assert_eq!(forgotten, ForgetResult { facts: 2, sessions: vec![told, SESSION] });
    assert!(all(&world.pool, USER, true).await.is_empty());
    assert_eq!(all(&world.pool, "ben", true).await.len(), 1);
    let n_shown: i64 = sqlx::query_scalar("select count(*) from dalsegno.fact_showings")
        .fetch_one(&mut *conn)
        .await
        .unwrap();
    assert_eq!(n_shown, 0);
    // Earlier prompts are not read again.
    let user = facts::user_of(&mut *conn, world.campaign.id).await.unwrap().unwrap();
    assert_eq!(user.since, hours(0));
}

#[tokio::test]
async fn ended_facts_are_removed_after_their_retention_and_no_others() {
    let world = World::new().await;
    new(read(&world, ("City", "Lives in Bergen."), hours(-8)).await);
    new(read(&world, ("City", "Lives in Porto."), hours(-7)).await);
    let mut tx = world.pool.begin().await.unwrap();
    let (early, late) = (hours(-8), hours(-6));
    assert_eq!(facts::count_ended(&mut *tx, early).await.unwrap(), 0);
    assert_eq!(facts::count_ended(&mut *tx, late).await.unwrap(), 1);
    assert_eq!(facts::remove_ended(&mut tx, late, 10).await.unwrap(), (1, 0));
    tx.commit().await.unwrap();
    let left = all(&world.pool, USER, true).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].text, "Lives in Porto.");
}

/// More records than one batch removes, in a database without ended facts.
#[tokio::test]
async fn old_records_of_shown_facts_are_removed_in_repeated_batches() {
    let world = World::new().await;
    let fact = new(read(&world, ("City", "Lives in Bergen."), hours(-8)).await);
    for n in 0..3 {
        let session = (Uuid::from_u128(100 + n), world.campaign.id);
        facts::record_showings(&world.pool, session, &[fact.id], hours(-7)).await.unwrap();
    }
    let mut tx = world.pool.begin().await.unwrap();
    let mut removed = Vec::new();
    for _ in 0..3 {
        removed.push(facts::remove_ended(&mut tx, hours(-6), 2).await.unwrap());
    }
    assert_eq!(removed, [(0, 2), (0, 1), (0, 0)]);
}

#[tokio::test]
async fn the_last_extraction_of_a_session_stays_as_long_as_the_session() {
    let world = World::new().await;
    let open = world.turn("Part one.", TurnSettings::default()).await.session.id;
    let gone = Uuid::from_u128(100);
    for (session_id, to_seq, outcome) in
        [(open, 4_i64, "done"), (open, 9, "refused"), (gone, 4, "done"), (gone, 9, "refused")]
    {
        sqlx::query(
            "insert into dalsegno.fact_extractions
                    (session_id, to_seq, from_seq, campaign_id, ended_at, n_requests, n_found, n_new, outcome, agent, reason)
             values ($1, $2, 0, $3, $4, 1, 1, 1, $5, 'writer', case $5 when 'refused' then 'no JSON' end)",
        )
        .bind(session_id)
        .bind(to_seq)
        .bind(world.campaign.id)
        .bind(hours(-8))
        .bind(outcome)
        .execute(&world.pool)
        .await
        .unwrap();
    }
    let mut tx = world.pool.begin().await.unwrap();
    assert_eq!(facts::remove_ended(&mut tx, hours(-6), 10).await.unwrap(), (0, 2));
    assert_eq!(facts::read_up_to(&mut *tx, open).await.unwrap(), 4);
    assert_eq!(facts::read_up_to(&mut *tx, gone).await.unwrap(), 0);
}

/// The erasure of a campaign passes over all tables once.
#[tokio::test]
async fn facts_of_a_campaign_are_editable_only_while_it_is_open() {
    let world = World::new().await;
    let fact = new(read(&world, ("City", "Lives in Bergen."), hours(-8)).await);
    let stated = state(&world.pool, USER, ("Diet", "Eats no meat.")).await.unwrap();
    let mut conn = world.pool.acquire().await.unwrap();
    campaign_control::close(&mut conn, world.campaign.id, noon()).await.unwrap();
    let settings = (&config(), "english");
    let mut edit = async |id: Uuid, text: &str| {
        facts::edit(&mut conn, (USER, id), text, "cli:ann@host", settings, noon()).await
    };
    let refused = edit(fact.id, "Lives in Porto.").await.unwrap_err();
    assert!(matches!(refused, Error::SaidInClosed(_)), "{refused}");
    edit(stated.id, "Eats fish.").await.unwrap();
}

#[tokio::test]
async fn extracted_and_shown_facts_of_a_campaign_are_removed_in_batches() {
    let world = World::new().await;
    let fact = new(read(&world, ("City", "Lives in Bergen."), hours(-8)).await);
    for n in 0..5 {
        let session = (Uuid::from_u128(100 + n), world.campaign.id);
        facts::record_showings(&world.pool, session, &[fact.id], hours(-7)).await.unwrap();
    }
    let mut tx = world.pool.begin().await.unwrap();
    let mut removed = Vec::new();
    for _ in 0..4 {
        removed.push(facts::remove_some_records(&mut tx, world.campaign.id, 2).await.unwrap());
    }
    assert_eq!(removed, [2, 2, 1, 0]);
}
