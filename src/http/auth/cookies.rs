//! Cookies of browsers: those of sign-ins, and those of forms.
//!
//! A browser without a cookie gets a random one, from which the tokens of its forms are derived.
//!
//! Browsers leave the cookies out (`SameSite=Strict`) when they follow a link from another site. Such a request sets no cookie: it would
//! replace that of the browser. Its answer is a page that opens the same address again, which the browser requests with its cookies.
//! Browsers say where a request comes from on loopback and over HTTPS only. Elsewhere, the cookie for forms cannot replace that of a sign-in,
//! because it has a name of its own.

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method,
        header::{COOKIE, SET_COOKIE},
    },
    middleware::Next,
    response::Response,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::Gate;
use crate::domain::sign_ins;

const SIGN_IN_COOKIE: &str = "dalsegno_console";
/// The cookie of a browser without a sign-in.
const FORMS_COOKIE: &str = "dalsegno_forms";
const COOKIE_CHARS: usize = 64;

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
    let is_secure = gate.is_secure(&request);
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

impl BrowserCookie {
    pub(super) fn of_sign_in(text: SecretString) -> Self {
        Self { text, kind: CookieKind::SignIn }
    }

    /// Returns true for the cookie of a sign-in, which may have ended.
    pub(super) fn is_of_sign_in(&self) -> bool {
        self.kind == CookieKind::SignIn
    }

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
