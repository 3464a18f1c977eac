//! Files as responses, which a browser saves and never shows or runs.

use axum::{
    http::{
        HeaderValue,
        header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse as _, Response},
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::operations::DownloadedFile;

/// The characters that a name in a header cannot have as they are.
const IN_HEADER: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

pub fn download_response(file: DownloadedFile) -> Response {
    let DownloadedFile { name, media_type, content } = file;
    let media_type = match media_type.as_str() {
        "text/plain" => "text/plain; charset=utf-8",
        other => other,
    };
    let mut response = content.into_response();
    let headers = response.headers_mut();
    let value = |text: &str| HeaderValue::from_str(text).ok();
    let other = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, value(media_type).unwrap_or(other));
    let unnamed = HeaderValue::from_static("attachment");
    headers.insert(CONTENT_DISPOSITION, value(&disposition(&name)).unwrap_or(unnamed));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The next turn of the task may replace it.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

/// The name twice (RFC 6266): for old clients with `_` in the place of other characters, and in UTF-8.
fn disposition(name: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || " -_.".contains(char);
    let plain: String = name.chars().map(|char| if is_plain(char) { char } else { '_' }).collect();
    let encoded = utf8_percent_encode(name, &IN_HEADER);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_header_field() {
        assert_eq!(
            disposition("a b.txt"),
            "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"
        );
        assert_eq!(
            disposition("ü\"; x=\r\n.sh"),
            "attachment; filename=\"___ x___.sh\"; filename*=UTF-8''%C3%BC%22%3B%20x%3D%0D%0A.sh"
        );
    }
}
