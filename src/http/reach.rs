//! The campaigns and tasks that a key reaches.
//!
//! A key may be bound to campaigns. A key without the scope `read` sees only the tasks that keys of its name have
//! added. Everything out of reach is answered like an unknown id.
//!
//! The id in the path is checked here, before the handler runs. Handlers check ids in bodies, and filter lists; they
//! take `Reach` as an argument. Bound keys are refused on routes that are neither about one campaign, task, session or
//! flow nor in `FOR_BOUND_KEYS`.

use axum::{
    extract::{FromRequestParts, RawPathParams, Request},
    http::{Method, StatusCode, request::Parts},
};
use uuid::Uuid;

use super::{Problem, RouterState, input};
pub(super) use crate::operations::Reach;
use crate::{
    app::App,
    domain::{campaigns, flows, sessions, tasks},
    operations::{self, Spec},
};

/// Routes besides operations that bound keys may use although they name no campaign, task, session or flow. Their
/// answers are filtered, or the same for all keys.
pub const FOR_BOUND_KEYS: &[(&str, &str)] = &[("GET", "/v1/openapi.json")];
/// Routes about a campaign that reach beyond it. The facts of a user belong to all campaigns that work for the user.
const NOT_FOR_BOUND_KEYS: &[(&str, &str)] = &[
    ("PUT", "/v1/campaigns/{id}/user"),
    // They contain facts of the user, and the files of agents.
    ("GET", "/v1/sessions/{id}/context"),
    ("GET", "/v1/sessions/{id}/context-diff"),
    ("GET", "/v1/tasks/{id}/context/preview"),
    ("POST", "/v1/campaigns/{id}/context/preview"),
    ("POST", "/v1/sessions/{id}/turns/{number}/reruns"),
    ("GET", "/v1/sessions/{id}/turns/{number}/reruns"),
];
/// Beginnings of paths with the kind of their `{id}`.
const SUBJECTS: &[(&str, Subject)] = &[
    ("/mcp/{id}", Subject::Campaign),
    ("/v1/campaigns/{id}", Subject::Campaign),
    ("/v1/flows/{id}", Subject::Flow),
    ("/v1/sessions/{id}", Subject::Session),
    ("/v1/tasks/{id}", Subject::Task),
];

#[derive(Debug, Clone, Copy)]
enum Subject {
    Campaign,
    Task,
    Session,
    Flow,
}

impl Reach {
    /// Refuses a request whose path names something out of reach. Returns the request with the reach in its extensions.
    pub(super) async fn check(
        self,
        front: &RouterState,
        route: Option<&str>,
        request: Request,
    ) -> Result<Request, Problem> {
        let (mut parts, body) = request.into_parts();
        let is_limited = self.campaigns().is_some() || self.only_of().is_some();
        if let Some(route) = route.filter(|_| is_limited) {
            self.check_path(front, route, &mut parts).await?;
        }
        parts.extensions.insert(self);
        Ok(Request::from_parts(parts, body))
    }

    async fn check_path(
        &self,
        front: &RouterState,
        route: &str,
        parts: &mut Parts,
    ) -> Result<(), Problem> {
        let subject = subject(route);
        if self.campaigns().is_some() && !is_for_bound_keys(parts.method.as_str(), route, subject) {
            return Err(bound());
        }
        let Some(subject) = subject else { return Ok(()) };
        let params = RawPathParams::from_request_parts(parts, front).await;
        let params = params
            .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "bad_id", error.body_text()))?;
        let id = params.iter().find(|(name, _)| *name == "id").map(|(_, id)| id);
        let id = input::id(id.unwrap_or_default())?;
        match self.reaches(&front.app()?, subject, id).await? {
            true => Ok(()),
            false => Err(subject.unknown(id)),
        }
    }

    /// Returns true unless the key is bound to campaigns and the operation covers the whole installation.
    pub(super) fn covers(&self, spec: &Spec) -> bool {
        let subject = subject(spec.path);
        self.campaigns().is_none() || is_for_bound_keys(spec.method.as_str(), spec.path, subject)
    }

    /// Refuses an operation whose `id` names something out of reach.
    pub(super) async fn check_operation(
        &self,
        app: &App,
        spec: &Spec,
        id: Option<&str>,
    ) -> Result<(), Problem> {
        if self.campaigns().is_none() && self.only_of().is_none() {
            return Ok(());
        }
        if !self.covers(spec) {
            return Err(bound());
        }
        let Some(subject) = subject(spec.path) else { return Ok(()) };
        let id = input::id(id.unwrap_or_default())?;
        match self.reaches(app, subject, id).await? {
            true => Ok(()),
            false => Err(subject.unknown(id)),
        }
    }

    async fn reaches(&self, app: &App, subject: Subject, id: Uuid) -> Result<bool, Problem> {
        let campaign_id = match subject {
            Subject::Campaign => id,
            Subject::Task => {
                let owner = tasks::owner(&app.pool, id).await?;
                if self.only_of().is_some_and(|own| own != owner.caller) {
                    return Ok(false);
                }
                owner.campaign_id
            }
            // Sessions and flows have no owner, so keys without `read` reach none.
            Subject::Session | Subject::Flow if self.only_of().is_some() => return Ok(false),
            Subject::Session => sessions::get(&app.pool, id).await?.campaign_id,
            Subject::Flow => flows::get(&app.pool, id).await?.campaign_id,
        };
        Ok(self.campaigns().is_none_or(|campaigns| campaigns.contains(&campaign_id)))
    }
}

/// Extracts the reach for handlers that list, or read ids from a body.
impl FromRequestParts<RouterState> for Reach {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &RouterState) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(super::auth::unauthenticated_fault)
    }
}

impl Subject {
    /// Returns the handler's problem for an unknown id.
    fn unknown(self, id: Uuid) -> Problem {
        match self {
            Self::Campaign => campaigns::Error::Unknown(id).into(),
            Self::Task => tasks::Error::Unknown(id).into(),
            Self::Session => sessions::Error::Unknown(id).into(),
            Self::Flow => flows::Error::Unknown(id).into(),
        }
    }
}

fn subject(route: &str) -> Option<Subject> {
    let begins =
        |start: &str| route.strip_prefix(start).is_some_and(|rest| !rest.starts_with(|c| c != '/'));
    SUBJECTS.iter().find(|(start, _)| begins(start)).map(|(_, subject)| *subject)
}

fn is_for_bound_keys(method: &str, route: &str, subject: Option<Subject>) -> bool {
    let method = if method == Method::HEAD.as_str() { "GET" } else { method };
    let is_in = |list: &[(&str, &str)]| list.contains(&(method, route));
    match subject {
        Some(_) => !is_in(NOT_FOR_BOUND_KEYS),
        None => match operations::find(method, route) {
            Some(entry) => entry.spec.for_bound_keys,
            None => is_in(FOR_BOUND_KEYS),
        },
    }
}

fn bound() -> Problem {
    let detail = "the key is bound to campaigns, but this operation covers the whole installation: use a key that reaches all campaigns";
    Problem::new(StatusCode::FORBIDDEN, "key_is_bound", detail)
}
