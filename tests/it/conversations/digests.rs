//! The digest that an idempotency key compares: equal in Rust, in SQL and in rows of older versions.

use dalsegno::domain::{
    agents::SessionMode as Mode,
    amount::Limit,
    tasks::{self, Links, New, TaskLink},
};
use serde::Deserialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::World;

/// Examples of `tests/data/task_digests.json`, which was made without this code.
#[derive(Deserialize)]
struct Examples {
    campaign: Uuid,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    agent: String,
    instance: String,
    prompt: String,
    session: Mode,
    budget_micros: Option<i64>,
    budget_tokens: Option<i64>,
    digest: String,
}

fn examples() -> Examples {
    serde_json::from_str(include_str!("../../data/task_digests.json")).unwrap()
}

/// Sets up the campaign of the examples.
async fn world(campaign: Uuid) -> World {
    let mut world = World::new().await;
    sqlx::query("insert into dalsegno.campaigns (id, name) values ($1, 'Examples')")
        .bind(campaign)
        .execute(&world.pool)
        .await
        .unwrap();
    world.campaign.id = campaign;
    world
}

fn new<'a>(world: &'a World, question: &'a Question, key: Option<&'a str>) -> New<'a> {
    New {
        agent: world.catalogue.agent(&question.agent).unwrap(),
        instance: &question.instance,
        session_mode: Some(question.session),
        budget: Limit { micros: question.budget_micros, tokens: question.budget_tokens },
        idempotency_key: key,
        ..world.ask(&question.prompt)
    }
}

async fn stored(world: &World, job_id: i64) -> String {
    sqlx::query_scalar("select payload ->> 'asked' from dalsegno.job_payloads where job_id = $1")
        .bind(job_id)
        .fetch_one(&world.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_task_has_the_same_documented_digest_in_rust_and_sql() {
    let examples = examples();
    let world = world(examples.campaign).await;
    let in_sql = "select dalsegno.digest_of_task($1, $2, $3, $4, $5, $6, $7)";
    for question in &examples.questions {
        let added = world.add_new(&new(&world, question, None)).await.unwrap();
        assert_eq!(stored(&world, added.task.job_id).await, question.digest, "{}", question.prompt);
        let asked: String = sqlx::query_scalar(in_sql)
            .bind(examples.campaign)
            .bind(&question.agent)
            .bind(&question.instance)
            .bind(&question.prompt)
            .bind(question.session.as_str())
            .bind(question.budget_micros)
            .bind(question.budget_tokens)
            .fetch_one(&world.pool)
            .await
            .unwrap();
        assert_eq!(asked, question.digest, "{}", question.prompt);
    }
}

/// Stores a task like an older version, with the digest that the older version computes.
async fn store_as_before(
    conn: &mut PgConnection,
    campaign: Uuid,
    question: &Question,
    key: &str,
) -> Uuid {
    let sql = "select task_id from dalsegno.store_task(id => gen_random_uuid(), at => now(), campaign_id => $1, agent => $2, instance => $3,
                      prompt => $4, session_mode => $5, budget_micros => $6, budget_tokens => $7, idempotency_key => $8, priority => 100,
                      run_at => null, asked => $9, kind => 'run_turn', queue => 'turns', max_attempts => 5)";
    sqlx::query_scalar(sql)
        .bind(campaign)
        .bind(&question.agent)
        .bind(&question.instance)
        .bind(&question.prompt)
        .bind(question.session.as_str())
        .bind(question.budget_micros)
        .bind(question.budget_tokens)
        .bind(key)
        .bind(&question.digest)
        .fetch_one(conn)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_key_stored_by_an_older_version_finds_its_task_and_refuses_another_input() {
    let examples = examples();
    let world = world(examples.campaign).await;
    let mut conn = world.pool.acquire().await.unwrap();
    for (n, question) in examples.questions.iter().enumerate() {
        let key = format!("order-{n}");
        let before = store_as_before(&mut conn, examples.campaign, question, &key).await;
        let found = world.add_new(&new(&world, question, Some(&key))).await.unwrap();
        assert_eq!((found.task.id, found.created), (before, false), "{}", question.prompt);
        // And in the other direction, while both versions run.
        let key = format!("later-{n}");
        let added = world.add_new(&new(&world, question, Some(&key))).await.unwrap().task.id;
        assert_eq!(store_as_before(&mut conn, examples.campaign, question, &key).await, added);
        // The digests of two examples differ.
        let other = &examples.questions[(n + 1) % examples.questions.len()];
        let refused = world.add_new(&new(&world, other, Some(&key))).await;
        assert!(matches!(refused, Err(tasks::Error::KeyTaken(_))), "{} {refused:?}", other.prompt);
    }
}

#[tokio::test]
async fn task_links_enter_the_digest_the_same_way_in_sql() {
    let world = World::new().await;
    let first = world.add("Part one.").await.id;
    let after = [TaskLink::Task(first)];
    let links = [
        Links { depends_on: &after, ..Links::default() },
        Links { depends_on: &after, parent_id: Some(first), ..Links::default() },
        Links { depends_on: &after, on_failure: tasks::OnFailure::Cancel, ..Links::default() },
        Links { parent_id: Some(first), ..Links::default() },
    ];
    for (n, links) in links.into_iter().enumerate() {
        let key = format!("order-{n}");
        let ask = New { idempotency_key: Some(&key), links, ..world.ask("Ä \"join\".") };
        let added = world.add_new(&ask).await.unwrap().task.id;
        let depends_on: Vec<Uuid> = links.depends_on.iter().map(|_| first).collect();
        let sql = "select task_id, created from dalsegno.add_task($1, 'copywriter', 'Ä \"join\".', depends_on => $2, on_failure => $3,
                          parent_id => $4, idempotency_key => $5)";
        let found: (Uuid, bool) = sqlx::query_as(sql)
            .bind(world.campaign.id)
            .bind(depends_on)
            .bind(links.on_failure.as_str())
            .bind(links.parent_id)
            .bind(&key)
            .fetch_one(&world.pool)
            .await
            .unwrap();
        assert_eq!(found, (added, false), "{n}");
    }
}
