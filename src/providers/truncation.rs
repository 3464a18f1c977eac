//! Signs that a server has silently cut a prompt.

/// Percentage of the estimate below which a count is more than an error of estimation. A server that cuts a prompt keeps about half of its
/// window.
const MIN_COUNTED_PERCENT: u64 = 60;
/// Minimum estimate to compare with. Smaller ones are off by templates alone, and fit into every server's window.
const MIN_ESTIMATE: u32 = 1024;

/// Returns true if the server counted so few prompt tokens that it cannot have read the whole prompt.
pub(super) fn is_far_below_estimate(
    estimated: Option<u32>,
    window_tokens: u32,
    counted: u64,
) -> bool {
    let Some(estimated) = estimated else { return false };
    let tells = estimated >= MIN_ESTIMATE || estimated > window_tokens / 2;
    tells && counted * 100 < u64::from(estimated) * MIN_COUNTED_PERCENT
}
