//! The limits of a budget beside its amounts: what is left, and limits that take effect at once or warn too late.

use super::{Amount, Limit};

/// Part of a limit below which the rest is named: a tenth.
const LITTLE: i64 = 10;

/// The limits and the amounts of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    pub limit: Limit,
    pub soft: Limit,
    pub spent: Amount,
    pub reserved: Amount,
}

impl Balance {
    /// Returns what is left of each limit. It is never negative.
    pub fn left(&self) -> Limit {
        let left = |limit: i64, spent: i64, reserved: i64| {
            limit.saturating_sub(spent).saturating_sub(reserved).max(0)
        };
        let Self { limit, spent, reserved, .. } = self;
        Limit {
            micros: limit.micros.map(|limit| left(limit, spent.micros, reserved.micros)),
            tokens: limit.tokens.map(|limit| left(limit, spent.tokens, reserved.tokens)),
        }
    }

    /// Returns true if nothing is left of one of the limits.
    pub fn is_used_up(&self) -> bool {
        let left = self.left();
        left.micros == Some(0) || left.tokens == Some(0)
    }

    /// Describes limits of which little is left, and soft limits that are not below the hard one. `money` formats an amount.
    pub fn notes(&self, money: &dyn Fn(i64) -> String) -> Vec<String> {
        let tokens = |n: i64| format!("{n} tokens");
        let Self { limit, soft, spent, reserved } = self;
        let left = self.left();
        let money_notes =
            notes(limit.micros, left.micros, soft.micros, (spent.micros, reserved.micros), money);
        let token_notes =
            notes(limit.tokens, left.tokens, soft.tokens, (spent.tokens, reserved.tokens), &tokens);
        money_notes.into_iter().chain(token_notes).collect()
    }
}

fn notes(
    limit: Option<i64>,
    left: Option<i64>,
    soft: Option<i64>,
    (spent, reserved): (i64, i64),
    format: &dyn Fn(i64) -> String,
) -> Vec<String> {
    let (Some(limit), Some(left)) = (limit, left) else { return Vec::new() };
    let mut notes = Vec::new();
    if left <= limit / LITTLE {
        let rest = match left {
            0 => format!("the limit of {} is used up", format(limit)),
            left => format!("only {} is left of the limit of {}", format(left), format(limit)),
        };
        let reserved = match reserved {
            0 => String::new(),
            n => format!(", and {} are reserved", format(n)),
        };
        notes.push(format!("{rest}: {} are spent{reserved}", format(spent)));
    }
    if let Some(soft) = soft.filter(|soft| *soft >= limit) {
        notes.push(format!(
            "the soft limit of {} is not below the hard limit of {}: tasks stop before it warns",
            format(soft),
            format(limit),
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::amount::format_money;

    fn balance(limit: i64, soft: Option<i64>, spent: i64, reserved: i64) -> Balance {
        let amount = |micros| Amount { micros, tokens: 7 };
        Balance {
            limit: Limit { micros: Some(limit), tokens: None },
            soft: Limit { micros: soft, tokens: None },
            spent: amount(spent),
            reserved: amount(reserved),
        }
    }

    #[test]
    fn what_is_left_is_never_negative() {
        assert_eq!(
            balance(100, None, 60, 10).left(),
            Limit { micros: Some(30), tokens: None },
            "without a limit in tokens, none are left of it"
        );
        let over = balance(100, None, 90, 20);
        assert_eq!((over.left().micros, over.is_used_up()), (Some(0), true));
        assert!(!balance(100, None, 60, 10).is_used_up());
    }

    #[test]
    fn limits_that_take_effect_at_once_or_warn_too_late_are_named() {
        let notes = |of: Balance| of.notes(&format_money).join("\n");
        assert_eq!(notes(balance(1_000_000, Some(900_000), 500_000, 0)), "");
        let used = notes(balance(100_000, None, 120_000, 0));
        assert_eq!(used, "the limit of 0.10 is used up: 0.12 are spent");
        let nearly = notes(balance(100_000, None, 98_000, 1_000));
        assert_eq!(
            nearly,
            "only 0.001 is left of the limit of 0.10: 0.098 are spent, and 0.001 are reserved"
        );
        let late = notes(balance(1_000_000, Some(1_000_000), 0, 0));
        assert!(late.starts_with("the soft limit of 1.00 is not below the hard limit of 1.00"));
    }
}
