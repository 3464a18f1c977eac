//! A value that matches a JSON Schema, for answers of the simulation: the smallest one that the keywords allow.
//!
//! Patterns and formats of texts are not followed. A schema that needs them gets an answer that does not match.

use serde_json::{Map, Number, Value};

/// Depth at which a recursive schema ends.
const MAX_DEPTH: usize = 24;
/// Most items and characters that are written, even if a schema asks for more.
const MAX_LENGTH: u64 = 1000;

pub(super) fn of(schema: &Value) -> Value {
    sample(schema, schema, 0)
}

fn sample(root: &Value, schema: &Value, depth: usize) -> Value {
    let Some(keys) = schema.as_object().filter(|_| depth < MAX_DEPTH) else { return Value::Null };
    if let Some(value) = keys.get("const") {
        return value.clone();
    }
    if let Some(value) = keys.get("enum").and_then(|all| all.get(0)) {
        return value.clone();
    }
    let target = keys.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
    if let Some(target) = target.and_then(|pointer| root.pointer(pointer)) {
        return sample(root, target, depth + 1);
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        let first = keys.get(choice).and_then(|all| all.get(0));
        if let Some(first) = first.filter(|_| !keys.contains_key("type")) {
            return sample(root, first, depth + 1);
        }
    }
    match kind(keys) {
        "object" => object(root, keys, depth),
        "array" => array(root, keys, depth),
        "string" => text(keys).into(),
        "integer" | "number" => number(keys),
        "boolean" => true.into(),
        _ => Value::Null,
    }
}

/// Returns the first type; without one, that of which the keywords speak.
fn kind(keys: &Map<String, Value>) -> &str {
    let given = match keys.get("type") {
        Some(Value::Array(all)) => all.first().and_then(Value::as_str),
        given => given.and_then(Value::as_str),
    };
    let of_keywords =
        || match ["items", "prefixItems", "minItems"].iter().any(|it| keys.contains_key(*it)) {
            true => "array",
            false => "object",
        };
    given.unwrap_or_else(of_keywords)
}

/// Writes all properties: a reader of the answer wants to see them.
fn object(root: &Value, keys: &Map<String, Value>, depth: usize) -> Value {
    let mut fields = Map::new();
    for (name, schema) in keys.get("properties").and_then(Value::as_object).into_iter().flatten() {
        fields.insert(name.clone(), sample(root, schema, depth + 1));
    }
    for name in keys.get("required").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = name.as_str().filter(|name| !fields.contains_key(*name)) else { continue };
        let schema = keys.get("additionalProperties").filter(|schema| schema.is_object());
        let value = schema.map_or_else(|| name.into(), |schema| sample(root, schema, depth + 1));
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

fn array(root: &Value, keys: &Map<String, Value>, depth: usize) -> Value {
    let mut items: Vec<Value> = Vec::new();
    let first = keys.get("prefixItems").and_then(Value::as_array);
    items.extend(first.into_iter().flatten().map(|schema| sample(root, schema, depth + 1)));
    let wanted = keys.get("minItems").and_then(Value::as_u64).unwrap_or(1).min(MAX_LENGTH);
    let item = keys.get("items").map_or_else(|| "item".into(), |it| sample(root, it, depth + 1));
    while u64::try_from(items.len()).is_ok_and(|n_items| n_items < wanted) {
        items.push(item.clone());
    }
    items.into()
}

fn text(keys: &Map<String, Value>) -> String {
    let wanted = keys.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(MAX_LENGTH);
    let longest = keys.get("maxLength").and_then(Value::as_u64).unwrap_or(MAX_LENGTH);
    let chars = "simulated ".chars().cycle();
    let n_chars = wanted.max(9.min(longest));
    chars.take(usize::try_from(n_chars).unwrap_or(9)).collect()
}

fn number(keys: &Map<String, Value>) -> Value {
    let bound = |name: &str| keys.get(name).and_then(Value::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|it| it + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|it| it - 1.0));
    let number = least.map(f64::ceil).or(most.map(|most| most.floor().min(1.0))).unwrap_or(1.0);
    Number::from_i128(number as i128).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_match_their_schemas() {
        let recursive = json!({
            "type": "object",
            "properties": { "name": { "type": "string", "minLength": 12 }, "next": { "anyOf": [{ "type": "null" }, { "$ref": "#" }] } },
            "required": ["name", "next"],
        });
        let all = [
            recursive,
            json!({ "type": "array", "items": { "enum": ["a", "b"] }, "minItems": 3 }),
            json!({ "type": "object", "required": ["x"], "additionalProperties": { "type": "integer", "minimum": 4 } }),
            json!({ "properties": { "n": { "type": "number", "maximum": -1 }, "s": { "type": "string", "maxLength": 3 } } }),
            json!({ "type": ["boolean", "null"] }),
            json!({ "$ref": "#/$defs/one", "$defs": { "one": { "const": 7 } } }),
        ];
        for schema in all {
            let mut compiler = boon::Compiler::new();
            compiler.add_resource("schema://test/", schema.clone()).unwrap();
            let mut schemas = boon::Schemas::new();
            let compiled = compiler.compile("schema://test/", &mut schemas).unwrap();
            let value = of(&schema);
            assert!(schemas.validate(&value, compiled).is_ok(), "{schema}: {value}");
        }
    }
}
