//! Invalid input: each mistake has its own message, and nothing is stored.

use dalsegno::domain::{Amount, amount::Limit, campaign_control, campaigns, tasks::New};
use uuid::Uuid;

use super::{TurnSettings, World};
use crate::app::noon;

async fn refused(world: &World, new: &New<'_>) -> String {
    world.add_new(new).await.unwrap_err().to_string()
}

#[tokio::test]
async fn each_error_in_a_task_is_named() {
    let world = World::new().await;
    let ask = world.ask("Part one.");
    let long = "x".repeat(1001);
    let table: [(New<'_>, &str); 8] = [
        (New { campaign_id: Uuid::nil(), ..ask }, "there is no campaign 00000000"),
        (New { prompt: " \n\t", ..ask }, "the prompt is empty"),
        (New { prompt: &long, ..ask }, "the prompt has 1001 bytes, at most 1000 are allowed"),
        (New { prompt: "a\0b", ..ask }, "NUL character at byte 1"),
        (New { instance: "Main one", ..ask }, "invalid instance `Main one`"),
        (
            New { budget: Limit { tokens: Some(0), micros: None }, ..ask },
            "the budget 0 must be more than 0",
        ),
        (New { priority: Some(-1), ..ask }, "priority"),
        (New { idempotency_key: Some(&long), ..ask }, "key"),
    ];
    for (new, words) in &table {
        let said = refused(&world, new).await;
        assert!(said.contains(words), "{said}");
    }
    assert!(world.tasks().await.is_empty());
}

#[tokio::test]
async fn an_unknown_agent_is_distinguished_from_a_typo() {
    let world = World::new().await;
    let slip = world.catalogue.agent("copywritter").unwrap_err().to_string();
    assert_eq!(slip, "there is no agent `copywritter`: did you mean `copywriter`?");
    let unknown = world.catalogue.agent("zzz").unwrap_err().to_string();
    assert!(unknown.contains("copywriter, planner, reviewer"), "{unknown}");
}

#[tokio::test]
async fn a_closed_or_spent_campaign_refuses_tasks() {
    let limit = Limit { micros: Some(1_000_000), tokens: None };
    let world = World::with_limit(limit).await;
    let keyed = New { idempotency_key: Some("order-1"), ..world.ask("Part one.") };
    let first = world.add_new(&keyed).await.unwrap();
    let spent = Amount { micros: 1_000_000, tokens: 5 };
    world.spend_all(spent).await;
    let said = refused(&world, &world.ask("Part one.")).await;
    assert!(said.contains("1.00 of 1.00 are spent"), "{said}");
    assert!(said.contains("dalsegno campaign budget"), "{said}");

    let mut tx = world.pool.begin().await.unwrap();
    campaign_control::close(&mut tx, world.campaign.id, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let said = refused(&world, &world.ask("Part one.")).await;
    assert!(said.contains("is closed: create a new one"), "{said}");
    // A repeated call gets the existing task.
    let again = world.add_new(&keyed).await.unwrap();
    assert_eq!((again.created, again.task.id), (false, first.task.id));
    let mut tx = world.pool.begin().await.unwrap();
    assert!(matches!(
        campaign_control::resume(&mut tx, world.campaign.id).await,
        Err(campaigns::Error::Closed(_))
    ));
}

#[tokio::test]
async fn a_tasks_own_budget_stops_its_turn() {
    let world = World::new().await;
    let budget = Limit { micros: None, tokens: Some(100) };
    let ask = New { budget, ..world.ask("Part one.") };
    let task = world.add_new(&ask).await.unwrap().task;
    let needed = Amount { micros: 0, tokens: 101 };
    let error =
        world.try_begin(&task, world.lease(), TurnSettings::default(), needed).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("the budget of the task"), "{said}");
    assert!(said.contains("may use up to 101 tokens; the whole limit"), "{said}");
}

/// Other systems write with SQL; their mistakes have messages, too.
#[tokio::test]
async fn the_database_refuses_values_that_the_types_allow() {
    let world = World::new().await;
    let insert = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt) values (gen_random_uuid(), $1, 1, 'Bad Name', 'x')";
    let error = sqlx::query(insert).bind(world.campaign.id).execute(&world.pool).await.unwrap_err();
    let mistake = dalsegno::db::user_mistake(&error).unwrap();
    assert_eq!(mistake.constraint, "tasks_agent_form");
    // Tasks refer to the campaign without a foreign key.
    let remove = "delete from dalsegno.campaigns where id = $1";
    let error = sqlx::query(remove).bind(world.campaign.id).execute(&world.pool).await.unwrap_err();
    assert!(error.to_string().contains("stays"), "{error}");
}
