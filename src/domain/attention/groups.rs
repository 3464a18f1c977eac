//! Tasks that failed with the same error, or at the same budget: one matter for a person.

use super::{Attention, FAILED_WITHIN, FailureTotals, Kind, MAX_OF_KIND};
use crate::domain::text::{count, count_read};

impl Attention {
    /// Returns the budget at which a task failed, such as `agent/writer`, if it would refuse a retry, too.
    pub fn refusing_budget(&self) -> Option<&str> {
        self.budget.as_deref().filter(|_| self.kind == Kind::FailedTask)
    }
}

/// Counts and names the members of a group: all of them are steps of one flow, or none is a step. `is_cut`: not all failures were read.
pub fn count_members(group: &[&Attention], is_cut: bool) -> String {
    let (one, many) = match group[0].flow_id {
        Some(_) => ("step of a flow", "steps of a flow"),
        None => ("task", "tasks"),
    };
    count_read(count_group(group), is_cut, one, many)
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

/// Names what the failures of a group have in common. Errors at one budget differ in what was spent then, also those that are not listed.
pub fn describe_group(group: &[&Attention]) -> &'static str {
    let is_known = !lacks_members(group) && group.iter().all(|it| it.because == group[0].because);
    match is_known || group.iter().all(|it| it.refused_by.is_none()) {
        true => "with the same error",
        false => "at the same budget",
    }
}

/// Counts the members of a group, with those that are not listed.
pub fn count_group(group: &[&Attention]) -> i64 {
    let n_unlisted: i64 = group.iter().filter_map(|it| it.unlisted).sum();
    i64::try_from(group.len()).unwrap_or(i64::MAX).saturating_add(n_unlisted)
}

/// Returns true if a group has members that are not listed.
pub fn lacks_members(group: &[&Attention]) -> bool {
    group.iter().any(|it| it.unlisted.is_some())
}

/// Puts tasks together that failed with the same error or at the same budget, at the place of the newest: steps of a flow with those of the
/// same flow. Other matters are groups of one.
pub fn group_failures(items: &[Attention]) -> Vec<Vec<&Attention>> {
    let mut groups: Vec<Vec<&Attention>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| item.group.is_some() && group[0].group == item.group) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Describes what is unknown after the newest `n_read` failed tasks of the period were read, of which there may be more.
pub fn describe_unread(n_read: i64) -> String {
    let read = count(n_read, "failed task", "failed tasks");
    let days = count(FAILED_WITHIN.num_days(), "day", "days");
    format!(
        "Only the newest {read} of the last {days} were read: counts may be too low, and older failures may be missing."
    )
}

/// Describes failures that are missing in the list: those beyond the groups that are listed, and beyond the tasks that were read.
pub fn describe_cut(failures: &FailureTotals) -> Option<String> {
    let groups = (failures.groups > MAX_OF_KIND).then(|| {
        format!(
            "{MAX_OF_KIND} of {} different failures are listed, the newest first.",
            failures.groups
        )
    });
    let tasks = failures.is_cut.then(|| describe_unread(failures.read));
    let all: Vec<String> = groups.into_iter().chain(tasks).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn item(kind: Kind, subject: &str, because: &str) -> Attention {
        let retry = format!("dalsegno task retry {subject}");
        Attention::of(kind, subject, because.to_owned(), retry)
    }

    fn failed(group: i64, subject: &str, because: &str) -> Attention {
        Attention { group: Some(group), ..item(Kind::FailedTask, subject, because) }
    }

    fn subjects(items: &[Attention]) -> Vec<String> {
        let of = |group: &Vec<&Attention>| {
            group.iter().map(|it| it.subject.clone()).collect::<Vec<_>>().join(" ")
        };
        group_failures(items).iter().map(of).collect()
    }

    #[test]
    fn failed_tasks_are_put_together_by_the_number_of_their_group() {
        let items = [
            failed(1, "1", "no login"),
            failed(2, "2", "refused"),
            item(Kind::HeldJobs, "turns", "no login"),
            item(Kind::PausedQueue, "turns", "no login"),
            failed(1, "3", "no login"),
        ];
        assert_eq!(subjects(&items), ["1 3", "2", "turns", "turns"]);
    }

    #[test]
    fn different_errors_at_one_budget_are_not_called_the_same_error() {
        let refused = |id: &str, because: &str| Attention {
            refused_by: Some("agent/writer".to_owned()),
            ..failed(1, id, because)
        };
        let items = [refused("1", "0 of 5 are spent"), refused("2", "4 of 5 are spent")];
        let groups = group_failures(&items);
        assert_eq!(groups.len(), 1);
        assert_eq!(describe_group(&groups[0]), "at the same budget");
        assert_eq!(describe_group(&groups[0][..1]), "with the same error");
    }

    #[test]
    fn steps_of_one_flow_with_the_same_error_are_one_group_with_a_retry_of_each_step() {
        let step = |group, id: &str, flow_id: u128, step: &str| Attention {
            flow_id: Some(Uuid::from_u128(flow_id)),
            step: Some(step.to_owned()),
            command: format!("dalsegno flow retry {flow_id} --from {step}"),
            ..failed(group, id, "no login")
        };
        let raise = "dalsegno budget set day --money 1".to_owned();
        let third = step(1, "4", 1, "draft");
        let items = [
            step(1, "1", 1, "check"),
            step(1, "2", 1, "draft"),
            step(2, "3", 2, "draft"),
            Attention { then: Some(third.command.clone()), command: raise, ..third },
            failed(3, "5", "no login"),
        ];
        assert_eq!(subjects(&items), ["1 2 4", "3", "5"]);
        let groups = group_failures(&items);
        let retries = ["dalsegno flow retry 1 --from draft", "dalsegno flow retry 1 --from check"];
        assert_eq!(retry_steps(&groups[0]), retries);
        assert_eq!(count_members(&groups[0], false), "3 steps of a flow");
    }

    #[test]
    fn a_group_counts_the_members_that_are_not_listed() {
        let unlisted = |n, it| Attention { unlisted: Some(n), ..it };
        let items = [
            failed(1, "1", "no login"),
            unlisted(3, failed(2, "2", "refused")),
            unlisted(28, failed(1, "3", "no login")),
        ];
        let groups = group_failures(&items);
        assert_eq!(groups.iter().map(|it| count_group(it)).collect::<Vec<_>>(), [30, 4]);
        assert_eq!(count_members(&groups[0], false), "30 tasks");
        assert_eq!(count_members(&groups[1], true), "4 or more tasks");
        assert_eq!(describe_group(&groups[0]), "with the same error");
        let refused = Attention { refused_by: Some("day".to_owned()), ..items[2].clone() };
        assert_eq!(describe_group(&[&refused, &refused]), "at the same budget");
    }

    #[test]
    fn a_list_says_which_failures_it_lacks() {
        let totals = |read, is_cut, groups| FailureTotals { read, is_cut, groups };
        assert_eq!(describe_cut(&totals(999, false, 20)), None);
        let groups = describe_cut(&totals(999, false, 21)).unwrap();
        assert_eq!(groups, "20 of 21 different failures are listed, the newest first.");
        let both = describe_cut(&totals(1_000, true, 21)).unwrap();
        let tasks = both.strip_prefix(&groups).unwrap();
        assert!(tasks.contains("the newest 1000 failed tasks of the last 7 days"), "{both}");
        assert_eq!(describe_cut(&totals(1_000, true, 1)).as_deref(), Some(tasks.trim_start()));
    }
}
