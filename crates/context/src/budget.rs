//! The budget of a conversation: B = W − R − S (window, reserve for the answer, system part).

use serde::{Deserialize, Serialize};

/// Smallest room in which a conversation can go on, however much is folded.
const ROOM_MIN_TOKENS: u64 = 256;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "the reserve of {reserve_tokens} tokens for the answer fills the window of {window_tokens} tokens: lower `reserve_tokens` or raise `window_tokens` in the agent's file"
    )]
    ReserveTooLarge { window_tokens: u64, reserve_tokens: u64 },
    #[error(
        "the system part takes {system_tokens} tokens with its tools, and the reserve for the answer {reserve_tokens}, of the window's {window_tokens}, which leaves {room_tokens} for the conversation; it needs at least {ROOM_MIN_TOKENS}: shorten the agent's prompt, skills or client context, grant fewer `tools`, lower `reserve_tokens`, or raise `window_tokens`"
    )]
    SystemTooLarge { window_tokens: u64, reserve_tokens: u64, system_tokens: u64, room_tokens: u64 },
    #[error(
        "thresholds must satisfy 10 <= prepare < apply <= 95, but prepare is {prepare_percent} and apply is \
         {apply_percent}: correct them in the configuration or the agent's file"
    )]
    Thresholds { prepare_percent: u64, apply_percent: u64 },
}

/// Percentages of B at which a summary is prepared in the background, and at which it has to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedThresholds", into = "UncheckedThresholds")]
pub struct Thresholds {
    prepare_percent: u64,
    apply_percent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    window_tokens: u64,
    reserve_tokens: u64,
    system_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pressure {
    Calm,
    /// Summarise in the background; the turn goes on unchanged.
    Prepare,
    /// Compact before the call.
    Apply,
    /// The call would not fit at all.
    Overflow,
}

impl Thresholds {
    pub fn new(prepare_percent: u64, apply_percent: u64) -> Result<Self, Error> {
        if prepare_percent < 10 || apply_percent > 95 || prepare_percent >= apply_percent {
            return Err(Error::Thresholds { prepare_percent, apply_percent });
        }
        Ok(Self { prepare_percent, apply_percent })
    }

    pub fn prepare_percent(&self) -> u64 {
        self.prepare_percent
    }

    pub fn apply_percent(&self) -> u64 {
        self.apply_percent
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { prepare_percent: 75, apply_percent: 85 }
    }
}

impl Budget {
    pub fn new(window_tokens: u64, reserve_tokens: u64, system_tokens: u64) -> Result<Self, Error> {
        if reserve_tokens >= window_tokens {
            return Err(Error::ReserveTooLarge { window_tokens, reserve_tokens });
        }
        let room_tokens = (window_tokens - reserve_tokens).saturating_sub(system_tokens);
        if room_tokens < ROOM_MIN_TOKENS {
            return Err(Error::SystemTooLarge {
                window_tokens,
                reserve_tokens,
                system_tokens,
                room_tokens,
            });
        }
        Ok(Self { window_tokens, reserve_tokens, system_tokens })
    }

    /// Creates the budget of a window that may be too narrow for its contents: the least room is always left.
    pub fn of_narrow(window_tokens: u64, reserve_tokens: u64, system_tokens: u64) -> Self {
        let least = reserve_tokens.saturating_add(system_tokens).saturating_add(ROOM_MIN_TOKENS);
        Self { window_tokens: window_tokens.max(least), reserve_tokens, system_tokens }
    }

    /// Returns the smallest window with room for a conversation. `None`: the reserve is the default of that window.
    pub fn least_window(reserve_tokens: Option<u64>, system_tokens: u64) -> u64 {
        let needed = system_tokens.saturating_add(ROOM_MIN_TOKENS);
        // A third of the rest is a quarter of the whole.
        let reserve_tokens = reserve_tokens.unwrap_or_else(|| (needed / 3).clamp(1024, 8192));
        needed.saturating_add(reserve_tokens)
    }

    /// Returns a quarter of the window between 1,024 and 8,192 tokens, but at most half of a tiny one. A fixed minimum
    /// would leave no room there and compact for ever.
    pub fn default_reserve(window_tokens: u64) -> u64 {
        (window_tokens / 4).clamp(1024, 8192).min(window_tokens / 2)
    }

    pub fn window_tokens(&self) -> u64 {
        self.window_tokens
    }

    pub fn reserve_tokens(&self) -> u64 {
        self.reserve_tokens
    }

    pub fn system_tokens(&self) -> u64 {
        self.system_tokens
    }

    /// Returns B: the tokens that the conversation may occupy.
    pub fn room_tokens(&self) -> u64 {
        self.window_tokens - self.reserve_tokens - self.system_tokens
    }

    /// Returns the pressure of a call. `context_tokens` is the whole projected call, system part included.
    pub fn pressure(&self, context_tokens: u64, thresholds: &Thresholds) -> Pressure {
        let conversation_tokens = context_tokens.saturating_sub(self.system_tokens);
        let room_tokens = self.room_tokens();
        let reaches = |percent| conversation_tokens * 100 >= room_tokens * percent;
        if conversation_tokens > room_tokens {
            Pressure::Overflow
        } else if reaches(thresholds.apply_percent) {
            Pressure::Apply
        } else if reaches(thresholds.prepare_percent) {
            Pressure::Prepare
        } else {
            Pressure::Calm
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedThresholds {
    prepare_percent: u64,
    apply_percent: u64,
}

impl TryFrom<UncheckedThresholds> for Thresholds {
    type Error = Error;

    fn try_from(unchecked: UncheckedThresholds) -> Result<Self, Error> {
        Self::new(unchecked.prepare_percent, unchecked.apply_percent)
    }
}

impl From<Thresholds> for UncheckedThresholds {
    fn from(checked: Thresholds) -> Self {
        Self { prepare_percent: checked.prepare_percent, apply_percent: checked.apply_percent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_rises_with_the_conversation_and_ignores_the_system_part() {
        let budget = Budget::new(4096, 1024, 1072).unwrap();
        assert_eq!(budget.room_tokens(), 2000);
        let at = |conversation: u64| budget.pressure(1072 + conversation, &Thresholds::default());
        assert_eq!(at(1499), Pressure::Calm);
        assert_eq!(at(1500), Pressure::Prepare);
        assert_eq!(at(1700), Pressure::Apply);
        assert_eq!(at(2000), Pressure::Apply);
        assert_eq!(at(2001), Pressure::Overflow);
    }

    #[test]
    fn impossible_settings_are_refused_with_advice() {
        assert!(matches!(Budget::new(1000, 1000, 0), Err(Error::ReserveTooLarge { .. })));
        let error = Budget::new(4096, 1024, 3000).unwrap_err();
        for words in
            ["shorten the agent's prompt", "3000 tokens", "the answer 1024", "window's 4096"]
        {
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
        assert!(Thresholds::new(85, 75).is_err());
        assert!(Thresholds::new(75, 96).is_err());
        assert!(
            serde_json::from_str::<Thresholds>(r#"{"prepare_percent":80,"apply_percent":80}"#)
                .is_err()
        );
    }

    #[test]
    fn the_least_window_has_room_beside_its_reserve() {
        for system_tokens in [0, 100, 2_000, 2_800, 3_000, 8_000, 24_000, 100_000] {
            let window_tokens = Budget::least_window(None, system_tokens);
            for window_tokens in [window_tokens, window_tokens.next_multiple_of(1024)] {
                let reserve_tokens = Budget::default_reserve(window_tokens);
                Budget::new(window_tokens, reserve_tokens, system_tokens).unwrap();
            }
        }
        assert!(Budget::new(Budget::least_window(Some(64), 500), 64, 500).is_ok());
        assert!(Budget::new(Budget::least_window(Some(64), 500) - 1, 64, 500).is_err());
    }

    #[test]
    fn the_reserve_follows_small_windows() {
        assert_eq!(Budget::default_reserve(1024), 512);
        assert_eq!(Budget::default_reserve(8192), 2048);
        assert_eq!(Budget::default_reserve(200_000), 8192);
    }
}
