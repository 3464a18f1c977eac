//! Tasks that failed with the same error: one matter for a person.

use super::{Attention, Kind, MAX_OF_KIND};

impl Attention {
    /// Returns the budget at which a task failed, such as `agent/writer`, if it would refuse a retry, too.
    pub fn refusing_budget(&self) -> Option<&str> {
        self.budget.as_deref().filter(|_| self.kind == Kind::FailedTask)
    }

    fn is_same_failure(&self, other: &Self) -> bool {
        // A step is retried with its flow.
        let is_task = |it: &Self| it.kind == Kind::FailedTask && it.flow_id.is_none();
        // Budgets may refuse calls with the same amounts, and each has a limit of its own.
        is_task(self)
            && is_task(other)
            && self.because == other.because
            && self.refusing_budget() == other.refusing_budget()
    }
}

/// Puts tasks together that failed with the same error, at the place of the newest. Other matters are groups of one.
pub fn group_failures(items: &[Attention]) -> Vec<Vec<&Attention>> {
    let mut groups: Vec<Vec<&Attention>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| group[0].is_same_failure(item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Returns true if more tasks may have failed than are listed.
pub fn may_lack_failures(items: &[Attention]) -> bool {
    let n_failed = items.iter().filter(|it| it.kind == Kind::FailedTask).count();
    i64::try_from(n_failed).is_ok_and(|n| n >= MAX_OF_KIND)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn item(kind: Kind, subject: &str, because: &str) -> Attention {
        let retry = format!("dalsegno task retry {subject}");
        Attention::of(kind, subject, because.to_owned(), retry)
    }

    fn subjects(items: &[Attention]) -> Vec<String> {
        let of = |group: &Vec<&Attention>| {
            group.iter().map(|it| it.subject.clone()).collect::<Vec<_>>().join(" ")
        };
        group_failures(items).iter().map(of).collect()
    }

    #[test]
    fn tasks_with_the_same_error_are_one_group() {
        let items = [
            item(Kind::FailedTask, "1", "no login"),
            item(Kind::FailedTask, "2", "refused"),
            item(Kind::HeldJobs, "turns", "no login"),
            item(Kind::FailedTask, "3", "no login"),
        ];
        assert_eq!(subjects(&items), ["1 3", "2", "turns"]);
    }

    #[test]
    fn equal_refusals_of_two_budgets_are_two_groups() {
        let refused = |id: &str, agent: &str| Attention {
            budget: Some(format!("agent/{agent}")),
            ..item(Kind::FailedTask, id, "this call may cost up to 0.80")
        };
        let items = [refused("1", "planner"), refused("2", "writer"), refused("3", "planner")];
        assert_eq!(subjects(&items), ["1 3", "2"]);
    }

    #[test]
    fn steps_that_are_retried_with_their_flows_stay_apart() {
        let step = |flow_id: u128| Attention {
            flow_id: Some(Uuid::from_u128(flow_id)),
            ..item(Kind::FailedTask, "1", "used up")
        };
        assert_eq!(group_failures(&[step(1), step(2)]).len(), 2);
    }

    #[test]
    fn a_full_list_of_failed_tasks_may_lack_some() {
        let mut items = vec![item(Kind::FailedTask, "1", "no login"); 19];
        items.push(item(Kind::HeldJobs, "turns", ""));
        assert!(!may_lack_failures(&items));
        items.push(item(Kind::FailedTask, "20", "no login"));
        assert!(may_lack_failures(&items));
    }
}
