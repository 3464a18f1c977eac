//! Refusals that the stored errors of failed tasks describe.

use super::{Amount, Owner, Refusal, Unit, parse_money};

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
    /// The limit that the error advises.
    pub advised: i64,
    /// The error without its next step.
    pub amounts: String,
}

impl StoredRefusal {
    /// Reads the text of [`Refusal`]. `None`: the task failed for another reason.
    pub fn parse(error: &str) -> Option<Self> {
        let is_refusal =
            ["the budget of ", "this call may "].iter().any(|it| error.starts_with(it));
        let (amounts, rest) = error.split_once(RAISE).filter(|_| is_refusal)?;
        let (owner, unit, advised) = parse_command(rest.split_once('`')?.0)?;
        let amounts =
            amounts.strip_suffix("wait until running turns have ended, or ").unwrap_or(amounts);
        let amounts = amounts.strip_suffix("; ").unwrap_or(amounts).to_owned();
        let needed = amounts.rsplit_once("up to ").and_then(|(_, rest)| {
            let end = rest.find([' ', ';', ',']).unwrap_or(rest.len());
            parse_amount(unit, &rest[..end])
        });
        Some(Self { owner, unit, needed, advised, amounts })
    }

    /// Returns the needs of the call, as far as the error names them.
    pub fn call(&self) -> Amount {
        let needed = self.needed.unwrap_or(1);
        match self.unit {
            Unit::Money => Amount { micros: needed, tokens: 0 },
            Unit::Tokens => Amount { micros: 0, tokens: needed },
        }
    }

    /// Completes the refusal of [`StoredRefusal::call`] by the present amounts of the budget: the limit that the error advises is enough.
    pub fn complete(&self, refusal: Refusal) -> Refusal {
        let advised = self.advised.saturating_sub(refusal.spent).saturating_sub(refusal.reserved);
        let needed = match self.needed {
            None if refusal.unit == self.unit => refusal.needed.max(advised),
            _ => refusal.needed,
        };
        Refusal { needed, ..refusal }
    }
}

impl Owner {
    /// Returns the owner whose limit a command raises, also if another command follows it.
    pub fn of_raise_command(command: &str) -> Option<Self> {
        let first = command.split_once(" && ").map_or(command, |(first, _)| first);
        parse_command(first).map(|(owner, ..)| owner)
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
    use crate::domain::amount::OnLimit;

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
    fn the_advised_limit_of_a_used_up_budget_is_kept() {
        let owner = Owner::Campaign(Uuid::from_u128(7));
        let used_up = refusal(owner, Unit::Money, [2_000_000, 2_000_000, 0, 300_000]);
        let stored = StoredRefusal::parse(&used_up.to_string()).unwrap();
        assert_eq!((stored.needed, stored.call().micros), (None, 1));
        let now = stored.complete(Refusal { needed: 1, ..used_up });
        assert_eq!(now.sufficient_limit(), 2_300_000);
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

    #[test]
    fn the_owner_is_read_from_a_command_with_another_behind_it() {
        let command = "dalsegno budget set user 'Kim B.' --money 2.50 && dalsegno task retry 7";
        assert_eq!(Owner::of_raise_command(command), Some(Owner::User("Kim B.".into())));
        assert_eq!(Owner::of_raise_command("dalsegno task retry 7"), None);
    }
}
