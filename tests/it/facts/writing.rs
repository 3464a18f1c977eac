//! Facts that agents write with their tool.

use chrono::TimeDelta;
use dalsegno::domain::facts::{
    self, EndReason, Error, RecordOutcome, Source, Trust, WritingTurn, WrittenFact,
};
use uuid::Uuid;

use super::{SESSION, USER, all, config, read_in, state, texts};
use crate::{app::noon, conversations::world::World};

/// A campaign that works for the user.
async fn world() -> World {
    let world = World::new().await;
    let mut tx = world.pool.begin().await.unwrap();
    facts::set_user(&mut tx, world.campaign.id, USER, noon()).await.unwrap();
    tx.commit().await.unwrap();
    world
}

async fn write(world: &World, turn: i32, fact: (&str, &str)) -> Result<WrittenFact, Error> {
    let by = WritingTurn {
        campaign_id: world.campaign.id,
        session_id: SESSION,
        turn,
        task_id: Uuid::from_u128(7),
        agent: "copywriter/2",
    };
    let limits = facts::Config { user_max: 3, answer_max: 2, ..config() };
    let mut tx = world.pool.begin().await.unwrap();
    let written = facts::write(&mut tx, &by, fact, (&limits, "english"), noon()).await?;
    tx.commit().await.unwrap();
    Ok(written)
}

#[tokio::test]
async fn a_written_fact_names_its_agent_and_ends_the_fact_that_it_contradicts() {
    let world = world().await;
    let stated = state(&world.pool, USER, ("Diet", "Eats everything.")).await.unwrap();
    let written = write(&world, 1, ("diet", "Eats no meat.")).await.unwrap();
    assert!(written.is_new);
    let again = write(&world, 2, ("Diet", "eats NO meat")).await.unwrap();
    assert!(!again.is_new && again.fact.id == written.fact.id, "{again:?}");
    let [fact, before] = &all(&world.pool, USER, true).await[..] else { panic!("two facts") };
    assert_eq!((fact.source, fact.trust), (Source::Written, Trust::Agent));
    assert_eq!((fact.author.as_str(), fact.turn), ("copywriter/2", Some(1)));
    assert_eq!((fact.campaign_id, fact.session_id), (Some(world.campaign.id), Some(SESSION)));
    assert_eq!((before.id, before.replaced_by), (stated.id, Some(fact.id)));
    assert_eq!(before.ended_because, Some(EndReason::Contradicted));
    // Older versions of the service read the row as an extracted fact.
    let stored = "select source from dalsegno.facts where is_written";
    let stored: String = sqlx::query_scalar(stored).fetch_one(&world.pool).await.unwrap();
    assert_eq!(stored, "extracted");
}

#[tokio::test]
async fn a_written_fact_is_not_extracted_from_its_session_again() {
    let world = world().await;
    let fact = write(&world, 1, ("Diet", "Eats no meat.")).await.unwrap().fact;
    let later = noon() + TimeDelta::hours(1);
    let read = read_in(SESSION, &world, ("Diet", "Eats no meat"), later).await;
    assert_eq!(read, RecordOutcome::Known(fact.id));
    let mut tx = world.pool.begin().await.unwrap();
    facts::revoke(&mut tx, USER, fact.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let read = read_in(SESSION, &world, ("Diet", "Eats no meat"), later).await;
    assert_eq!(read, RecordOutcome::AlreadyShown(fact.id), "the session has written it");
    let other = Uuid::from_u128(78);
    let read = read_in(other, &world, ("Diet", "Eats no meat"), later).await;
    assert!(matches!(read, RecordOutcome::New(_)), "{read:?}");
}

#[tokio::test]
async fn written_facts_are_limited_per_turn_and_per_user() {
    let world = world().await;
    for (turn, attribute) in [(1, "Diet"), (1, "City"), (2, "Tone")] {
        write(&world, turn, (attribute, &format!("Has a {attribute}."))).await.unwrap();
    }
    let third = write(&world, 1, ("Job", "Builds boats.")).await;
    assert!(matches!(third, Err(Error::TurnFull { limit: 2 })), "{third:?}");
    let fourth = write(&world, 2, ("Job", "Builds boats.")).await;
    assert!(matches!(fourth, Err(Error::Full { limit: 3, .. })), "{fourth:?}");
    assert_eq!(texts(&world.pool, USER).await.len(), 3);
}

#[tokio::test]
async fn a_campaign_without_a_user_has_no_written_facts() {
    let world = World::new().await;
    let written = write(&world, 1, ("Diet", "Eats no meat.")).await;
    assert!(matches!(written, Err(Error::NoUser)), "{written:?}");
}
