//! The definition of an operation, and its entry in the list.

use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sqlx::PgConnection;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::{Call, Fields, Refusal};
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
    /// The path of the output's thing, for the header `Location`. The names in braces are fields of the output.
    pub location: Option<&'static str>,
    /// The classes of refusals that this operation adds to those that all have.
    pub refusals: &'static [Class],
    pub command: Command,
    /// The line in the audit log. Set by [`Change`].
    pub action: Option<Action>,
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
    pub output: fn() -> Described,
    /// Reads the input, runs, and writes the output as JSON.
    pub run: fn(Fields, Call) -> Answer,
}

/// The output as JSON.
pub type Answer = BoxFuture<'static, Result<Vec<u8>, Refusal>>;

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
}

/// The entry of an operation in the list.
pub const fn entry<O: Operation>() -> Entry {
    Entry {
        spec: O::SPEC,
        input: described::<O>,
        output: described::<O::Output>,
        run: |fields, call| Box::pin(run::<O>(fields, call)),
    }
}

async fn run<O: Operation>(fields: Fields, call: Call) -> Result<Vec<u8>, Refusal> {
    let operation: O = fields.read(&described::<O>)?;
    let output = operation.run(&call).await?;
    serde_json::to_vec(&output).map_err(|error| Refusal::fault(O::SPEC.id, &error))
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
            location: None,
            refusals: &[],
            command: Command::Named(command),
            action: None,
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
