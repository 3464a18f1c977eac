//! Limits that a provider tells in the headers of its answers.

use std::time::Duration;

use chrono::DateTime;
use reqwest::header::{DATE, HeaderMap};

/// The limits of the credential and the model of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToldLimits {
    pub requests: Option<ToldLimit>,
    pub input_tokens: Option<ToldLimit>,
    pub output_tokens: Option<ToldLimit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldLimit {
    pub per_minute: u64,
    /// The rest of the limit after the call.
    pub remaining: Option<u64>,
}

/// Longest time until a limit per minute is whole again. One that takes longer is a limit per hour or day, and is ignored.
const LONGEST_RESET: Duration = Duration::from_secs(61);

impl ToldLimits {
    /// Reads the headers `x-ratelimit-*` and `anthropic-ratelimit-*`.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        // A limit on all tokens together is at least one on those of prompts.
        let tokens = || limit(headers, |part| format!("x-ratelimit-{part}-tokens"));
        Self {
            requests: limit(headers, |part| format!("x-ratelimit-{part}-requests"))
                .or_else(|| limit(headers, |part| format!("anthropic-ratelimit-requests-{part}"))),
            input_tokens: tokens().or_else(|| {
                limit(headers, |part| format!("anthropic-ratelimit-input-tokens-{part}"))
            }),
            output_tokens: limit(headers, |part| {
                format!("anthropic-ratelimit-output-tokens-{part}")
            }),
        }
    }
}

impl ToldLimits {
    /// Formats the limits behind the message of a refusal: ` (its limits: 60 requests per minute, 0 left)`. Empty without limits.
    pub(super) fn describe(&self) -> String {
        let limits = [
            (self.requests, "requests"),
            (self.input_tokens, "input tokens"),
            (self.output_tokens, "output tokens"),
        ];
        let limits = limits.into_iter().filter_map(|(limit, unit)| {
            let ToldLimit { per_minute, remaining } = limit?;
            let left = remaining.map(|left| format!(", {left} left")).unwrap_or_default();
            Some(format!("{per_minute} {unit} per minute{left}"))
        });
        let limits = limits.collect::<Vec<_>>().join("; ");
        if limits.is_empty() { limits } else { format!(" (its limits: {limits})") }
    }
}

fn limit(headers: &HeaderMap, name: impl Fn(&str) -> String) -> Option<ToldLimit> {
    let text = |part| headers.get(name(part))?.to_str().ok().map(str::trim);
    let number = |part| text(part)?.parse::<u64>().ok();
    let per_minute = number("limit").filter(|limit| *limit > 0)?;
    let reset = text("reset").and_then(|reset| read_reset(reset, headers));
    let told = ToldLimit { per_minute, remaining: number("remaining") };
    reset.is_none_or(|reset| reset <= LONGEST_RESET).then_some(told)
}

/// Reads `17ms`, `6m0s`, seconds, or a date. A date is compared with the server's own `Date`.
fn read_reset(text: &str, headers: &HeaderMap) -> Option<Duration> {
    if let Ok(secs) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(secs).ok();
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        let now = DateTime::parse_from_rfc2822(headers.get(DATE)?.to_str().ok()?.trim()).ok()?;
        return Some((at - now).to_std().unwrap_or_default());
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit());
        let unit_end = unit_end.map_or(rest.len(), |end| digits + end);
        let unit_secs = match &rest[digits..unit_end] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(amount * unit_secs).ok()?)?;
        rest = &rest[unit_end..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn told(headers: &[(&'static str, &'static str)]) -> ToldLimits {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        ToldLimits::of(&headers.collect())
    }

    #[test]
    fn limits_of_chat_completions_are_read() {
        let told = told(&[
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "59.5s"),
        ]);
        let requests = ToldLimit { per_minute: 500, remaining: Some(499) };
        let tokens = ToldLimit { per_minute: 30_000, remaining: Some(0) };
        assert_eq!((told.requests, told.input_tokens), (Some(requests), Some(tokens)));
        let described = " (its limits: 500 requests per minute, 499 left; 30000 input tokens per minute, 0 left)";
        assert_eq!(told.describe(), described);
        assert_eq!(ToldLimits::default().describe(), "");
    }

    #[test]
    fn limits_of_the_messages_api_are_read() {
        let told = told(&[
            ("date", "Sun, 22 Nov 2026 08:00:00 GMT"),
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-22T08:00:01Z"),
            ("anthropic-ratelimit-input-tokens-limit", "20000"),
            ("anthropic-ratelimit-output-tokens-limit", "8000"),
            ("anthropic-ratelimit-output-tokens-remaining", "7000"),
        ]);
        let limit = |per_minute, remaining| Some(ToldLimit { per_minute, remaining });
        assert_eq!(told.requests, limit(50, Some(49)));
        assert_eq!(told.input_tokens, limit(20_000, None));
        assert_eq!(told.output_tokens, limit(8000, Some(7000)));
    }

    #[test]
    fn a_limit_per_day_is_not_one_per_minute() {
        for reset in ["8h15m0s", "6m0s", "3600", "1d"] {
            let told = told(&[
                ("x-ratelimit-limit-requests", "200"),
                ("x-ratelimit-reset-requests", reset),
            ]);
            assert_eq!(told, ToldLimits::default(), "{reset}");
        }
        // The largest duration twice.
        let overflow = "18446744073709550000s18446744073709550000s";
        for odd in ["soon", "s", "-1", "1x", "", overflow] {
            let told =
                told(&[("x-ratelimit-limit-requests", "200"), ("x-ratelimit-reset-requests", odd)]);
            assert!(told.requests.is_some(), "{odd}");
        }
        assert_eq!(told(&[("x-ratelimit-limit-requests", "0")]), ToldLimits::default());
    }
}
