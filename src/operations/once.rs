//! Idempotency keys of changes: a repeated call is answered with the stored output of the first.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::{Call, Refusal, Spec};
use crate::domain::{
    class::{Class, Kind},
    operation_keys::{self, FirstCall, OperationKey},
};

/// Longest key. Keys of tasks have the same limit.
pub const MAX_KEY_CHARS: u8 = 195;
pub const KEY_TAKEN: Class = Class::of(Kind::Conflict, "idempotency_conflict");
pub const BAD_KEY: Class = Class::of(Kind::Invalid, "bad_idempotency_key");
/// The operation accepts no key.
pub const NO_KEY: Class = Class::of(Kind::Malformed, "no_idempotency_key");

/// The output of a call, and whether it is replayed from an earlier call with the same idempotency key.
#[derive(Debug)]
pub struct Done<T> {
    pub output: T,
    pub is_replay: bool,
}

/// The idempotency key of one call.
pub(super) struct CallKey {
    caller: String,
    operation: &'static str,
    key: String,
    input_sha256: [u8; 32],
}

impl CallKey {
    /// Returns the key of a call. `None`: the caller sends no key, or the operation stores no output under it.
    pub(super) fn of(
        spec: &Spec,
        input: &impl Serialize,
        call: &Call,
    ) -> Result<Option<Self>, Refusal> {
        let Some(key) = &call.idempotency_key else { return Ok(None) };
        if spec.action.is_none() || spec.key_chars.is_some() {
            return Ok(None);
        }
        if spec.has_secret {
            let detail = "the answer has a secret in it, which is not stored: call this without an idempotency key";
            return Err(Refusal::new(NO_KEY.kind, NO_KEY.code, detail));
        }
        let n_chars = key.chars().count();
        if !(1..=usize::from(MAX_KEY_CHARS)).contains(&n_chars) || key.contains('\0') {
            let detail = format!(
                "the idempotency key has {n_chars} characters: 1 to {MAX_KEY_CHARS} are fine, and no NUL; use a hash of a longer one"
            );
            return Err(Refusal::new(BAD_KEY.kind, BAD_KEY.code, detail));
        }
        let fault = |error| Refusal::fault(spec.id, &error);
        let input = serde_json::to_vec(input).map_err(fault)?;
        Ok(Some(Self {
            caller: call.actor.label(),
            operation: spec.id,
            key: key.clone(),
            input_sha256: Sha256::digest(&input).into(),
        }))
    }

    /// Claims the key, or returns the output of the call that claimed it before.
    pub(super) async fn claim<T: DeserializeOwned>(
        &self,
        conn: &mut PgConnection,
        call: &Call,
    ) -> Result<Option<T>, Refusal> {
        let first =
            operation_keys::claim(conn, self.stored(), &self.input_sha256, call.now).await?;
        let Some(FirstCall { input_sha256, output }) = first else { return Ok(None) };
        if input_sha256 != self.input_sha256 {
            let detail = format!(
                "the idempotency key `{}` has been used for another call of `{}`: use another key, or send the same input as before",
                self.key, self.operation
            );
            return Err(Refusal::new(KEY_TAKEN.kind, KEY_TAKEN.code, detail));
        }
        let output = serde_json::from_value(output.unwrap_or_default());
        output.map(Some).map_err(|error| {
            let detail = format!(
                "the output that is stored under the idempotency key `{}` cannot be read: {error}",
                self.key
            );
            Refusal::new(Kind::Internal, "internal", detail)
        })
    }

    pub(super) async fn store(
        &self,
        conn: &mut PgConnection,
        subject: &str,
        output: &Value,
    ) -> Result<(), Refusal> {
        Ok(operation_keys::store(conn, self.stored(), subject, output).await?)
    }

    pub(super) fn json(&self, output: &impl Serialize) -> Result<Value, Refusal> {
        serde_json::to_value(output).map_err(|error| Refusal::fault(self.operation, &error))
    }

    fn stored(&self) -> OperationKey<'_> {
        OperationKey { caller: &self.caller, operation: self.operation, key: &self.key }
    }
}
