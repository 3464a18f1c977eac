//! Authentication, scopes and rate limits of requests.
//!
//! On a loopback address, no key is required unless `http.require_key` is set; with `http.allow_unauthenticated`, no
//! key is required on any address. A key that is sent anyway counts: its scopes apply, and the audit log has its name.
//! Any other `Authorization` is refused, except with `http.allow_unauthenticated`, where it may be meant for a proxy in front.

mod cookies;
mod forwarded;
mod key_watch;
mod keyring;
mod lookup;
mod page_gate;
mod peer;
mod rate;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{AUTHORIZATION, WWW_AUTHENTICATE},
        request::Parts,
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use secrecy::SecretString;
use uuid::Uuid;

pub(super) use self::{
    cookies::{
        BrowserCookie, ShowReload, assign_cookie, cookie_of, cookies_of, set_sign_in_cookie,
    },
    forwarded::Network,
    key_watch::KeyWatch,
    page_gate::{PageAccess, accepts_html, gate_pages},
};
use self::{
    forwarded::TrustedProxies,
    keyring::Keyring,
    lookup::SignInLookups,
    peer::Peer,
    rate::{Buckets, Quota},
};
use super::{Config, Problem, RouterState, reach::Reach, scopes};
use crate::domain::{
    audit::Actor,
    keys::{self, Key, Scope},
    turn_tokens,
};

/// Bad keys per minute and address that are answered 401, and unknown cookies, which are counted apart; more are answered 429.
/// Counted after the lookup, so good ones never count.
pub(super) const BAD_KEYS_PER_MINUTE: u32 = 30;

#[derive(Debug, Clone)]
pub(super) struct Gate(Arc<AuthState>);

#[derive(Debug)]
struct AuthState {
    front: RouterState,
    asks: bool,
    /// An `Authorization` that is not for this service is passed over.
    has_proxy: bool,
    keyring: Keyring,
    sign_in_lookups: SignInLookups,
    proxies: TrustedProxies,
    requests: Buckets<Holder>,
    bad_keys: Buckets<Peer>,
    /// Open tabs repeat an unknown cookie for hours. A mistyped key from their address is answered as any other.
    unknown_cookies: Buckets<Peer>,
}

/// The client that requests are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Key(Uuid),
    AdminKey,
    Peer(Peer),
}

/// An accepted caller.
enum Caller {
    Key(Arc<Key>),
    AdminKey,
    /// A caller without a key, where none is required.
    Unauthenticated,
}

/// The parts of a request that decide about it.
struct RequestCredentials {
    method: Method,
    path: Option<MatchedPath>,
    bearer: Option<String>,
    has_authorization: bool,
    peer: Peer,
}

struct AuthorizedRequest {
    actor: Actor,
    quota: Option<Quota>,
    need: scopes::RequiredScope,
    reach: Reach,
    holder: Holder,
    /// The key that was sent, if it is stored in the database.
    key: Option<SecretString>,
}

/// A refusal, with the challenge and the rate limit for its headers.
struct Refusal {
    problem: Problem,
    challenge: Option<String>,
    quota: Option<Quota>,
}

/// Admits or refuses a request, and passes the caller on to the handler.
pub(super) async fn gate(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let asked = match gate.0.read(&request) {
        Ok(asked) => asked,
        Err(problem) => return problem.into_response(),
    };
    match gate.0.admit(&asked).await {
        Ok(AuthorizedRequest { actor, quota, key, need, reach, holder }) => {
            let route = asked.path.as_ref().map(MatchedPath::as_str);
            request.extensions_mut().insert(actor);
            request.extensions_mut().insert(KeyWatch { gate: gate.0.clone(), need, key, holder });
            let mut response = match reach.check(&gate.0.front, route, request).await {
                Ok(request) => next.run(request).await,
                Err(problem) => problem.into_response(),
            };
            if let Some(quota) = quota {
                quota.write(response.headers_mut());
            }
            response
        }
        Err(refusal) => refusal.into_response(),
    }
}

impl Gate {
    pub(super) fn new(config: &Config, front: RouterState) -> Self {
        Self(Arc::new(AuthState {
            front,
            asks: config.asks_for_keys(),
            has_proxy: config.allow_unauthenticated,
            keyring: Keyring::new(config.admin_key.as_ref()),
            sign_in_lookups: SignInLookups::default(),
            proxies: TrustedProxies::new(config.trusted_networks()),
            requests: Buckets::new(config.requests_per_minute),
            bad_keys: Buckets::new(BAD_KEYS_PER_MINUTE),
            unknown_cookies: Buckets::new(BAD_KEYS_PER_MINUTE),
        }))
    }
}

/// Extracts the caller for handlers that record it.
impl FromRequestParts<RouterState> for Actor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &RouterState) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(unauthenticated_fault)
    }
}

impl AuthState {
    fn read(&self, request: &Request) -> Result<RequestCredentials, Problem> {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(address)| address.ip());
        Ok(RequestCredentials {
            method: request.method().clone(),
            path: request.extensions().get().cloned(),
            bearer: bearer(request.headers()).map(str::to_owned),
            has_authorization: request.headers().contains_key(AUTHORIZATION),
            peer: Peer::of(self.proxies.client(peer, request.headers())?),
        })
    }

    async fn admit(&self, asked: &RequestCredentials) -> Result<AuthorizedRequest, Refusal> {
        let need = scopes::of_request(&asked.method, asked.path.as_ref().map(MatchedPath::as_str));
        let address = asked.peer.address();
        if need == scopes::RequiredScope::Nothing {
            let (actor, reach) = (Actor::anonymous(address), Reach::default());
            let holder = Holder::Peer(asked.peer.without_address());
            return Ok(AuthorizedRequest { actor, quota: None, need, reach, holder, key: None });
        }
        let caller = self.caller(asked).await;
        let holder = match &caller {
            Ok(Caller::Key(key)) => Holder::Key(key.id),
            Ok(Caller::AdminKey) => Holder::AdminKey,
            Ok(Caller::Unauthenticated) | Err(_) => Holder::Peer(asked.peer.without_address()),
        };
        let quota = self.requests.take(holder);
        if let Some(quota) = quota.filter(Quota::is_used_up) {
            return Err(too_many_requests(quota));
        }
        let caller = caller.map_err(|refusal| Refusal { quota, ..refusal })?;
        if !need.is_met_by(caller.scopes()) {
            return Err(Refusal { quota, ..missing_scope(need, &caller) });
        }
        let reach = caller.reach();
        let (actor, key) = match caller {
            Caller::Key(key) => {
                (Actor::key(key.id, &key.name, &key.handle, address), asked.bearer.clone())
            }
            Caller::AdminKey => (Actor::admin_key(address), None),
            Caller::Unauthenticated => (Actor::anonymous(address), None),
        };
        let key = key.map(SecretString::from);
        Ok(AuthorizedRequest { actor, quota, need, reach, holder, key })
    }

    /// Returns true if this key would still be admitted.
    async fn is_admitted(&self, text: &str, need: scopes::RequiredScope) -> Result<bool, Problem> {
        let app = self.front.app()?;
        let now = app.clock.now();
        let key = match self.keyring.find_cached(text) {
            Some(key) => Some(key),
            None => self.keyring.look_up(&app, text).await?,
        };
        Ok(key.is_some_and(|key| key.is_usable(now) && need.is_met_by(&key.scopes)))
    }

    async fn caller(&self, asked: &RequestCredentials) -> Result<Caller, Refusal> {
        let text = match &asked.bearer {
            Some(text) if self.keyring.is_admin(text) => return Ok(Caller::AdminKey),
            // The token of a turn is valid at its own worker only.
            Some(text) if text.starts_with(turn_tokens::PREFIX) => return Err(bad_key()),
            Some(text) if !self.has_proxy || text.starts_with(keys::PREFIX) => text,
            _ if self.asks => return Err(unauthenticated()),
            None if asked.has_authorization && !self.has_proxy => return Err(bad_key()),
            _ => return Ok(Caller::Unauthenticated),
        };
        let app = self.front.app()?;
        let now = app.clock.now();
        let key = match self.keyring.find_cached(text) {
            Some(key) => Some(key),
            None => self.keyring.look_up(&app, text).await?,
        };
        match key {
            Some(key) if key.is_usable(now) => Ok(Caller::Key(key)),
            _ => Err(self.count_bad_key(asked.peer).unwrap_or_else(bad_key)),
        }
    }

    /// Counts a bad key of a client. Returns the refusal of one that sends too many.
    fn count_bad_key(&self, peer: Peer) -> Option<Refusal> {
        let quota = self.bad_keys.take(peer.without_address());
        quota.filter(Quota::is_used_up).map(too_many_bad_keys)
    }

    /// Counts an unknown cookie of a client. Returns the refusal of one that sends too many.
    fn count_unknown_cookie(&self, peer: Peer) -> Option<Refusal> {
        let quota = self.unknown_cookies.take(peer.without_address());
        quota.filter(Quota::is_used_up).map(too_many_bad_keys)
    }
}

impl Caller {
    fn scopes(&self) -> &[Scope] {
        match self {
            Self::Key(key) => &key.scopes,
            Self::AdminKey | Self::Unauthenticated => &Scope::ALL,
        }
    }

    fn reach(&self) -> Reach {
        match self {
            Self::Key(key) => Reach::of(key),
            Self::AdminKey | Self::Unauthenticated => Reach::default(),
        }
    }
}

impl Refusal {
    fn into_response(self) -> Response {
        let mut response = self.problem.into_response();
        let headers = response.headers_mut();
        if let Some(challenge) = self.challenge
            && let Ok(challenge) = HeaderValue::try_from(challenge)
        {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(quota) = self.quota {
            quota.write(headers);
        }
        response
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, challenge: None, quota: None }
    }
}

pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, text) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

pub(super) fn unauthenticated_fault() -> Problem {
    let detail = "the request was not authenticated, which is a bug of the service; report it";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
}

fn unauthenticated() -> Refusal {
    let detail = "this service requires an API key: send `Authorization: Bearer dals_...`; `dalsegno key create` creates one";
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail);
    Refusal { challenge: Some(r#"Bearer realm="dalsegno""#.to_owned()), ..problem.into() }
}

/// Builds the refusal of a bad key: one text for all cases, so that it does not reveal which keys exist.
fn bad_key() -> Refusal {
    let detail = "this key is not accepted: it is unknown, expired or revoked; ask an administrator to rotate it or to create another";
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "bad_key", detail);
    let challenge = r#"Bearer realm="dalsegno", error="invalid_token""#.to_owned();
    Refusal { challenge: Some(challenge), ..problem.into() }
}

fn missing_scope(need: scopes::RequiredScope, caller: &Caller) -> Refusal {
    let scope = need.scope();
    let key = match caller {
        Caller::Key(key) => format!("the key `{}`", key.name),
        Caller::AdminKey | Caller::Unauthenticated => "the key".to_owned(),
    };
    let detail = format!(
        "{key} does not have the scope `{scope}`: create one that has it with `dalsegno key create`"
    );
    let problem = Problem::new(StatusCode::FORBIDDEN, "missing_scope", detail);
    let challenge =
        format!(r#"Bearer realm="dalsegno", error="insufficient_scope", scope="{scope}""#);
    Refusal { challenge: Some(challenge), ..problem.into() }
}

fn too_many_requests(quota: Quota) -> Refusal {
    let detail = format!(
        "too many requests: http.requests_per_minute allows {} per API key (per IP address without one): try again after Retry-After, and send fewer",
        quota.per_minute()
    );
    limited("too_many_requests", detail, quota)
}

fn too_many_bad_keys(quota: Quota) -> Refusal {
    let detail = "too many requests with invalid keys or cookies came from this address: correct the key, or sign in again, then try again after Retry-After";
    limited("too_many_bad_keys", detail.to_owned(), quota)
}

fn limited(code: &'static str, detail: String, quota: Quota) -> Refusal {
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, code, detail);
    let retry_after_secs = Some(quota.next_secs());
    let problem = Problem { retryable: true, retry_after_secs, ..problem };
    Refusal { quota: Some(quota), ..problem.into() }
}

/// Headers of the IETF draft on rate limits.
pub(super) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
