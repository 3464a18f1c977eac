//! The valid items of a campaign's memory as a file, in the form that the import takes.

use axum::{
    extract::Path,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    response::IntoResponse as _,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    console::page::{Page, PageResult},
    domain::memory::Item,
    operations::{ExportMemory, MAX_LIMIT},
};

pub(in crate::console) async fn file(Path(given): Path<Uuid>, page: Page) -> PageResult {
    let mut items: Vec<Value> = Vec::new();
    let mut cursor = None;
    loop {
        let export = ExportMemory { id: given, cursor, limit: Some(MAX_LIMIT) };
        let listing = page.caller.run(export).await?;
        items.extend(listing.items.iter().map(imported));
        cursor = listing.next.as_deref().and_then(|next| next.parse().ok());
        if cursor.is_none() {
            break;
        }
    }
    let body = serde_json::to_string_pretty(&items).unwrap_or_default();
    let name = format!("attachment; filename=\"memory-{given}.json\"");
    Ok(([(CONTENT_TYPE, "application/json".to_owned()), (CONTENT_DISPOSITION, name)], body)
        .into_response())
}

fn imported(item: &Item) -> Value {
    json!({
        "kind": item.kind, "owner": item.owner, "name": item.name, "title": item.title,
        "body": item.body, "expires_at": item.expires_at,
    })
}
