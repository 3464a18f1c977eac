//! The valid items of a campaign's memory as a file, in the form that the import takes.

use std::io;

use axum::{
    body::Body,
    extract::Path,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    response::IntoResponse as _,
};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    console::page::{Page, PageResult},
    domain::memory::Item,
    operations::{ExportMemory, MAX_LIMIT, Refusal},
};

/// A part of the file, and the item after which the next one begins.
type Part = (String, Option<Uuid>);

/// Streams the file, so that only one part of it is in memory at a time. The first part is read before the response begins: a refusal is a
/// page. After that, an error can only break the download off.
pub(in crate::console) async fn file(Path(given): Path<Uuid>, page: Page) -> PageResult {
    let (text, next) = read_part(&page, given, None).await?;
    let rest = stream::try_unfold((page, next), move |(page, cursor)| async move {
        if cursor.is_none() {
            return Ok(None);
        }
        let part = read_part(&page, given, cursor).await;
        let (text, next) = part.map_err(|refusal| io::Error::other(refusal.detail))?;
        Ok::<_, io::Error>(Some((text, (page, next))))
    });
    let first = stream::iter([Ok::<String, io::Error>(text)]);
    let name = format!("attachment; filename=\"memory-{given}.json\"");
    let headers = [(CONTENT_TYPE, "application/json".to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(first.chain(rest))).into_response())
}

async fn read_part(page: &Page, campaign: Uuid, cursor: Option<Uuid>) -> Result<Part, Refusal> {
    let export = ExportMemory { id: campaign, cursor, limit: Some(MAX_LIMIT) };
    let listing = page.caller.run(export).await?;
    let next = listing.next.as_deref().and_then(|next| next.parse().ok());
    Ok((array_part(&listing.items, cursor.is_none(), next.is_none()), next))
}

/// Formats items as a part of one JSON array.
fn array_part(items: &[Item], is_first: bool, is_last: bool) -> String {
    let mut text = String::new();
    for (place, item) in items.iter().enumerate() {
        text.push_str(if is_first && place == 0 { "[\n" } else { ",\n" });
        text.push_str(&serde_json::to_string_pretty(&imported(item)).unwrap_or_default());
    }
    if is_last {
        text.push_str(if is_first && items.is_empty() { "[]\n" } else { "\n]\n" });
    }
    text
}

fn imported(item: &Item) -> Value {
    json!({
        "kind": item.kind, "owner": item.owner, "name": item.name, "title": item.title,
        "body": item.body, "expires_at": item.expires_at,
    })
}
