//! Tokens of ended turns whose use was recently written to the audit log.
//!
//! A child that has not noticed the end of its turn calls again and again. One line a minute says as much as a thousand. A token is only
//! used with the worker that made it, so each worker counts for itself.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

const RECORD_INTERVAL: TimeDelta = TimeDelta::minutes(1);

#[derive(Debug, Default)]
pub(super) struct DenialLog(Mutex<HashMap<(Uuid, i32), DateTime<Utc>>>);

impl DenialLog {
    /// Returns true if the use of this turn's token has to be written down now.
    pub(super) fn should_record(&self, turn: (Uuid, i32), now: DateTime<Utc>) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Keeps the entries of the last minute.
        told.retain(|_, at| now - *at < RECORD_INTERVAL);
        let is_news = !told.contains_key(&turn);
        if is_news {
            told.insert(turn, now);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_reported_once_a_minute() {
        let (denied, session) = (DenialLog::default(), Uuid::from_u128(1));
        let at = |secs: i64| DateTime::UNIX_EPOCH + TimeDelta::seconds(secs);
        assert!(denied.should_record((session, 1), at(0)));
        assert!(!denied.should_record((session, 1), at(59)));
        assert!(denied.should_record((session, 2), at(59)));
        assert!(denied.should_record((session, 1), at(60)));
    }
}
