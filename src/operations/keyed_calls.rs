//! Idempotency keys of changes: a repeated call is answered with the stored output of the first.

use std::collections::BTreeMap;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::{Call, Method, Refusal, Spec};
use crate::domain::{
    class::{Class, Kind},
    operation_keys::{self, FirstCall, OperationKey},
};

/// Longest key. Keys of tasks have the same limit.
pub const MAX_KEY_CHARS: u8 = 195;
pub const KEY_TAKEN: Class = Class::of(Kind::Conflict, "idempotency_conflict");
pub const BAD_KEY: Class = Class::of(Kind::Invalid, "bad_idempotency_key");
/// The operation accepts no key.
pub const NO_KEY: Class = Class::of(Kind::Malformed, "idempotency_not_supported");

/// The output of a call, and whether it is replayed from an earlier call with the same idempotency key.
#[derive(Debug)]
pub struct KeyedOutput<T> {
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
            let detail = "the answer contains a secret, which is not stored: send the request without an idempotency key";
            return Err(Refusal::new(NO_KEY.kind, NO_KEY.code, detail));
        }
        check(key, MAX_KEY_CHARS)?;
        let input_sha256 = digest(spec, input).map_err(|error| Refusal::fault(spec.id, &error))?;
        Ok(Some(Self {
            caller: call.actor.label(),
            operation: spec.id,
            key: key.clone(),
            input_sha256,
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
                "the idempotency key `{}` was used for another call of `{}`: use another key, or repeat the first request unchanged",
                self.key, self.operation
            );
            return Err(Refusal::new(KEY_TAKEN.kind, KEY_TAKEN.code, detail));
        }
        let output = serde_json::from_value(output.unwrap_or_default());
        output.map(Some).map_err(|error| {
            let detail = format!(
                "the call of `{}` with the idempotency key `{}` was made, but this version cannot read its stored answer ({error}): `dalsegno audit ls` shows the change; another key would make the change again",
                self.operation, self.key
            );
            Refusal::new(KEY_TAKEN.kind, KEY_TAKEN.code, detail)
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

/// Refuses a key that is empty, or longer than the operation takes.
pub(super) fn check(key: &str, max_chars: u8) -> Result<(), Refusal> {
    let n_chars = key.chars().count();
    if (1..=usize::from(max_chars)).contains(&n_chars) && !key.contains('\0') {
        return Ok(());
    }
    let detail = format!(
        "the idempotency key has {n_chars} characters: use 1 to {max_chars} without NUL, for example a hash"
    );
    Err(Refusal::new(BAD_KEY.kind, BAD_KEY.code, detail))
}

/// Identifies an input in every version: an empty field counts as a missing one, which is all that an older version knows of a new
/// field. In a PATCH null has a meaning of its own.
fn digest(spec: &Spec, input: &impl Serialize) -> Result<[u8; 32], serde_json::Error> {
    let input = serde_json::to_value(input)?;
    let mut fields: BTreeMap<String, Value> = serde_json::from_value(input)?;
    if spec.method != Method::Patch {
        fields.retain(|_, value| !is_empty(value));
    }
    Ok(Sha256::digest(serde_json::to_vec(&fields)?).into())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POST: Spec = Spec::change("reset_agents", "/v1/campaigns/{id}/agents/reset", "");

    #[test]
    fn the_digest_of_an_input_equals_that_of_older_versions() {
        let stored = "c5ef6c6162c537ac8e4dcc94c8e369cb09d9e60dc7d8cb19b0fd89d55e236f91";
        let input = json!({ "reason": "by a request", "name": "turns" });
        assert_eq!(hex::encode(digest(&POST, &input).unwrap()), stored);
        let later = json!({
            "name": "turns", "reason": "by a request", "until": null, "is_soft": false, "tags": [], "metadata": {},
        });
        assert_eq!(hex::encode(digest(&POST, &later).unwrap()), stored);
    }

    #[test]
    fn null_in_a_patch_differs_from_a_missing_field() {
        let patch = POST.by(Method::Patch);
        let of = |input: Value| digest(&patch, &input).unwrap();
        assert_ne!(of(json!({ "tokens": null })), of(json!({})));
    }
}
