//! The files of the console, which the binary contains.
//!
//! Their paths have the hash of all of them, so that browsers keep them for good and never mix two versions. They are compressed once per
//! process. Pages are not compressed: they hold tokens of forms beside texts of others.

use std::{
    fmt::Write as _,
    io::Write as _,
    sync::{LazyLock, OnceLock},
};

use axum::{
    extract::Path,
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{
            ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
            VARY,
        },
    },
    response::{IntoResponse as _, Response},
};
use flate2::{Compression, write::GzEncoder};
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
    "favicon-attention.svg": SVG,
    "htmx.min.js": SCRIPT,
    "console.js": SCRIPT,
    "actions.js": SCRIPT,
    "keys.js": SCRIPT,
    "times.js": SCRIPT,
    "live.js": SCRIPT,
    "attention.js": SCRIPT,
    "notices.js": SCRIPT,
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
    let Some(place) = ASSETS.iter().position(|asset| asset.name == name) else {
        return super::problem::not_found().into_response();
    };
    let (asset, gzipped) = (&ASSETS[place], accepts_gzip(&headers).then(|| &GZIPPED[place]));
    let tag = format!("\"{}{}\"", version(), if gzipped.is_some() { "-gzip" } else { "" });
    let kept = if asked == version() { KEPT } else { "no-cache" };
    let head: [(HeaderName, &str); 4] = [
        (CONTENT_TYPE, asset.kind),
        (CACHE_CONTROL, kept),
        (ETAG, &tag),
        (VARY, ACCEPT_ENCODING.as_str()),
    ];
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    match (is_known, gzipped) {
        (true, _) => (StatusCode::NOT_MODIFIED, head).into_response(),
        (false, Some(bytes)) => {
            (head, [(CONTENT_ENCODING, "gzip")], bytes.as_slice()).into_response()
        }
        (false, None) => (head, asset.bytes).into_response(),
    }
}

/// The files as they are sent to browsers that take gzip, in the order of [`ASSETS`].
static GZIPPED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let gzip = |asset: &Asset| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to memory cannot fail.
        let _ = encoder.write_all(asset.bytes);
        encoder.finish().unwrap_or_default()
    };
    ASSETS.iter().map(gzip).collect()
});

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|line| line.to_str().ok());
    let mut codings = lines.flat_map(|line| line.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(weight.trim(), "q=0" | "q=0.0")
    })
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

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn compressed_files_are_the_same_files() {
        for (asset, gzipped) in ASSETS.iter().zip(GZIPPED.iter()) {
            let mut bytes = Vec::new();
            GzDecoder::new(gzipped.as_slice()).read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, asset.bytes, "{}", asset.name);
            assert!(gzipped.len() < asset.bytes.len(), "{}", asset.name);
        }
    }

    #[test]
    fn only_browsers_that_take_gzip_get_it() {
        let accepts = |value: &'static str| {
            accepts_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, value.parse().unwrap())]))
        };
        assert!(accepts("gzip, deflate, br") && accepts("br;q=1.0, GZIP;q=0.8"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts_gzip(&HeaderMap::new()));
    }
}
