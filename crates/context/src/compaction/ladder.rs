//! The steps after a refused summary, and the limit on questions to a model.

use serde::{Deserialize, Serialize};

const ATTEMPTS_MAX: usize = 3;
const TURNS_COUNTED: i64 = 10;
/// Attempts are remembered for longer than they count: a compaction that began some turns ago may ask only now.
const TURNS_REMEMBERED: i64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionStep {
    /// The session's own summariser.
    First,
    /// The same one again, with the reasons of the refusal.
    Retry,
    /// Another model.
    Alternate,
    /// No model: headings, pins and sentences.
    Extract,
    /// A person has to decide.
    Park,
}

/// The sequence of rungs for one compaction, as far as the breaker allows questions.
#[derive(Debug, Clone, Copy)]
pub struct CompactionSteps {
    attempts_left: usize,
    has_alternate: bool,
}

/// The turns in which a model was asked for a summary, per session. Stored with the session; a change of the model starts a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Breaker {
    attempts: Vec<i64>,
}

impl CompactionSteps {
    pub fn new(attempts_left: usize, has_alternate: bool) -> Self {
        Self { attempts_left, has_alternate }
    }

    pub fn start(&mut self) -> CompactionStep {
        self.ask_or_extract(CompactionStep::First)
    }

    /// Returns the rung after one that failed.
    pub fn next(&mut self, failed: CompactionStep) -> CompactionStep {
        match failed {
            CompactionStep::First => self.ask_or_extract(CompactionStep::Retry),
            CompactionStep::Retry if self.has_alternate => {
                self.ask_or_extract(CompactionStep::Alternate)
            }
            CompactionStep::Retry | CompactionStep::Alternate => CompactionStep::Extract,
            CompactionStep::Extract | CompactionStep::Park => CompactionStep::Park,
        }
    }

    fn ask_or_extract(&mut self, rung: CompactionStep) -> CompactionStep {
        match self.attempts_left.checked_sub(1) {
            Some(left) => {
                self.attempts_left = left;
                rung
            }
            None => CompactionStep::Extract,
        }
    }
}

impl Breaker {
    /// Returns the number of attempts that may still be made in this turn. Every attempt counts, accepted or not: three
    /// summaries in ten turns mean that summaries do not help.
    pub fn attempts_left(&self, turn: i64) -> usize {
        let recent = self.attempts.iter().filter(|made| is_recent(**made, turn));
        ATTEMPTS_MAX.saturating_sub(recent.count())
    }

    /// Returns the first turn in which an attempt may be made again.
    pub fn opens_again(&self, turn: i64) -> i64 {
        let mut recent: Vec<_> =
            self.attempts.iter().copied().filter(|made| is_recent(*made, turn)).collect();
        recent.sort_unstable();
        let last_in_the_way = recent.len().checked_sub(ATTEMPTS_MAX).and_then(|at| recent.get(at));
        last_in_the_way.map_or(turn, |made| made + TURNS_COUNTED)
    }

    /// Removes an attempt of this turn, because no model was asked. Returns false if there is none.
    pub fn take_back(&mut self, turn: i64) -> bool {
        let made = self.attempts.iter().rposition(|made| *made == turn);
        made.map(|at| self.attempts.remove(at)).is_some()
    }

    /// Records an attempt. The result has to be stored before the model is asked: a crash must not give the attempt back.
    pub fn record(&mut self, turn: i64) {
        self.attempts.retain(|made| turn - made < TURNS_REMEMBERED);
        self.attempts.push(turn);
    }
}

/// Returns true if an attempt counts in `turn`. Any ten turns in a row hold at most three attempts.
fn is_recent(made: i64, turn: i64) -> bool {
    turn - made < TURNS_COUNTED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climb(attempts_left: usize, has_alternate: bool) -> Vec<CompactionStep> {
        let mut ladder = CompactionSteps::new(attempts_left, has_alternate);
        let mut rungs = vec![ladder.start()];
        while let Some(last) = rungs.last()
            && *last != CompactionStep::Park
        {
            let next = ladder.next(*last);
            rungs.push(next);
        }
        rungs
    }

    #[test]
    fn the_ladder_climbs_as_far_as_the_breaker_allows() {
        use CompactionStep::*;
        assert_eq!(climb(3, true), [First, Retry, Alternate, Extract, Park]);
        assert_eq!(climb(3, false), [First, Retry, Extract, Park]);
        assert_eq!(climb(1, true), [First, Extract, Park]);
        assert_eq!(climb(0, true), [Extract, Park]);
    }

    #[test]
    fn an_open_breaker_names_its_closing_turn_and_skipped_steps_do_not_count() {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.opens_again(4), 4);
        [2, 4, 4].into_iter().for_each(|turn| breaker.record(turn));
        assert_eq!((breaker.attempts_left(4), breaker.opens_again(4)), (0, 12));
        assert_eq!((breaker.attempts_left(11), breaker.attempts_left(12)), (0, 1));
        assert!(breaker.take_back(4));
        assert_eq!((breaker.attempts_left(4), breaker.opens_again(4)), (1, 4));
        assert!(!breaker.take_back(9));
    }

    #[test]
    fn an_earlier_compaction_sees_the_attempts_of_its_own_turns() {
        let mut breaker = Breaker::default();
        [31, 31, 31, 41].into_iter().for_each(|turn| breaker.record(turn));
        assert_eq!(breaker.attempts_left(40), 0);
    }

    #[test]
    fn no_ten_turns_hold_more_than_three_attempts() {
        let mut breaker = Breaker::default();
        let mut made = Vec::new();
        for turn in 1..200 {
            while breaker.attempts_left(turn) > 0 && turn % 3 != 1 {
                breaker.record(turn);
                made.push(turn);
            }
        }
        for first in 1..190 {
            let window = first..first + 10;
            assert!(made.iter().filter(|turn| window.contains(*turn)).count() <= 3);
        }
        assert!(made.len() > 30);
    }
}
