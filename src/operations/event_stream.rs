//! Operations that answer with a stream of events.

use futures_util::stream::BoxStream;
use serde::{Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

use super::{Call, Refusal, Spec};

/// An operation that answers with a stream of events. `Self` is the input, like that of an
/// [`Operation`](super::Operation).
pub trait EventStream: Serialize + DeserializeOwned + ToSchema + Send + 'static {
    const SPEC: Spec;
    /// Format of its event ids, as a regular expression.
    const IDS: &'static str;
    /// False: the stream goes on until the caller stops reading.
    const HAS_END: bool;
    /// Type of the data of most events.
    type Data: ToSchema;

    /// Opens the stream after the event with this id. A caller that reconnects with the last id that it received gets
    /// each event once. `None`: the stream has ended with that event.
    fn open(
        self,
        last_id: Option<&str>,
        call: &Call,
    ) -> impl Future<Output = Result<Option<Events>, Refusal>> + Send;
}

/// Events of a stream. The stream ends after its last event, or with a refusal, after which the caller can reconnect.
pub type Events = BoxStream<'static, Result<StreamEvent, Refusal>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    pub id: String,
    pub name: String,
    /// Data as JSON.
    pub data: String,
}
