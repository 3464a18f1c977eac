//! Validation against JSON Schema, as far as the API document uses it. Unknown keywords are errors.

use chrono::{DateTime, NaiveDate};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Returns the violations of `value` with their places. `document` resolves references.
pub fn violations(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(document, schema, value, "", &mut found);
    found
}

pub fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => {
            let target = document.pointer(reference.trim_start_matches('#'));
            resolve(document, target.unwrap_or_else(|| panic!("{reference} does not resolve")))
        }
        None => schema,
    }
}

fn check(document: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let schema = resolve(document, schema).as_object().unwrap();
    for (keyword, rule) in schema {
        let mut fail = |words: String| found.push(format!("{at}: {words}"));
        match keyword.as_str() {
            "type" if !is_of_type(rule, value) => fail(format!("{value} is no {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => {
                fail(format!("{value} is none of {rule}"));
            }
            "const" if rule != value => fail(format!("{value} is not {rule}")),
            "format" if !has_format(rule, value) => fail(format!("{value} is no {rule}")),
            "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => {
                fail(format!("{value} is less than {rule}"));
            }
            "maximum" if value.as_f64() > rule.as_f64() => {
                fail(format!("{value} is more than {rule}"));
            }
            "minLength" if n_chars(value).is_some_and(|n| n < rule.as_u64().unwrap()) => {
                fail(format!("{value} is shorter than {rule}"));
            }
            "maxLength" if n_chars(value).is_some_and(|n| n > rule.as_u64().unwrap()) => {
                fail(format!("{value} is longer than {rule}"));
            }
            "allOf" => {
                for part in rule.as_array().unwrap() {
                    check(document, part, value, at, found);
                }
            }
            "oneOf" => {
                let fits = |part: &&Value| violations(document, part, value).is_empty();
                let n_fitting = rule.as_array().unwrap().iter().filter(fits).count();
                if n_fitting != 1 {
                    fail(format!("{value} fits {n_fitting} of {rule}"));
                }
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    let name = name.as_str().unwrap();
                    if value.as_object().is_some_and(|object| !object.contains_key(name)) {
                        fail(format!("has no {name}"));
                    }
                }
            }
            "properties" => {
                for (name, part) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        check(document, part, value, &format!("{at}/{name}"), found);
                    }
                }
            }
            "propertyNames" => {
                for name in value.as_object().into_iter().flat_map(Map::keys) {
                    check(document, rule, &Value::from(name.as_str()), at, found);
                }
            }
            "additionalProperties" => additional(document, schema, rule, value, at, found),
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, rule, item, &format!("{at}/{place}"), found);
                }
            }
            "type" | "enum" | "const" | "format" | "minimum" | "maximum" | "minLength"
            | "maxLength" | "pattern" | "description" | "example" | "default" | "title" => {}
            other => panic!("{at}: unsupported keyword {other}"),
        }
    }
}

fn additional(
    document: &Value,
    schema: &Map<String, Value>,
    rule: &Value,
    value: &Value,
    at: &str,
    found: &mut Vec<String>,
) {
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, value) in value.as_object().into_iter().flatten() {
        if known.is_some_and(|known| known.contains_key(name)) {
            continue;
        }
        match rule {
            Value::Bool(true) => {}
            Value::Bool(false) => found.push(format!("{at}: {name} is not expected")),
            rule => check(document, rule, value, &format!("{at}/{name}"), found),
        }
    }
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    match rule {
        Value::Array(types) => types.iter().any(|rule| is_of_type(rule, value)),
        _ => match rule.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("{other} is not a type"),
        },
    }
}

fn has_format(rule: &Value, value: &Value) -> bool {
    match (rule.as_str().unwrap(), value) {
        (_, Value::Null) => true,
        ("uuid", Value::String(text)) => text.parse::<Uuid>().is_ok(),
        ("date", Value::String(text)) => text.parse::<NaiveDate>().is_ok(),
        ("date-time", Value::String(text)) => DateTime::parse_from_rfc3339(text).is_ok(),
        ("int32", number) => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        ("int64", number) => number.is_i64() || number.is_u64(),
        ("double", number) => number.is_number(),
        (other, _) => panic!("unsupported format {other}"),
    }
}

fn n_chars(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}
