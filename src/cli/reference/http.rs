//! The reference of the HTTP API, from its document and the list of operations.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::{
    cells::{cell, sentences},
    http_types::{field_rows, type_words},
};
use crate::{
    http,
    operations::{self, Spec},
};

const HEAD: &str = "\
# HTTP API

[openapi.json](openapi.json) is the same for programs; a running service has it at `/v1/openapi.json`. [Error codes](errors.md) says what each code
means. Requests and answers are JSON unless something else is named. Fields of a type without \"or null\" are always there; newer versions may add fields
and kinds, so ignore those that you do not know.

Where API keys are required, each request has the header `Authorization: Bearer KEY`. A key needs one of the scopes that are named with an operation;
`admin` includes `operate`, which includes `enqueue`, which includes `read`.

Changes take the header `Idempotency-Key`: the same request with the same key is carried out once, and is answered the same way again, with
`Idempotent-Replayed: true`.
";

/// Codes that are listed once: nearly every operation has them.
const SHARED_BY: f64 = 0.9;

/// Writes the reference.
///
/// # Errors
///
/// The API document lacks a part.
pub(super) fn markdown() -> anyhow::Result<String> {
    let document: Value = serde_json::from_str(http::document())?;
    let paths = document["paths"].as_object().context("the API document has no paths")?;
    let all: Vec<Route<'_>> = paths.iter().flat_map(|(path, own)| routes(path, own)).collect();
    let shared = shared_codes(&all);
    let mut text = HEAD.to_owned();
    text += &format!("\nAny request may be refused with {}.\n", list_codes(&shared));
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = tag["name"].as_str().unwrap_or_default();
        text += &format!("\n## {name}\n\n{}\n", sentences(string(tag, "description")));
        for route in all.iter().filter(|route| route.tag() == name) {
            route.write(&shared, &mut text);
        }
    }
    text += "\n## Types\n";
    let schemas = document["components"]["schemas"].as_object();
    for (name, schema) in schemas.into_iter().flatten() {
        text += &type_section(name, schema);
    }
    Ok(text)
}

/// A method of a path.
struct Route<'a> {
    method: &'a str,
    path: &'a str,
    operation: &'a Value,
    /// `None` for routes that are not operations.
    spec: Option<&'static Spec>,
}

fn routes<'a>(path: &'a str, own: &'a Value) -> impl Iterator<Item = Route<'a>> {
    let methods = own.as_object().into_iter().flatten();
    methods.map(move |(method, operation)| {
        let spec = operations::find(&method.to_uppercase(), path).map(|entry| &entry.spec);
        Route { method, path, operation, spec }
    })
}

impl Route<'_> {
    fn tag(&self) -> &str {
        self.operation["tags"][0].as_str().unwrap_or_default()
    }

    fn write(&self, shared: &BTreeSet<&str>, text: &mut String) {
        let Self { method, path, operation, .. } = self;
        *text += &format!("\n### {} {path}\n\n", method.to_uppercase());
        *text += &format!("{}\n", sentences(string(operation, "summary")));
        if let Some(description) = operation["description"].as_str() {
            *text += &format!("\n{}\n", cell(description));
        }
        if let Some(spec) = self.spec {
            let scopes: Vec<_> =
                spec.scopes.iter().map(|scope| format!("`{}`", scope.as_str())).collect();
            *text += &format!("\nScope {}. Operation `{}`.\n", scopes.join(" or "), spec.id);
        }
        self.write_parameters(text);
        self.write_body(text);
        self.write_answers(text);
        let own: BTreeSet<_> = codes(operation).difference(shared).copied().collect();
        if !own.is_empty() {
            *text += &format!("\nRefused with {}.\n", list_codes(&own));
        }
    }

    fn write_parameters(&self, text: &mut String) {
        let all = self.operation["parameters"].as_array().into_iter().flatten();
        // The head of the document has it for all changes.
        let own: Vec<_> = all.filter(|it| it["name"] != "Idempotency-Key").collect();
        if own.is_empty() {
            return;
        }
        *text += "\n| parameter | in | type | meaning |\n|---|---|---|---|\n";
        for it in own {
            let is_required = it["required"] == true && it["in"] != "path";
            let required = if is_required { ", required" } else { "" };
            let (name, place) = (string(it, "name"), string(it, "in"));
            let (words, meaning) =
                (type_words(&it["schema"]), sentences(string(it, "description")));
            *text += &format!("| `{name}` | {place}{required} | {words} | {meaning} |\n");
        }
    }

    fn write_body(&self, text: &mut String) {
        let content = self.operation["requestBody"]["content"].as_object();
        for (media, body) in content.into_iter().flatten() {
            *text += &format!("\nBody, `{media}`: {}.\n", type_words(&body["schema"]));
        }
    }

    fn write_answers(&self, text: &mut String) {
        let answers = self.operation["responses"].as_object().into_iter().flatten();
        for (status, answer) in answers.filter(|(status, _)| status.starts_with('2')) {
            let content = answer["content"].as_object().into_iter().flatten();
            let forms: Vec<_> = content
                .map(|(media, body)| match media.as_str() {
                    "application/json" => type_words(&body["schema"]),
                    media => format!("`{media}`"),
                })
                .collect();
            let body = if forms.is_empty() { "no body".to_owned() } else { forms.join(", ") };
            *text += &format!("\nAnswer {status}: {body}.\n");
        }
    }
}

fn type_section(name: &str, schema: &Value) -> String {
    let mut text = format!("\n### Type {name}\n");
    if let Some(description) = schema["description"].as_str() {
        text += &format!("\n{}\n", sentences(description));
    }
    let fields = field_rows(schema);
    match fields.is_empty() {
        true => text += &format!("\n{}.\n", type_words(&without_description(schema))),
        false => {
            text += "\n| field | type | meaning |\n|---|---|---|\n";
            text += &fields;
        }
    }
    text
}

fn without_description(schema: &Value) -> Value {
    let fields = schema.as_object().into_iter().flatten();
    let kept = fields.filter(|(name, _)| *name != "description");
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// Collects the codes of the problem documents of an operation.
fn codes(operation: &Value) -> BTreeSet<&str> {
    let answers = operation["responses"].as_object().into_iter().flatten();
    let refused = answers.filter_map(|(_, answer)| {
        let schema = &answer["content"]["application/problem+json"]["schema"];
        schema["allOf"][1]["properties"]["code"]["enum"].as_array()
    });
    refused.flatten().filter_map(Value::as_str).collect()
}

fn shared_codes<'a>(routes: &[Route<'a>]) -> BTreeSet<&'a str> {
    let of_each: Vec<_> = routes.iter().map(|route| codes(route.operation)).collect();
    let all: BTreeSet<_> = of_each.iter().flatten().copied().collect();
    let count = |code: &str| of_each.iter().filter(|codes| codes.contains(code)).count();
    all.into_iter().filter(|code| count(code) as f64 >= SHARED_BY * routes.len() as f64).collect()
}

fn list_codes(codes: &BTreeSet<&str>) -> String {
    codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")
}

fn string<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}
