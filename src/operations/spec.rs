//! Properties of an operation that all adapters share: route, scopes, command, refusals.

use super::keyed_calls::MAX_KEY_CHARS;
use crate::domain::{audit::Action, class::Class, keys::Scope};

/// Setting that limits bodies with lists.
pub const MAX_BULK_BYTES: &str = "http.max_bulk_bytes";

/// Properties of an operation that all adapters share.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Unique, verb first: `pause_schedule`.
    pub id: &'static str,
    pub method: Method,
    /// Path of the route. Names in braces are fields of the input.
    pub path: &'static str,
    /// A caller needs one of these scopes, or a scope that implies one.
    pub scopes: &'static [Scope],
    /// True: bound keys may call it although its path names no campaign, because it filters by `Call::reach`.
    pub for_bound_keys: bool,
    pub tag: &'static str,
    pub success: Success,
    /// Longest idempotency key, if the operation looks its keys up itself. Other changes take one through
    /// `Operation::perform`.
    pub key_chars: Option<u8>,
    /// True if the answer says that an earlier call has made everything in it.
    pub replays: bool,
    /// Field of the input that is the whole body: a JSON array, or one item per line.
    pub items: Option<&'static str>,
    /// True if its body can be as long as that of a list.
    pub takes_many: bool,
    /// True if its body can be a form with files, besides JSON.
    pub takes_files: bool,
    /// Path for the header `Location`. Names in braces are fields of the output.
    pub location: Option<&'static str>,
    /// True if the output has a secret in it: the answer must not be cached.
    pub has_secret: bool,
    /// Refusals of this operation, besides those that all operations have.
    pub refusals: &'static [Class],
    pub command: Command,
    /// Action of its audit line. Set by `Change`.
    pub action: Option<Action>,
    /// Reason why a change writes no audit line.
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

/// Status of a successful answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    Ok = 200,
    Created = 201,
    Accepted = 202,
    /// No body; the output is `()`.
    NoContent = 204,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Command of the operation, such as `schedule pause`.
    Named(&'static str),
    /// No command exists, for this reason.
    Without(&'static str),
}

impl Spec {
    /// Describes a read. `command` is its command, such as `schedule show`.
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
            takes_files: false,
            location: None,
            has_secret: false,
            refusals: &[],
            command: Command::Named(command),
            action: None,
            unaudited: None,
        }
    }

    /// Describes a change, by default with `POST`.
    pub const fn change(id: &'static str, path: &'static str, command: &'static str) -> Self {
        let scopes = &[Scope::Operate];
        Self { method: Method::Post, scopes, ..Self::read(id, path, command) }
    }

    pub const fn tag(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Allows keys that are bound to campaigns.
    pub const fn for_bound_keys(self) -> Self {
        Self { for_bound_keys: true, ..self }
    }

    /// Requires one of these scopes, or a scope that implies one.
    pub const fn needs(self, scopes: &'static [Scope]) -> Self {
        Self { scopes, ..self }
    }

    pub const fn by(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub const fn answers(self, success: Success) -> Self {
        Self { success, ..self }
    }

    /// Sets the path of the output for `Location`: `/v1/campaigns/{id}`.
    pub const fn located(self, path: &'static str) -> Self {
        Self { location: Some(path), ..self }
    }

    /// Sets the action of an operation that takes several transactions and writes its audit lines itself.
    pub const fn audits(self, action: Action) -> Self {
        Self { action: Some(action), ..self }
    }

    /// Sets the reason why a change writes no audit line.
    pub const fn unaudited(self, reason: &'static str) -> Self {
        Self { unaudited: Some(reason), ..self }
    }

    /// Declares that the operation looks up its idempotency keys itself, of at most `max_chars` characters.
    pub const fn keyed(self, max_chars: u8) -> Self {
        Self { key_chars: Some(max_chars), replays: true, ..self }
    }

    /// Its whole body is a list, which is this field of the input.
    pub const fn takes_items(self, field: &'static str) -> Self {
        Self { items: Some(field), ..self }
    }

    /// Declares that its body contains a list and can be as long as one that is a list.
    pub const fn takes_many(self) -> Self {
        Self { takes_many: true, ..self }
    }

    /// Declares that its body can be a form with files. Its JSON can contain files, too, so it can be as long as a list.
    pub const fn takes_files(self) -> Self {
        Self { takes_many: true, takes_files: true, ..self }
    }

    /// Declares that the output has a secret in it.
    pub const fn shows_secret(self) -> Self {
        Self { has_secret: true, ..self }
    }

    /// Sets the reason why the operation has no command.
    pub const fn without_command(self, reason: &'static str) -> Self {
        Self { command: Command::Without(reason), ..self }
    }

    pub const fn refuses(self, refusals: &'static [Class]) -> Self {
        Self { refusals, ..self }
    }

    /// Returns true if a body can be as long as that of a list.
    pub const fn has_long_body(&self) -> bool {
        self.takes_many || self.items.is_some()
    }

    /// Returns the setting that limits its body.
    pub const fn body_limit(&self) -> &'static str {
        if self.has_long_body() { MAX_BULK_BYTES } else { "http.max_body_bytes" }
    }

    /// Returns the longest idempotency key of a call. `None`: a call takes no key.
    pub const fn max_key_chars(&self) -> Option<u8> {
        match self.key_chars {
            None if self.stores_output() => Some(MAX_KEY_CHARS),
            own => own,
        }
    }

    /// Returns true if the output is stored under the idempotency key.
    pub const fn stores_output(&self) -> bool {
        self.key_chars.is_none() && self.action.is_some() && !self.has_secret
    }

    /// Returns true if a call takes an idempotency key, or refuses one because of its secret.
    pub const fn reads_key(&self) -> bool {
        self.key_chars.is_some() || self.action.is_some()
    }

    /// Returns the names of the path's fields, in order.
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

    /// Returns true if the fields outside of the path are in a JSON body; otherwise they are query parameters.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}
