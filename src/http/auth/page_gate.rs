//! Authentication of pages: a cookie in place of a key.
//!
//! Where no key is required, pages need no sign-in. Elsewhere, a sign-in exchanges a key for a cookie, and each request looks up both: a
//! key that is revoked, expires or loses a scope does so for its sign-ins, too.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, Method, StatusCode,
        header::{ACCEPT, USER_AGENT},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    AuthState, Caller, Gate, Holder, KeyWatch, Quota,
    cookies::{BrowserCookie, set_sign_in_cookie},
    lookup::SignInWithKey,
    peer::Peer,
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        keys::{self, Scope},
        sign_ins::{self, ExchangedKey, SignIn},
    },
    http::Problem,
    operations::Reach,
};

/// Pause between two looks at the sign-in of a stream: it ends within this time.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The rights of a request for a page.
#[derive(Debug, Clone)]
pub(in crate::http) struct PageAccess {
    pub(in crate::http) actor: Actor,
    pub(in crate::http) reach: Reach,
    pub(in crate::http) scopes: Arc<[Scope]>,
    pub(in crate::http) sign_in: Option<SignIn>,
    pub(in crate::http) cookie: SecretString,
    pub(in crate::http) holder: Holder,
}

/// A caller with its sign-in, where one is needed.
type CookieCaller = (Caller, Option<SignIn>);

/// Result of looking up the sign-in of a cookie.
enum CookieLookup {
    Open(Caller, SignIn),
    /// It has ended, or its key is no longer accepted. Cookies of forms have none.
    Closed,
    Unknown,
}

/// A refusal of a request for a page.
struct PageRefusal {
    problem: Problem,
    is_cookie_unknown: bool,
}

/// Returns true for a request that a browser makes to show a page.
pub(in crate::http) fn accepts_html(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/html"))
}

/// Returns true if the answer is a whole page: no part of one, and nothing that its scripts read.
fn shows_page(request: &Request) -> bool {
    let headers = request.headers();
    request.method() == Method::GET && accepts_html(headers) && !headers.contains_key("hx-request")
}

/// Admits or refuses a request for a page.
///
/// A page that is opened with an unknown cookie leads to the sign-in, also after the limit for them: the requests of open tabs may have
/// used it up. Its answer removes the cookie. Answers to scripts do not: with two installations on one host name, the open tabs of one would
/// end the sign-in of the other.
pub(in crate::http) async fn gate_pages(
    State(gate): State<Gate>,
    mut request: Request,
    next: Next,
) -> Response {
    let asked = gate.0.read(&request);
    let shows_page = shows_page(&request);
    let cookie = request.extensions().get::<BrowserCookie>().cloned();
    match gate.0.admit_page(asked.map(|asked| asked.peer), cookie).await {
        Ok((access, quota)) => {
            request.extensions_mut().insert(access.actor.clone());
            request.extensions_mut().insert(access.reach.clone());
            request.extensions_mut().insert(access);
            let mut response = next.run(request).await;
            if let Some(quota) = quota {
                quota.write(response.headers_mut());
            }
            response
        }
        Err(PageRefusal { is_cookie_unknown: true, .. }) if shows_page => {
            let mut response = not_signed_in().into_response();
            let (none, is_secure) = (SecretString::from(String::new()), gate.0.is_secure(&request));
            set_sign_in_cookie(response.headers_mut(), &none, 0, is_secure);
            response
        }
        Err(PageRefusal { problem, .. }) => problem.into_response(),
    }
}

impl Gate {
    pub(in crate::http) fn is_secure(&self, request: &Request) -> bool {
        self.0.is_secure(request)
    }

    /// Exchanges a key for a cookie. Returns it with its lifetime.
    pub(in crate::http) async fn sign_in(
        &self,
        request_peer: Peer,
        headers: &HeaderMap,
        key: &str,
    ) -> Result<(SecretString, i64), Problem> {
        let state = &self.0;
        let app = state.front.app()?;
        let now = app.clock.now();
        let caller = state.exchangeable(&app, request_peer, key, now).await?;
        let address = request_peer.address();
        let (actor, exchanged) = match &caller {
            Caller::Key(key) => {
                let stored = ExchangedKey::Stored { id: key.id, expires_at: key.expires_at };
                (Actor::key(key.id, &key.name, &key.handle, address), stored)
            }
            Caller::AdminKey | Caller::Unauthenticated => {
                (Actor::admin_key(address), ExchangedKey::Admin(keys::digest(key)))
            }
        };
        let peer = address.map(|address| address.to_string());
        let browser = headers.get(USER_AGENT).and_then(|name| name.to_str().ok());
        let new = sign_ins::New { key: exchanged, peer: peer.as_deref(), browser };
        let mut transaction = crate::operations::begin(&app.pool, None).await?;
        let (sign_in, cookie) = sign_ins::create(&mut transaction, &new, now).await?;
        let data = serde_json::json!({ "expires_at": sign_in.expires_at });
        let action = Action::SignInCreate;
        audit::write(&mut *transaction, &actor, action, sign_in.id, data, now).await?;
        transaction.commit().await?;
        Ok((cookie, (sign_in.expires_at - now).num_seconds()))
    }

    /// Ends the sign-in of a browser.
    pub(in crate::http) async fn sign_out(&self, access: &PageAccess) -> Result<(), Problem> {
        let Some(sign_in) = &access.sign_in else { return Ok(()) };
        let app = self.0.front.app()?;
        let now = app.clock.now();
        let mut transaction = crate::operations::begin(&app.pool, None).await?;
        sign_ins::end(&mut transaction, sign_in.id, now).await?;
        let (actor, data) = (&access.actor, serde_json::json!({}));
        audit::write(&mut *transaction, actor, Action::SignInEnd, sign_in.id, data, now).await?;
        Ok(transaction.commit().await?)
    }

    pub(in crate::http) fn watch_of_page(&self, holder: Holder) -> KeyWatch {
        KeyWatch::of_page(Arc::clone(&self.0), holder)
    }

    /// Waits until the sign-in of a stream has ended. A failed look ends no stream.
    pub(in crate::http) async fn wait_until_signed_out(&self, access: PageAccess) {
        if access.sign_in.is_none() {
            return std::future::pending().await;
        }
        let cookie = BrowserCookie::of_sign_in(access.cookie);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match self.0.find_sign_in(&cookie).await {
                Ok(CookieLookup::Closed | CookieLookup::Unknown) => return,
                Ok(CookieLookup::Open(..)) | Err(_) => {}
            }
        }
    }

    pub(in crate::http) fn peer(&self, request: &Request) -> Result<Peer, Problem> {
        Ok(self.0.read(request)?.peer)
    }
}

impl AuthState {
    /// Decides about a request by its address and its cookie.
    async fn admit_page(
        &self,
        peer: Result<Peer, Problem>,
        cookie: Option<BrowserCookie>,
    ) -> Result<(PageAccess, Option<Quota>), PageRefusal> {
        let peer = peer?;
        let cookie = cookie.ok_or_else(super::unauthenticated_fault)?;
        let found = match self.asks {
            true => self.caller_of_cookie(peer, &cookie).await?,
            false => Ok((Caller::Unauthenticated, None)),
        };
        let holder = match &found {
            Ok((Caller::Key(key), _)) => Holder::Key(key.id),
            Ok((Caller::AdminKey, _)) => Holder::AdminKey,
            Ok((Caller::Unauthenticated, _)) | Err(_) => Holder::Peer(peer.without_address()),
        };
        let quota = self.requests.take(holder);
        if let Some(quota) = quota.filter(Quota::is_used_up) {
            return Err(super::too_many_requests(quota).problem.into());
        }
        let (caller, sign_in) = found?;
        let address = peer.address();
        let actor = match &caller {
            Caller::Key(key) => Actor::key(key.id, &key.name, &key.handle, address),
            Caller::AdminKey => Actor::admin_key(address),
            Caller::Unauthenticated => Actor::anonymous(address),
        };
        let (reach, scopes) = (caller.reach(), Arc::from(caller.scopes()));
        Ok((PageAccess { actor, reach, scopes, sign_in, cookie: cookie.text, holder }, quota))
    }

    /// Finds the caller of a cookie, or the reason why it has none. Programs that guess send unknown cookies, which are counted after the
    /// lookup, so that those of sign-ins never count.
    async fn caller_of_cookie(
        &self,
        peer: Peer,
        cookie: &BrowserCookie,
    ) -> Result<Result<CookieCaller, PageRefusal>, Problem> {
        Ok(match self.find_sign_in(cookie).await? {
            CookieLookup::Open(caller, sign_in) => Ok((caller, Some(sign_in))),
            CookieLookup::Closed => Err(not_signed_in().into()),
            CookieLookup::Unknown => {
                let refusal = self.count_unknown_cookie(peer);
                let problem = refusal.map_or_else(not_signed_in, |refusal| refusal.problem);
                Err(PageRefusal { problem, is_cookie_unknown: true })
            }
        })
    }

    async fn find_sign_in(&self, cookie: &BrowserCookie) -> Result<CookieLookup, Problem> {
        if !cookie.is_of_sign_in() {
            return Ok(CookieLookup::Closed);
        }
        let app = self.front.app()?;
        let now = app.clock.now();
        let digest = keys::digest(cookie.text.expose_secret());
        let found = self.sign_in_lookups.find(&app.pool, digest).await?;
        let Some(SignInWithKey { stored, key }) = found.stored.as_deref() else {
            return Ok(CookieLookup::Unknown);
        };
        let caller = match (key, stored.admin_key) {
            (Some(key), _) if key.is_usable(now) => Caller::Key(Arc::clone(key)),
            (None, Some(digest)) if self.keyring.is_admin_digest(&digest) => Caller::AdminKey,
            _ => return Ok(CookieLookup::Closed),
        };
        Ok(match stored.sign_in.is_open(now) {
            true => CookieLookup::Open(caller, stored.sign_in.clone()),
            false => CookieLookup::Closed,
        })
    }

    async fn exchangeable(
        &self,
        app: &App,
        peer: Peer,
        key: &str,
        now: DateTime<Utc>,
    ) -> Result<Caller, Problem> {
        if self.keyring.is_admin(key) {
            return Ok(Caller::AdminKey);
        }
        match self.keyring.look_up(app, key).await? {
            Some(key) if key.is_usable(now) => Ok(Caller::Key(key)),
            _ => Err(self.count_bad_key(peer).unwrap_or_else(super::bad_key).problem),
        }
    }

    /// Returns true if the browser reached a trusted proxy over TLS. The service itself has none.
    fn is_secure(&self, request: &Request) -> bool {
        let peer = request.extensions().get::<axum::extract::ConnectInfo<std::net::SocketAddr>>();
        self.proxies.is_https(peer.map(|peer| peer.0.ip()), request.headers())
    }
}

impl From<Problem> for PageRefusal {
    fn from(problem: Problem) -> Self {
        Self { problem, is_cookie_unknown: false }
    }
}

fn not_signed_in() -> Problem {
    let detail =
        "sign in with an API key first; `dalsegno key create NAME --scope operate` creates one";
    Problem::new(StatusCode::UNAUTHORIZED, "not_signed_in", detail)
}
