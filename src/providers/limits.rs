//! Limits on the size of an answer.

use super::line_splitter::Limits;

/// A line holds one token, or all the tool calls of an answer.
const MAX_LINE_BYTES: usize = 8 << 20;
const MAX_TOTAL_BYTES: usize = 64 << 20;
/// Several times the size of a line around one token.
const BYTES_PER_TOKEN: usize = 1 << 10;
const BYTES_BESIDES: usize = 1 << 20;

/// Returns the limits of an answer of at most `max_tokens` tokens, thinking included.
pub(super) fn of_answer(max_tokens: u32) -> Limits {
    let tokens = usize::try_from(max_tokens).unwrap_or(usize::MAX);
    let needed = tokens.saturating_mul(BYTES_PER_TOKEN).saturating_add(BYTES_BESIDES);
    Limits { line_bytes: MAX_LINE_BYTES, total_bytes: needed.min(MAX_TOTAL_BYTES) }
}
