//! Authentication of pages: a cookie in place of a key.
//!
//! Where no key is required, pages need no sign-in. Elsewhere, a sign-in exchanges a key for a cookie, and each request looks up both: a
//! key that is revoked, expires or loses a scope does so for its sign-ins, too. A browser without a cookie gets a random one, from which
//! the tokens of its forms are derived.
//!
//! Browsers leave the cookies out (`SameSite=Strict`) when they follow a link from another site. Such a request sets no cookie: it would
//! replace that of the browser. Its answer is a page that opens the same address again, which the browser requests with its cookies.
//! Browsers say where a request comes from on loopback and over HTTPS only; elsewhere, the name of its own keeps a cookie for forms from
//! replacing a sign-in.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{ACCEPT, COOKIE, SET_COOKIE, USER_AGENT},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret as _, SecretString};

use super::{AuthState, Caller, Gate, Holder, KeyWatch, Quota, lookup::SignInWithKey, peer::Peer};
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

const SIGN_IN_COOKIE: &str = "dalsegno_console";
/// The cookie of a browser without a sign-in.
const FORMS_COOKIE: &str = "dalsegno_forms";
const COOKIE_CHARS: usize = 64;
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

/// The cookie of a request.
#[derive(Debug, Clone)]
pub(in crate::http) struct BrowserCookie {
    pub(in crate::http) text: SecretString,
    kind: CookieKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CookieKind {
    /// That of a sign-in, which may have ended.
    SignIn,
    /// That of the forms of a browser.
    Forms,
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

/// Renders the page that opens the target of a request again.
pub(in crate::http) type ShowReload = fn(&str) -> Response;

/// Gives each browser a cookie for its forms. Both kinds of pages pass here.
pub(in crate::http) async fn assign_cookie(
    State((gate, show_reload)): State<(Gate, ShowReload)>,
    mut request: Request,
    next: Next,
) -> Response {
    let cookie = BrowserCookie::of(request.headers());
    let (is_new, is_foreign) = (cookie.is_none(), is_from_other_site(request.headers()));
    // The second request comes from the page itself, so it does not come back here.
    if is_new && is_foreign && is_navigation(&request) {
        return show_reload(request.uri().path_and_query().map_or("/", |target| target.as_str()));
    }
    let fresh = || BrowserCookie { text: sign_ins::fresh_cookie(), kind: CookieKind::Forms };
    let cookie = cookie.unwrap_or_else(fresh);
    let is_secure = gate.0.is_secure(&request);
    request.extensions_mut().insert(cookie.clone());
    let mut response = next.run(request).await;
    if is_new && !is_foreign && !response.headers().contains_key(SET_COOKIE) {
        set_cookie(response.headers_mut(), FORMS_COOKIE, &cookie.text, None, is_secure);
    }
    response
}

/// Returns true for a request that a page of another site has caused. Its browser leaves out the cookies.
fn is_from_other_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, Some(b"cross-site" | b"same-site"))
}

/// Returns true for a request that opens a page, in place of a part of one.
fn is_navigation(request: &Request) -> bool {
    let mode = request.headers().get("sec-fetch-mode");
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    is_read && mode.is_some_and(|mode| mode == "navigate")
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
/// A page that is opened with an unknown cookie leads to the sign-in, also after the limit for bad keys: the requests of open tabs may have
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

/// Writes the cookie of a sign-in.
pub(in crate::http) fn set_sign_in_cookie(
    headers: &mut HeaderMap,
    text: &SecretString,
    lifetime_secs: i64,
    is_secure: bool,
) {
    set_cookie(headers, SIGN_IN_COOKIE, text, Some(lifetime_secs), is_secure);
}

fn set_cookie(
    headers: &mut HeaderMap,
    name: &str,
    text: &SecretString,
    lifetime_secs: Option<i64>,
    is_secure: bool,
) {
    let age = lifetime_secs.map(|secs| format!("; Max-Age={secs}")).unwrap_or_default();
    let secure = if is_secure { "; Secure" } else { "" };
    let text = text.expose_secret();
    let cookie = format!("{name}={text}; Path=/; HttpOnly; SameSite=Strict{age}{secure}");
    if let Ok(mut value) = HeaderValue::try_from(cookie) {
        value.set_sensitive(true);
        headers.insert(SET_COOKIE, value);
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
        let cookie = BrowserCookie { text: access.cookie, kind: CookieKind::SignIn };
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

    /// Finds the caller of a cookie, or the reason why it has none. Programs that guess send unknown cookies, which count as bad keys do:
    /// after the lookup, so that those of sign-ins never count.
    async fn caller_of_cookie(
        &self,
        peer: Peer,
        cookie: &BrowserCookie,
    ) -> Result<Result<CookieCaller, PageRefusal>, Problem> {
        Ok(match self.find_sign_in(cookie).await? {
            CookieLookup::Open(caller, sign_in) => Ok((caller, Some(sign_in))),
            CookieLookup::Closed => Err(not_signed_in().into()),
            CookieLookup::Unknown => {
                let refusal = self.count_bad_key(peer);
                let problem = refusal.map_or_else(not_signed_in, |refusal| refusal.problem);
                Err(PageRefusal { problem, is_cookie_unknown: true })
            }
        })
    }

    async fn find_sign_in(&self, cookie: &BrowserCookie) -> Result<CookieLookup, Problem> {
        if cookie.kind != CookieKind::SignIn {
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

impl BrowserCookie {
    /// Reads the cookie of a request. That of a sign-in takes precedence.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let read = |(name, kind)| {
            cookie_named(headers, name).map(|text| Self { text: text.to_owned().into(), kind })
        };
        [(SIGN_IN_COOKIE, CookieKind::SignIn), (FORMS_COOKIE, CookieKind::Forms)]
            .into_iter()
            .find_map(read)
    }
}

/// Returns both cookies of a request, as far as it has them.
pub(in crate::http) fn cookies_of(headers: &HeaderMap) -> Vec<SecretString> {
    let read = |name| cookie_named(headers, name).map(|text| SecretString::from(text.to_owned()));
    [SIGN_IN_COOKIE, FORMS_COOKIE].into_iter().filter_map(read).collect()
}

/// Returns the cookie from which the tokens of forms are derived.
pub(in crate::http) fn cookie_of(headers: &HeaderMap) -> Option<SecretString> {
    BrowserCookie::of(headers).map(|cookie| cookie.text)
}

/// Returns the text of a cookie, if it has the form of one.
fn cookie_named<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let is_cookie = |text: &&str| {
        text.len() == COOKIE_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    pairs.filter(|(own, _)| own.trim() == name).map(|(_, text)| text.trim()).find(is_cookie)
}

fn not_signed_in() -> Problem {
    let detail =
        "sign in with an API key first; `dalsegno key create NAME --scope operate` creates one";
    Problem::new(StatusCode::UNAUTHORIZED, "not_signed_in", detail)
}
