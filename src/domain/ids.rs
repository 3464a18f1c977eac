//! Ids that sort by the time they were made.

use std::{str::FromStr, sync::Mutex};

use chrono::{DateTime, Utc};
use uuid::{ContextV7, Timestamp, Uuid};

/// An id as a person gives it: whole, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    text: String,
    /// The smallest and the largest id that begin so.
    pub least: Uuid,
    pub most: Uuid,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id: write it, or its beginning, as the lists show it")]
pub struct NoId(String);

/// Why a given id does not lead to one thing.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    #[error("there is no {what} {given}: `dalsegno {what} ls` lists them")]
    None { what: &'static str, given: String },
    #[error("more than one {what} begins with {given}: write more of its id")]
    Several { what: &'static str, given: String },
    #[error(transparent)]
    Database(#[from] super::Failed),
}

impl Given {
    /// The whole id, if it is one.
    pub fn whole(&self) -> Option<Uuid> {
        (self.least == self.most).then_some(self.least)
    }

    /// The one id among those that were found to begin so.
    pub(super) fn one(&self, what: &'static str, found: &[Uuid]) -> Result<Uuid, NotFound> {
        let given = self.text.clone();
        match found {
            [id] => Ok(*id),
            [] => Err(NotFound::None { what, given }),
            _ => Err(NotFound::Several { what, given }),
        }
    }
}

impl FromStr for Given {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let bound = |fill: char| {
            let padded = format!("{digits:\u{0}<32}").replace('\u{0}', &fill.to_string());
            padded.parse::<Uuid>().map_err(|_| NoId(text.to_owned()))
        };
        match digits.is_empty() {
            true => Err(NoId(text.to_owned())),
            false => Ok(Self { text: text.to_owned(), least: bound('0')?, most: bound('f')? }),
        }
    }
}

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
    fn an_id_may_be_given_by_its_beginning() {
        let whole = "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000";
        assert_eq!(whole.parse::<Given>().unwrap().whole(), whole.parse().ok());
        let part: Given = "0190aa-aa-b".parse().unwrap();
        assert_eq!(part.whole(), None);
        assert_eq!(part.least.to_string(), "0190aaaa-b000-0000-0000-000000000000");
        assert_eq!(part.most.to_string(), "0190aaaa-bfff-ffff-ffff-ffffffffffff");
        for wrong in ["", "-", "xyz", "0190 ", &format!("{whole}0"), "{0190", "ü"] {
            assert!(wrong.parse::<Given>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_of_one_moment_sort_as_they_were_made() {
        let noon = Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap();
        let ids: Vec<Uuid> = (0..2000).map(|_| at(noon)).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
