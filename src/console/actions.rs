//! Forms of pages: each runs an operation by its id.
//!
//! The name of a field may begin with the way in which its text is read (`money:micros`); such a field is null if it is empty.

use axum::{
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::SET_COOKIE},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{
    campaign::new_task,
    page::{Done, Page},
    parts::{View, url_text},
};
use crate::{
    domain::{amount::parse_money, class::Kind},
    http::{
        Problem,
        pages::{PageForm, TOKEN_FIELD, local_target, see_other},
    },
    operations::{AddTask, FormFile, Operation as _, Refusal},
};

const REDIRECT: HeaderName = HeaderName::from_static("hx-redirect");
/// Fields of forms that are no input of the operation.
const OWN_FIELDS: [&str; 2] = [TOKEN_FIELD, "then"];

/// Runs the operation, and goes on to the page that the form names. Empty fields without a way to read them are left out.
pub(super) async fn run(
    Path(operation): Path<String>,
    page: Page,
    headers: HeaderMap,
    mut form: PageForm,
) -> Result<Response, Problem> {
    let files = std::mem::take(&mut form.files);
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let output = match run_fields(&page, &operation, &form, files).await {
        Ok(output) => output,
        // With a script, the error stands above the form, which stays as it is.
        Err(refusal) if operation == AddTask::SPEC.id && !headers.contains_key("hx-request") => {
            return Box::pin(new_task::refused(&page, &form, names, refusal)).await;
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let response = go_on(&headers, &filled(local_target(form.field("then")), &output));
    // The next page confirms the action, and removes the cookie.
    Ok(([(SET_COOKIE, Done::cookie(&operation, &output))], response).into_response())
}

async fn run_fields(
    page: &Page,
    operation: &str,
    form: &PageForm,
    files: Vec<FormFile>,
) -> Result<Value, Refusal> {
    let fields = form.fields.iter().filter(|(name, _)| !OWN_FIELDS.contains(&name.as_str()));
    let fields = fields.filter_map(|(name, text)| read(&page.view, name, text).transpose());
    let fields = nested(fields.collect::<Result<_, _>>()?);
    page.caller.run_form(operation, fields, files).await
}

/// Goes on to another page, after a form with or without a script.
pub(super) fn go_on(headers: &HeaderMap, target: &str) -> Response {
    let is_fragment = headers.contains_key("hx-request");
    match HeaderValue::try_from(target) {
        Ok(target) if is_fragment => (StatusCode::NO_CONTENT, [(REDIRECT, target)]).into_response(),
        _ => see_other(target),
    }
}

/// Reads a field of a form.
fn read(view: &View, name: &str, text: &str) -> Result<Option<(String, Value)>, Refusal> {
    // Browsers send line ends as CR LF.
    let text = text.replace("\r\n", "\n");
    let (way, name) = match name.split_once(':') {
        None if text.is_empty() => return Ok(None),
        None => return Ok(Some((name.to_owned(), Value::String(text)))),
        Some(parts) => parts,
    };
    let wrong = |detail: String| Refusal::new(Kind::Invalid, "bad_field", detail);
    let value = match (way, text.trim()) {
        ("lines", text) => text.lines().map(str::trim).filter(|line| !line.is_empty()).collect(),
        ("words", words) => {
            let words = words.split([',', ' ', '\n']).map(str::trim);
            words.filter(|word| !word.is_empty()).collect()
        }
        // An object of nulls would be a budget without a limit, which is refused.
        (_, "") if name.contains('.') => return Ok(None),
        (_, "") => Value::Null,
        ("money", amount) => {
            let micros = parse_money(&amount.replace(',', "."));
            micros.map_err(|error| wrong(error.to_string()))?.into()
        }
        ("number", number) => {
            let invalid = || {
                wrong(format!("`{number}` is not a whole number: use for example 250000 or 250k"))
            };
            parse_number(number).ok_or_else(invalid)?.into()
        }
        ("hours", hours) => {
            let invalid =
                || wrong(format!("`{hours}` is not a number of hours: use for example 24"));
            hours.parse().ok().and_then(seconds_of).ok_or_else(invalid)?.into()
        }
        ("text", _) => Value::String(text),
        ("flag", text) => Value::Bool(text == "true"),
        ("json", json) => serde_json::from_str(json).map_err(|error| {
            wrong(format!(
                "`{name}` is not valid JSON: {error}: write for example {{\"parts\": 9}}"
            ))
        })?,
        ("time", moment) => {
            let invalid =
                || wrong(format!("`{moment}` is not a time: use for example 2026-11-27T09:00"));
            view.moment(moment).ok_or_else(invalid)?.to_rfc3339().into()
        }
        _ => {
            return Err(wrong(format!(
                "the form has an unknown field `{way}:{name}`: reload the page"
            )));
        }
    };
    Ok(Some((name.to_owned(), value)))
}

fn seconds_of(hours: u32) -> Option<u32> {
    hours.checked_mul(3_600)
}

/// Reads a whole number, also as the pages show it: `41.8k`, `1.2M`.
fn parse_number(text: &str) -> Option<i64> {
    let (digits, zeros) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 3),
        None => text.strip_suffix(['m', 'M']).map_or((text, 0), |digits| (digits, 6)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > zeros || ![whole, part].into_iter().all(is_number) {
        return None;
    }
    format!("{whole}{part}{}", "0".repeat(zeros - part.len())).parse().ok()
}

/// Puts fields with a dot in their name into objects: `inputs.topic` is the field `topic` of the object `inputs`.
fn nested(fields: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    for (name, value) in fields {
        let Some((outer, inner)) = name.split_once('.') else {
            all.push((name, value));
            continue;
        };
        match all.iter_mut().find(|(name, _)| name == outer) {
            Some((_, Value::Object(object))) => _ = object.insert(inner.to_owned(), value),
            _ => all.push((outer.to_owned(), json!({ inner: value }))),
        }
    }
    all
}

/// Fills fields of the output into a path or its query: `/sessions/{id}`, `/cost/budgets?set={owner}/{key}`. A field without a value is empty.
fn filled(path: &str, output: &Value) -> String {
    let (mut text, mut rest) = (String::new(), path);
    while let Some((before, name, after)) = next_field(rest) {
        let value = match &output[name] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        text.push_str(before);
        text.push_str(&if text.contains('?') { url_text(&value) } else { value });
        rest = after;
    }
    text + rest
}

/// Splits a text at its first `{name}`.
fn next_field(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn fields_are_read_in_the_way_that_their_name_says() {
        let view = View::at(DateTime::UNIX_EPOCH);
        let value = |name, text| read(&view, name, text).unwrap().map(|(_, value)| value);
        assert_eq!(value("money:micros", " 12.50 "), Some(json!(12_500_000)));
        assert_eq!(value("money:micros", "12,5"), Some(json!(12_500_000)));
        assert_eq!(value("money:micros", ""), Some(Value::Null));
        assert_eq!(value("money:budget.micros", ""), None);
        assert_eq!(value("words:tags", ""), Some(json!([])));
        assert_eq!(value("words:tags", "red, blue"), Some(json!(["red", "blue"])));
        assert_eq!(value("number:tokens", "250000"), Some(json!(250_000)));
        assert_eq!(value("hours:within_secs", "24"), Some(json!(86_400)));
        assert_eq!(value("hours:within_secs", ""), Some(Value::Null));
        assert_eq!(value("text:client_context", "a\r\nb"), Some(json!("a\nb")));
        assert_eq!(value("text:client_context", ""), Some(Value::Null));
        assert_eq!(value("reason", ""), None);
        assert_eq!(value("reason", "late"), Some(json!("late")));
        assert_eq!(value("flag:fresh", "true"), Some(json!(true)));
        assert_eq!(value("words:tags", "press, autumn\r\n"), Some(json!(["press", "autumn"])));
        assert_eq!(value("json:patch", "{\"a\": null}"), Some(json!({ "a": null })));
        assert_eq!(
            value("time:run_at", "2026-11-27T09:00"),
            Some(json!("2026-11-27T09:00:00+00:00"))
        );
        for (name, text) in [
            ("money:micros", "12.50 €"),
            ("number:tokens", "1e9"),
            ("hours:within_secs", "1.5"),
            ("json:patch", "{"),
            ("time:run_at", "tomorrow"),
            ("other:x", "1"),
        ] {
            assert_eq!(read(&view, name, text).unwrap_err().code, "bad_field", "{name}");
        }
    }

    #[test]
    fn numbers_are_read_as_the_pages_show_them() {
        let numbers = ["20k", "41.8k", "1.2M", "7", "0.5m"].map(parse_number);
        assert_eq!(numbers, [20_000, 41_800, 1_200_000, 7, 500_000].map(Some));
        for wrong in ["", "k", "-1", "1.5", "1.2345k", "1e9", "1k5", ".5k", "20 k", "+1"] {
            assert_eq!(parse_number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_with_a_dot_are_fields_of_an_object() {
        let view = View::at(DateTime::UNIX_EPOCH);
        let lines = read(&view, "lines:inputs.parts", "One\r\n\n Two ").unwrap().unwrap();
        let topic = read(&view, "inputs.topic", "The harbour").unwrap().unwrap();
        let template = ("template".to_owned(), json!("series"));
        assert_eq!(
            nested(vec![topic, template.clone(), lines]),
            [
                ("inputs".to_owned(), json!({ "topic": "The harbour", "parts": ["One", "Two"] })),
                template
            ]
        );
    }

    #[test]
    fn the_next_page_can_be_that_of_the_output() {
        let output = json!({ "id": "abc", "number": 7 });
        assert_eq!(filled("/sessions/{id}/turns/{number}", &output), "/sessions/abc/turns/7");
        assert_eq!(filled("/tasks/1?a=b", &output), "/tasks/1?a=b");
        let output = json!({ "owner": "user", "key": "a+b@c" });
        let target = filled("/cost/budgets?set={owner}/{key}", &output);
        assert_eq!(target, format!("/cost/budgets?set=user/{}", url_text("a+b@c")));
        assert!(!target.contains('+'), "a plus is a blank in a query: {target}");
    }
}
