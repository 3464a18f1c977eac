//! Read access to sessions, their transcripts and their archives.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    Page,
    agents::LookupError,
    class::Kind,
    compactions::{self, Archive, OpenedArchive},
    conversations::{self, Detail},
    explanations::{SessionExplanation, explain_session},
    messages::{Span, StoredMessage},
    sessions::{self, Error, Filter, Session},
    timestamp,
};

const TAG: &str = "sessions";

/// Lists sessions, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    pub campaign_id: Option<Uuid>,
    /// An agent with all its instances, or one instance of it: `curator_2`, `curator/eu`.
    pub agent: Option<String>,
    /// Only those that are not closed.
    #[serde(default)]
    pub open: bool,
    /// Only those that began at this moment or later.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_after: Option<DateTime<Utc>>,
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows a session with its compactions and its last turns.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowSession {
    pub id: Uuid,
}

/// Explains the state of a session: the reason, and what happens next.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainSession {
    pub id: Uuid,
}

/// Reads the transcript of a session, in order.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadTranscript {
    pub id: Uuid,
    /// A place in the transcript: the messages after it.
    pub cursor: Option<i64>,
    /// Reads backwards: the last messages before this place, in order. `next` is the place before which to go on.
    pub before: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows the context of the model: the summary, if any, and the messages since.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewSession {
    pub id: Uuid,
}

/// The messages in order, in the form that other systems use.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = Vec<Object>)]
pub struct SessionView(pub Value);

/// Lists the archives of a session: the messages that its compactions have replaced.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArchives {
    pub id: Uuid,
}

/// Each is a compaction: all of them are one page.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Archives {
    pub items: Vec<Archive>,
}

/// Reads an archive: its messages, in order, and their replacement.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArchive {
    pub id: Uuid,
    /// The generation of its compaction.
    pub number: i32,
    /// A place in the transcript.
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

impl Operation for ListSessions {
    const SPEC: Spec =
        Spec::read("list_sessions", "/v1/sessions", "session ls").tag(TAG).for_bound_keys();
    type Output = Listing<Session>;

    async fn run(self, call: &Call) -> Result<Listing<Session>, Refusal> {
        let limit = page_limit(self.limit)?;
        let (agent, instance) = match self.agent.as_deref() {
            Some(written) => {
                let wrong = |error: LookupError| {
                    Refusal::new(Kind::Malformed, "bad_query", error.to_string())
                };
                let catalogue = call.catalogue()?;
                let (agent, instance) = catalogue.parse_filter(written, None).map_err(wrong)?;
                (Some(agent), instance)
            }
            None => (None, None),
        };
        let filter = Filter {
            campaign_id: self.campaign_id,
            agent,
            instance,
            open_only: self.open,
            created_after: self.created_after,
            within: call.reach.campaigns(),
        };
        let page = Page { after: self.cursor, limit: limit + 1 };
        let mut transaction = call.begin_search().await?;
        let sessions = sessions::list(&mut *transaction, filter, page).await?;
        Ok(Listing::of(sessions, limit, |session| session.id))
    }
}

impl Operation for ShowSession {
    const SPEC: Spec = Spec::read("show_session", "/v1/sessions/{id}", "session show")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN]);
    type Output = Detail;

    async fn run(self, call: &Call) -> Result<Detail, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(conversations::detail(&mut transaction, self.id).await?)
    }
}

impl Operation for ExplainSession {
    const SPEC: Spec =
        Spec::read("explain_session", "/v1/sessions/{id}/explain", "session explain")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN]);
    type Output = SessionExplanation;

    async fn run(self, call: &Call) -> Result<SessionExplanation, Refusal> {
        let catalogue = call.catalogue()?;
        let mut transaction = call.begin_read().await?;
        Ok(explain_session(&mut transaction, self.id, &catalogue, call.now).await?)
    }
}

impl Operation for ReadTranscript {
    const SPEC: Spec =
        Spec::read("read_transcript", "/v1/sessions/{id}/messages", "session transcript")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN]);
    type Output = Listing<StoredMessage>;

    async fn run(self, call: &Call) -> Result<Listing<StoredMessage>, Refusal> {
        let limit = page_limit(self.limit)?;
        let span = Span { after_seq: self.cursor.unwrap_or(0), limit: limit + 1 };
        let mut transaction = call.begin_read().await?;
        let Some(before) = self.before else {
            let messages = sessions::transcript(&mut transaction, self.id, span).await?;
            return Ok(Listing::of(messages, limit, |message| message.seq));
        };
        let messages = sessions::transcript_before(&mut transaction, self.id, span, before).await?;
        let mut listing = Listing::of(messages, limit, |message| message.seq);
        listing.items.reverse();
        Ok(listing)
    }
}

impl Operation for ViewSession {
    const SPEC: Spec = Spec::read("view_session", "/v1/sessions/{id}/view", "session transcript")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN]);
    type Output = SessionView;

    async fn run(self, call: &Call) -> Result<SessionView, Refusal> {
        Ok(SessionView(sessions::history(&call.pool, self.id).await?))
    }
}

impl Operation for ListArchives {
    const SPEC: Spec =
        Spec::read("list_archives", "/v1/sessions/{id}/archives", "session archives")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN]);
    type Output = Archives;

    async fn run(self, call: &Call) -> Result<Archives, Refusal> {
        sessions::get(&call.pool, self.id).await?;
        Ok(Archives { items: compactions::archives(&call.pool, self.id).await? })
    }
}

impl Operation for ReadArchive {
    const SPEC: Spec =
        Spec::read("read_archive", "/v1/sessions/{id}/archives/{number}", "session archives")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN, compactions::Error::NO_ARCHIVE]);
    type Output = OpenedArchive;

    async fn run(self, call: &Call) -> Result<OpenedArchive, Refusal> {
        let Self { id, number, cursor, limit } = self;
        let limit = page_limit(limit)?;
        sessions::get(&call.pool, id).await?;
        let mut transaction = call.begin_read().await?;
        let after_seq = cursor.unwrap_or(0);
        Ok(compactions::open_archive(&mut transaction, id, number, after_seq, limit).await?)
    }
}
