//! What comes in: bodies, queries and ids. Whatever is wrong with them is a problem document that names the part.

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::QueryRejection},
    http::{StatusCode, header::CONTENT_TYPE, request::Parts},
};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::{
    Front, Problem,
    limits::{check_declared_length, too_long},
};
use crate::{
    domain::objects::plain,
    operations::{self, ItemsText},
};

/// No queue, group or lane has a longer one.
const NAME_MAX_CHARS: usize = 200;

/// A JSON body. An empty one is an object without fields.
pub(super) struct Body<T>(pub T);

/// The part of the address after `?`.
pub(super) struct Asked<T>(pub T);

/// The one id in the path.
pub(super) struct Id(pub Uuid);

/// The one name in the path.
pub(super) struct Name(pub String);

/// Two ids in the path, that of a campaign and that of something in it.
pub(super) struct IdAndItem(pub Uuid, pub Uuid);

/// A name in the path, and an id behind it.
pub(super) struct NameAndId(pub String, pub Uuid);

impl<T: DeserializeOwned> FromRequest<Front> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, front: &Front) -> Result<Self, Problem> {
        Ok(Self(operations::read_json(&json(request, front).await?)?))
    }
}

/// The text of a JSON body. An empty body is an object without fields.
pub(super) async fn json(request: Request, front: &Front) -> Result<Bytes, Problem> {
    let is_json = media_type(&request).eq_ignore_ascii_case("application/json");
    let bytes = bytes(request, front, "http.max_body_bytes").await?;
    match bytes.is_empty() {
        true => Ok(Bytes::from_static(b"{}")),
        // A web page can send a foreign service anything but this type without asking it first.
        false if !is_json => {
            let detail = "send the body as JSON, with `Content-Type: application/json`";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail))
        }
        false => Ok(bytes),
    }
}

/// The body of an operation that takes a list.
pub(super) async fn items(request: Request, front: &Front) -> Result<ItemsText, Problem> {
    let are_lines = match media_type(&request).to_ascii_lowercase().as_str() {
        "application/x-ndjson" => true,
        "application/json" => false,
        _ => {
            // The length is looked at first, as of every body.
            bytes(request, front, "http.max_bulk_bytes").await?;
            let detail = "send the items as a JSON array with `Content-Type: application/json`, or one per line with \
                          `application/x-ndjson`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
        }
    };
    let text = bytes(request, front, "http.max_bulk_bytes").await?.into();
    Ok(ItemsText { text, are_lines })
}

impl<T: DeserializeOwned> FromRequestParts<Front> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Front) -> Result<Self, Problem> {
        refuse_nul(parts.uri.query().unwrap_or_default(), "bad_query")?;
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", of_query(&error))),
        }
    }
}

impl FromRequestParts<Front> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, front: &Front) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, front).await;
        let Path(text) = path
            .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "bad_id", error.body_text()))?;
        id(&text).map(Self)
    }
}

impl FromRequestParts<Front> for IdAndItem {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, front: &Front) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, front).await;
        let Path((first, second)) = path
            .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "bad_id", error.body_text()))?;
        Ok(Self(id(&first)?, id(&second)?))
    }
}

impl FromRequestParts<Front> for NameAndId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, front: &Front) -> Result<Self, Problem> {
        refuse_nul(parts.uri.path(), "bad_name")?;
        let path = Path::<(String, String)>::from_request_parts(parts, front).await;
        let Path((text_of_name, text)) = path.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "bad_name", error.body_text())
        })?;
        Ok(Self(name(text_of_name)?, id(&text)?))
    }
}

impl FromRequestParts<Front> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, front: &Front) -> Result<Self, Problem> {
        refuse_nul(parts.uri.path(), "bad_name")?;
        let path = Path::<String>::from_request_parts(parts, front).await;
        let Path(text) = path.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "bad_name", error.body_text())
        })?;
        name(text).map(Self)
    }
}

pub(super) fn id(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("`{text}` is not an id: write it as the lists show it");
        Problem::new(StatusCode::BAD_REQUEST, "bad_id", detail)
    })
}

fn name(text: String) -> Result<String, Problem> {
    match text.chars().count() {
        0..=NAME_MAX_CHARS => Ok(text),
        n_chars => {
            let detail = format!("the name has {n_chars} characters, {NAME_MAX_CHARS} are allowed");
            Err(Problem::new(StatusCode::BAD_REQUEST, "bad_name", detail))
        }
    }
}

/// The database has it in no text.
fn refuse_nul(address: &str, code: &'static str) -> Result<(), Problem> {
    match address.contains("%00") {
        true => {
            let detail =
                "the address holds the character U+0000, which nothing here is called: remove it";
            Err(Problem::new(StatusCode::BAD_REQUEST, code, detail))
        }
        false => Ok(()),
    }
}

/// The whole body. `limit` is the key of the configuration that says how long it may be.
pub(super) async fn bytes(request: Request, front: &Front, limit: &str) -> Result<Bytes, Problem> {
    check_declared_length(&request, limit)?;
    Bytes::from_request(request, front).await.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_long(limit),
        _ => Problem::new(StatusCode::BAD_REQUEST, "bad_body", error.body_text()),
    })
}

/// What the body is said to be, without what is behind a semicolon.
pub(super) fn media_type(request: &Request) -> &str {
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim()
}

/// Which parameter does not fit, and why.
fn of_query(error: &QueryRejection) -> String {
    let words = error.body_text();
    let words = words.strip_prefix("Failed to deserialize query string: ").unwrap_or(&words);
    match words.split_once(": ") {
        Some((name, why)) => format!("the query parameter `{name}` does not fit: {}", plain(why)),
        None => plain(words),
    }
}
