//! Ids that sort by the time they were made.

use crate::domain::class::{Class, Classify, Kind};
use std::{str::FromStr, sync::Mutex};

use chrono::{DateTime, Utc};
use uuid::{ContextV7, Timestamp, Uuid};

/// An id as a person gives it: whole, its beginning, or its end.
///
/// Ids that were made within a minute share their beginning; their ends differ. An end needs eight digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialId {
    text: String,
    /// The smallest and the largest id that begin so.
    pub least: Uuid,
    pub most: Uuid,
    /// The digits that it may end with.
    pub end: Option<String>,
    /// The number of newest rows among which an end is looked for. `None`: all.
    newest: Option<i64>,
}

/// A campaign as a person gives it: its name, or its id as [`PartialId`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenCampaign {
    pub name: String,
    pub id: Option<PartialId>,
}

/// A row that matches a given id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    pub id: Uuid,
    /// Text that tells it from other matches.
    pub label: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an id: use the whole id, a unique beginning, or the last digits that lists show"
)]
pub struct NoId(String);

/// Errors of finding a row by a given id.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    #[error("there is no {what} {given}: `dalsegno {list}` lists them{}", rule_of_ends(.given))]
    None { what: &'static str, list: &'static str, given: String },
    #[error("more than one {what} matches `{given}`; write more of the id, or its last digits{}", format_matches(.matches))]
    Several { what: &'static str, given: String, matches: Vec<Match> },
    #[error(transparent)]
    Database(#[from] super::StatementError),
}

impl NotFound {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_id");
    pub const AMBIGUOUS: Class = Class::of(Kind::Invalid, "ambiguous_id");

    /// For callers that may not list what there is.
    pub fn without_matches(self) -> Self {
        match self {
            Self::Several { what, given, .. } => Self::Several { what, given, matches: Vec::new() },
            other => other,
        }
    }
}

impl Classify for NotFound {
    fn class(&self) -> Class {
        match self {
            Self::None { .. } => Self::UNKNOWN,
            Self::Several { .. } => Self::AMBIGUOUS,
            Self::Database(error) => error.class(),
        }
    }
}

/// Minimum number of digits of an end: a shorter one matches by chance.
const MIN_END_DIGITS: usize = 8;
/// Maximum number of matches that are read, one more than are shown.
pub(super) const MATCHES: i64 = 11;

/// Returns the last digits of an id, which lists show and [`PartialId`] takes.
pub fn short(id: Uuid) -> String {
    let id = id.to_string();
    id.rsplit('-').next().unwrap_or(&id).to_owned()
}

/// Finds a row of a table by a given id. `$within`: only rows of these campaigns; `$campaign` is the expression for the campaign of a row,
/// null for rows that belong to none. `$label` is an expression over its row `t`.
macro_rules! find_id {
    ($executor:expr, $given:expr, $within:expr, ($what:literal, $list:literal), $table:literal, $campaign:literal, $label:literal) => {{
        let given: &crate::domain::ids::PartialId = $given;
        if let Some(id) = given.whole() {
            return Ok(id);
        }
        let found = sqlx::query_as!(
            crate::domain::ids::Match,
            "with begins as (select id from "
                + $table
                + " where id between $1 and $2 and ($5::uuid[] is null or "
                + $campaign
                + " = any($5)) order by id limit $4),
                  ends as (select id from "
                + $table
                + "
                            where $3::text is not null and not exists (select from begins)
                              and ($6::bigint is null or id > coalesce((select id from "
                + $table
                + " order by id desc offset $6 limit 1), '00000000-0000-0000-0000-000000000000'))
                              and right(replace(id::text, '-', ''), length($3)) = $3
                              and ($5::uuid[] is null or "
                + $campaign
                + " = any($5)) limit $4),
                  both_of as (select id from begins union all select id from ends)
             select t.id as \"id!\", "
                + $label
                + " as \"label!\" from both_of join "
                + $table
                + " as t on t.id = both_of.id order by t.id",
            given.least,
            given.most,
            given.end,
            crate::domain::ids::MATCHES,
            $within as Option<&[uuid::Uuid]>,
            given.newest(),
        )
        .fetch_all($executor)
        .await
        .map_err(crate::domain::StatementError::to("find an id"))?;
        crate::domain::ids::one(($what, $list), given.text(), found)
    }};
}
pub(super) use find_id;

/// Returns the only match, or an error for none and for several.
pub(super) fn one(
    (what, list): (&'static str, &'static str),
    given: &str,
    found: Vec<Match>,
) -> Result<Uuid, NotFound> {
    match found.as_slice() {
        [one] => Ok(one.id),
        [] => Err(NotFound::None { what, list, given: given.to_owned() }),
        _ => Err(NotFound::Several { what, given: given.to_owned(), matches: found }),
    }
}

/// The rule that a short end of an id has missed.
fn rule_of_ends(given: &str) -> String {
    let n_digits = given.chars().filter(char::is_ascii_hexdigit).count();
    let is_part = given.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    match is_part && n_digits < MIN_END_DIGITS {
        true => format!("; the end of an id needs at least {MIN_END_DIGITS} digits"),
        false => String::new(),
    }
}

fn format_matches(matches: &[Match]) -> String {
    if matches.is_empty() {
        return String::new();
    }
    let shown = matches.len().min(MATCHES.unsigned_abs() as usize - 1);
    let line = |found: &Match| {
        let label: String =
            found.label.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("\n  {}  {}", found.id, label.trim_end())
    };
    let mut text: String = ":".to_owned();
    text.extend(matches[..shown].iter().map(line));
    if shown < matches.len() {
        text.push_str("\n  and more");
    }
    text
}

impl PartialId {
    /// The whole id, if it is one.
    pub fn whole(&self) -> Option<Uuid> {
        (self.least == self.most).then_some(self.least)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true for an id that begins or ends like this one.
    pub fn matches(&self, id: Uuid) -> bool {
        let ends = |end: &String| id.simple().to_string().ends_with(end);
        (self.least..=self.most).contains(&id) || self.end.as_ref().is_some_and(ends)
    }

    /// Looks for an end among this many of the newest rows only.
    pub fn among(self, newest: Option<i64>) -> Self {
        Self { newest, ..self }
    }

    pub(super) fn newest(&self) -> Option<i64> {
        self.newest
    }
}

impl GivenCampaign {
    /// The whole id, if it is one.
    pub fn whole(&self) -> Option<Uuid> {
        self.id.as_ref()?.whole()
    }
}

impl FromStr for PartialId {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let bound = |fill: char| {
            let padded = format!("{digits:\u{0}<32}").replace('\u{0}', &fill.to_string());
            padded.parse::<Uuid>().map_err(|_| NoId(text.to_owned()))
        };
        if digits.is_empty() {
            return Err(NoId(text.to_owned()));
        }
        let (least, most) = (bound('0')?, bound('f')?);
        let end = (digits.len() >= MIN_END_DIGITS).then(|| digits.to_ascii_lowercase());
        Ok(Self { text: text.to_owned(), least, most, end, newest: None })
    }
}

impl FromStr for GivenCampaign {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        match text.trim().is_empty() || text.contains('\0') {
            true => Err(NoId(text.to_owned())),
            false => Ok(Self { name: text.to_owned(), id: text.parse().ok() }),
        }
    }
}

/// Counts within a millisecond, so that ids sort in the order in which one process makes them.
static CONTEXT: Mutex<ContextV7> = Mutex::new(ContextV7::new());

/// A version 7 id of this moment.
pub fn new_at(now: DateTime<Utc>) -> Uuid {
    let secs = u64::try_from(now.timestamp()).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(&CONTEXT, secs, now.timestamp_subsec_nanos()))
}

/// Returns an id that sorts before all ids of this moment or later.
pub fn least_at(moment: DateTime<Utc>) -> Uuid {
    let millis = u128::try_from(moment.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    #[test]
    fn an_id_may_be_abbreviated_to_its_beginning() {
        let whole = "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000";
        assert_eq!(whole.parse::<PartialId>().unwrap().whole(), whole.parse().ok());
        let part: PartialId = "0190aa-aa-b".parse().unwrap();
        assert_eq!(part.whole(), None);
        assert_eq!(part.least.to_string(), "0190aaaa-b000-0000-0000-000000000000");
        assert_eq!(part.most.to_string(), "0190aaaa-bfff-ffff-ffff-ffffffffffff");
        assert_eq!(part.end.as_deref(), Some("0190aaaab"));
        let matches =
            |given: &str| given.parse::<PartialId>().unwrap().matches(whole.parse().unwrap());
        assert!([whole, "0190aa", "EEEEffff0000"].into_iter().all(matches));
        assert!(!["0190ab", "eeeeffff0001"].into_iter().any(matches));
        assert!(!matches("0000"), "an end needs eight digits");
        assert_eq!("FFF".parse::<PartialId>().unwrap().end, None, "the end of an id is not unique");
        assert_eq!(short(whole.parse().unwrap()), "eeeeffff0000");
        for wrong in ["", "-", "xyz", "0190 ", &format!("{whole}0"), "{0190", "ü"] {
            assert!(wrong.parse::<PartialId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_campaign_may_be_named_instead_of_its_id() {
        let given: GivenCampaign = "Harbour series".parse().unwrap();
        assert_eq!((given.name.as_str(), given.whole()), ("Harbour series", None));
        assert!(
            "cafe".parse::<GivenCampaign>().unwrap().id.is_some(),
            "the text may be part of an id, too"
        );
        assert!(" ".parse::<GivenCampaign>().is_err());
    }

    #[test]
    fn ids_of_the_same_millisecond_sort_in_creation_order() {
        let noon = Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap();
        let ids: Vec<Uuid> = (0..2000).map(|_| new_at(noon)).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
