//! Code that the tools for edicts, records, journals and recall share.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Caller, Refusal, Role,
    arguments::bad_cursor,
    change::{BeginResult, Change},
    pages::ToolAnswer,
    tool::Call,
};
use crate::domain::{
    Page,
    memory::{self, Filter, Item, Kind, MemoryCaller, New, PublishResult},
    posts, timestamp, transaction,
};

const LIST_LIMIT: i64 = 50;

/// Returns the caller as `domain::memory` knows it. `label` is [`Caller::label`].
pub(super) fn author<'a>(caller: &'a Caller, label: &'a str) -> MemoryCaller<'a> {
    match caller {
        Caller::Operator(_) => MemoryCaller::Operator { label },
        Caller::Turn(turn) => MemoryCaller::Agent {
            name: label,
            is_lead: caller.role() == Role::Lead,
            task_id: turn.task_id,
            turn: turn.turn,
        },
    }
}

/// Returns the owner of the journal that the lead or an operator has named.
pub(super) fn owner(call: &Call<'_>, written: Option<&str>) -> Option<String> {
    let catalogue = call.tools.settings.agents.current();
    written.map(|written| posts::reader_named(&catalogue, written))
}

pub(super) async fn list(
    call: &Call<'_>,
    kind: Kind,
    owner: Option<&str>,
) -> Result<ToolAnswer, Refusal> {
    let after: Option<Uuid> = match &call.place {
        Some(place) => Some(place.parse().map_err(|_| bad_cursor())?),
        None => None,
    };
    let (label, campaign_id) = (call.caller.label(), call.caller.campaign_id());
    let filter = Filter { kind: Some(kind), owner, with_ended: false };
    let page = Page { after, limit: LIST_LIMIT + 1 };
    let by = author(call.caller, &label);
    let mut tx = call.begin().await?;
    let mut items = memory::list(&mut *tx, campaign_id, filter, &by, page, call.now()).await?;
    transaction::commit(tx).await?;
    let goes_on = i64::try_from(items.len()).unwrap_or(i64::MAX) > LIST_LIMIT;
    items.truncate(usize::try_from(LIST_LIMIT).unwrap_or(usize::MAX));
    let next = items.last().filter(|_| goes_on).map(|last| last.id.to_string());
    let lines: Vec<Value> = items.iter().map(line).collect();
    ToolAnswer::list(&json!({ kind.plural(): lines }), next)
}

pub(super) async fn read(
    call: &Call<'_>,
    kind: Kind,
    owner: Option<&str>,
    name: &str,
) -> Result<ToolAnswer, Refusal> {
    let label = call.caller.label();
    let mut tx = call.begin().await?;
    let named = (kind, owner, name);
    let by = author(call.caller, &label);
    let item = memory::by_name(&mut tx, call.caller.campaign_id(), named, &by, call.now()).await?;
    transaction::commit(tx).await?;
    let mut said = line(&item);
    if !item.is_valid(call.now()) {
        said["holds"] = json!("no longer valid: it was revoked or has expired");
    }
    said["text"] = json!(item.body);
    ToolAnswer::json(&said)
}

/// Describes an item without its text. Author and trust tell the model how far it can rely on the item.
pub(super) fn line(item: &Item) -> Value {
    let mut line = json!({
        "name": item.name, "title": item.title, "version": item.version, "author": item.author, "trust": item.trust,
        "written_at": item.written_at,
    });
    if let Some(owner) = &item.owner {
        line["agent"] = json!(owner);
    }
    if let Some(end) = item.expires_at {
        line["expires_at"] = json!(end);
    }
    line
}

/// Publishes an item of any kind.
pub(super) async fn write(call: &Call<'_>, new: &New<'_>) -> Result<ToolAnswer, Refusal> {
    let mut change = match Change::begin(call).await? {
        BeginResult::AlreadyMade(said) => return Ok(said),
        BeginResult::Started(change) => change,
    };
    let (label, campaign_id) = (call.caller.label(), call.caller.campaign_id());
    let (by, config) = (author(call.caller, &label), &call.tools.settings.memory);
    let written = memory::publish(change.conn(), campaign_id, new, &by, config, call.now()).await?;
    let (ids, told) = describe_written(&written);
    change.commit(ids, &told).await
}

pub(super) fn time(written: Option<&str>) -> Result<Option<DateTime<Utc>>, Refusal> {
    let time = written.map(timestamp::parse).transpose();
    time.map_err(|error| Refusal::of_text(format!("`expires_at`: {error}")))
}

/// Returns the ids for the audit log and the answer for the author.
fn describe_written(written: &PublishResult) -> (Value, Value) {
    let item = &written.item;
    let mut told =
        json!({ "name": item.name, "version": item.version, "changed": written.changed });
    if let Some(warning) = &written.warning {
        told["warning"] = json!(warning);
    }
    (item.for_audit(), told)
}
