//! Parsing of bodies and ids. Invalid input becomes a problem document that names the invalid part.

use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequest as _, FromRequestParts, Path, Request},
    http::{StatusCode, header::CONTENT_TYPE, request::Parts},
};
use uuid::Uuid;

use super::{
    Problem, RouterState,
    limits::{check_declared_length, too_long},
    multipart::{self, Form},
};
use crate::operations::{self, ItemsText, MAX_BULK_BYTES};

/// The id in the path.
pub(super) struct Id(pub Uuid);

/// Reads the text of a JSON body. An empty body is an object without fields.
pub(super) async fn json(
    request: Request,
    front: &RouterState,
    limit: &str,
) -> Result<Bytes, Problem> {
    let is_json = media_type(&request).eq_ignore_ascii_case("application/json");
    let bytes = bytes(request, front, limit).await?;
    match bytes.is_empty() {
        true => Ok(Bytes::from_static(b"{}")),
        // A page of another site can send other content types without a preflight request.
        false if !is_json => {
            let detail = "send the body as JSON, with `Content-Type: application/json`";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail))
        }
        false => Ok(bytes),
    }
}

/// Returns true if the body is a form with files.
pub(super) fn is_form(request: &Request) -> bool {
    media_type(request).eq_ignore_ascii_case("multipart/form-data")
}

/// Reads a form with files.
pub(super) async fn form(
    request: Request,
    front: &RouterState,
    limit: &str,
) -> Result<Form, Problem> {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    multipart::read(&content_type, &bytes(request, front, limit).await?)
}

/// Reads the body of an operation that takes a list.
pub(super) async fn items(request: Request, front: &RouterState) -> Result<ItemsText, Problem> {
    let are_lines = match media_type(&request).to_ascii_lowercase().as_str() {
        "application/x-ndjson" => true,
        "application/json" => false,
        _ => {
            // The length is checked first, as for each body.
            bytes(request, front, MAX_BULK_BYTES).await?;
            let detail = "send the items as a JSON array with `Content-Type: application/json`, or one per line with \
                          `application/x-ndjson`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
        }
    };
    let text = bytes(request, front, MAX_BULK_BYTES).await?.into();
    Ok(ItemsText { text, are_lines })
}

/// Refuses a body where none is read: its sender believes that it says something.
pub(super) async fn no_body(request: Request) -> Result<(), Problem> {
    let read = to_bytes(request.into_body(), 0).await;
    read.map(drop).map_err(|_| {
        let detail = "this operation takes no body: send its fields as query parameters";
        Problem::new(StatusCode::BAD_REQUEST, "bad_body", detail)
    })
}

impl FromRequestParts<RouterState> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, front: &RouterState) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, front).await;
        let Path(text) = path
            .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "bad_id", error.body_text()))?;
        id(&text).map(Self)
    }
}

pub(super) fn id(text: &str) -> Result<Uuid, Problem> {
    Ok(operations::parse_id(text)?)
}

/// Reads the whole body. `limit` is the setting that limits its length.
pub(super) async fn bytes(
    request: Request,
    front: &RouterState,
    limit: &str,
) -> Result<Bytes, Problem> {
    check_declared_length(&request, limit)?;
    Bytes::from_request(request, front).await.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_long(limit),
        _ => Problem::new(StatusCode::BAD_REQUEST, "bad_body", error.body_text()),
    })
}

/// Returns the content type without parameters.
pub(super) fn media_type(request: &Request) -> &str {
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim()
}
