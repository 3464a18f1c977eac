//! Realistic text: neither so uniform that a database compresses it to nothing, nor pure noise.

const WORDS: [&str; 40] = [
    "harbour",
    "lantern",
    "the",
    "captain",
    "of",
    "invoice",
    "and",
    "quietly",
    "delivers",
    "a",
    "winter",
    "to",
    "rope",
    "margin",
    "in",
    "seven",
    "customers",
    "because",
    "letter",
    "with",
    "copper",
    "north",
    "is",
    "which",
    "draft",
    "on",
    "morning",
    "price",
    "that",
    "bridge",
    "for",
    "second",
    "paper",
    "island",
    "over",
    "garden",
    "at",
    "promise",
    "silver",
    "not",
];

/// Returns about `n_bytes` of words, another text for each `seed`.
pub fn text(seed: u64, n_bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(n_bytes + 16);
    while text.len() < n_bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        text.push(' ');
    }
    text
}
