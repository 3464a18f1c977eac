//! Conversations that their provider keeps: their credential, and the messages that the provider has.
//!
//! The provider's copy is a cache of the stored messages. If it belongs to another view, or its transcript is gone, the
//! provider writes a new one from the messages that every call carries.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    domain::{
        logins::{self, Resting},
        sessions::Live,
    },
    jobs::{
        Services,
        run_turn::{
            error::{Error, Refused},
            load::assignment::Assignment,
        },
    },
};

/// The provider's id of a conversation, and its credential.
pub struct Binding {
    pub external_id: Uuid,
    pub login: String,
}

/// Last place of the transcript that the provider has, if it has the current view.
pub fn heard_to_seq(session: &Live) -> Option<i64> {
    session.head_seq.filter(|_| session.head_generation == Some(session.generation))
}

/// Returns the id of the conversation, and its credential: the one that it began with while that is configured,
/// otherwise the first that is not paused. `None`: the provider keeps no conversations.
pub async fn bind(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    session: &Live,
) -> Result<Option<Binding>, Error> {
    let route = &assignment.route;
    if !route.provider.holds_session() {
        return Ok(None);
    }
    let now = services.clock.now();
    let resting = logins::resting(conn, &route.provider_name, now).await?;
    let configured = route.provider.logins();
    let login = choose(&configured, session.login.as_deref(), &resting)
        .map_err(|why| Error::Refused(why.into_refused(now)))?;
    let external_id = session.external_session_id.as_deref().and_then(|id| id.parse().ok());
    Ok(Some(Binding {
        external_id: external_id.unwrap_or_else(Uuid::new_v4),
        login: login.to_owned(),
    }))
}

/// The reason why a conversation has no credential.
#[derive(Debug)]
enum NoLogin<'a> {
    NoneConfigured,
    Rests(&'a Resting),
}

fn choose<'a>(
    configured: &[&'a str],
    own: Option<&str>,
    resting: &'a [Resting],
) -> Result<&'a str, NoLogin<'a>> {
    let rests = |login: &str| resting.iter().find(|resting| resting.login == login);
    let candidates: Vec<&str> = match configured.iter().find(|login| Some(**login) == own) {
        Some(own) => vec![own],
        None => configured.to_vec(),
    };
    match candidates.iter().find(|login| rests(login).is_none()) {
        Some(login) => Ok(login),
        None => Err(candidates
            .iter()
            .filter_map(|login| rests(login))
            .min_by_key(|resting| resting.until)
            .map_or(NoLogin::NoneConfigured, NoLogin::Rests)),
    }
}

impl NoLogin<'_> {
    fn into_refused(self, now: DateTime<Utc>) -> Refused {
        match self {
            Self::NoneConfigured => Refused::for_good(
                "no credential is configured for Claude: add one to claude.credentials, or name another provider in the agent's file",
            ),
            Self::Rests(Resting { login, until, why }) => {
                let until_when = until.format("%Y-%m-%d %H:%M:%S UTC");
                let why = format!("the credential {login} is paused until {until_when}: {why}");
                let after = (*until - now).to_std().unwrap_or_default();
                Refused::busy(why, after, 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    fn resting(login: &str, minute: u32) -> Resting {
        let until = Utc.with_ymd_and_hms(2026, 11, 20, 12, minute, 0).unwrap();
        Resting { login: login.to_owned(), until, why: "used up".to_owned() }
    }

    #[test]
    fn a_session_stays_on_its_login_and_a_new_one_takes_the_first_that_does_not_rest() {
        let (both, tired) = (["one", "two"], [resting("one", 30)]);
        assert_eq!(choose(&both, None, &[]).unwrap(), "one");
        assert_eq!(choose(&both, None, &tired).unwrap(), "two");
        assert_eq!(choose(&both, Some("two"), &[]).unwrap(), "two");
        assert!(matches!(choose(&both, Some("one"), &tired), Err(NoLogin::Rests(_))));
        // Its own is not configured any more.
        assert_eq!(choose(&both, Some("gone"), &tired).unwrap(), "two");
        assert!(matches!(choose(&[], None, &[]), Err(NoLogin::NoneConfigured)));
        let all = [resting("one", 30), resting("two", 10)];
        let Err(NoLogin::Rests(first)) = choose(&both, None, &all) else { panic!() };
        assert_eq!(first.login, "two");
    }
}
