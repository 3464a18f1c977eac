//! Durations and numbers in words.

/// `"in 4 minutes"`, or `"now"`.
pub(super) fn format_in(secs: f64) -> String {
    if secs < 1.0 { "now".to_owned() } else { format!("in {}", span(secs)) }
}

/// `"4 minutes ago"`.
pub(super) fn format_ago(secs: f64) -> String {
    if secs < 1.0 { "just now".to_owned() } else { format!("{} ago", span(secs)) }
}

/// `"4 minutes"`: one unit, rounded, large enough to be read at a glance.
pub(super) fn span(secs: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second")];
    // From two of a unit on, the span is given in it; below, the next smaller unit is more exact.
    let (size, unit) =
        UNITS.into_iter().find(|(size, _)| secs >= 2.0 * size).unwrap_or((1.0, "second"));
    plural((secs / size).round().max(1.0) as i64, unit)
}

/// `"1 job"`, `"3 jobs"`.
pub(super) fn plural(n: i64, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_for_people() {
        let said: Vec<String> =
            [1.0, 59.0, 119.0, 120.0, 3_700.0, 7_200.0, 200_000.0].map(span).to_vec();
        assert_eq!(
            said,
            [
                "1 second",
                "59 seconds",
                "119 seconds",
                "2 minutes",
                "62 minutes",
                "2 hours",
                "2 days"
            ]
        );
    }
}
