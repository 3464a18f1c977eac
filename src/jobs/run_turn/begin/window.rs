//! The fit of a call into the model's window, and the attempts to make it fit.

use crate::{
    context::{Calibration, Checkpoint, Manifest, Pressure, manifest::Kind},
    jobs::{
        route::Route,
        run_turn::{
            begin::{make_space::keep_after, outlook::Outlook},
            error::{BeginRefusal, Error},
            load::assignment::Assignment,
        },
    },
};

/// Earlier attempts of this run to begin.
#[derive(Debug, Clone, Copy, Default)]
pub struct EarlierBegins {
    /// Attempts to make space.
    pub n_rooms: u32,
    /// Refusals by the provider because of length; they count more than the estimate.
    pub n_refused: u32,
    /// The provider's count of the call that seemed to need space.
    pub counted: Option<Checkpoint>,
}

impl EarlierBegins {
    pub fn was_refused(self) -> bool {
        self.n_refused > 0
    }

    /// Returns true if the first estimate alone says that space is missing.
    pub fn is_only_estimated(self) -> bool {
        self.n_rooms == 0 && self.n_refused == 0 && self.counted.is_none()
    }

    /// Returns true if space should be made. After a compaction that helps too little, the next one keeps less.
    pub fn needs_space(
        self,
        route: &Route<'_>,
        outlook: &Outlook,
        calibration: &Calibration,
    ) -> bool {
        match self.n_rooms {
            0 => outlook.pressure >= Pressure::Apply,
            n => !fits(route, outlook, calibration) && keep_after(n + 1).is_some(),
        }
    }
}

/// Returns true if the call may fit. A cold estimate is too high, and a learnt factor may come from different text: if
/// the bare weight fits, the provider decides.
fn fits(route: &Route<'_>, outlook: &Outlook, calibration: &Calibration) -> bool {
    let within =
        |tokens: u64| tokens.saturating_add(route.reserve_tokens) <= route.model_window_tokens;
    outlook.pressure < Pressure::Overflow
        || calibration.is_cold()
        || within(outlook.estimated_tokens)
        || within(outlook.assembled.weight.millitokens() / 1000)
}

pub fn check_space(
    Assignment { route, .. }: &Assignment<'_>,
    outlook: &Outlook,
    calibration: &Calibration,
) -> Result<(), Error> {
    if route.provider.refuses_too_long() || fits(route, outlook, calibration) {
        return Ok(());
    }
    let manifest = &outlook.assembled.manifest;
    Err(Error::Refused(BeginRefusal::for_good(format!(
        "the task does not fit: {}; shorten the task, or {}",
        describe_size(manifest, route, outlook.estimated_tokens),
        suggest_settings(manifest),
    ))))
}

/// Describes the size of a call that does not fit, with the parts that settings can shrink.
pub fn describe_size(manifest: &Manifest, route: &Route<'_>, estimated_tokens: u64) -> String {
    format!(
        "the call has about {estimated_tokens} tokens (tools {}, posts of the board {}, attachments {}), and {} of the window of {} tokens are reserved for the answer",
        tokens_of(manifest, Kind::Tools),
        tokens_of(manifest, Kind::Posts),
        tokens_of(manifest, Kind::Attachment),
        route.reserve_tokens,
        route.model_window_tokens,
    )
}

/// Lists the keys of the agent's file that make room in such a call.
pub fn suggest_settings(manifest: &Manifest) -> String {
    let mut advice = String::from(
        "give the agent a larger window (`window_tokens`; on Ollama also `ollama.num_ctx`) or a smaller `reserve_tokens`",
    );
    if tokens_of(manifest, Kind::Posts) > 0 {
        advice.push_str(", show it fewer posts (`history_window`)");
    }
    if tokens_of(manifest, Kind::Tools) > 0 {
        advice.push_str(", grant it fewer `tools`");
    }
    if tokens_of(manifest, Kind::Attachment) > 0 {
        advice.push_str(", give the task fewer or smaller attachments");
    }
    advice
}

fn tokens_of(manifest: &Manifest, kind: Kind) -> u64 {
    let sent = manifest.parts.iter().filter(|part| part.sent && part.kind == kind);
    sent.map(|part| part.tokens).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::manifest::{Part, PartReason};

    #[test]
    fn only_settings_of_parts_that_are_sent_are_suggested() {
        let part =
            |kind, sent| Part { tokens: 100, sent, ..Part::new(kind, None, PartReason::EveryCall) };
        let mut manifest = Manifest::new(Vec::new(), 0);
        manifest.parts = vec![part(Kind::Posts, false)];
        assert!(!suggest_settings(&manifest).contains("history_window"));
        manifest.parts = vec![part(Kind::Posts, true), part(Kind::Posts, true)];
        assert!(suggest_settings(&manifest).ends_with("show it fewer posts (`history_window`)"));
        assert_eq!(tokens_of(&manifest, Kind::Posts), 200);
        manifest.parts.push(part(Kind::Tools, true));
        assert!(suggest_settings(&manifest).ends_with("grant it fewer `tools`"));
    }
}
