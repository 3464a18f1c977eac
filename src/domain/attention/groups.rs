//! Tasks that failed with the same error, or at the same budget: one matter for a person.

use super::{Attention, Kind, MAX_OF_KIND};

impl Attention {
    /// Returns the budget at which a task failed, such as `agent/writer`, if it would refuse a retry, too.
    pub fn refusing_budget(&self) -> Option<&str> {
        self.budget.as_deref().filter(|_| self.kind == Kind::FailedTask)
    }

    /// Returns the present amounts of the budget at which a task failed, or else the reason. Errors at one budget differ in what was spent then.
    fn present_reason(&self) -> &str {
        self.present.as_deref().unwrap_or(&self.because)
    }

    fn is_same_failure(&self, other: &Self) -> bool {
        let is_task = |it: &Self| it.kind == Kind::FailedTask;
        // A step is retried with its flow. Budgets may refuse calls with the same amounts, and each has a limit of its own.
        is_task(self)
            && is_task(other)
            && self.flow_id == other.flow_id
            && self.present_reason() == other.present_reason()
            && self.refusing_budget() == other.refusing_budget()
    }
}

/// Names the members of a group: all of them are steps of one flow, or none is a step.
pub fn name_members(group: &[&Attention]) -> &'static str {
    match group[0].flow_id {
        Some(_) => "steps of a flow",
        None => "tasks",
    }
}

/// Returns the commands that run the steps of a group again: one for each step, the one that failed first at the top. A flow is retried from
/// a step, with all its tasks.
pub fn retry_steps<'a>(group: &[&'a Attention]) -> Vec<&'a str> {
    let mut commands: Vec<&str> = Vec::new();
    for item in group.iter().rev() {
        let command = item.then.as_ref().unwrap_or(&item.command);
        if !commands.contains(&command.as_str()) {
            commands.push(command);
        }
    }
    commands
}

/// Names what the failures of a group have in common.
pub fn describe_group(group: &[&Attention]) -> &'static str {
    match group.iter().all(|it| it.because == group[0].because) {
        true => "with the same error",
        false => "at the same budget",
    }
}

/// Puts tasks together that failed with the same error or at the same budget, at the place of the newest: steps of a flow with those of the
/// same flow. Other matters are groups of one.
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
    fn different_errors_at_one_budget_are_one_group_while_its_amounts_refuse_each() {
        let refused = |id: &str, because: &str| Attention {
            budget: Some("agent/writer".to_owned()),
            present: Some("9 of 10 are spent".to_owned()),
            ..item(Kind::FailedTask, id, because)
        };
        let items = [refused("1", "0 of 5 are spent"), refused("2", "4 of 5 are spent")];
        let groups = group_failures(&items);
        assert_eq!(groups.len(), 1);
        assert_eq!(describe_group(&groups[0]), "at the same budget");
        assert_eq!(describe_group(&groups[0][..1]), "with the same error");
    }

    #[test]
    fn steps_of_one_flow_with_the_same_error_are_one_group_with_a_retry_of_each_step() {
        let step = |id: &str, flow_id: u128, step: &str, because: &str| Attention {
            flow_id: Some(Uuid::from_u128(flow_id)),
            step: Some(step.to_owned()),
            command: format!("dalsegno flow retry {flow_id} --from {step}"),
            ..item(Kind::FailedTask, id, because)
        };
        let raise = "dalsegno budget set day --money 1".to_owned();
        let third = step("5", 1, "draft", "no login");
        let items = [
            step("1", 1, "check", "no login"),
            step("2", 1, "draft", "no login"),
            step("3", 2, "draft", "no login"),
            step("4", 1, "draft", "refused"),
            Attention { then: Some(third.command.clone()), command: raise, ..third },
            item(Kind::FailedTask, "6", "no login"),
        ];
        assert_eq!(subjects(&items), ["1 2 5", "3", "4", "6"]);
        let groups = group_failures(&items);
        let retries = ["dalsegno flow retry 1 --from draft", "dalsegno flow retry 1 --from check"];
        assert_eq!(retry_steps(&groups[0]), retries);
        assert_eq!(name_members(&groups[0]), "steps of a flow");
        assert_eq!(name_members(&groups[3]), "tasks");
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
