//! Signatures of receipts, and their check without a database.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Erasure, Error, Key, get};
use crate::domain::{StatementError, installation};

/// The signature of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ErasureSignature)]
pub struct ReceiptSignature {
    /// The text that is signed: JSON with the fields of the receipt.
    pub statement: String,
    /// Ed25519 over the bytes of the statement, in base64.
    pub signature: String,
    /// The public key in base64. `dalsegno doctor` shows the one of the installation.
    pub public_key: String,
}

/// Errors of checking a receipt.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    #[error("the file is not a receipt: `dalsegno campaign erase ID --json` prints one")]
    Format(#[source] serde_json::Error),
    #[error(
        "the receipt is not signed: its erasure has not ended, or a worker of an earlier version ended it"
    )]
    Unsigned,
    #[error(
        "the signature does not match the statement, so one of them was changed: `dalsegno campaign erase ID --json` prints the stored receipt"
    )]
    Signature,
    #[error("the signed statement is not one of an erasure: its `type` is not `{TYPE}`")]
    Type,
    #[error(
        "`{field}` of the receipt differs from the signed value, so it was changed: `dalsegno campaign erase ID --json` prints the stored receipt"
    )]
    Changed { field: &'static str },
    #[error(
        "the receipt is signed by {found}, not by {expected}: if another installation signed it, pass its key with `--public-key`"
    )]
    OtherKey { found: String, expected: String },
}

/// The type of a signed statement, because a key may sign other things, too.
const TYPE: &str = "dalsegno.erasure/1";
/// Fields of a receipt that its statement repeats: those of the request, and those that functions of the schema's owner have written.
/// `removed` is left out, because the role of a service writes it. Hosts and data files are cleaned later.
const FIELDS: [&str; 6] = ["id", "campaign_id", "reason", "asked_at", "ended_at", "contents"];

/// Signs the receipt of an ended erasure, unless this key has signed it already. The receipt stays unsigned if `measure_erasure` has not
/// counted rows before the removal, because a worker of an earlier version ended it.
pub async fn sign(conn: &mut PgConnection, campaign_id: Uuid, key: &Key) -> Result<(), Error> {
    let installation = installation::get(&mut *conn).await;
    let installation = installation.map_err(StatementError::to("read the installation"))?;
    let erasure = get(&mut *conn, campaign_id).await?;
    if erasure.contents.is_none() || erasure.ended_at.is_none() {
        return Ok(());
    }
    let signed = erasure.signed.clone();
    let receipt = serde_json::to_value(erasure).unwrap_or_default();
    let fields = FIELDS.map(|field| (field.to_owned(), receipt[field].clone()));
    let mut statement: serde_json::Map<String, Value> = fields.into_iter().collect();
    statement.insert("type".to_owned(), json!(TYPE));
    statement.insert("installation".to_owned(), json!(installation.id));
    let statement = Value::Object(statement).to_string();
    if signed.is_some_and(|signed| signed.is_signed_by(&statement, key)) {
        return Ok(());
    }
    let signature = key.sign(statement.as_bytes());
    sqlx::query!(
        "update dalsegno.erasures set statement = $2, signature = $3, public_key = $4 where campaign_id = $1",
        campaign_id,
        statement,
        signature,
        key.public_key(),
    )
    .execute(conn)
    .await
    .map_err(StatementError::to("sign the receipt of an erasure"))?;
    Ok(())
}

/// Checks the text of a receipt. `expected`: the public key in base64.
pub fn verify(receipt: &str, expected: Option<&str>) -> Result<ReceiptSignature, Invalid> {
    let receipt: Value = serde_json::from_str(receipt).map_err(Invalid::Format)?;
    if receipt["signed"].is_null() {
        return Err(if receipt["removed"].is_null() { not_a_receipt() } else { Invalid::Unsigned });
    }
    let signed: ReceiptSignature =
        serde_json::from_value(receipt["signed"].clone()).map_err(Invalid::Format)?;
    let bytes = |text: &str| BASE64_STANDARD.decode(text).map_err(|_| Invalid::Signature);
    let key = UnparsedPublicKey::new(&ED25519, bytes(&signed.public_key)?);
    key.verify(signed.statement.as_bytes(), &bytes(&signed.signature)?)
        .map_err(|_| Invalid::Signature)?;
    let statement: Value = serde_json::from_str(&signed.statement).map_err(Invalid::Format)?;
    if statement["type"] != TYPE {
        return Err(Invalid::Type);
    }
    if let Some(field) = FIELDS.into_iter().find(|field| receipt[field] != statement[field]) {
        return Err(Invalid::Changed { field });
    }
    match expected {
        Some(expected) if expected != signed.public_key => {
            Err(Invalid::OtherKey { found: signed.public_key, expected: expected.to_owned() })
        }
        _ => Ok(signed),
    }
}

impl ReceiptSignature {
    /// True if this key has signed this very statement.
    fn is_signed_by(&self, statement: &str, key: &Key) -> bool {
        let signature = BASE64_STANDARD.decode(&self.signature).unwrap_or_default();
        self.statement == statement && key.has_signed(statement.as_bytes(), &signature)
    }
}

fn not_a_receipt() -> Invalid {
    Invalid::Format(serde::de::Error::custom("it has no field `removed`"))
}

impl Erasure {
    pub(super) fn signed(
        statement: Option<String>,
        signature: Option<Vec<u8>>,
        public_key: Option<Vec<u8>>,
    ) -> Option<ReceiptSignature> {
        Some(ReceiptSignature {
            statement: statement?,
            signature: BASE64_STANDARD.encode(signature?),
            public_key: BASE64_STANDARD.encode(public_key?),
        })
    }
}
