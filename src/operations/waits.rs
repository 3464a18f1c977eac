//! Calls that wait for an event.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use tokio_util::sync::CancellationToken;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use super::{Call, Refusal};
use crate::domain::class::{Class, Kind};

/// Refusal: waiting and streaming calls have used up all places.
pub const TOO_MANY_WAITING: Class = Class::of(Kind::Unavailable, "too_many_waiting");
/// Refusal: waiting and streaming calls of this client have used up its share of the places.
pub const TOO_MANY_WAITING_PER_CLIENT: Class =
    Class::of(Kind::TooMany, "too_many_waiting_per_client");

/// Time between the end of a wait and the timeout of the request.
const TIME_TO_ANSWER: Duration = Duration::from_secs(2);

/// Limits for the waits of one request.
pub struct Waits {
    /// Takes a place among the waiting requests.
    pub enter: Box<dyn Fn() -> Result<Box<dyn Send>, Refusal> + Send + Sync>,
    /// Cancelled when the service stops. Waiting requests are then answered.
    pub stop: CancellationToken,
}

/// Longest time that a caller wants to wait: `30s`, `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLimit(pub Duration);

impl Call {
    /// Runs `wait`, which gets the longest time that it may take.
    pub async fn wait<T, E, W>(
        &self,
        WaitLimit(patience): WaitLimit,
        wait: impl FnOnce(Duration) -> W,
    ) -> Result<(), Refusal>
    where
        W: Future<Output = Result<T, E>>,
        Refusal: From<E>,
    {
        let Some(waits) = &self.waits else {
            wait(patience).await?;
            return Ok(());
        };
        let _place = (waits.enter)()?;
        let longest = self.limits.as_ref().map_or(Duration::MAX, |limits| limits.longest);
        let patience = patience.min(longest.saturating_sub(TIME_TO_ANSWER));
        waits.stop.run_until_cancelled(wait(patience)).await.transpose()?;
        Ok(())
    }
}

impl FromStr for WaitLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let n = |digits: &str| digits.parse::<u32>().ok().map(u64::from);
        let secs = |unit, secs| text.strip_suffix(unit).and_then(n).map(|n| n * secs);
        let parsed = match text.strip_suffix("ms") {
            Some(digits) => n(digits).map(Duration::from_millis),
            None => {
                let secs = secs('s', 1).or_else(|| secs('m', 60)).or_else(|| secs('h', 3600));
                secs.map(Duration::from_secs)
            }
        };
        let wrong = || format!("invalid duration `{text}`: use for example `30s`, `5m` or `500ms`");
        parsed.map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for WaitLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}ms", self.0.as_millis())
    }
}

impl Serialize for WaitLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WaitLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl PartialSchema for WaitLimit {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        text.pattern(Some("^[0-9]{1,9}(ms|s|m|h)$")).examples(["30s"]).into()
    }
}

impl ToSchema for WaitLimit {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_a_unit() {
        let read = |text: &str| text.parse::<WaitLimit>().ok().map(|patience| patience.0);
        assert_eq!(read("30s"), Some(Duration::from_secs(30)));
        assert_eq!(read("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(read("10m"), Some(Duration::from_secs(600)));
        assert_eq!(read("1h"), Some(Duration::from_secs(3600)));
        assert_eq!(
            read(&WaitLimit(Duration::from_secs(7)).to_string()),
            Some(Duration::from_secs(7))
        );
        for wrong in ["", "30", "s", "-1s", "1.5s", "99999999999s", "30d", "ms", " 1s"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
