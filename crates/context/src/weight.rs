//! The weight of a text, before any model has counted it.
//!
//! A weight is a model-independent guess in thousandths of a token, made from bytes alone. The guess only has
//! to keep the *proportions* between scripts and kinds of text; [`super::calibration`] learns each
//! model's factor from real counts.

use std::{iter::Sum, ops::Add};

use serde::{Deserialize, Serialize};

use crate::transcript::{Message, Role, ToolSpec};

/// Role markers and separators that a chat template puts around every message.
const MESSAGE_OVERHEAD: u64 = 4_000;
/// The fenced element in which all texts except the model's own are sent.
const ELEMENT_OVERHEAD: u64 = 13_000;

/// Each byte of signed thinking.
const THINKING_BYTE: u64 = 220;

/// An unbroken run this long is not a word: base64, hex and the like cost far more per character.
const OPAQUE_RUN_BYTES: u32 = 24;
const OPAQUE_SURCHARGE: u64 = 300;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Weight(u64);

impl Weight {
    pub const ZERO: Self = Self(0);

    pub fn of_text(text: &str) -> Self {
        let mut total = 0_u64;
        let mut run_bytes = 0_u32;
        for &byte in text.as_bytes() {
            total += u64::from(BYTE_COSTS[byte as usize]);
            run_bytes = if byte.is_ascii_alphanumeric() { run_bytes + 1 } else { 0 };
            if run_bytes > OPAQUE_RUN_BYTES {
                total += OPAQUE_SURCHARGE;
            }
        }
        Self(total)
    }

    pub fn of_message(message: &Message) -> Self {
        let calls: Self = message
            .tool_calls
            .iter()
            .map(|call| {
                let thinking = call.thinking.as_ref().map_or(Self::ZERO, Self::of_thinking);
                let arguments = Self::of_text(&call.arguments.to_string());
                Self::of_text(&call.name) + arguments + thinking + Self(8_000)
            })
            .sum();
        let element = match message.role {
            Role::Assistant => Self::ZERO,
            Role::System | Role::User | Role::Tool | Role::Notice | Role::Posts => {
                Self(ELEMENT_OVERHEAD)
            }
        };
        Self::of_text(&message.text) + calls + element + Self(MESSAGE_OVERHEAD)
    }

    /// Returns the weight of signed thinking. The signature is no text for the model, but as long as the whole thinking that it stands for.
    fn of_thinking(thinking: &serde_json::Value) -> Self {
        let n_bytes = u64::try_from(thinking.to_string().len()).unwrap_or(u64::MAX);
        Self(n_bytes.saturating_mul(THINKING_BYTE))
    }

    /// Returns the weight of a user's text as the message that it is sent as.
    pub fn of_user_text(text: &str) -> Self {
        Self::of_text(text) + Self(ELEMENT_OVERHEAD + MESSAGE_OVERHEAD)
    }

    /// Returns the weight of a tool as described in the prompt.
    pub fn of_tool(tool: &ToolSpec) -> Self {
        let ToolSpec { name, description, input_schema } = tool;
        let texts = [name, description, &input_schema.to_string()].map(|text| Self::of_text(text));
        texts.into_iter().sum::<Self>() + Self(8_000)
    }

    pub fn from_millitokens(millitokens: u64) -> Self {
        Self(millitokens)
    }

    pub fn millitokens(self) -> u64 {
        self.0
    }

    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Weight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Self::ZERO, Add::add)
    }
}

static BYTE_COSTS: [u16; 256] = byte_costs();

/// Costs per byte. The first byte of a UTF-8 sequence identifies the script well enough and pays for the whole
/// character; continuation bytes cost nothing.
const fn byte_costs() -> [u16; 256] {
    let mut costs = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        costs[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => 220,
            b'0'..=b'9' => 450,
            b' ' => 60,
            b'\n' | b'\t' => 500,
            0x21..=0x7e => 600,
            0x00..=0x1f | 0x7f => 1_000,
            0x80..=0xbf => 0,
            // Latin with marks, Greek, Cyrillic, Hebrew, Arabic.
            0xc0..=0xdf => 450,
            // Indic scripts, Thai, Georgian, typographic punctuation.
            0xe0..=0xe2 => 800,
            // Kana, Han, Hangul, full-width forms.
            0xe3..=0xef => 1_000,
            // Emoji and rare Han.
            0xf0..=0xff => 2_200,
        };
        byte += 1;
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> u64 {
        Weight::of_text(text).millitokens() / 1000
    }

    #[test]
    fn common_scripts_weigh_about_as_much_as_in_tokenisers() {
        let english = "The campaign begins with a short article about the history of the harbour. ";
        assert!((14..=20).contains(&tokens(english)), "{}", tokens(english));
        assert!((9..=13).contains(&tokens("港の歴史についての短い")));
        assert!(tokens(&"f3a9".repeat(32)) > 60);
        assert_eq!(tokens(""), 0);
    }
}
