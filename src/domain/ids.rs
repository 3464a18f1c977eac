//! Ids that sort by the time they were made.

use std::sync::Mutex;

use chrono::{DateTime, Utc};
use uuid::{ContextV7, Timestamp, Uuid};

/// Counts within a millisecond, so that what one process makes in a row also sorts in that row.
static CONTEXT: Mutex<ContextV7> = Mutex::new(ContextV7::new());

/// A version 7 id of this moment.
pub fn at(now: DateTime<Utc>) -> Uuid {
    let secs = u64::try_from(now.timestamp()).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(&CONTEXT, secs, now.timestamp_subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    #[test]
    fn ids_of_one_moment_sort_as_they_were_made() {
        let noon = Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap();
        let ids: Vec<Uuid> = (0..2000).map(|_| at(noon)).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
