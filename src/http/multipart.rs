//! Forms with files (`multipart/form-data`, RFC 7578). Those of the API have the part `task` with the JSON of the operation, those of pages
//! a part for each field; both have a part for each file.
//!
//! The body is in memory as a whole, within the limit of the route.

use super::Problem;
use crate::operations::FormFile;
use axum::http::StatusCode;

/// Part with the fields of the operation.
const FIELDS: &str = "task";
/// Headers of one part.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Parts of a form; far more than any task may have files.
pub(super) const MAX_PARTS: usize = 1_000;

/// The content of a form.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// JSON of the part `task`.
    pub json: Vec<u8>,
    pub files: Vec<FormFile>,
}

/// The form of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FieldsAndFiles {
    pub fields: Vec<(String, String)>,
    pub files: Vec<FormFile>,
}

/// A part of a form.
struct Part<'a> {
    name: String,
    file_name: Option<String>,
    media_type: Option<String>,
    content: &'a [u8],
}

/// Reads a form of the API. `content_type` is the whole header of the request, with the boundary of the parts.
pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Form, Problem> {
    let mut form = None;
    let mut files = Vec::new();
    for part in parts(content_type, body)? {
        let Part { name, file_name, media_type, content } = part;
        match (name.as_str(), file_name) {
            (FIELDS, _) if form.is_some() => {
                return Err(bad("the part `task` is there more than once"));
            }
            (FIELDS, _) => form = Some(content.to_vec()),
            (_, Some(name)) => {
                let content = content.to_vec();
                files.push(FormFile { name, media_type, content });
            }
            (name, None) => {
                let detail = format!(
                    "the part `{name}` has no file name: send the fields as JSON in the part `task`, and files with a file name"
                );
                return Err(bad(&detail));
            }
        }
    }
    let json = form.ok_or_else(|| bad("the form has no part `task` with the fields as JSON"))?;
    Ok(Form { json, files })
}

/// Reads the form of a page. A browser sends an input without a chosen file as a file without a name.
pub(super) fn read_fields(content_type: &str, body: &[u8]) -> Result<FieldsAndFiles, Problem> {
    let mut form = FieldsAndFiles::default();
    for Part { name, file_name, media_type, content } in parts(content_type, body)? {
        match file_name {
            None => {
                let text = String::from_utf8(content.to_vec());
                let text = text.map_err(|_| bad(&format!("the field `{name}` is not UTF-8")))?;
                form.fields.push((name, text));
            }
            Some(name) if name.is_empty() && content.is_empty() => {}
            Some(name) => form.files.push(FormFile { name, media_type, content: content.to_vec() }),
        }
    }
    Ok(form)
}

fn parts<'a>(content_type: &str, body: &'a [u8]) -> Result<Vec<Part<'a>>, Problem> {
    let boundary = parameter(content_type, "boundary").filter(|boundary| !boundary.is_empty());
    let boundary = boundary.ok_or_else(|| bad("the header Content-Type has no boundary"))?;
    let delimiter = format!("\r\n--{boundary}");
    let delimiter = delimiter.as_bytes();
    let cut = || bad("the form is cut off: its last boundary is missing");
    // The first delimiter may be at the very beginning.
    let mut rest = match body.strip_prefix(&delimiter[2..]) {
        Some(rest) => rest,
        None => {
            let at = find(body, delimiter).ok_or_else(|| bad("the form has no parts"))?;
            &body[at + delimiter.len()..]
        }
    };
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        if parts.len() >= MAX_PARTS {
            return Err(bad("the form has too many parts"));
        }
        // Spaces may follow a boundary.
        let line_end = find(rest, b"\r\n").ok_or_else(cut)?;
        if !rest[..line_end].trim_ascii().is_empty() {
            return Err(bad("a boundary of the form is followed by other text"));
        }
        let after = &rest[line_end..];
        let end = find(after, delimiter).ok_or_else(cut)?;
        let head_end = find(&after[..end], b"\r\n\r\n").filter(|at| *at <= MAX_HEAD_BYTES);
        let head_end = head_end.ok_or_else(|| bad("a part of the form has no headers"))?;
        parts.push(part(&after[..head_end], &after[head_end + 4..end])?);
        rest = &after[end + delimiter.len()..];
    }
}

fn part<'a>(head: &[u8], content: &'a [u8]) -> Result<Part<'a>, Problem> {
    let head = std::str::from_utf8(head).map_err(|_| bad("a header of a part is not UTF-8"))?;
    let header = |wanted: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let found = lines.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim())
    };
    let disposition = header("content-disposition").unwrap_or_default();
    let name = parameter(disposition, "name");
    Ok(Part {
        name: name.ok_or_else(|| bad("a part of the form has no name"))?,
        // Some programs send the whole path.
        file_name: parameter(disposition, "filename")
            .map(|name| name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()),
        media_type: header("content-type").map(str::to_owned),
        content,
    })
}

/// Returns a parameter of a header: `boundary` of `multipart/form-data; boundary=x`. Browsers write `"` in a name as `%22`.
fn parameter(header: &str, wanted: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (name, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => {
                let (value, after) = unquote(quoted)?;
                (value, after.split_once(';').map_or("", |(_, after)| after))
            }
            None => {
                let (value, after) = value.split_once(';').unwrap_or((value, ""));
                (value.trim().to_owned(), after)
            }
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value.replace("%22", "\""));
        }
        rest = after;
    }
}

/// Reads a quoted text up to its end, and returns the rest.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => match chars.clone().next() {
                Some((_, escaped @ ('"' | '\\'))) => {
                    value.push(escaped);
                    chars.next();
                }
                _ => value.push('\\'),
            },
            char => value.push(char),
        }
    }
    None
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = text.get(from..)?.iter().position(|byte| *byte == first) {
        let at = from + at;
        if text[at..].starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

fn bad(detail: &str) -> Problem {
    let detail = format!("the request body is not a valid form: {detail}");
    Problem::new(StatusCode::BAD_REQUEST, "bad_body", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=\"b 1\"";

    fn form(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut body = String::new();
        for (head, content) in parts {
            body.push_str(&format!("--b 1\r\n{head}\r\n\r\n{content}\r\n"));
        }
        body.push_str("--b 1--\r\n");
        body.into_bytes()
    }

    #[test]
    fn fields_and_files_are_read() {
        let body = form(&[
            ("Content-Disposition: form-data; name=\"task\"", "{\"agent\":\"a\"}"),
            (
                "content-type: text/csv\r\nContent-Disposition: form-data; name=\"f\"; filename=\"C:\\x\\a;%22b.csv\"",
                "1\r\n--b\r\n2",
            ),
            ("Content-Disposition: form-data; name=f; filename=plain.txt", ""),
        ]);
        let read = read(TYPE, &body).unwrap();
        assert_eq!(read.json, b"{\"agent\":\"a\"}");
        let file = |name: &str, media_type: Option<&str>, content: &[u8]| FormFile {
            name: name.to_owned(),
            media_type: media_type.map(str::to_owned),
            content: content.to_vec(),
        };
        let expected =
            [file("a;\"b.csv", Some("text/csv"), b"1\r\n--b\r\n2"), file("plain.txt", None, b"")];
        assert_eq!(read.files, expected);
    }

    #[test]
    fn a_form_of_a_page_has_fields_and_the_files_that_were_chosen() {
        let body = form(&[
            ("Content-Disposition: form-data; name=\"prompt\"", "Größe\r\n2"),
            (
                "Content-Disposition: form-data; name=\"files\"; filename=\"\"\r\nContent-Type: application/octet-stream",
                "",
            ),
            (
                "Content-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\nContent-Type: text/plain",
                "a",
            ),
        ]);
        let read = read_fields(TYPE, &body).unwrap();
        assert_eq!(read.fields, [("prompt".to_owned(), "Größe\r\n2".to_owned())]);
        let file = FormFile {
            name: "a.txt".to_owned(),
            media_type: Some("text/plain".to_owned()),
            content: b"a".to_vec(),
        };
        assert_eq!(read.files, [file]);
    }

    #[test]
    fn broken_forms_are_refused() {
        let whole = form(&[("Content-Disposition: form-data; name=\"task\"", "{}")]);
        assert!(read(TYPE, &whole).is_ok());
        let detail = |content_type: &str, body: &[u8]| read(content_type, body).unwrap_err().detail;
        assert!(detail("multipart/form-data", &whole).contains("no boundary"));
        assert!(detail(TYPE, b"").contains("no parts"));
        for end in 1..whole.len() - 4 {
            assert!(read(TYPE, &whole[..end]).is_err(), "{end}");
        }
        let twice = ("Content-Disposition: form-data; name=task", "{}");
        assert!(detail(TYPE, &form(&[twice, twice])).contains("more than once"));
        let field = ("Content-Disposition: form-data; name=prompt", "x");
        assert!(detail(TYPE, &form(&[twice, field])).contains("`prompt` has no file name"));
        let file = ("Content-Disposition: form-data; name=f; filename=a", "x");
        assert!(detail(TYPE, &form(&[file])).contains("no part `task`"));
        assert!(detail(TYPE, &form(&[("X: y", "x")])).contains("has no name"));
    }
}
