//! The types of the Rust client compared with the API document: a new field of the API fails here until the client has it.

use std::collections::BTreeSet;

use dalsegno_client::{
    Attachment, BulkItem, Limit, Mode, NewTask, OnFailure, State, Task, TaskLink, WebhookEvent,
};
use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, Visitor, value::Error},
    forward_to_deserialize_any,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::contract::schema::resolve;

type Names = BTreeSet<String>;

/// Schemas of the document of this build.
struct Schemas(Value);

impl Schemas {
    fn new() -> Self {
        Self(serde_json::from_str(dalsegno::http::document()).unwrap())
    }

    fn get(&self, name: &str) -> &Value {
        let schema = &self.0["components"]["schemas"][name];
        assert!(schema.is_object(), "the document has no schema {name}");
        schema
    }

    /// Returns the properties of an object, without those of schemas that it extends.
    fn properties(&self, name: &str) -> Names {
        keys(&self.get(name)["properties"])
    }

    /// Returns the values of an enumeration.
    fn values(&self, name: &str) -> Names {
        let values = self.get(name)["enum"].as_array().unwrap();
        values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    }

    /// Builds a value with the required properties alone.
    fn smallest(&self, schema: &Value) -> Value {
        let schema = resolve(&self.0, schema);
        if let Some(parts) = schema["allOf"].as_array() {
            let objects = parts.iter().map(|part| self.smallest(part));
            let fields = objects.flat_map(|object| object.as_object().unwrap().clone());
            return Value::Object(fields.collect());
        }
        if let Some(value) = schema["enum"].get(0) {
            return value.clone();
        }
        // Several types are one and null.
        match schema["type"].as_str() {
            Some("object") => {
                let required = schema["required"].as_array().into_iter().flatten();
                let names = required.map(|name| name.as_str().unwrap());
                let of = |name: &str| (name.to_owned(), self.smallest(&schema["properties"][name]));
                Value::Object(names.map(of).collect())
            }
            Some("array") => json!([]),
            Some("boolean") => json!(true),
            Some("integer" | "number") => json!(1),
            Some("string") => match schema["format"].as_str() {
                Some("uuid") => json!(Uuid::nil()),
                Some("date-time") => json!("2026-11-29T12:00:00Z"),
                _ => json!("x"),
            },
            _ => Value::Null,
        }
    }

    fn assert_readable<T: DeserializeOwned>(&self, name: &str) {
        let smallest = self.smallest(self.get(name));
        if let Err(error) = serde_json::from_value::<T>(smallest.clone()) {
            panic!("{name}: {error} in {smallest}");
        }
    }
}

fn keys(object: &Value) -> Names {
    object.as_object().unwrap().keys().cloned().collect()
}

fn words<T: serde::Serialize>(values: &[T]) -> Names {
    let word = |value: &T| serde_json::to_value(value).unwrap().as_str().unwrap().to_owned();
    values.iter().map(word).collect()
}

/// Stores the fields that the `Deserialize` of a struct asks for.
struct FieldNames<'a>(&'a mut Names);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.extend(fields.iter().map(|&field| field.to_owned()));
        Err(Error::custom("the fields are known"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

fn fields<T: DeserializeOwned>() -> Names {
    let mut names = Names::new();
    assert!(T::deserialize(FieldNames(&mut names)).is_err());
    names
}

#[test]
fn requests_have_every_property_of_the_api() {
    let schemas = Schemas::new();
    let object = json!({});
    let links = [TaskLink::Task(Uuid::nil()), TaskLink::Item(0), TaskLink::Key("plan-1")];
    let attachments = [
        Attachment::Content { name: "a.md", content: b"a", media_type: Some("text/plain") },
        Attachment::File { task: Uuid::nil(), file: "b.md", name: Some("c.md") },
    ];
    // Without a default, so that the compiler names a field that is missing here.
    let new = NewTask {
        agent: "copywriter",
        instance: "part_1",
        prompt: "Write.",
        node: Some("meta-analysis"),
        session: Some(Mode::Fresh),
        budget: Limit { micros: Some(1), tokens: Some(1) },
        idempotency_key: Some("order-17"),
        priority: Some(1),
        run_at: Some("2026-11-29T12:00:00Z".parse().unwrap()),
        depends_on: &links,
        on_failure: OnFailure::Cancel,
        flow_templates: Some(&[]),
        tags: &["urgent"],
        metadata: Some(&object),
        parameters: Some(&object),
        result_schema: Some(&object),
        within_secs: Some(3_600),
        attachments: &attachments,
    };
    let sent = serde_json::to_value(new).unwrap();
    let mut expected = keys(&sent);
    assert_eq!(expected, schemas.properties("NewTask"));
    // `Client::add_task` has a header for it.
    expected.insert("idempotency_key".to_owned());
    assert_eq!(expected, schemas.properties("BulkTask"));
    assert_eq!(keys(&sent["budget"]), schemas.properties("Limit"));
    let files = sent["attachments"].as_array().unwrap().iter().flat_map(keys);
    assert_eq!(files.collect::<Names>(), schemas.properties("NewAttachment"));
    // `Client::cancel` sends it.
    assert_eq!(schemas.properties("CancelTask"), Names::from(["reason".to_owned()]));

    let forms = schemas.get("TaskLink")["oneOf"].as_array().unwrap();
    let forms: Vec<Names> =
        forms.iter().map(|form| form.get("properties").map_or_else(Names::new, keys)).collect();
    let sent = sent["depends_on"].as_array().unwrap().iter();
    let sent: Vec<Names> =
        sent.map(|link| if link.is_object() { keys(link) } else { Names::new() }).collect();
    assert_eq!(sent, forms);

    assert_eq!(words(&[Mode::Continue, Mode::Fresh, Mode::None]), schemas.values("SessionMode"));
    assert_eq!(words(&[OnFailure::Run, OnFailure::Cancel]), schemas.values("OnFailure"));
}

#[test]
fn answers_are_read_with_every_property_and_with_the_required_ones_alone() {
    let schemas = Schemas::new();
    assert_eq!(fields::<Task>(), schemas.properties("Task"));
    assert_eq!(fields::<BulkItem>(), schemas.properties("BulkAdded"));
    assert_eq!(fields::<WebhookEvent>(), schemas.properties("TaskEndMessage"));
    // `AddedTask` and `TaskDetail` extend `Task` by parts that the client does not read.
    for name in ["Task", "AddedTask", "TaskDetail"] {
        schemas.assert_readable::<Task>(name);
    }
    schemas.assert_readable::<BulkItem>("BulkAdded");
    for name in ["TaskEndMessage", "BudgetWarningMessage", "WebhookTestMessage"] {
        schemas.assert_readable::<WebhookEvent>(name);
    }
    for state in schemas.values("TaskState") {
        serde_json::from_value::<State>(json!(state)).unwrap();
    }
}
