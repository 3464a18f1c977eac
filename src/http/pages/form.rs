//! Forms of pages. A form is accepted from a page of this service only: by its origin, and by a token that is derived from the browser's
//! cookie.

use axum::{
    extract::{DefaultBodyLimit, Form, FromRequest, FromRequestParts, Request},
    http::{
        HeaderMap, StatusCode,
        header::{CONTENT_TYPE, ORIGIN},
        request::Parts,
    },
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::{
    http::{
        Problem, RouterState,
        auth::{BrowserCookie, cookie_of, cookies_of, unauthenticated_fault},
        input::{bytes, is_form},
        limits::{BodyLimit, check_declared_length, too_long},
        multipart::{self, FieldsAndFiles},
    },
    operations::{FormFile, MAX_BULK_BYTES},
};

/// Name of the field with the token.
pub const TOKEN_FIELD: &str = "form_token";
/// The setting that limits the length of a form.
const BODY_LIMIT: &str = "http.max_body_bytes";

/// The limit of a form with files, on pages that need a sign-in.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileFormLimit(pub(super) usize);

/// A form whose origin and token are right.
#[derive(Debug)]
pub struct PageForm {
    pub fields: Vec<(String, String)>,
    pub files: Vec<FormFile>,
}

impl PageForm {
    pub(super) async fn read(request: Request, front: &RouterState) -> Result<Self, Problem> {
        let cookie = request.extensions().get::<BrowserCookie>().cloned();
        let cookie = cookie.ok_or_else(unauthenticated_fault)?;
        Self::read_with_cookies(request, front, &[cookie.text]).await
    }

    /// Reads the form of the sign-in. Its page may have been requested without the cookie of a sign-in, by a link from another site, and
    /// have the token of the other cookie: browsers send both with the form.
    pub(super) async fn read_sign_in(
        request: Request,
        front: &RouterState,
    ) -> Result<Self, Problem> {
        let cookies = cookies_of(request.headers());
        Self::read_with_cookies(request, front, &cookies).await
    }

    /// Reads a form with the token of one of these cookies.
    async fn read_with_cookies(
        request: Request,
        front: &RouterState,
        cookies: &[SecretString],
    ) -> Result<Self, Problem> {
        check_origin(request.headers())?;
        let FieldsAndFiles { fields, files } = match is_form(&request) {
            true => read_with_files(request, front).await?,
            false => read_fields(request, front).await?,
        };
        let form = Self { fields, files };
        let sent = form.field(TOKEN_FIELD).unwrap_or_default();
        let is_token_of = |cookie: &SecretString| {
            bool::from(sent.as_bytes().ct_eq(form_token(cookie).as_bytes()))
        };
        match cookies.iter().any(is_token_of) {
            true => Ok(form),
            false => Err(stale()),
        }
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

async fn read_fields(request: Request, front: &RouterState) -> Result<FieldsAndFiles, Problem> {
    check_declared_length(&request, BODY_LIMIT)?;
    let form = Form::<Vec<(String, String)>>::from_request(request, front).await;
    let Form(fields) = form.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_long(BODY_LIMIT),
        status => Problem::new(status, "bad_form", error.body_text()),
    })?;
    Ok(FieldsAndFiles { fields, files: Vec::new() })
}

/// Reads a form with files, which may be as long as a task with attachments that is sent to the API.
async fn read_with_files(
    mut request: Request,
    front: &RouterState,
) -> Result<FieldsAndFiles, Problem> {
    let Some(FileFormLimit(limit)) = request.extensions().get().copied() else {
        let detail = "this form takes no files: open its page, and send the form from there";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_form", detail));
    };
    DefaultBodyLimit::max(limit).apply(&mut request);
    request.extensions_mut().insert(BodyLimit(limit));
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let body = bytes(request, front, MAX_BULK_BYTES).await.map_err(name_file_limits)?;
    multipart::read_fields(&content_type, &body)
}

/// Names the settings for files in the refusal of a form that is too long.
fn name_file_limits(problem: Problem) -> Problem {
    if problem.status != StatusCode::PAYLOAD_TOO_LARGE {
        return problem;
    }
    let detail = format!(
        "the form with its files is larger than {MAX_BULK_BYTES} allows: choose fewer or smaller files; a file may have \
         tasks.max_attachment_bytes, and all files of a task tasks.max_attachments_bytes"
    );
    Problem::new(problem.status, problem.code, detail)
}

/// The token for a form of this browser.
#[derive(Debug)]
pub struct FormToken(pub String);

impl FormToken {
    /// Derives the token from the cookie of a request; empty without one.
    pub(super) fn of_headers(headers: &HeaderMap) -> String {
        cookie_of(headers).map(|cookie| form_token(&cookie)).unwrap_or_default()
    }
}

impl<S: Sync> FromRequestParts<S> for FormToken {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let cookie = parts.extensions.get::<BrowserCookie>().ok_or_else(unauthenticated_fault)?;
        Ok(Self(form_token(&cookie.text)))
    }
}

impl FromRequest<RouterState> for PageForm {
    type Rejection = Problem;

    async fn from_request(request: Request, front: &RouterState) -> Result<Self, Problem> {
        Self::read(request, front).await
    }
}

/// Derives the token of a browser's forms.
pub(super) fn form_token(cookie: &SecretString) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(cookie.expose_secret().as_bytes());
    let mac = mac.map(|mac| mac.chain_update(b"form").finalize().into_bytes());
    mac.map(hex::encode).unwrap_or_default()
}

/// Returns the path to go on to, if it is one of this service.
pub fn local_target(target: Option<&str>) -> &str {
    let is_local = |target: &&str| {
        target.starts_with('/')
            && !target.starts_with("//")
            && !target.contains(['\\', '\r', '\n', '\t'])
    };
    target.filter(is_local).unwrap_or("/")
}

/// Refuses forms without proof of their origin. A wrong `Origin` has been refused before.
fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let is_same = headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
    match headers.contains_key(ORIGIN) || is_same {
        true => Ok(()),
        false => {
            let detail = "the request has no Origin: send the form from its page in a browser; programs use the API below /v1";
            Err(Problem::new(StatusCode::FORBIDDEN, "no_origin", detail))
        }
    }
}

fn stale() -> Problem {
    let detail = "the form is from an earlier sign-in, or the browser blocks cookies: reload the page and send the form again";
    Problem::new(StatusCode::FORBIDDEN, "stale_form", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_service_are_followed() {
        for local in ["/", "/tasks/1?state=failed", "/a//b"] {
            assert_eq!(local_target(Some(local)), local);
        }
        for foreign in
            ["//evil.example", "https://evil.example", "", "tasks", "/\\evil.example", "/\t/evil"]
        {
            assert_eq!(local_target(Some(foreign)), "/", "{foreign}");
        }
    }

    #[test]
    fn a_form_with_too_large_files_names_their_limits() {
        let problem = name_file_limits(too_long(MAX_BULK_BYTES));
        assert_eq!(problem.code, "body_too_large");
        for setting in [MAX_BULK_BYTES, "tasks.max_attachment_bytes", "tasks.max_attachments_bytes"]
        {
            assert!(problem.detail.contains(setting), "{setting}: {}", problem.detail);
        }
        let other = Problem::new(StatusCode::BAD_REQUEST, "bad_body", "it is cut");
        assert_eq!(name_file_limits(other).detail, "it is cut");
    }

    #[test]
    fn a_token_belongs_to_one_cookie_and_does_not_contain_it() {
        let [one, other] = ["a".repeat(64), "b".repeat(64)].map(SecretString::from);
        assert_ne!(form_token(&one), form_token(&other));
        assert_eq!(form_token(&one).len(), 64);
        assert!(!form_token(&one).contains("aaaa"));
    }
}
