//! Waits for providers that refuse calls or cannot be reached.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Attention, Error, Kind, MAX_OF_KIND};
use crate::{
    domain::{
        busy_models::{self, BusyModel},
        credentials::{self, CredentialStatus},
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

/// A model whose tasks wait for their provider one by one, in most cases for a server that cannot be reached.
#[derive(Debug, Clone)]
pub struct WaitingModel {
    pub provider: String,
    pub model: String,
    /// Number of its tasks that wait.
    pub tasks: usize,
    /// The wait of the task that has waited for the longest time.
    pub longest: ProviderWait,
    /// The error of the last run of that task, which names the server.
    pub error: String,
}

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
    for waiting in waiting_of(&mut *conn, waits, now).await? {
        all.push(of_waits(&waiting));
    }
    Ok(all)
}

/// Lists the models whose tasks wait for their provider one by one for longer than a moment, and not together for a model that is busy. The
/// longest wait is first.
pub async fn waiting_models(
    conn: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Vec<WaitingModel>, Error> {
    let paused = credentials::list_paused(&mut *conn, now).await?;
    let mut waits = waits_by_model(&mut *conn, &paused, now).await?;
    for busy in busy_models::list(&mut *conn, now).await? {
        waits.remove(&(busy.provider, busy.model));
    }
    waiting_of(conn, waits, now).await
}

async fn waiting_of(
    conn: &mut PgConnection,
    waits: ModelWaits,
    now: DateTime<Utc>,
) -> Result<Vec<WaitingModel>, Error> {
    let mut waits: Vec<_> = waits.into_iter().filter(|(_, waits)| is_long(waits, now)).collect();
    waits.sort_by_key(|(_, waits)| waits.first().map(|wait| wait.since));
    let max = usize::try_from(MAX_OF_KIND).unwrap_or(usize::MAX);
    let mut all = Vec::new();
    for ((provider, model), waits) in waits.into_iter().take(max) {
        let Some(longest) = waits.first().copied() else { continue };
        let runs = admin::runs_of(&mut *conn, longest.job_id).await?;
        let error = runs.into_iter().find_map(|run| run.error).unwrap_or_default();
        all.push(WaitingModel { provider, model, tasks: waits.len(), longest, error });
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

/// Returns true if a task waits for so long that its server is not just being restarted.
fn is_long(waits: &[ProviderWait], now: DateTime<Utc>) -> bool {
    waits.iter().any(|wait| now - wait.since >= SHORTEST_WAIT)
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

/// Describes tasks that are put off one by one.
fn of_waits(waiting: &WaitingModel) -> Attention {
    let WaitingModel { provider, model, tasks, longest, error } = waiting;
    let name = format!("{model} on {provider}");
    let waiting = count(*tasks, "task waits for it", "tasks wait for it");
    let because = match error.as_str() {
        "" => waiting,
        error => format!("{waiting}: {error}"),
    };
    let then = match *tasks {
        0 | 1 => format!("dalsegno task explain {}", longest.task_id),
        _ => LIST.to_owned(),
    };
    Attention {
        since: Some(longest.since),
        until: Some(longest.until),
        then: Some(then),
        count: i64::try_from(*tasks).ok(),
        ..Attention::of(Kind::ProviderWait, &name, because, "dalsegno doctor".to_owned())
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
    fn several_long_waits_lead_to_their_list_and_one_to_its_explanation() {
        let at = DateTime::UNIX_EPOCH;
        let wait = ProviderWait {
            task_id: Uuid::nil(),
            job_id: 1,
            session_id: Uuid::nil(),
            since: at,
            until: at,
        };
        let (provider, model, error) = ("p".to_owned(), "m".to_owned(), String::new());
        let waiting = WaitingModel { provider, model, tasks: 1, longest: wait, error };
        assert_eq!(of_waits(&waiting).name, "m on p");
        let then = |tasks| of_waits(&WaitingModel { tasks, ..waiting.clone() }).then.unwrap();
        assert_eq!(then(1), format!("dalsegno task explain {}", Uuid::nil()));
        assert_eq!(then(2), LIST);
        let is_long = |secs| is_long(&[wait], at + TimeDelta::seconds(secs));
        assert!(!is_long(1) && is_long(180));
    }
}
