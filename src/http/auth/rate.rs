//! Rate limits: one token bucket per client, which refills within a minute.

use std::{
    hash::Hash,
    sync::{Mutex, PoisonError},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use hashlink::LruCache;
use tokio::time::Instant;

use super::{RATE_LIMIT, RATE_LIMIT_POLICY};

/// Most buckets in memory. A bucket that is dropped starts full again.
const MAX_BUCKETS: usize = 10_000;
const MINUTE_SECS: f64 = 60.0;

#[derive(Debug)]
pub(super) struct Buckets<H: Eq + Hash> {
    /// 0 disables the limit.
    per_minute: u32,
    buckets: Mutex<LruCache<H, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

/// State of a client's bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quota {
    per_minute: u32,
    /// Tokens left after this request; negative if the request was refused.
    left: f64,
}

impl<H: Eq + Hash> Buckets<H> {
    pub(super) fn new(per_minute: u32) -> Self {
        Self { per_minute, buckets: Mutex::new(LruCache::new(MAX_BUCKETS)) }
    }

    /// Takes a token, if there is one. `None`: the limit is disabled.
    pub(super) fn take(&self, holder: H) -> Option<Quota> {
        self.at(holder, Instant::now())
    }

    fn at(&self, holder: H, now: Instant) -> Option<Quota> {
        if self.per_minute == 0 {
            return None;
        }
        let full = f64::from(self.per_minute);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(holder).or_insert_with(|| Bucket { tokens: full, at: now });
        let secs = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.tokens = (bucket.tokens + secs * full / MINUTE_SECS).min(full);
        bucket.at = now;
        let left = bucket.tokens - 1.0;
        if left >= 0.0 {
            bucket.tokens = left;
        }
        Some(Quota { per_minute: self.per_minute, left })
    }
}

impl Quota {
    pub(super) fn is_used_up(&self) -> bool {
        self.left < 0.0
    }

    pub(super) fn per_minute(&self) -> u32 {
        self.per_minute
    }

    /// Returns the seconds until the next token, at least one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 60")]
    pub(super) fn next_secs(&self) -> u32 {
        let missing = (-self.left).max(0.0);
        (missing * MINUTE_SECS / f64::from(self.per_minute)).ceil().clamp(1.0, MINUTE_SECS) as u32
    }

    /// Writes the headers of the IETF draft: the limit, and what is left of it.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let mut set = |name: HeaderName, text: String| {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        };
        let (left, next) = (self.left.max(0.0).floor(), self.next_secs());
        set(RATE_LIMIT_POLICY, format!("\"requests\";q={};w=60", self.per_minute));
        set(RATE_LIMIT, format!("\"requests\";r={left};t={next}"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let (buckets, start) = (Buckets::new(60), Instant::now());
        for n in 0..60 {
            let quota = buckets.at("a", start).unwrap();
            assert!(!quota.is_used_up(), "{n}");
        }
        let quota = buckets.at("a", start).unwrap();
        assert_eq!((quota.is_used_up(), quota.next_secs()), (true, 1));
        // A refused request does not delay the next token.
        assert!(buckets.at("a", start + Duration::from_millis(500)).unwrap().is_used_up());
        assert!(!buckets.at("a", start + Duration::from_secs(1)).unwrap().is_used_up());
        assert!(!buckets.at("b", start).unwrap().is_used_up());
        let rested = buckets.at("a", start + Duration::from_secs(3_600)).unwrap();
        assert_eq!(rested, Quota { per_minute: 60, left: 59.0 });
    }

    #[test]
    fn an_empty_bucket_reports_the_wait() {
        let (buckets, start) = (Buckets::new(3), Instant::now());
        let last = (0..4).filter_map(|_| buckets.at("a", start)).last().unwrap();
        assert_eq!((last.is_used_up(), last.next_secs()), (true, 20));
        let mut headers = HeaderMap::new();
        last.write(&mut headers);
        assert_eq!(headers[RATE_LIMIT_POLICY], "\"requests\";q=3;w=60");
        assert_eq!(headers[RATE_LIMIT], "\"requests\";r=0;t=20");
    }

    #[test]
    fn a_limit_of_zero_is_no_limit() {
        assert_eq!(Buckets::new(0).take("a"), None);
    }
}
