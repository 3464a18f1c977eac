//! An embedding model that knows a few words: those of one line mean about the same.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

/// How it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Embeds {
    #[default]
    Well,
    /// The model was never pulled.
    Missing,
    /// Accepts the call and sends no head.
    Hangs,
    /// Breaks at every text.
    Breaks,
    /// Needs too long for more than so many texts at once.
    Slow(usize),
    /// Not in memory. Loaded when the test says so, for whoever has not hung up by then.
    Cold,
}

/// A text with this word is refused.
pub const REFUSED: &str = "unspeakable";
/// And at one with this word the server breaks.
pub const BREAKING: &str = "unbearable";

const SAME: [&[&str]; 5] = [
    &["boat", "boats", "ship", "ships", "vessel", "vessels", "ferry"],
    &["cost", "costs", "price", "prices", "fare", "expensive"],
    &["vegetarian", "meat", "eats", "eat", "diet", "menu"],
    &["harbour", "port", "quay"],
    &["night", "nights", "evening", "evenings"],
];
/// Other words are as near to each other as chance has it.
const N_OTHERS: usize = 64;
const OTHER_WEIGHT: f32 = 0.2;

/// The answer, or the status and the words of there being none.
pub fn embed(body: &Value) -> Result<Value, (u16, Value)> {
    let texts = body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let texts: Vec<&str> = texts.collect();
    let has = |word: &str| texts.iter().any(|text| text.contains(word));
    if has(REFUSED) {
        return Err((400, json!({ "error": "input cannot be embedded" })));
    }
    if has(BREAKING) {
        return Err((500, json!({ "error": "json: unsupported value: NaN" })));
    }
    let vectors: Vec<Vec<f32>> = texts.into_iter().map(vector).collect();
    Ok(json!({ "model": body["model"], "embeddings": vectors, "total_duration": 1 }))
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; SAME.len() + N_OTHERS];
    let text = text.to_lowercase();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match SAME.iter().position(|same| same.contains(&word)) {
            Some(at) => vector[at] += 1.0,
            None => {
                let mut hasher = DefaultHasher::new();
                word.hash(&mut hasher);
                let at = usize::try_from(hasher.finish() % N_OTHERS as u64).unwrap();
                vector[SAME.len() + at] += OTHER_WEIGHT;
            }
        }
    }
    vector
}
