//! Decisions about retries.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use super::{Error, request::Request};

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);
/// Status of a rate limit, which refuses a request before it runs.
const TOO_MANY_REQUESTS: u16 = 429;

/// Retries with a growing wait. A `Retry-After` of the service is honoured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// 0 disables retries.
    pub max_retries: u32,
    /// An error that asks for a longer wait is returned, with `retry_after`.
    pub longest_wait: Duration,
}

/// The way to wait between tries.
#[derive(Clone)]
pub(super) struct Sleep(pub(super) Arc<dyn Fn(Duration) -> End + Send + Sync>);

/// Completes at the end of a wait.
type End = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Default for Sleep {
    fn default() -> Self {
        Self(Arc::new(|wait| Box::pin(tokio::time::sleep(wait))))
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleep")
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 4, longest_wait: Duration::from_secs(60) }
    }
}

impl RetryPolicy {
    /// Returns the wait before the next try, or `None` to give up.
    pub(super) fn wait(&self, error: &Error, request: &Request, retries: u32) -> Option<Duration> {
        if retries >= self.max_retries || !can_repeat(error, request) {
            return None;
        }
        let wait = match error {
            Error::Refused { retry_after: Some(wait), .. } => *wait,
            _ => backoff(retries),
        };
        (wait <= self.longest_wait).then_some(wait)
    }
}

fn can_repeat(error: &Error, request: &Request) -> bool {
    match error {
        // Refusals other than a rate limit may come after a part of the request has run.
        Error::Refused { status, retryable, .. } => {
            *retryable && (request.is_repeatable() || *status == TOO_MANY_REQUESTS)
        }
        // Without a connection the service has not received the request.
        Error::Http { source, .. } => request.is_repeatable() || source.is_connect(),
        Error::BrokenStream => true,
        Error::Address(_)
        | Error::SetUp(_)
        | Error::Link { .. }
        | Error::Body(_)
        | Error::Answer { .. } => false,
    }
}

/// Doubles the wait with each retry. Clients that failed together come back at different moments.
fn backoff(retries: u32) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(retries)).min(LONGEST_BACKOFF);
    // A new state has random keys.
    let random = u32::try_from(RandomState::new().hash_one(retries) >> 32).unwrap_or(u32::MAX);
    wait.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, retryable: bool, retry_after: Option<u64>) -> Error {
        Error::Refused {
            action: "add a task",
            status,
            code: String::new(),
            detail: String::new(),
            retryable,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    #[test]
    fn waits_grow_and_retry_after_is_honoured_up_to_a_limit() {
        let policy = RetryPolicy::default();
        let read = Request::get("show a task", "v1/tasks/7".to_owned());
        let wait = |error: &Error, retries| policy.wait(error, &read, retries);
        for (retries, full) in [(0, 500), (1, 1000), (2, 2000), (3, 4000)] {
            let wait = wait(&refused(503, true, None), retries).unwrap();
            let full = Duration::from_millis(full);
            assert!(full / 2 <= wait && wait <= full, "{wait:?}");
        }
        assert_eq!(wait(&refused(503, true, None), 4), None, "the last retry");
        assert!(backoff(100) <= LONGEST_BACKOFF);
        let asked = |secs| wait(&refused(429, true, Some(secs)), 0);
        assert_eq!(asked(7), Some(Duration::from_secs(7)));
        assert_eq!(asked(61), None);
        assert_eq!(wait(&refused(409, false, None), 0), None);
    }

    #[test]
    fn a_request_without_a_key_is_repeated_only_after_a_rate_limit() {
        let policy = RetryPolicy::default();
        let change = Request::post("change it", "v1/x".to_owned());
        assert_eq!(policy.wait(&refused(503, true, None), &change, 0), None);
        assert!(policy.wait(&refused(429, true, None), &change, 0).is_some());
        let keyed = change.with_key(Some("order-1"));
        assert!(policy.wait(&refused(503, true, None), &keyed, 0).is_some());
    }
}
