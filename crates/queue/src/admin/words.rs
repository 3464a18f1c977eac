//! Durations and numbers in words.

/// A hundred years: `dalsegno.never()` is farther away, and no moment that a job is put off to.
const NEVER_SECS: f64 = 100.0 * 365.0 * 86_400.0;

/// Returns `in 4 min`, or `now`. `None`: no time is set.
pub(super) fn format_in(secs: f64) -> Option<String> {
    match secs {
        secs if secs < 1.0 => Some("now".to_owned()),
        secs if secs > NEVER_SECS => None,
        secs => Some(format!("in {}", span(secs))),
    }
}

/// Returns `4 min ago`, or `just now`.
pub(super) fn format_ago(secs: f64) -> String {
    if secs < 1.0 { "just now".to_owned() } else { format!("{} ago", span(secs)) }
}

/// Returns `4 min`: one unit, rounded.
pub(super) fn span(secs: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s")];
    // From two of a unit on, the span is given in it; below, the next smaller unit is more exact.
    let (size, unit) = UNITS.into_iter().find(|(size, _)| secs >= 2.0 * size).unwrap_or((1.0, "s"));
    format!("{} {unit}", (secs / size).round().max(1.0) as i64)
}

/// Returns `1 job`, `3 jobs`.
pub(super) fn plural(n: i64, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_for_people() {
        let spans: Vec<String> =
            [1.0, 59.0, 119.0, 120.0, 3_700.0, 7_200.0, 200_000.0].map(span).to_vec();
        assert_eq!(spans, ["1 s", "59 s", "119 s", "2 min", "62 min", "2 h", "2 d"]);
    }
}
