//! The files of the console, which the binary contains.
//!
//! Their paths have the hash of all of them, so that browsers keep them for good and never mix two versions.

use std::{fmt::Write as _, sync::OnceLock};

use axum::{
    extract::Path,
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
    },
    response::{IntoResponse as _, Response},
};
use sha2::{Digest as _, Sha256};

const KEPT: &str = "public, max-age=31536000, immutable";
const HASH_CHARS: usize = 16;

struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal: $kind:expr,)*) => {
        &[$(Asset { name: $name, kind: $kind, bytes: include_bytes!(concat!("assets/", $name)) },)*]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const ASSETS: &[Asset] = assets! {
    "style.css": "text/css; charset=utf-8",
    "icons.svg": SVG,
    "favicon.svg": SVG,
    "htmx.min.js": SCRIPT,
    "console.js": SCRIPT,
    "actions.js": SCRIPT,
    "keys.js": SCRIPT,
    "times.js": SCRIPT,
    "live.js": SCRIPT,
    "stream.js": SCRIPT,
    "select.js": SCRIPT,
    "visits.js": SCRIPT,
};

/// Returns the path of a file, to which a fragment can be appended.
pub(super) fn path(name: &str) -> String {
    format!("/assets/{}/{name}", version())
}

/// Serves a file. A page of another version gets the present one, and no browser keeps it.
pub(super) async fn serve(
    Path((asked, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return super::problem::not_found().into_response();
    };
    let tag = format!("\"{}\"", version());
    let kept = if asked == version() { KEPT } else { "no-cache" };
    let head: [(HeaderName, &str); 3] =
        [(CONTENT_TYPE, asset.kind), (CACHE_CONTROL, kept), (ETAG, &tag)];
    match headers.get(IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
        true => (StatusCode::NOT_MODIFIED, head).into_response(),
        false => (head, asset.bytes).into_response(),
    }
}

fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut hash = Sha256::new();
        for asset in ASSETS {
            hash.update(asset.name);
            hash.update(asset.bytes);
        }
        let mut text = String::new();
        for byte in hash.finalize().iter().take(HASH_CHARS / 2) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    })
}
