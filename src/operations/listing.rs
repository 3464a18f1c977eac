//! Lists in pages. Each page has the cursor of the next one; reading on from there misses no item that existed at the
//! start.

use serde::{Deserialize, Serialize};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, Ref, RefOr, Schema, schema::SchemaType, schema::Type},
};

use super::Refusal;
use crate::domain::class::Kind;

const DEFAULT_LIMIT: i64 = 50;
/// Most items of a page.
pub const MAX_LIMIT: i64 = 200;

#[derive(Debug, Serialize, Deserialize)]
pub struct Listing<T> {
    pub items: Vec<T>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Checks the requested page size, or returns the default.
pub fn page_limit(asked: Option<i64>) -> Result<i64, Refusal> {
    let limit = asked.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_LIMIT).contains(&limit) {
        return Ok(limit);
    }
    let detail = format!("limit is {limit}, but must be from 1 to {MAX_LIMIT}");
    Err(Refusal::new(Kind::Malformed, "bad_query", detail))
}

impl<T> Listing<T> {
    /// Builds a page. `rows` were read with one more than `limit`, which shows if there is another page.
    pub fn of<C: ToString>(mut rows: Vec<T>, limit: i64, cursor: impl Fn(&T) -> C) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|last| cursor(last).to_string());
        Self { items: rows, next }
    }
}

/// Implemented by hand, so that each type of item gets a schema name of its own.
impl<T: ToSchema> PartialSchema for Listing<T> {
    fn schema() -> RefOr<Schema> {
        let text_or_null = SchemaType::from_iter([Type::String, Type::Null]);
        let next = ObjectBuilder::new().schema_type(text_or_null);
        let next = next.description(Some("The `cursor` of the next page; null on the last one."));
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        ObjectBuilder::new()
            .property("items", items)
            .required("items")
            .property("next", next)
            .into()
    }
}

impl<T: ToSchema> ToSchema for Listing<T> {
    fn name() -> std::borrow::Cow<'static, str> {
        format!("Listing_{}", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}
