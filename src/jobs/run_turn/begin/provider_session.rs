//! Conversations that their provider keeps: their credential, and the messages that the provider has.
//!
//! The provider's copy is a cache of the stored messages. If it belongs to another view, or its transcript is gone, the
//! provider writes a new one from the messages that every call carries.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    domain::{
        credentials::{self, PausedCredential},
        sessions::SessionRow,
    },
    jobs::{
        Services,
        run_turn::{
            error::{BeginRefusal, Error},
            load::assignment::Assignment,
        },
    },
};

/// The provider's id of a conversation, and its credential.
pub struct ProviderBinding {
    pub external_id: Uuid,
    pub credential: String,
}

/// Last place of the transcript that the provider has, if it has the current view.
pub fn received_to_seq(session: &SessionRow) -> Option<i64> {
    session.head_seq.filter(|_| session.head_generation == Some(session.generation))
}

/// Returns the id of the conversation, and its credential: the one that it began with while that is configured,
/// otherwise the first that is not paused. `None`: the provider keeps no conversations.
pub async fn bind(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    session: &SessionRow,
) -> Result<Option<ProviderBinding>, Error> {
    let route = &assignment.route;
    if !route.provider.holds_session() {
        return Ok(None);
    }
    let now = services.clock.now();
    let paused = credentials::paused(conn, &route.provider_name, now).await?;
    let configured = route.provider.credentials();
    let credential = choose(&configured, session.credential.as_deref(), &paused)
        .map_err(|why| Error::Refused(why.into_refused(now)))?;
    let external_id = session.external_session_id.as_deref().and_then(|id| id.parse().ok());
    Ok(Some(ProviderBinding {
        external_id: external_id.unwrap_or_else(Uuid::new_v4),
        credential: credential.to_owned(),
    }))
}

/// The reason why a conversation has no credential.
#[derive(Debug)]
enum NoUsableCredential<'a> {
    NoneConfigured,
    Paused(&'a PausedCredential),
}

fn choose<'a>(
    configured: &[&'a str],
    own: Option<&str>,
    paused: &'a [PausedCredential],
) -> Result<&'a str, NoUsableCredential<'a>> {
    let paused = |credential: &str| paused.iter().find(|paused| paused.name == credential);
    let candidates: Vec<&str> = match configured.iter().find(|credential| Some(**credential) == own)
    {
        Some(own) => vec![own],
        None => configured.to_vec(),
    };
    match candidates.iter().find(|credential| paused(credential).is_none()) {
        Some(credential) => Ok(credential),
        None => Err(candidates
            .iter()
            .filter_map(|credential| paused(credential))
            .min_by_key(|paused| paused.until)
            .map_or(NoUsableCredential::NoneConfigured, NoUsableCredential::Paused)),
    }
}

impl NoUsableCredential<'_> {
    fn into_refused(self, now: DateTime<Utc>) -> BeginRefusal {
        match self {
            Self::NoneConfigured => BeginRefusal::for_good(
                "no credential is configured for Claude: add one to claude.credentials, or name another provider in the agent's file",
            ),
            Self::Paused(PausedCredential { name, until, why }) => {
                let until_when = until.format("%Y-%m-%d %H:%M:%S UTC");
                let why = format!("credential {name} is paused until {until_when}: {why}");
                let after = (*until - now).to_std().unwrap_or_default();
                BeginRefusal::busy(why, after, 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    fn paused(name: &str, minute: u32) -> PausedCredential {
        let until = Utc.with_ymd_and_hms(2026, 11, 20, 12, minute, 0).unwrap();
        PausedCredential { name: name.to_owned(), until, why: "used up".to_owned() }
    }

    #[test]
    fn a_session_keeps_its_credential_and_a_new_one_takes_the_first_unpaused() {
        let (both, tired) = (["one", "two"], [paused("one", 30)]);
        assert_eq!(choose(&both, None, &[]).unwrap(), "one");
        assert_eq!(choose(&both, None, &tired).unwrap(), "two");
        assert_eq!(choose(&both, Some("two"), &[]).unwrap(), "two");
        assert!(matches!(choose(&both, Some("one"), &tired), Err(NoUsableCredential::Paused(_))));
        // Its own is not configured any more.
        assert_eq!(choose(&both, Some("gone"), &tired).unwrap(), "two");
        assert!(matches!(choose(&[], None, &[]), Err(NoUsableCredential::NoneConfigured)));
        let all = [paused("one", 30), paused("two", 10)];
        let Err(NoUsableCredential::Paused(first)) = choose(&both, None, &all) else { panic!() };
        assert_eq!(first.name, "two");
    }
}
