//! The definition of an operation, and its entry in the list.

use std::fmt::Display;

use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sqlx::PgConnection;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::{
    Call, Download, DownloadedFile, EventStream, Events, Fields, KeyedOutput, QueueReservation,
    Refusal, Spec, keyed_calls::CallKey,
};
use crate::domain::audit::{self, Action};

/// An action of people or programs. `Self` is the input: path, query and body in one flat struct.
///
/// The doc comment of the struct describes the operation in the API document, and that of a field describes the field.
pub trait Operation: Serialize + DeserializeOwned + ToSchema + Send + 'static {
    const SPEC: Spec;
    type Output: Serialize + DeserializeOwned + ToSchema + Send;

    fn run(self, call: &Call) -> impl Future<Output = Result<Self::Output, Refusal>> + Send;

    /// Runs the operation once per idempotency key. An operation of several transactions holds its key in another one
    /// beside them. If its process dies, nothing is stored under the key, and the call can run again.
    fn perform(
        self,
        call: &Call,
    ) -> impl Future<Output = Result<KeyedOutput<Self::Output>, Refusal>> + Send {
        async move {
            let Some(key) = CallKey::of(&Self::SPEC, &self, call)? else {
                let output = self.run(call).await?;
                return Ok(KeyedOutput { is_replay: Self::is_replay(&output), output });
            };
            let (mut beside, call) = call.begin_alongside().await?;
            if let Some(output) = key.claim(&mut beside, &call).await? {
                return Ok(KeyedOutput { output, is_replay: true });
            }
            let output = self.run(&call).await?;
            let json = key.json(&output)?;
            key.store(&mut beside, "", &json).await?;
            beside.commit().await?;
            Ok(KeyedOutput { output, is_replay: false })
        }
    }

    /// Parses the input from the caller's fields.
    fn read(fields: &Fields) -> Result<Self, Refusal> {
        fields.read(&described::<Self>)
    }

    /// Returns true if an earlier call with the same idempotency key has made everything in the output.
    fn is_replay(_: &Self::Output) -> bool {
        false
    }
}

/// An operation that changes data, in one transaction with its audit line and its idempotency key.
pub trait Change: Serialize + DeserializeOwned + ToSchema + Send + 'static {
    const SPEC: Spec;
    const ACTION: Action;
    type Output: Serialize + DeserializeOwned + ToSchema + Send;

    /// Reserves space in the queue for the tasks that it adds. The space counts as used after the commit. Without an
    /// idempotency key, the call holds no connection yet; with one, it has looked the key up before.
    fn reserve_queue_space(
        &self,
        _: &Call,
    ) -> impl Future<Output = Result<Option<QueueReservation>, Refusal>> + Send {
        async { Ok(None) }
    }

    fn change(
        self,
        conn: &mut PgConnection,
        call: &Call,
    ) -> impl Future<Output = ChangeResult<Self::Output>> + Send;

    /// Returns true if an earlier call with the same idempotency key has made everything in the output.
    fn is_replay(_: &Self::Output) -> bool {
        false
    }
}

pub type ChangeResult<T> = Result<ChangeOutput<T>, Refusal>;

/// The result of a change, and the data of its audit line.
#[derive(Debug)]
pub struct ChangeOutput<T> {
    output: T,
    subject: String,
    /// The data of its line in the audit log; `None`: nothing has changed, and there is no line.
    line: Option<Value>,
}

/// An operation in the list, without its types.
pub struct Entry {
    pub spec: Spec,
    pub input: fn() -> TypeSchema,
    /// Schema of the output, or of an event's data for a stream. None for a download.
    pub output: fn() -> TypeSchema,
    pub run: Run,
}

/// Parses the input and runs the operation.
#[derive(Clone, Copy)]
pub enum Run {
    Once(fn(Fields, Call) -> Answer),
    Stream {
        /// Opens the stream after the event with this id, the last one that the caller has received.
        open: fn(Fields, Call, Option<String>) -> StreamAnswer,
        ids: &'static str,
        has_end: bool,
    },
    Download(fn(Fields, Call) -> FileAnswer),
}

pub type Answer = BoxFuture<'static, Result<JsonOutput, Refusal>>;
/// `None`: the caller has received all events.
pub type StreamAnswer = BoxFuture<'static, Result<Option<Events>, Refusal>>;

pub type FileAnswer = BoxFuture<'static, Result<DownloadedFile, Refusal>>;

/// An output as JSON.
pub struct JsonOutput {
    pub json: Vec<u8>,
    pub is_replay: bool,
}

/// A type in the API document.
pub struct TypeSchema {
    pub name: String,
    pub schema: RefOr<Schema>,
    /// Schemas that this one refers to.
    pub others: Vec<(String, RefOr<Schema>)>,
}

impl<T> ChangeOutput<T> {
    /// `data` is an object, without prompts, answers and secrets.
    pub fn of(subject: impl Display, output: T, data: Value) -> Self {
        Self { output, subject: subject.to_string(), line: Some(data) }
    }

    /// A call that has found everything as it should be: the audit log gets no line.
    pub fn nothing(subject: impl Display, output: T) -> Self {
        Self { output, subject: subject.to_string(), line: None }
    }
}

impl<C: Change> Operation for C {
    const SPEC: Spec = Spec { action: Some(C::ACTION), ..<C as Change>::SPEC };
    type Output = <C as Change>::Output;

    async fn run(self, call: &Call) -> Result<<C as Change>::Output, Refusal> {
        Ok(self.perform(call).await?.output)
    }

    /// Begins and commits all changes.
    async fn perform(self, call: &Call) -> Result<KeyedOutput<<C as Change>::Output>, Refusal> {
        let key = CallKey::of(&<C as Operation>::SPEC, &self, call)?;
        let mut room = if key.is_none() { self.reserve_queue_space(call).await? } else { None };
        let mut transaction = call.begin().await?;
        if let Some(key) = &key {
            if let Some(output) = key.claim(&mut transaction, call).await? {
                return Ok(KeyedOutput { output, is_replay: true });
            }
            room = self.reserve_queue_space(call).await?;
        }
        let ChangeOutput { output, subject, line } = self.change(&mut transaction, call).await?;
        if let Some(key) = &key {
            let json = key.json(&output)?;
            key.store(&mut transaction, &subject, &json).await?;
        }
        if let Some(data) = line {
            audit::write(&mut *transaction, &call.actor, C::ACTION, subject, data, call.now)
                .await?;
        }
        transaction.commit().await?;
        if let Some(room) = room {
            room.use_all();
        }
        Ok(KeyedOutput { is_replay: C::is_replay(&output), output })
    }

    fn is_replay(output: &<C as Change>::Output) -> bool {
        <C as Change>::is_replay(output)
    }
}

/// Builds the list entry of an operation.
pub const fn entry<O: Operation>() -> Entry {
    Entry {
        spec: O::SPEC,
        input: described::<O>,
        output: described::<O::Output>,
        run: Run::Once(|fields, call| Box::pin(run::<O>(fields, call))),
    }
}

/// Builds the list entry of a stream.
pub const fn stream<S: EventStream>() -> Entry {
    Entry {
        spec: S::SPEC,
        input: described::<S>,
        output: described::<S::Data>,
        run: Run::Stream {
            open: |fields, call, last_id| {
                Box::pin(async move {
                    let stream: S = fields.read(&described::<S>)?;
                    stream.open(last_id.as_deref(), &call).await
                })
            },
            ids: S::IDS,
            has_end: S::HAS_END,
        },
    }
}

/// Builds the list entry of a download.
pub const fn download<D: Download>() -> Entry {
    Entry {
        spec: D::SPEC,
        input: described::<D>,
        output: described::<()>,
        run: Run::Download(|fields, call| {
            Box::pin(async move {
                let download: D = fields.read(&described::<D>)?;
                download.download(&call).await
            })
        }),
    }
}

async fn run<O: Operation>(fields: Fields, call: Call) -> Result<JsonOutput, Refusal> {
    let operation = O::read(&fields)?;
    // Frees the body, which can be long, before the operation runs.
    drop(fields);
    let KeyedOutput { output, is_replay } = operation.perform(&call).await?;
    let json = serde_json::to_vec(&output).map_err(|error| Refusal::fault(O::SPEC.id, &error))?;
    Ok(JsonOutput { json, is_replay })
}

pub(super) fn described<T: ToSchema>() -> TypeSchema {
    let mut others = Vec::new();
    T::schemas(&mut others);
    TypeSchema { name: T::name().into_owned(), schema: T::schema(), others }
}
