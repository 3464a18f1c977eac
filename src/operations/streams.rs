//! Event streams of one task, and of the whole feed.

use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{
    Call, EventStream, Events, Refusal, Spec, StreamEvent, TOO_MANY_WAITING,
    TOO_MANY_WAITING_PER_CLIENT, tasks::READ_OR_ENQUEUE,
};
use crate::domain::{
    class::Kind,
    feed::{Event, EventFilter, FeedItem, KINDS, Watch},
    tasks::{self, Error, Follow, TaskUpdate},
};

/// Name of the last event of a task. Its data is the task.
pub const END: &str = "end";
/// Name of the event with the id at which a stream of the feed begins.
pub const BEGIN: &str = "begin";
/// Suffix of the id of the event `end`. A caller that reconnects with it has received everything.
const END_MARK: &str = ".end";

/// Streams the events of a task as server-sent events; the last one is `end`, with the task as its data.
///
/// The data of `end` also has `rest`: the part of the result that no `turn.progress` had. It is the whole result if their texts are not its
/// begin: a turn was repeated, has used tools, or a text was cut.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowTask {
    pub id: Uuid,
}

/// Streams all events as server-sent events, without an end.
///
/// The data of an event is a `FeedEvent`. A client that names no place, or one that this database has not reached (it was
/// restored, or a standby has taken over), gets an event `begin` first, whose id is where the stream begins.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowFeed {
    /// The id of the last event that was received; 0 for all stored events. The header Last-Event-ID takes precedence.
    #[schema(minimum = 0)]
    pub after: Option<i64>,
    pub campaign_id: Option<Uuid>,
    /// Only these, with commas between them: `turn.done,turn.failed`.
    pub kinds: Option<String>,
    pub session_id: Option<Uuid>,
    /// An agent with all its instances, or one instance of it: `curator_2`, `curator/eu`.
    pub agent: Option<String>,
}

impl EventStream for FollowTask {
    const SPEC: Spec = Spec::read("follow_task", "/v1/tasks/{id}/events", "task add")
        .tag("tasks")
        .needs(READ_OR_ENQUEUE)
        .refuses(&[Error::UNKNOWN, TOO_MANY_WAITING_PER_CLIENT, TOO_MANY_WAITING]);
    const IDS: &'static str = r"^-?[0-9]{1,18}(\.end)?$";
    const HAS_END: bool = true;
    type Data = Event;

    async fn open(self, last_id: Option<&str>, call: &Call) -> Result<Option<Events>, Refusal> {
        let end = last_id.and_then(|last_id| last_id.strip_suffix(END_MARK));
        let after = last_id.map(|last_id| read_id(last_id, end.unwrap_or(last_id))).transpose()?;
        let mut follow = Follow::begin(&call.pool, self.id, after).await?;
        let mut first = None;
        if end.is_some() && tasks::has_ended(&call.pool, self.id).await? {
            first = follow.next().await?;
            if matches!(first, None | Some(TaskUpdate::Ended(_))) {
                return Ok(None);
            }
        }
        let first = first.map(|news| Ok(of_task(&news, follow.last_delivered_id())));
        let rest = stream::unfold(Some(follow), async |state| {
            let mut follow = state?;
            match follow.next().await {
                Ok(None) => None,
                Ok(Some(news)) => {
                    Some((Ok(of_task(&news, follow.last_delivered_id())), Some(follow)))
                }
                Err(error) => Some((Err(error.into()), None)),
            }
        });
        Ok(Some(stream::iter(first).chain(rest).boxed()))
    }
}

impl EventStream for FollowFeed {
    const SPEC: Spec = Spec::read("follow_feed", "/v1/feed", "feed")
        .tag("feed")
        .for_bound_keys()
        .refuses(&[TOO_MANY_WAITING_PER_CLIENT, TOO_MANY_WAITING]);
    const IDS: &'static str = "^[0-9]{1,18}$";
    const HAS_END: bool = false;
    type Data = Event;

    async fn open(self, last_id: Option<&str>, call: &Call) -> Result<Option<Events>, Refusal> {
        let last_id = last_id.map(|last_id| read_id(last_id, last_id)).transpose()?;
        let (agent, instance) = match self.agent.as_deref() {
            Some(written) => {
                let catalogue = call.catalogue()?;
                let (agent, instance) =
                    catalogue.parse_filter(written, None).map_err(|error| bad_query(&error))?;
                (Some(agent.to_owned()), instance.map(str::to_owned))
            }
            None => (None, None),
        };
        let watched = EventFilter {
            campaign_id: self.campaign_id,
            within: call.reach.clone().into_campaigns(),
            kinds: self.kinds.as_deref().map(read_kinds).transpose()?,
            session_id: self.session_id,
            agent,
            instance,
        };
        let watch = Watch::begin(&call.pool, watched, last_id.or(self.after)).await?;
        let events = stream::unfold(Some(watch), async |state| {
            let mut watch = state?;
            match watch.next().await {
                Ok(told) => Some((Ok(of_feed(&told)), Some(watch))),
                Err(error) => Some((Err(error.into()), None)),
            }
        });
        Ok(Some(events.boxed()))
    }
}

fn of_task(news: &TaskUpdate, told: i64) -> StreamEvent {
    match news {
        TaskUpdate::Event(event) => of_event(event),
        TaskUpdate::Ended(task) => StreamEvent {
            id: format!("{told}{END_MARK}"),
            name: END.to_owned(),
            data: serde_json::to_string(task).unwrap_or_default(),
        },
    }
}

fn of_feed(told: &FeedItem) -> StreamEvent {
    match told {
        FeedItem::Event(event) => of_event(event),
        FeedItem::Begun(id) => StreamEvent {
            id: id.to_string(),
            name: BEGIN.to_owned(),
            data: json!({ "after": id }).to_string(),
        },
    }
}

fn of_event(event: &Event) -> StreamEvent {
    StreamEvent {
        id: event.id.to_string(),
        name: event.kind.clone(),
        data: serde_json::to_string(event).unwrap_or_default(),
    }
}

fn read_kinds(kinds: &str) -> Result<Vec<String>, Refusal> {
    match kinds.split(',').find(|kind| !KINDS.contains(kind)) {
        Some(unknown) => {
            let known = KINDS.join("`, `");
            Err(bad_query(&format!(
                "the feed has no events of the kind `{unknown}`: use `{known}`"
            )))
        }
        None => Ok(kinds.split(',').map(str::to_owned).collect()),
    }
}

fn bad_query(error: &impl ToString) -> Refusal {
    Refusal::new(Kind::Malformed, "bad_query", error.to_string())
}

fn read_id(last_id: &str, id: &str) -> Result<i64, Refusal> {
    id.parse().map_err(|_| {
        let detail =
            format!("Last-Event-ID is `{last_id}`: send the id of the last event, or leave it out");
        Refusal::new(Kind::Malformed, "bad_last_event_id", detail)
    })
}
