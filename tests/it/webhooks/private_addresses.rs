//! The service sends no webhook into a private network on behalf of others.

use dalsegno::domain::webhooks::{self, New, State};

use super::{WebhookSetup, deliveries, receiver::Receiver};
use crate::turns::fixture::Fixture;

/// For every way into the table, and for every configuration at that time.
#[tokio::test]
async fn names_and_addresses_of_this_machine_are_not_connected_to() {
    let fixture = Fixture::new(&[("scheduler.enabled", "false")]).await;
    let receiver = Receiver::start().await;
    let port = receiver.address.port();
    let urls = [
        format!("https://localhost:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        receiver.url(),
    ];
    let mut conn = fixture.pool.acquire().await.unwrap();
    let config = fixture.config().webhooks;
    for (index, url) in urls.iter().enumerate() {
        let sql = "with w as (insert into dalsegno.webhooks (id, url, kinds) values (dalsegno.time_ordered_uuid(), $1, '{task.cancelled}') returning id)
                   insert into dalsegno.webhook_secrets (webhook_id, secret) select id, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' from w";
        sqlx::query(sql).bind(url).execute(&mut *conn).await.unwrap();
        // The first one by its name, which any caller may add.
        let new = New { url, ..New::default() };
        let added = webhooks::add(&mut conn, &config, &new, chrono::Utc::now()).await;
        assert_eq!(added.is_ok(), index == 0, "{url}");
    }
    let task = fixture.add("Write.").await;
    fixture.cancel(&task).await;
    let upkeep = fixture.upkeep().await;
    let made = crate::app::eventually("all deliveries were attempted", async || {
        let made = deliveries(&fixture, Some(&task)).await;
        (made.len() == 4 && made.iter().all(|one| one.attempts > 0)).then_some(made)
    })
    .await;
    for one in made {
        assert_eq!((one.state, one.last_status), (State::Waiting, None));
        let words = one.last_error.unwrap();
        assert!(words.contains("webhooks.allow_private"), "{words}");
    }
    assert_eq!(receiver.received().len(), 0);
    upkeep.stop().await;
}

/// The secret is in no log, output or response, and only in the table that needs it.
#[tokio::test]
async fn a_secret_is_shown_once_and_appears_nowhere_else() {
    let setup = WebhookSetup::new().await;
    let worker = setup.fixture.upkeep_process(&[("log.filter", "trace")]);
    let (_, delivery) = setup.end_a_task().await;
    setup.delivered(delivery.id).await;
    setup.receiver.answer(super::receiver::Answer::Status(500));
    let (_, failing) = setup.end_a_task().await;
    setup.until(failing.id, "it was tried", |found| found.attempts == 1).await;
    worker.signal(rustix::process::Signal::TERM);
    let key = setup.secret.trim_start_matches("whsec_");
    let log = worker.log();
    assert!(log.contains("cannot deliver a webhook"), "{log}");
    assert!(!log.contains(key), "the log contains the refusal");
    let tables = "select array_agg(c.relname::text) from pg_class as c
                   where c.relnamespace = 'dalsegno'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition";
    let tables: Vec<String> =
        sqlx::query_scalar(tables).fetch_one(&setup.fixture.pool).await.unwrap();
    for table in tables {
        let sql =
            format!("select exists (select from dalsegno.{table} as t where t::text like $1)");
        let found: bool = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(format!("%{key}%"))
            .fetch_one(&setup.fixture.pool)
            .await
            .unwrap();
        assert_eq!(found, table == "webhook_secrets", "{table}");
    }
}
