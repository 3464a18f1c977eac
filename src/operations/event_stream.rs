//! Operations whose answer is a stream of events.

use futures_util::stream::BoxStream;
use serde::{Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

use super::{Call, Refusal, Spec};

/// An operation that answers with events as they come. `Self` is the input, as of an [`Operation`](super::Operation).
pub trait EventStream: Serialize + DeserializeOwned + ToSchema + Send + 'static {
    const SPEC: Spec;
    /// The form of the ids of its events, as a regular expression.
    const IDS: &'static str;
    /// False: it goes on for as long as the caller reads.
    const HAS_END: bool;
    /// The data of most of its events.
    type Data: ToSchema;

    /// Opens the stream behind the event with this id. A caller that comes back with the last id that it has received misses nothing and
    /// receives nothing twice. `None`: there is nothing behind that event, now and later.
    fn open(
        self,
        last_id: Option<&str>,
        call: &Call,
    ) -> impl Future<Output = Result<Option<Events>, Refusal>> + Send;
}

/// Ends behind the last event, or with a refusal: the caller can come back.
pub type Events = BoxStream<'static, Result<StreamEvent, Refusal>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    pub id: String,
    pub name: String,
    /// As JSON.
    pub data: String,
}
