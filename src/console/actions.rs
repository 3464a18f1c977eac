//! Forms of pages: each runs an operation by its id.

use axum::{
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde_json::Value;

use crate::http::{
    Problem,
    pages::{PageCaller, PageForm, TOKEN_FIELD, local_target, see_other},
};

const REDIRECT: HeaderName = HeaderName::from_static("hx-redirect");
/// Fields of forms that are no input of the operation.
const OWN_FIELDS: [&str; 2] = [TOKEN_FIELD, "then"];

/// Runs the operation, and goes on to the page that the form names. Empty fields are left out.
pub(super) async fn run(
    Path(operation): Path<String>,
    caller: PageCaller,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, Problem> {
    let is_input = |(name, value): &&(String, String)| {
        !OWN_FIELDS.contains(&name.as_str()) && !value.is_empty()
    };
    // Browsers send line ends as CR LF.
    let text = |(name, value): &(String, String)| (name.clone(), value.replace("\r\n", "\n"));
    let fields: Vec<_> = form.0.iter().filter(is_input).map(text).collect();
    let output = caller.run_form(&operation, &fields).await?;
    Ok(go_on(&headers, &filled(local_target(form.field("then")), &output)))
}

/// Goes on to another page, after a form with or without a script.
pub(super) fn go_on(headers: &HeaderMap, target: &str) -> Response {
    let is_fragment = headers.contains_key("hx-request");
    match HeaderValue::try_from(target) {
        Ok(target) if is_fragment => (StatusCode::NO_CONTENT, [(REDIRECT, target)]).into_response(),
        _ => see_other(target),
    }
}

/// Fills fields of the output into a path: `/sessions/{id}`.
fn filled(path: &str, output: &Value) -> String {
    let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => match &output[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        },
        None => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_next_page_can_be_that_of_the_output() {
        let output = json!({ "id": "abc", "number": 7 });
        assert_eq!(filled("/sessions/{id}/turns/{number}", &output), "/sessions/abc/turns/7");
        assert_eq!(filled("/tasks/1?a=b", &output), "/tasks/1?a=b");
    }
}
