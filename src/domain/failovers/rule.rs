//! The rule of failovers: the entry of a chain that answers the next turn, and the effect of a failure or an answer.
//!
//! A turn takes the first entry without an obstacle. An entry that failed too often rests, and is on trial afterwards: one further
//! failure is enough. If every entry has an obstacle, the turn takes the one that is usable first, and waits there as it would without a
//! chain. So no entry is skipped because of a failure alone while nothing better is left, and the attempts of the job limit how often they
//! are tried.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::busy_models::{BusyModel, format_moment};

/// Failures of the entries of a conversation's chain. An entry without a record has answered the last time, or was never asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FailoverState {
    pub records: Vec<FailureRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// `provider/model`.
    pub entry: String,
    /// Failures in a row.
    pub failures: i32,
    /// End of its rest. `None`: it has not failed often enough.
    pub until: Option<DateTime<Utc>>,
    pub because: String,
}

/// Conditions under which turns move on from an entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// Consecutive failures.
    pub errors: i32,
    /// Longest wait.
    pub limit: TimeDelta,
    /// True if the file sets that wait: one whose end is unknown is longer, too.
    pub has_own_limit: bool,
    pub max_charge_micros: Option<i64>,
    /// Highest median time to the first token.
    pub latency: Option<Duration>,
}

/// An entry of a chain as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// `provider/model`.
    pub name: String,
    pub conditions: Conditions,
    pub busy: Option<BusyModel>,
    /// Median time to the first token of recent calls, if it was asked for and there were enough calls.
    pub latency: Option<Duration>,
}

/// An entry that a turn has skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SkippedEntry {
    /// `provider/model`.
    pub entry: String,
    pub because: String,
    /// Null: unknown, or only this turn skips it.
    pub usable_at: Option<DateTime<Utc>>,
}

/// The entry of its chain that a turn was given to, and the earlier ones that it has skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChainChoice {
    /// `provider/model`.
    pub entry: String,
    pub skipped: Vec<SkippedEntry>,
}

/// The result of the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Place in the chain, from 0.
    pub at: usize,
    /// The skipped entries: those before it, or all others if none is usable.
    pub skipped: Vec<SkippedEntry>,
    /// True if no entry is usable, and this one is the first to be.
    pub is_last_resort: bool,
}

/// The rests of a chain.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Time before an entry that failed is tried again.
    pub rest: TimeDelta,
}

/// An obstacle, with its rank as a last resort: a slow entry before one that has to be waited for, and one that the turn must not use last.
type Obstacle = (u8, SkippedEntry);

/// Chooses the entry of the next turn. `refused`: entries that have refused this turn already.
pub fn choose(
    candidates: &[Candidate],
    state: &FailoverState,
    refused: &[SkippedEntry],
    now: DateTime<Utc>,
) -> Choice {
    let obstacle = |candidate: &Candidate| candidate.obstacle(state, refused, now);
    let mut obstacles: Vec<Obstacle> = candidates.iter().map_while(obstacle).collect();
    let is_last_resort = obstacles.len() == candidates.len();
    let at = match is_last_resort {
        false => obstacles.len(),
        true => {
            let order = |at: &usize| {
                let (rank, skipped) = &obstacles[*at];
                (*rank, skipped.usable_at, *at)
            };
            let at = (0..obstacles.len()).min_by_key(order).unwrap_or_default();
            if !obstacles.is_empty() {
                obstacles.remove(at);
            }
            at
        }
    };
    let skipped = obstacles.into_iter().map(|(_, skipped)| skipped).collect();
    Choice { at, skipped, is_last_resort }
}

impl Candidate {
    fn obstacle(
        &self,
        state: &FailoverState,
        refused: &[SkippedEntry],
        now: DateTime<Utc>,
    ) -> Option<Obstacle> {
        let skipped = |because: String, usable_at| SkippedEntry {
            entry: self.name.clone(),
            because,
            usable_at,
        };
        let waits =
            |because: &str, until: DateTime<Utc>| (1, skipped(because.to_owned(), Some(until)));
        if let Some(refused) = refused.iter().find(|refused| refused.entry == self.name) {
            return Some((if refused.usable_at.is_some() { 1 } else { 2 }, refused.clone()));
        }
        let record = state.record(&self.name);
        if let Some((record, until)) = record.and_then(|it| Some((it, it.until?)))
            && now < until
        {
            return Some(waits(&record.because, until));
        }
        if let Some(busy) = self.busy.as_ref().filter(|busy| now < busy.until)
            && self.conditions.moves_on(busy.until - now, busy.refusals)
        {
            return Some(waits(&busy.describe(), busy.until));
        }
        let (latency, longest) = self.latency.zip(self.conditions.latency)?;
        (latency > longest).then(|| {
            let (latency, longest) = (latency.as_secs_f64(), longest.as_secs_f64());
            let because = format!(
                "the median time to its first token is {latency:.1} s, above latency_secs ({longest} s)"
            );
            (0, skipped(because, None))
        })
    }
}

impl Conditions {
    /// Returns true if a turn moves on instead of a wait. `refusals`: refusals of the model in a row.
    pub fn moves_on(&self, wait: TimeDelta, refusals: i32) -> bool {
        wait > self.limit || refusals >= self.errors
    }
}

impl FailoverState {
    pub fn record(&self, entry: &str) -> Option<&FailureRecord> {
        self.records.iter().find(|record| record.entry == entry)
    }

    fn put(&mut self, new: FailureRecord) {
        self.records.retain(|record| record.entry != new.entry);
        self.records.push(new);
    }

    /// Lets an entry rest.
    pub fn rest(&mut self, entry: &str, because: String, until: DateTime<Utc>) {
        let entry = entry.to_owned();
        self.put(FailureRecord { entry, failures: 0, until: Some(until), because });
    }

    /// Describes the rests.
    pub fn describe_rests(&self) -> Vec<String> {
        let rests = self.records.iter().filter_map(|record| Some((record, record.until?)));
        rests
            .map(|(record, until)| {
                let until = format_moment(until);
                format!("`{}` is not used before {until}: {}", record.entry, record.because)
            })
            .collect()
    }
}

impl Rules {
    /// Records a failure. `pause`: the time for which the provider says that it will not answer.
    pub fn record_failure(
        &self,
        state: &mut FailoverState,
        (entry, conditions): (&str, &Conditions),
        because: String,
        pause: Option<TimeDelta>,
        now: DateTime<Utc>,
    ) {
        let record = state.record(entry);
        let failures = record.map_or(0, |record| record.failures).saturating_add(1);
        // It was tried because its rest was over: one failure shows that it was too early.
        let is_trial = record.is_some_and(|record| record.until.is_some());
        let long = pause.filter(|pause| *pause > conditions.limit);
        if let Some(pause) = long {
            state.rest(entry, because, now + pause.min(self.rest));
        } else if is_trial || failures >= conditions.errors {
            state.rest(entry, because, now + self.rest);
        } else {
            state.put(FailureRecord { entry: entry.to_owned(), failures, until: None, because });
        }
    }

    /// Records an answer. Rests of other entries go on.
    pub fn record_answer(state: &mut FailoverState, entry: &str, now: DateTime<Utc>) {
        state.records.retain(|record| {
            record.entry != entry && record.until.is_some_and(|until| now < until)
        });
    }
}

impl ChainChoice {
    /// Formats the entry and why earlier ones were skipped.
    pub fn describe(&self) -> String {
        let Self { entry, skipped } = self;
        if skipped.is_empty() {
            return format!("`{entry}`, the first usable model of its chain");
        }
        format!("`{entry}`, because {}", describe_skipped(skipped))
    }
}

/// Formats which entry is usable first, and why the others are not.
pub fn describe_last_resort(entry: &str, skipped: &[SkippedEntry]) -> String {
    format!("`{entry}` is the first usable model of the chain: {}", describe_skipped(skipped))
}

/// Formats why entries were skipped.
pub fn describe_skipped(skipped: &[SkippedEntry]) -> String {
    let one = |skipped: &SkippedEntry| {
        let until = skipped.usable_at.map(format_moment);
        let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
        format!("`{}` is skipped{until}: {}", skipped.entry, skipped.because)
    };
    skipped.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    const REST: TimeDelta = TimeDelta::seconds(900);
    const RULES: Rules = Rules { rest: REST };
    const CONDITIONS: Conditions = Conditions {
        errors: 3,
        limit: REST,
        has_own_limit: false,
        max_charge_micros: None,
        latency: None,
    };

    fn at(secs: i64) -> DateTime<Utc> {
        Utc.timestamp_opt(1_800_000_000 + secs, 0).unwrap()
    }

    fn chain() -> Vec<Candidate> {
        ["a/x", "b/y", "c/z"]
            .map(|name| Candidate {
                name: name.to_owned(),
                conditions: CONDITIONS,
                busy: None,
                latency: None,
            })
            .into()
    }

    fn fail(state: &mut FailoverState, entry: &str, secs: i64) {
        RULES.record_failure(state, (entry, &CONDITIONS), "boom".to_owned(), None, at(secs));
    }

    /// Returns the chosen entry and the skipped ones; `!` marks a last resort.
    fn chosen(candidates: &[Candidate], state: &FailoverState, secs: i64) -> String {
        chosen_after(candidates, state, &[], secs)
    }

    fn chosen_after(
        candidates: &[Candidate],
        state: &FailoverState,
        refused: &[SkippedEntry],
        secs: i64,
    ) -> String {
        let choice = choose(candidates, state, refused, at(secs));
        let mark = if choice.is_last_resort { "!" } else { "" };
        let skipped: Vec<_> = choice.skipped.iter().map(|it| it.entry.as_str()).collect();
        format!("{}{mark} -{}", candidates[choice.at].name, skipped.join(","))
    }

    fn busy(secs: i64, refusals: i32) -> Option<BusyModel> {
        Some(BusyModel {
            provider: "a".to_owned(),
            model: "x".to_owned(),
            since: at(0),
            until: at(secs),
            refusals,
            why: "full".to_owned(),
        })
    }

    fn refused(entry: &str, until: Option<i64>) -> SkippedEntry {
        let because = "no space".to_owned();
        SkippedEntry { entry: entry.to_owned(), because, usable_at: until.map(at) }
    }

    #[test]
    fn the_third_consecutive_failure_moves_a_conversation_and_an_answer_resets_the_count() {
        let (chain, mut state) = (chain(), FailoverState::default());
        fail(&mut state, "a/x", 0);
        fail(&mut state, "a/x", 1);
        assert_eq!(chosen(&chain, &state, 1), "a/x -");
        Rules::record_answer(&mut state, "a/x", at(2));
        assert_eq!(state, FailoverState::default());
        for secs in 0..3 {
            fail(&mut state, "a/x", secs);
        }
        assert_eq!(chosen(&chain, &state, 3), "b/y -a/x");
        assert_eq!(chosen(&chain, &state, 901), "b/y -a/x");
        assert_eq!(chosen(&chain, &state, 902), "a/x -", "its rest is over");
    }

    #[test]
    fn an_entry_whose_rest_is_over_is_on_trial_and_one_failure_or_answer_decides() {
        let (chain, mut state) = (chain(), FailoverState::default());
        state.rest("a/x", "boom".to_owned(), at(900));
        // Answers of the second entry do not end the rest of the first one.
        Rules::record_answer(&mut state, "b/y", at(10));
        assert_eq!(chosen(&chain, &state, 11), "b/y -a/x");
        let mut in_vain = state.clone();
        fail(&mut in_vain, "a/x", 900);
        assert_eq!(chosen(&chain, &in_vain, 1000), "b/y -a/x");
        Rules::record_answer(&mut state, "a/x", at(900));
        assert_eq!(state, FailoverState::default());
    }

    #[test]
    fn each_entry_that_fails_hands_on_and_the_longest_rested_one_is_the_last_resort() {
        let (chain, mut state) = (chain(), FailoverState::default());
        for (secs, entry) in (0..).zip(["a/x", "b/y", "c/z"].into_iter().flat_map(|it| [it; 3])) {
            assert!(chosen(&chain, &state, secs).starts_with(entry), "{secs}");
            fail(&mut state, entry, secs);
        }
        assert_eq!(chosen(&chain, &state, 10), "a/x! -b/y,c/z");
        fail(&mut state, "a/x", 10);
        assert_eq!(chosen(&chain, &state, 11), "b/y! -a/x,c/z");
        fail(&mut state, "b/y", 11);
        assert_eq!(chosen(&chain, &state, 12), "c/z! -a/x,b/y");
    }

    #[test]
    fn a_pause_above_the_limit_rests_an_entry_at_once_and_no_longer_than_it_lasts() {
        let conditions = Conditions { limit: TimeDelta::seconds(30), ..CONDITIONS };
        let pause = |secs| {
            let (mut state, pause) = (FailoverState::default(), Some(TimeDelta::seconds(secs)));
            let entry = ("a/x", &conditions);
            RULES.record_failure(&mut state, entry, "limit".to_owned(), pause, at(0));
            state.records.remove(0).until
        };
        assert_eq!([pause(30), pause(31), pause(5000)], [None, Some(at(31)), Some(at(900))]);
    }

    #[test]
    fn a_busy_model_is_skipped_if_its_wait_is_too_long_or_it_has_refused_too_often() {
        let first = |wait, refusals| {
            let mut chain = chain();
            chain[0].busy = busy(wait, refusals);
            chosen(&chain, &FailoverState::default(), 0)
        };
        let chosen = [(60, 2), (60, 3), (901, 1), (0, 9)].map(|(wait, n)| first(wait, n));
        assert_eq!(chosen, ["a/x -", "b/y -a/x", "b/y -a/x", "a/x -"]);
    }

    #[test]
    fn a_slow_entry_is_skipped_and_answers_if_no_other_one_can() {
        let (mut chain, mut state) = (chain(), FailoverState::default());
        let slow = |secs| {
            let conditions = Conditions { latency: Some(Duration::from_secs(20)), ..CONDITIONS };
            Candidate { conditions, latency: Some(Duration::from_secs(secs)), ..chain[0].clone() }
        };
        let [fast, slow] = [20, 21].map(slow);
        chain[0] = fast;
        assert_eq!(chosen(&chain, &state, 0), "a/x -");
        chain[0] = slow;
        assert_eq!(chosen(&chain, &state, 0), "b/y -a/x");
        for entry in ["b/y", "c/z"] {
            state.rest(entry, "boom".to_owned(), at(900));
        }
        assert_eq!(chosen(&chain, &state, 0), "a/x! -b/y,c/z");
    }

    #[test]
    fn of_entries_that_refuse_a_turn_the_first_with_space_is_the_last_resort() {
        let (chain, state) = (chain(), FailoverState::default());
        let (dear, full) = (refused("a/x", None), refused("b/y", Some(40)));
        let after = |refused: &[SkippedEntry]| chosen_after(&chain, &state, refused, 0);
        assert_eq!(after(std::slice::from_ref(&dear)), "b/y -a/x");
        assert_eq!(after(&[dear.clone(), full.clone()]), "c/z -a/x,b/y");
        let fuller = refused("c/z", Some(50));
        assert_eq!(after(&[dear.clone(), full, fuller]), "b/y! -a/x,c/z");
        let all = ["b/y", "c/z"].map(|entry| refused(entry, None));
        let [b, c] = all;
        assert_eq!(after(&[dear, b, c]), "a/x! -b/y,c/z", "none can ever take the turn");
    }

    #[test]
    fn a_choice_says_which_entries_were_skipped_until_when_and_why() {
        let choice =
            ChainChoice { entry: "b/y".to_owned(), skipped: vec![refused("a/x", Some(40))] };
        assert_eq!(
            choice.describe(),
            "`b/y`, because `a/x` is skipped until 2027-01-15 08:00:40 UTC: no space"
        );
    }
}
