//! The definition of an operation, and its entry in the list.

use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sqlx::PgConnection;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::{Call, EventStream, Events, Fields, Refusal};
use crate::domain::{
    audit::{self, Action},
    class::Class,
    keys::Scope,
};

/// Something that a person or a program can do. `Self` is the input: path, query and body in one flat struct.
///
/// The doc comment of the struct is what the document of the API says about the operation, and that of a field about the field.
pub trait Operation: Serialize + DeserializeOwned + ToSchema + Send + 'static {
    const SPEC: Spec;
    type Output: Serialize + DeserializeOwned + ToSchema + Send;

    fn run(self, call: &Call) -> impl Future<Output = Result<Self::Output, Refusal>> + Send;

    /// Reads the input from the fields that a caller sends.
    fn read(fields: &Fields) -> Result<Self, Refusal> {
        fields.read(&described::<Self>)
    }

    /// True if an earlier call with the same idempotency key has made all that is in the output.
    fn is_replay(_: &Self::Output) -> bool {
        false
    }
}

/// An operation that changes something: one transaction, with its line in the audit log.
pub trait Change: Serialize + DeserializeOwned + ToSchema + Send + 'static {
    const SPEC: Spec;
    const ACTION: Action;
    type Output: Serialize + DeserializeOwned + ToSchema + Send;

    fn change(
        self,
        conn: &mut PgConnection,
        call: &Call,
    ) -> impl Future<Output = ChangeResult<Self::Output>> + Send;

    /// True if an earlier call with the same idempotency key has made all that is in the output.
    fn is_replay(_: &Self::Output) -> bool {
        false
    }
}

pub type ChangeResult<T> = Result<Changed<T>, Refusal>;

/// The result of a change, and what the audit log says of it.
#[derive(Debug)]
pub struct Changed<T> {
    pub output: T,
    pub subject: String,
    /// An object, without prompts, answers and secrets. Null: nothing has changed, and the audit log gets no line.
    pub data: Value,
}

/// The facts about an operation that all adapters share.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Unique, verb first: `pause_schedule`.
    pub id: &'static str,
    pub method: Method,
    /// The names in braces are fields of the input.
    pub path: &'static str,
    /// One of these, or one that implies it.
    pub scopes: &'static [Scope],
    /// Keys that are bound to campaigns may call it although its path names none: it filters by [`Call::reach`].
    pub for_bound_keys: bool,
    pub tag: &'static str,
    pub success: Success,
    /// The most characters of its idempotency key, which comes beside the input; `None`: it takes no key.
    pub key_chars: Option<u8>,
    /// Says in its answer if an earlier call has made all that is in it.
    pub replays: bool,
    /// The field of the input that is the whole body: a JSON array, or one item per line.
    pub items: Option<&'static str>,
    /// The path of the output's thing, for the header `Location`. The names in braces are fields of the output.
    pub location: Option<&'static str>,
    /// The output has a secret in it: no cache may keep the answer.
    pub has_secret: bool,
    /// The classes of refusals that this operation adds to those that all have.
    pub refusals: &'static [Class],
    pub command: Command,
    /// The line in the audit log. Set by [`Change`].
    pub action: Option<Action>,
    /// Why the audit log gets no line of a change.
    pub unaudited: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// The status of an answer that is no refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    Ok = 200,
    Created = 201,
    Accepted = 202,
    /// Without a body; the output is `()`.
    NoContent = 204,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `schedule pause`.
    Named(&'static str),
    /// There is none, for this reason.
    Without(&'static str),
}

/// An operation in the list, without its types.
pub struct Entry {
    pub spec: Spec,
    pub input: fn() -> Described,
    /// The data of an event, where the answer is a stream.
    pub output: fn() -> Described,
    pub run: Run,
}

/// Reads the input and runs.
#[derive(Clone, Copy)]
pub enum Run {
    Once(fn(Fields, Call) -> Answer),
    Stream {
        /// Behind the last event that the caller has received, by its id.
        open: fn(Fields, Call, Option<String>) -> StreamAnswer,
        ids: &'static str,
        has_end: bool,
    },
}

pub type Answer = BoxFuture<'static, Result<Written, Refusal>>;
/// `None`: the caller has received all events before.
pub type StreamAnswer = BoxFuture<'static, Result<Option<Events>, Refusal>>;

/// An output as JSON.
pub struct Written {
    pub json: Vec<u8>,
    pub is_replay: bool,
}

/// A type as the document of the API has it.
pub struct Described {
    pub name: String,
    pub schema: RefOr<Schema>,
    /// The schemas that this one refers to.
    pub others: Vec<(String, RefOr<Schema>)>,
}

impl<T> Changed<T> {
    /// A call that has found everything as it should be.
    pub fn nothing(output: T) -> Self {
        Self { output, subject: String::new(), data: Value::Null }
    }
}

impl<C: Change> Operation for C {
    const SPEC: Spec = Spec { action: Some(C::ACTION), ..<C as Change>::SPEC };
    type Output = <C as Change>::Output;

    /// The one place where changes begin and commit. An idempotency key belongs here: looked up after `begin`, stored before `commit`.
    async fn run(self, call: &Call) -> Result<<C as Change>::Output, Refusal> {
        let mut transaction = call.begin().await?;
        let Changed { output, subject, data } = self.change(&mut transaction, call).await?;
        if !data.is_null() {
            audit::write(&mut *transaction, &call.actor, C::ACTION, subject, data, call.now)
                .await?;
        }
        transaction.commit().await?;
        Ok(output)
    }

    fn is_replay(output: &<C as Change>::Output) -> bool {
        <C as Change>::is_replay(output)
    }
}

/// The entry of an operation in the list.
pub const fn entry<O: Operation>() -> Entry {
    Entry {
        spec: O::SPEC,
        input: described::<O>,
        output: described::<O::Output>,
        run: Run::Once(|fields, call| Box::pin(run::<O>(fields, call))),
    }
}

/// The entry of a stream in the list.
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

async fn run<O: Operation>(fields: Fields, call: Call) -> Result<Written, Refusal> {
    let operation = O::read(&fields)?;
    // Bodies can be long, and are not held beside what was read of them.
    drop(fields);
    let output = operation.run(&call).await?;
    let is_replay = O::is_replay(&output);
    let json = serde_json::to_vec(&output).map_err(|error| Refusal::fault(O::SPEC.id, &error))?;
    Ok(Written { json, is_replay })
}

fn described<T: ToSchema>() -> Described {
    let mut others = Vec::new();
    T::schemas(&mut others);
    Described { name: T::name().into_owned(), schema: T::schema(), others }
}

impl Spec {
    /// A read. `command` is its command, such as `schedule show`.
    pub const fn read(id: &'static str, path: &'static str, command: &'static str) -> Self {
        Self {
            id,
            method: Method::Get,
            path,
            scopes: &[Scope::Read],
            for_bound_keys: false,
            tag: "",
            success: Success::Ok,
            key_chars: None,
            replays: false,
            items: None,
            location: None,
            has_secret: false,
            refusals: &[],
            command: Command::Named(command),
            action: None,
            unaudited: None,
        }
    }

    /// A change that `POST` asks for.
    pub const fn change(id: &'static str, path: &'static str, command: &'static str) -> Self {
        let scopes = &[Scope::Operate];
        Self { method: Method::Post, scopes, ..Self::read(id, path, command) }
    }

    pub const fn tag(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Says that keys that are bound to campaigns may call it.
    pub const fn for_bound_keys(self) -> Self {
        Self { for_bound_keys: true, ..self }
    }

    /// One of these scopes, or one that implies it.
    pub const fn needs(self, scopes: &'static [Scope]) -> Self {
        Self { scopes, ..self }
    }

    pub const fn by(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub const fn answers(self, success: Success) -> Self {
        Self { success, ..self }
    }

    /// Says where the output's thing is: `/v1/campaigns/{id}`.
    pub const fn located(self, path: &'static str) -> Self {
        Self { location: Some(path), ..self }
    }

    /// Of an operation that takes several transactions and writes its lines in the audit log itself.
    pub const fn audits(self, action: Action) -> Self {
        Self { action: Some(action), ..self }
    }

    /// Of a change that the audit log gets no line of, for this reason.
    pub const fn unaudited(self, reason: &'static str) -> Self {
        Self { unaudited: Some(reason), ..self }
    }

    /// Takes an idempotency key of so many characters at most.
    pub const fn keyed(self, max_chars: u8) -> Self {
        Self { key_chars: Some(max_chars), replays: true, ..self }
    }

    /// Its whole body is a list, which is this field of the input. The items can have idempotency keys of their own.
    pub const fn takes_items(self, field: &'static str) -> Self {
        Self { items: Some(field), replays: true, ..self }
    }

    /// Says that its output has a secret in it.
    pub const fn shows_secret(self) -> Self {
        Self { has_secret: true, ..self }
    }

    /// Says that there is no command for it.
    pub const fn without_command(self, reason: &'static str) -> Self {
        Self { command: Command::Without(reason), ..self }
    }

    pub const fn refuses(self, refusals: &'static [Class]) -> Self {
        Self { refusals, ..self }
    }

    /// The names of the fields that are parts of the path, in their order.
    pub fn path_fields(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('{').skip(1).filter_map(|part| part.split('}').next())
    }
}

impl Method {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Fields that are not in the path are in a JSON body; otherwise they are query parameters.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}
