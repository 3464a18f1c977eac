//! Waits for providers that refuse calls or cannot be reached.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Attention, Error, Kind, MAX_OF_KIND};
use crate::{
    domain::{
        busy_models::{self, BusyModel},
        credentials::CredentialStatus,
        sessions,
        tasks::{self, ProviderWait},
        text::count,
    },
    queue::admin,
};

/// A shorter wait for a provider is over before a person could act.
const SHORTEST_BUSY: TimeDelta = TimeDelta::minutes(1);
/// Time after which a task that waits for its server by itself is listed: a server may be restarted meanwhile.
const SHORTEST_WAIT: TimeDelta = TimeDelta::minutes(3);

/// Lists the jobs of the tasks that wait for their provider.
const LIST: &str = "dalsegno job ls --waits-for provider";

/// The waits of each provider and model, the longest first.
type ModelWaits = BTreeMap<(String, String), Vec<ProviderWait>>;

/// Lists the models whose provider refuses calls for longer than a moment, and those whose tasks wait one by one. Waits for a paused
/// credential belong to the credential.
pub(super) async fn list(
    conn: &mut PgConnection,
    paused: &[CredentialStatus],
    now: DateTime<Utc>,
) -> Result<Vec<Attention>, Error> {
    let busy = busy_models::list(&mut *conn, now).await?;
    let mut waits = waits_by_model(&mut *conn, paused, now).await?;
    let mut all = Vec::new();
    for model in busy.iter().filter(|model| is_refusing(model, now)) {
        let of_model = waits.remove(&(model.provider.clone(), model.model.clone()));
        let longest = of_model.as_ref().and_then(|waits| waits.first());
        all.push(of_busy(model, longest.map(|wait| wait.task_id)));
    }
    let mut unreachable: Vec<_> = waits.into_iter().collect();
    unreachable.retain(|(_, waits)| waits.iter().any(|wait| now - wait.since >= SHORTEST_WAIT));
    unreachable.sort_by_key(|(_, waits)| waits.first().map(|wait| wait.since));
    let max = usize::try_from(MAX_OF_KIND).unwrap_or(usize::MAX);
    for ((provider, model), waits) in unreachable.into_iter().take(max) {
        let Some(longest) = waits.first() else { continue };
        let runs = admin::runs_of(&mut *conn, longest.job_id).await?;
        let error = runs.into_iter().find_map(|run| run.error).unwrap_or_default();
        all.push(of_waits(&format!("{model} on {provider}"), &waits, longest, &error));
    }
    Ok(all)
}

async fn waits_by_model(
    conn: &mut PgConnection,
    paused: &[CredentialStatus],
    now: DateTime<Utc>,
) -> Result<ModelWaits, Error> {
    let mut by_model = ModelWaits::new();
    let waits = tasks::provider_waits(&mut *conn, now).await?;
    if waits.is_empty() {
        return Ok(by_model);
    }
    let ids: Vec<Uuid> = waits.iter().map(|wait| wait.session_id).collect();
    let models = sessions::models_of(&mut *conn, &ids).await?;
    let models: BTreeMap<Uuid, _> = models.into_iter().map(|model| (model.id, model)).collect();
    for wait in waits {
        let Some(model) = models.get(&wait.session_id) else { continue };
        let is_paused = |one: &CredentialStatus| {
            one.provider == model.provider && Some(&one.name) == model.credential.as_ref()
        };
        if !paused.iter().any(is_paused) {
            let key = (model.provider.clone(), model.model.clone());
            by_model.entry(key).or_default().push(wait);
        }
    }
    Ok(by_model)
}

fn is_refusing(model: &BusyModel, now: DateTime<Utc>) -> bool {
    model.until > now && model.until - model.since >= SHORTEST_BUSY
}

/// Describes a busy model. `longest` is the task that has waited for it for the longest time.
fn of_busy(model: &BusyModel, longest: Option<Uuid>) -> Attention {
    let BusyModel { provider, model, since, until, refusals, why } = model;
    let refused = count(*refusals, "call was refused", "calls in a row were refused");
    let because = format!("{refused}, and all tasks with this model wait: {why}");
    let name = format!("{model} on {provider}");
    let command = LIST.to_owned();
    Attention {
        since: Some(*since),
        until: Some(*until),
        then: longest.map(|task| format!("dalsegno task explain {task}")),
        ..Attention::of(Kind::BusyModel, &name, because, command)
    }
}

/// Describes tasks that are put off one by one. The error of the one that has waited for the longest time names the server.
fn of_waits(name: &str, waits: &[ProviderWait], longest: &ProviderWait, error: &str) -> Attention {
    let waiting = count(waits.len(), "task waits for it", "tasks wait for it");
    let because = match error {
        "" => waiting,
        error => format!("{waiting}: {error}"),
    };
    let then = match waits.len() {
        0 | 1 => format!("dalsegno task explain {}", longest.task_id),
        _ => LIST.to_owned(),
    };
    Attention {
        since: Some(longest.since),
        until: Some(longest.until),
        then: Some(then),
        count: i64::try_from(waits.len()).ok(),
        ..Attention::of(Kind::ProviderWait, name, because, "dalsegno doctor".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_refuses_for_a_moment_needs_no_person() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::hours(1);
        let model = |since: i64, until: i64| BusyModel {
            provider: "anthropic".to_owned(),
            model: "claude".to_owned(),
            since: now + TimeDelta::seconds(since),
            until: now + TimeDelta::seconds(until),
            refusals: 2,
            why: "503 Service Unavailable".to_owned(),
        };
        assert!(!is_refusing(&model(-5, 10), now));
        assert!(!is_refusing(&model(-600, -1), now));
        let busy = model(-600, 30);
        assert!(is_refusing(&busy, now));
        let found = of_busy(&busy, Some(Uuid::nil()));
        assert_eq!((found.name.as_str(), found.until), ("claude on anthropic", Some(busy.until)));
        assert!(found.because.contains("503 Service Unavailable"), "{}", found.because);
        assert_eq!(found.then, Some(format!("dalsegno task explain {}", Uuid::nil())));
        assert_eq!(found.command, LIST);
    }

    #[test]
    fn several_tasks_that_wait_lead_to_their_list_and_one_to_its_explanation() {
        let at = DateTime::UNIX_EPOCH;
        let wait = ProviderWait {
            task_id: Uuid::nil(),
            job_id: 1,
            session_id: Uuid::nil(),
            since: at,
            until: at,
        };
        let then = |n| of_waits("m on p", &[wait, wait][..n], &wait, "").then.unwrap();
        assert_eq!(then(1), format!("dalsegno task explain {}", Uuid::nil()));
        assert_eq!(then(2), LIST);
    }
}
