//! Tasks that a schedule enqueues repeatedly.

use chrono::TimeDelta;
use dalsegno::domain::{
    campaign_control,
    schedules::{self, Error, RecurringTime, Schedule, fire_due},
    tasks::{self, AddTask},
};

use crate::{
    app::{eventually, noon},
    cleanup::job::Worker,
    conversations::world::{World, limits},
};

const HOURLY: RecurringTime<'static> =
    RecurringTime { cron: "0 0 * * * *", time_zone: "UTC", catch_up_secs: 86_400 };

fn task(world: &World) -> AddTask {
    AddTask {
        campaign_id: world.campaign.id,
        agent: "copywriter".to_owned(),
        instance: "main".to_owned(),
        prompt: "What is new?".to_owned(),
        session: None,
    }
}

async fn put(
    world: &World,
    name: &str,
    when: RecurringTime<'_>,
    task: &AddTask,
) -> Result<Schedule, Error> {
    let mut tx = world.pool.begin().await.unwrap();
    let agent = world.agent();
    let put = schedules::put_task(&mut tx, &limits(), name, when, (task, agent), noon()).await?;
    tx.commit().await.unwrap();
    Ok(put)
}

async fn prompts(world: &World) -> Vec<String> {
    world.tasks().await.into_iter().map(|task| task.prompt).collect()
}

#[tokio::test]
async fn a_task_is_added_once_at_each_moment() {
    let world = World::new().await;
    let written = put(&world, "news", HOURLY, &task(&world)).await.unwrap();
    assert_eq!(written.next_slot, Some(noon() + TimeDelta::hours(1)));
    assert_eq!(prompts(&world).await, Vec::<String>::new());
    let worker = Worker::start(&world.pool, 0);
    for hours in 1..=3 {
        let now = noon() + TimeDelta::hours(hours);
        let (one, other) = tokio::join!(fire_due(&world.pool, now), fire_due(&world.pool, now));
        assert_eq!(one.unwrap().len() + other.unwrap().len(), 1);
    }
    eventually("the tasks exist", async || {
        (prompts(&world).await == ["What is new?"; 3]).then_some(())
    })
    .await;
    worker.stop().await;
    let mut conn = world.pool.acquire().await.unwrap();
    schedules::remove(&mut conn, "news", noon()).await.unwrap();
    assert_eq!(fire_due(&world.pool, noon() + TimeDelta::days(1)).await.unwrap(), []);
    assert_eq!(prompts(&world).await.len(), 3);
}

#[tokio::test]
async fn an_invalid_recurring_task_is_refused_when_it_is_added() {
    let world = World::new().await;
    let fine = task(&world);
    let long = AddTask { prompt: "x".repeat(2_000), ..fine.clone() };
    let refused = put(&world, "news", HOURLY, &long).await;
    assert!(matches!(refused, Err(Error::Task(tasks::Error::Text(_)))), "{refused:?}");
    let never = RecurringTime { cron: "0 0 * * *", ..HOURLY };
    assert!(matches!(put(&world, "news", never, &fine).await, Err(Error::Invalid { .. })));
    let built_in = put(&world, schedules::NIGHTLY_CLEANUP, HOURLY, &fine).await;
    assert!(matches!(built_in, Err(Error::BuiltIn(_))), "{built_in:?}");
    let mut conn = world.pool.acquire().await.unwrap();
    campaign_control::close(&mut conn, world.campaign.id, noon()).await.unwrap();
    let closed = put(&world, "news", HOURLY, &fine).await;
    assert!(matches!(closed, Err(Error::Task(tasks::Error::Campaign(_)))), "{closed:?}");
    assert_eq!(schedules::list(&world.pool, noon()).await.unwrap().len(), 0);
}
