//! The catalogue of events, compared with the events that other tests cause and with the code that writes them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use dalsegno::domain::{
    feed::{self, EventKind, KINDS, Kind},
    webhooks::{self, MESSAGES},
};
use serde_json::Value;
use sqlx::PgPool;

use crate::http::contract::schema::violations;

/// The schemas of all kinds of events, without unknown fields.
static DATA: LazyLock<BTreeMap<&str, Value>> = LazyLock::new(|| {
    let strict = |kind: &Kind| (kind.as_str(), refuse_unknown(kind.schema()));
    Kind::ALL.iter().map(strict).collect()
});

/// The schemas of all messages to webhooks, without unknown fields.
static BODIES: LazyLock<BTreeMap<&str, Value>> = LazyLock::new(|| {
    let strict = MESSAGES.iter().flat_map(|message| {
        message.kinds.iter().map(|kind| (*kind, refuse_unknown(message.schema())))
    });
    strict.collect()
});

fn refuse_unknown(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(keys) => {
            for value in keys.values_mut() {
                *value = refuse_unknown(value.take());
            }
            if keys.contains_key("properties") {
                keys.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = refuse_unknown(item.take());
            }
        }
        _ => {}
    }
    schema
}

/// Panics if an event differs from the catalogue.
pub fn assert_described(events: &[feed::Event]) {
    for event in events {
        let (kind, data) = (event.kind.as_str(), &event.data);
        let schema = DATA.get(kind).unwrap_or_else(|| panic!("unknown kind `{kind}`: {data}"));
        let faults = violations(&Value::Null, schema, data);
        assert!(faults.is_empty(), "`{kind}` is described in another way: {faults:?} in {data}");
        for id in Kind::named(kind).unwrap().about().ids {
            let value = match *id {
                "campaign_id" => event.campaign_id,
                "task_id" => event.task_id,
                "session_id" => event.session_id,
                other => panic!("`{kind}` names the id `{other}`"),
            };
            assert!(value.is_some(), "`{kind}` has no {id}: {event:?}");
        }
    }
}

/// Panics if an event in the feed of a database differs from the catalogue.
pub async fn assert_feed_described(pool: &PgPool) {
    let all = feed::Filter { campaign_id: None, after: 0, up_to: i64::MAX, limit: 100_000 };
    assert_described(&feed::list(pool, all).await.unwrap());
}

/// Panics if a message to a webhook differs from its description.
pub fn assert_message_described(body: &Value) {
    let kind = body["type"].as_str().unwrap_or_default();
    let schema = BODIES.get(kind).unwrap_or_else(|| panic!("unknown message: {body}"));
    let faults = violations(&Value::Null, schema, body);
    assert!(faults.is_empty(), "`{kind}` is described in another way: {faults:?} in {body}");
}

fn files(folder: PathBuf, extension: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("feed") {
            texts.extend(files(path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            texts.push(std::fs::read_to_string(path).unwrap());
        }
    }
    texts
}

#[test]
fn every_feed_kind_is_written_by_code_or_by_the_database() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (code, sql) = (files(root.join("src"), "rs"), files(root.join("migrations"), "sql"));
    let is_written = |kind: &&Kind| {
        let (variant, name) = (format!("Kind::{kind:?}"), format!("'{}'", kind.as_str()));
        let in_code = code.iter().any(|text| {
            text.match_indices(&variant).any(|(at, found)| {
                !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric())
            })
        });
        in_code || sql.iter().any(|text| text.contains("dalsegno.feed") && text.contains(&name))
    };
    let unwritten: Vec<_> = Kind::ALL.iter().filter(|kind| !is_written(kind)).collect();
    assert!(unwritten.is_empty(), "nothing writes {unwritten:?}");
}

#[test]
fn every_feed_kind_is_mapped_to_the_kind_of_a_role_feed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("docs/reference/requirements.md")).unwrap();
    let missing: Vec<_> = KINDS.iter().filter(|kind| !map.contains(&format!("`{kind}`"))).collect();
    assert!(missing.is_empty(), "not in docs/reference/requirements.md: {missing:?}");
}

#[test]
fn feed_kinds_are_sorted_and_described_in_sentences() {
    assert!(KINDS.is_sorted() && KINDS.len() > 30, "{KINDS:?}");
    for kind in Kind::ALL {
        let EventKind { when, fields, .. } = kind.about();
        assert_eq!(Kind::named(kind.as_str()), Some(*kind));
        for text in fields.iter().map(|field| field.meaning).chain([*when]) {
            assert!(text.ends_with('.') && text.len() > 6, "{kind:?}: {text}");
        }
    }
    assert_eq!(Kind::CompactionNotNeeded.schema_name(), "SessionCompactionNotNeededData");
}

#[test]
fn every_kind_of_a_webhook_has_a_described_message() {
    let described = MESSAGES.iter().flat_map(|message| message.kinds).copied();
    let ends = webhooks::Kind::ENDS.into_iter().chain([webhooks::Kind::BudgetWarning]);
    let known = ends.map(webhooks::Kind::as_str).chain(["webhook.test"]);
    assert_eq!(described.collect::<Vec<_>>(), known.collect::<Vec<_>>());
}
