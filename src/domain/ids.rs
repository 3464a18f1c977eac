//! Ids that sort by the time they were made.

use chrono::{DateTime, Utc};
use uuid::{NoContext, Timestamp, Uuid};

/// A version 7 id of this moment. Within one millisecond the order is random.
pub fn at(now: DateTime<Utc>) -> Uuid {
    let secs = u64::try_from(now.timestamp()).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(NoContext, secs, now.timestamp_subsec_nanos()))
}
