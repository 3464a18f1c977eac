//! Retries of the Rust client: what is repeated, when, and that the service runs it once.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use dalsegno_client::{Client, Error, NewTask, RetryPolicy, State};
use uuid::Uuid;

use super::{
    ExternalSystem,
    faults::{Fault, Proxy},
};

const ADD: &str = "/tasks";
const BUSY: &str = r#"{"status":503,"code":"database_busy","detail":"the conversation is locked","retryable":true}"#;
const REFUSED_EVENT: &str = "event: error\ndata: {\"status\":503,\"code\":\"database_busy\",\"detail\":\"locked\",\"retryable\":true}\n\n";
const EVENTS: &str = "Content-Type: text/event-stream\r\n";
const PLAIN: &str = "Content-Type: text/plain\r\n";

/// The waits of a client, which it does not wait for.
#[derive(Clone, Default)]
struct Waits(Arc<Mutex<Vec<Duration>>>);

impl Waits {
    fn of(&self, client: Client) -> Client {
        let waits = self.0.clone();
        client.with_sleep(move |wait| {
            waits.lock().unwrap().push(wait);
            std::future::ready(())
        })
    }

    fn all(&self) -> Vec<Duration> {
        self.0.lock().unwrap().clone()
    }
}

impl ExternalSystem {
    /// Starts a proxy with these faults, and a client of it.
    async fn faulty(
        &self,
        path: &'static str,
        faults: impl IntoIterator<Item = Fault>,
    ) -> (Proxy, Client, Waits) {
        let proxy = Proxy::before(self.service.address, path, faults).await;
        let waits = Waits::default();
        let client = waits.of(Client::new(&proxy.url()).unwrap());
        (proxy, client, waits)
    }

    async fn n_tasks(&self) -> i64 {
        sqlx::query_scalar("select count(*) from dalsegno.tasks")
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[tokio::test]
async fn a_lost_answer_is_fetched_without_a_second_task() {
    let external = ExternalSystem::new().await;
    let faults = [Fault::LosesAnswer, Fault::IsLost, Fault::Passes, Fault::LosesAnswer];
    let (proxy, client, waits) = external.faulty(ADD, faults).await;
    let new = NewTask::of("copywriter", "Once.");
    let task = client.add_task(external.campaign_id, &new).await.unwrap();
    assert_eq!((proxy.n_requests(), external.n_tasks().await), (3, 1));
    let keys = proxy.headers("Idempotency-Key");
    assert!(keys[0].is_some() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    let given = NewTask { idempotency_key: Some("order-1"), ..new };
    let other = client.add_task(external.campaign_id, &given).await.unwrap();
    assert_ne!(other.id, task.id, "each call has a key of its own");
    assert_eq!((proxy.n_requests(), external.n_tasks().await), (5, 2));
    assert_eq!(
        proxy.headers("Idempotency-Key")[3..],
        [Some("order-1".to_owned()), Some("order-1".to_owned())]
    );
    assert_eq!(waits.all().len(), 3);
}

#[tokio::test]
async fn the_wait_is_the_one_that_the_service_asks_for() {
    let external = ExternalSystem::new().await;
    let faults =
        [Fault::IsRefused(503, "Retry-After: 7\r\n", BUSY), Fault::IsRefused(503, "", BUSY)];
    let (proxy, client, waits) = external.faulty(ADD, faults).await;
    let new = NewTask::of("copywriter", "Write.");
    client.add_task(external.campaign_id, &new).await.unwrap();
    let waits = waits.all();
    assert_eq!((proxy.n_requests(), waits[0]), (3, secs(7)));
    assert!(waits[1] >= secs(1) / 2 && waits[1] <= secs(1), "{waits:?}");
}

#[tokio::test]
async fn a_refusal_that_is_not_retryable_or_asks_for_a_long_wait_is_returned_at_once() {
    let external = ExternalSystem::new().await;
    let internal = r#"{"status":500,"code":"internal","detail":"a bug","retryable":false}"#;
    let faults = [
        Fault::IsRefused(500, "", internal),
        Fault::IsRefused(429, "Retry-After: 3600\r\n", BUSY),
        Fault::IsRefused(500, PLAIN, "oops"),
    ];
    let (proxy, client, waits) = external.faulty(ADD, faults).await;
    let new = NewTask::of("copywriter", "Write.");
    for (expected, asked) in [(500, None), (429, Some(secs(3600))), (500, None)] {
        let refused = client.add_task(external.campaign_id, &new).await.unwrap_err();
        let Error::Refused { status, retry_after, .. } = refused else { panic!("{refused:?}") };
        assert_eq!((status, retry_after), (expected, asked));
    }
    assert_eq!((proxy.n_requests(), waits.all().len(), external.n_tasks().await), (3, 0, 0));
}

#[tokio::test]
async fn retries_end() {
    let external = ExternalSystem::new().await;
    let faults = vec![Fault::IsRefused(502, PLAIN, "busy"); 5];
    let (proxy, client, waits) = external.faulty(ADD, faults).await;
    let new = NewTask::of("copywriter", "Write.");
    let refused = client.add_task(external.campaign_id, &new).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { status: 502, retryable: true, .. }), "{refused:?}");
    assert_eq!((proxy.n_requests(), waits.all().len()), (5, 4));

    let waits = Waits::default();
    let policy = RetryPolicy { max_retries: 2, ..RetryPolicy::default() };
    let closed = waits.of(Client::new("http://127.0.0.1:1").unwrap().with_retries(policy));
    let failed = closed.task(Uuid::nil()).await.unwrap_err();
    assert!(matches!(failed, Error::Http { .. }), "{failed:?}");
    assert_eq!(waits.all().len(), 2);
}

#[tokio::test]
async fn a_rate_limit_of_the_service_names_the_wait() {
    let limit = [("DALSEGNO_HTTP__REQUESTS_PER_MINUTE", "60")];
    let external = ExternalSystem::with(&limit).await;
    let waits = Waits::default();
    let client = waits.of(Client::new(&external.url()).unwrap());
    for _ in 0..80 {
        let _ = client.task(Uuid::nil()).await;
        if !waits.all().is_empty() {
            break;
        }
    }
    assert!(waits.all()[0] >= secs(1), "{:?}", waits.all());
}

#[tokio::test]
async fn a_stream_that_is_refused_again_and_again_ends_with_the_refusal() {
    let external = ExternalSystem::new().await;
    let faults = vec![Fault::IsRefused(200, EVENTS, REFUSED_EVENT); 9];
    let (proxy, client, waits) = external.faulty("/events", faults).await;
    let mut stream = client.events(Uuid::nil(), None).await.unwrap();
    let refused = stream.next().await.unwrap_err();
    assert!(matches!(refused, Error::Refused { status: 503, .. }), "{refused:?}");
    assert_eq!((proxy.n_requests(), waits.all().len()), (5, 4));
}

#[tokio::test]
async fn a_broken_stream_continues_after_its_last_event() {
    let external = ExternalSystem::new().await;
    let faults = [
        Fault::CutsAfter(1),
        Fault::CutsAfter(2),
        Fault::IsRefused(502, PLAIN, "busy"),
        Fault::IsLost,
    ];
    let (proxy, client, _) = external.faulty("/events", faults).await;
    let new = NewTask::of("copywriter", "Write about the harbour.");
    let task = client.add_task(external.campaign_id, &new).await.unwrap();
    assert_eq!(client.wait(task.id).await.unwrap().state, State::Done);
    let mut stream = client.events(task.id, None).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await.unwrap() {
        events.push(event);
    }
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("task.queued", "end"), "{kinds:?}");
    let id = |event: &dalsegno_client::Event| event.id.trim_end_matches(".end").parse::<i64>();
    let ids: Vec<i64> = events[..events.len() - 1].iter().map(|event| id(event).unwrap()).collect();
    assert!(ids.len() > 3 && ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let positions = proxy.headers("Last-Event-ID");
    let position = |n: usize| Some(events[n].id.clone());
    assert_eq!(positions, [None, position(0), position(2), position(2), position(2)]);
    // The stream had ended before this event was read.
    let mut rest = client.events(task.id, Some(&events.last().unwrap().id)).await.unwrap();
    assert_eq!(rest.next().await.unwrap(), None);
}
