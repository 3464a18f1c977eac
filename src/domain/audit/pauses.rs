//! Authors of pauses that are in force.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sqlx::PgExecutor;

use super::{action::Action, cut_short};
use crate::domain::StatementError;

/// Largest distance between a pause and a line that does not name the time of its pause: their clocks can differ.
const MAX_DISTANCE: TimeDelta = TimeDelta::seconds(10);
/// Field of a line's data: the time of the pause as it is stored with the pause.
const PAUSED_AT: &str = "paused_at";

/// The kind of thing that a pause covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseSubject {
    /// By its id. Its jobs are a group of the queue, which can be paused by itself.
    Campaign,
    Flow,
    Queue,
}

impl PauseSubject {
    /// Actions that pause, and those that resume.
    fn actions(self) -> (&'static [Action], &'static [Action]) {
        match self {
            Self::Campaign => (
                &[Action::CampaignPause, Action::GroupPause],
                &[Action::CampaignResume, Action::GroupResume],
            ),
            Self::Flow => (&[Action::FlowPause], &[Action::FlowResume]),
            Self::Queue => (&[Action::QueuePause], &[Action::QueueResume]),
        }
    }
}

/// Builds the data of a line about a pause.
pub fn pause_data(reason: &str, paused_at: Option<DateTime<Utc>>) -> Value {
    match paused_at {
        Some(at) => json!({ "reason": reason, PAUSED_AT: at }),
        None => json!({ "reason": reason }),
    }
}

/// Returns the author of a pause as `kind:name`. `None`: it was made in SQL, or the log does not have it any more.
///
/// The last line about pausing or resuming the subject counts, and only if it is about this pause: after a resume, a statement can have
/// paused it again, or given the pause another reason. `reason`: that of the pause; a flow's pause has none.
pub async fn pause_author(
    executor: impl PgExecutor<'_>,
    kind: PauseSubject,
    subject: &str,
    paused_at: DateTime<Utc>,
    reason: Option<&str>,
) -> Result<Option<String>, StatementError> {
    let (pauses, resumes) = kind.actions();
    let actions: Vec<String> =
        pauses.iter().chain(resumes).map(|action| action.as_str().to_owned()).collect();
    let last = sqlx::query!(
        "select at, action, actor_kind, actor, data from dalsegno.audit where subject = $1 and action = any($2) order by id desc limit 1",
        subject,
        actions.as_slice(),
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the author of a pause"))?;
    let is_its_line = |action: &str, at, data: &Value| {
        pauses.iter().any(|pause| pause.as_str() == action)
            && is_about(at, data, paused_at)
            && has_reason(data, reason)
    };
    let line = last.filter(|line| is_its_line(&line.action, line.at, &line.data));
    Ok(line.map(|line| match line.actor.as_str() {
        "" => line.actor_kind,
        actor => format!("{}:{actor}", line.actor_kind),
    }))
}

/// Returns true if a line is about the pause that began at this moment.
fn is_about(at: DateTime<Utc>, data: &Value, paused_at: DateTime<Utc>) -> bool {
    let named = data[PAUSED_AT].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
    match named {
        Some(named) => named == paused_at,
        None => (at - paused_at).abs() <= MAX_DISTANCE,
    }
}

/// Returns true unless a line names another reason than this one: a pause of something that is paused replaces the reason alone. The line
/// has the reason as the log cuts it.
fn has_reason(data: &Value, reason: Option<&str>) -> bool {
    let named = data["reason"].as_str().map(Value::from);
    named.zip(reason).is_none_or(|(named, reason)| {
        let mut reason = Value::from(reason);
        cut_short(&mut reason);
        named == reason
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_the_pause_of_its_time() {
        let at: DateTime<Utc> = "2026-11-20T12:00:00.123456Z".parse().unwrap();
        let later = at + TimeDelta::hours(1);
        // The clock of the line does not matter if it names the time of the pause.
        assert!(is_about(later, &pause_data("", Some(at)), at));
        assert!(!is_about(at, &pause_data("", Some(later)), at));
        let unnamed = pause_data("", None);
        assert!(is_about(at + TimeDelta::seconds(10), &unnamed, at));
        assert!(!is_about(later, &unnamed, at) && !is_about(at, &unnamed, later));
    }

    #[test]
    fn a_line_with_a_cut_reason_is_about_its_pause() {
        let reason = "x".repeat(400);
        let mut data = pause_data(&reason, None);
        cut_short(&mut data);
        assert!(has_reason(&data, Some(&reason)) && has_reason(&data, None));
        assert!(!has_reason(&data, Some(&"x".repeat(299))));
        assert!(has_reason(&pause_data("short", None), Some("short")));
    }
}
