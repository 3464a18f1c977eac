//! Refusals that the stored errors of failed tasks describe.

use super::{Amount, Owner, Unit, parse_money};

/// The words before the command that raises the limit.
const RAISE: &str = "raise the limit with `";

/// The refusal that a task has failed with, as its stored error describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRefusal {
    /// A day has no date: the budget of the present day is meant.
    pub owner: Owner,
    pub unit: Unit,
    /// The needs of the call. `None`: the budget was used up, and the error does not name them.
    pub needed: Option<i64>,
    /// The amount that was spent then. `None`: the budget was not used up.
    pub spent: Option<i64>,
    /// The limit that the error advises.
    pub advised: i64,
    /// The error without its next step.
    pub amounts: String,
}

impl StoredRefusal {
    /// Reads the text of [`Refusal`](super::Refusal). `None`: the task failed for another reason.
    pub fn parse(error: &str) -> Option<Self> {
        let is_refusal =
            ["the budget of ", "this call may "].iter().any(|it| error.starts_with(it));
        let (amounts, rest) = error.split_once(RAISE).filter(|_| is_refusal)?;
        let (owner, unit, advised) = parse_command(rest.split_once('`')?.0)?;
        let amounts =
            amounts.strip_suffix("wait until running turns have ended, or ").unwrap_or(amounts);
        let amounts = amounts.strip_suffix("; ").unwrap_or(amounts).to_owned();
        let amount_after = |words: &str| {
            let (_, rest) = amounts.rsplit_once(words)?;
            let end = rest.find([' ', ';', ',']).unwrap_or(rest.len());
            parse_amount(unit, &rest[..end])
        };
        let spent = amount_after(" is used up: ");
        let needed = amount_after("up to ").filter(|_| spent.is_none());
        Some(Self { owner, unit, needed, spent, advised, amounts })
    }

    /// Returns the needs of the call, beside the present amounts of the budget. If the error does not name them, the limit that it advises is
    /// enough for them. A budget of which less is spent than then has begun another period, with the same needs.
    pub fn call(&self, spent: Amount, reserved: Amount) -> Amount {
        let needed = self.needed.unwrap_or_else(|| {
            let present = spent.of(self.unit).saturating_add(reserved.of(self.unit));
            let gone = present.max(self.spent.unwrap_or(0));
            self.advised.saturating_sub(gone).max(1)
        });
        match self.unit {
            Unit::Money => Amount { micros: needed, tokens: 0 },
            Unit::Tokens => Amount { micros: 0, tokens: needed },
        }
    }
}

fn parse_command(command: &str) -> Option<(Owner, Unit, i64)> {
    let (target, flag) = command.rsplit_once(" --")?;
    let (flag, value) = flag.split_once(' ')?;
    let unit = match flag {
        "money" => Unit::Money,
        "tokens" => Unit::Tokens,
        _ => return None,
    };
    Some((parse_target(target)?, unit, parse_amount(unit, value)?))
}

fn parse_target(target: &str) -> Option<Owner> {
    let after = |prefix: &str| target.strip_prefix(prefix);
    if let Some(id) = after("dalsegno campaign budget ") {
        return id.parse().ok().map(Owner::Campaign);
    }
    if let Some(id) = after("dalsegno task budget ") {
        return id.parse().ok().map(Owner::Task);
    }
    if let Some(name) = after("dalsegno budget set agent ") {
        return Some(Owner::Agent(unquote(name).into()));
    }
    if let Some(name) = after("dalsegno budget set user ") {
        return Some(Owner::User(unquote(name).into()));
    }
    (target == "dalsegno budget set day").then(|| Owner::Day("".into()))
}

fn parse_amount(unit: Unit, text: &str) -> Option<i64> {
    match unit {
        Unit::Money => parse_money(text).ok(),
        Unit::Tokens => text.parse().ok(),
    }
}

/// Returns the name that is quoted for a shell.
fn unquote(text: &str) -> String {
    match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(name) => name.replace(r"'\''", "'"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::amount::{Limit, OnLimit, Refusal};

    fn refusal(owner: Owner, unit: Unit, [limit, spent, reserved, needed]: [i64; 4]) -> Refusal {
        let (call, on_limit) = (Amount::ZERO, OnLimit::Fail);
        Refusal { owner, unit, limit, spent, reserved, needed, call, on_limit, ends: None }
    }

    #[test]
    fn every_refusal_is_read_from_its_text() {
        let owners = [
            Owner::Campaign(Uuid::from_u128(7)),
            Owner::Task(Uuid::from_u128(8)),
            Owner::Agent("writer".into()),
            Owner::User("Kim O'Neil up to".into()),
            Owner::Day("2026-11-25".into()),
        ];
        let [larger, later, small] = [
            [500_000, 0, 0, 800_000],
            [2_000_000, 1_800_000, 150_000, 100_000],
            [2_000_000, 1_990_000, 0, 20_000],
        ];
        for owner in owners {
            for unit in [Unit::Money, Unit::Tokens] {
                for numbers in [larger, later, small] {
                    let refusal = refusal(owner.clone(), unit, numbers);
                    let stored = StoredRefusal::parse(&refusal.to_string()).unwrap();
                    assert_eq!(stored.owner.columns(), owner.columns());
                    assert_eq!((stored.unit, stored.needed), (unit, Some(numbers[3])), "{refusal}");
                    assert_eq!(stored.advised, refusal.sufficient_limit());
                    assert_eq!(stored.amounts, refusal.amounts());
                }
            }
        }
    }

    #[test]
    fn the_advised_limit_of_a_used_up_budget_is_enough_and_a_smaller_one_is_not() {
        let owner = Owner::Campaign(Uuid::from_u128(7));
        let used_up = refusal(owner.clone(), Unit::Money, [2_000_000, 2_000_000, 0, 300_000]);
        let stored = StoredRefusal::parse(&used_up.to_string()).unwrap();
        assert_eq!((stored.needed, stored.spent), (None, Some(2_000_000)));
        let money = |micros| Amount { micros, tokens: 0 };
        let check = |limit, spent, reserved| {
            let limit = Limit { micros: Some(limit), tokens: None };
            let call = stored.call(money(spent), money(reserved));
            limit.check(owner.clone(), money(spent), money(reserved), call)
        };
        let raised_too_little = check(2_100_000, 2_000_000, 0).unwrap_err();
        assert_eq!(raised_too_little.sufficient_limit(), 2_300_000);
        assert_eq!(check(2_300_000, 2_000_000, 0), Ok(()));
        // Other turns run, or have ended since.
        assert_eq!(check(2_300_000, 2_000_000, 100_000), Ok(()));
        assert_eq!(check(2_300_000, 2_299_999, 0), Ok(()));
        assert!(check(2_300_000, 2_300_000, 0).is_err());
        // The next day.
        assert_eq!(check(2_000_000, 0, 0), Ok(()));
    }

    /// The words of the release before this one, which are in the database after an upgrade.
    #[test]
    fn refusals_of_the_last_release_are_read() {
        let id = "0192f0c1-2b3c-7d4e-8f50-000000000007";
        let owner = Owner::Campaign(id.parse().unwrap());
        let command = format!("raise the limit with `dalsegno campaign budget {id}");
        let larger = "the budget of the campaign does not allow the call: 0 tokens of 100 tokens are spent, and up to 101 tokens are needed, more than the whole limit";
        let stored = StoredRefusal::parse(&format!(
            "{larger}; {command} --tokens 110`, or remove it with --no-tokens"
        ));
        let expected = StoredRefusal {
            owner: owner.clone(),
            unit: Unit::Tokens,
            needed: Some(101),
            spent: None,
            advised: 110,
            amounts: larger.to_owned(),
        };
        assert_eq!(stored, Some(expected.clone()));
        let later = "the budget of the campaign does not allow the call: 1.80 of 2.00 are spent, 0.15 are set aside for running turns, and up to 0.1005 are needed";
        let stored = StoredRefusal::parse(&format!(
            "{later}; wait until running turns have ended, or {command} --money 2.10`, or remove it with --no-money"
        ));
        let money = StoredRefusal {
            unit: Unit::Money,
            needed: Some(100_500),
            advised: 2_100_000,
            amounts: later.to_owned(),
            ..expected
        };
        assert_eq!(stored, Some(money.clone()));
        let used_up = "the budget of the day 2026-11-25 is used up: 2.00 of 2.00 are spent";
        let stored = StoredRefusal::parse(&format!(
            "{used_up}; raise the limit with `dalsegno budget set day --money 2.30`, or remove it with --no-money"
        ));
        let day = StoredRefusal {
            owner: Owner::Day("".into()),
            needed: None,
            spent: Some(2_000_000),
            advised: 2_300_000,
            amounts: used_up.to_owned(),
            ..money
        };
        assert_eq!(stored, Some(day));
    }

    #[test]
    fn other_errors_are_no_refusals() {
        for error in [
            "it broke",
            "the budget of the campaign is odd",
            "the provider said: raise the limit with `dalsegno budget set day --money 5`",
            "the budget of the campaign for experiments is used up; raise the limit with `dalsegno campaign budget 7 --experiments 5`",
        ] {
            assert_eq!(StoredRefusal::parse(error), None, "{error}");
        }
    }
}
