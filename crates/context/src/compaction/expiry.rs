//! The summary with which the successor of an expired session begins. It is made without a model.

use crate::{
    calibration::Calibration,
    compaction::{
        extract,
        pins::{self, Pin},
        policy::Policy,
    },
    entry::Entry,
    weight::Weight,
};

/// Heading between a summary and the extract of later messages.
const SINCE: &str = "# After this summary was written";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpirySummary {
    pub summary: String,
    /// Pins that later summaries have to keep.
    pub pins: Vec<Pin>,
    pub tokens: u64,
}

/// Makes the summary. An accepted one stays word for word, and an extract of the messages `since` follows. Returns
/// `None` if there is neither.
pub fn build_memory(
    accepted: Option<&str>,
    carried: &[Pin],
    since: &[Entry],
    window_tokens: u64,
    calibration: &Calibration,
) -> Option<ExpirySummary> {
    let max_tokens = Policy::summary_max_tokens(window_tokens);
    let selection =
        pins::collect(carried, since).select(Policy::pins_max_tokens(max_tokens), calibration);
    let pins = selection.pins;
    let summary = match accepted {
        Some(accepted) if since.is_empty() => accepted.to_owned(),
        Some(accepted) => {
            let new: Vec<Pin> =
                pins.iter().filter(|pin| !accepted.contains(&pin.text)).cloned().collect();
            let extract = extract::extract(None, since, &new, max_tokens / 2, calibration);
            format!("{accepted}\n\n{SINCE}\n{extract}")
        }
        None if since.is_empty() => return None,
        None => extract::extract(None, since, &pins, max_tokens, calibration),
    };
    let tokens = calibration.tokens(Weight::of_text(&summary));
    Some(ExpirySummary { summary, pins, tokens })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::transcript::{Message, Role};

    fn entry(seq: i64, role: Role, text: &str) -> Entry {
        let message = Message::new(role, text);
        Entry::new(Uuid::from_u128(seq as u128), seq, message)
    }

    #[test]
    fn an_accepted_summary_stays_verbatim_and_later_messages_follow() {
        let calibration = Calibration::cold();
        let accepted = "## Goal\nA story of the harbour.";
        let alone = build_memory(Some(accepted), &[], &[], 8192, &calibration).unwrap();
        assert_eq!(alone.summary, accepted);
        let since = [
            entry(7, Role::User, "Must: mention the red lamp."),
            entry(8, Role::Assistant, "Part seven is written."),
        ];
        let both = build_memory(Some(accepted), &[], &since, 8192, &calibration).unwrap();
        assert!(both.summary.starts_with(accepted), "{}", both.summary);
        for said in ["red lamp", "Part seven is written."] {
            assert!(both.summary.contains(said), "{}", both.summary);
        }
        assert!(both.pins.iter().any(|pin| pin.text.contains("red lamp")));
        assert!(both.tokens > alone.tokens);
    }

    #[test]
    fn without_a_summary_an_extract_fits_the_window_and_empty_history_gives_none() {
        let calibration = Calibration::cold();
        let said: Vec<Entry> = (0..40)
            .map(|seq| match seq % 2 {
                0 => entry(
                    seq,
                    Role::User,
                    &format!("Write part {seq}. {}", "More of it. ".repeat(50)),
                ),
                _ => entry(
                    seq,
                    Role::Assistant,
                    &format!("Part {seq} is done. {}", "So it is. ".repeat(50)),
                ),
            })
            .collect();
        let extract = build_memory(None, &[], &said, 4096, &calibration).unwrap();
        assert!(extract.summary.contains("Write part 0."), "{}", extract.summary);
        assert!(extract.tokens <= Policy::summary_max_tokens(4096), "{}", extract.tokens);
        assert_eq!(build_memory(None, &[], &[], 4096, &calibration), None);
    }
}
