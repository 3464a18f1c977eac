//! The facts about an operation that all adapters share: route, scopes, command, refusals.

use super::once::MAX_KEY_CHARS;
use crate::domain::{audit::Action, class::Class, keys::Scope};

/// The setting that limits bodies with many things in them.
pub const MAX_BULK_BYTES: &str = "http.max_bulk_bytes";

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
    /// Keys that are bound to campaigns may call it although its path names none: it filters by `Call::reach`.
    pub for_bound_keys: bool,
    pub tag: &'static str,
    pub success: Success,
    /// The most characters of its idempotency key, if it looks its keys up itself. Other changes take one through `Operation::perform`.
    pub key_chars: Option<u8>,
    /// Says in its answer if an earlier call has made all that is in it.
    pub replays: bool,
    /// The field of the input that is the whole body: a JSON array, or one item per line.
    pub items: Option<&'static str>,
    /// Its body can be as long as that of a list.
    pub takes_many: bool,
    /// The path of the output's thing, for the header `Location`. The names in braces are fields of the output.
    pub location: Option<&'static str>,
    /// The output has a secret in it: no cache may keep the answer.
    pub has_secret: bool,
    /// The classes of refusals that this operation adds to those that all have.
    pub refusals: &'static [Class],
    pub command: Command,
    /// The line in the audit log. Set by `Change`.
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
            takes_many: false,
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

    /// Looks up its idempotency keys itself, of so many characters at most.
    pub const fn keyed(self, max_chars: u8) -> Self {
        Self { key_chars: Some(max_chars), replays: true, ..self }
    }

    /// Its whole body is a list, which is this field of the input. The items can have idempotency keys of their own.
    pub const fn takes_items(self, field: &'static str) -> Self {
        Self { items: Some(field), replays: true, ..self }
    }

    /// Says that its body, which has a list in it, can be as long as one that is a list.
    pub const fn takes_many(self) -> Self {
        Self { takes_many: true, ..self }
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

    pub const fn has_long_body(&self) -> bool {
        self.takes_many || self.items.is_some()
    }

    /// The setting that limits its body.
    pub const fn body_limit(&self) -> &'static str {
        if self.has_long_body() { MAX_BULK_BYTES } else { "http.max_body_bytes" }
    }

    /// The most characters of the idempotency key that comes beside the input; `None`: it takes no key.
    pub const fn max_key_chars(&self) -> Option<u8> {
        match self.key_chars {
            None if self.stores_output() => Some(MAX_KEY_CHARS),
            own => own,
        }
    }

    /// True if its output is stored under the idempotency key of the call.
    pub const fn stores_output(&self) -> bool {
        self.key_chars.is_none() && self.action.is_some() && !self.has_secret
    }

    /// True if it takes an idempotency key, or refuses one because of its secret.
    pub const fn reads_key(&self) -> bool {
        self.key_chars.is_some() || self.action.is_some()
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
