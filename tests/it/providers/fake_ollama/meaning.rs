//! A fake embedding model that knows a few words: those of one line have similar vectors.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

/// Behaviour of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Embeds {
    #[default]
    Well,
    /// The model is not installed.
    Missing,
    /// Accepts the call and sends no head.
    Hangs,
    /// Crashes at each text.
    Breaks,
    /// Too slow for more texts at once than this number.
    Slow(usize),
    /// Not in memory. The test decides when it is loaded, for clients that are still connected.
    Cold,
}

/// Word whose texts are refused.
pub const REFUSED: &str = "unspeakable";
/// Word whose texts crash the server.
pub const BREAKING: &str = "unbearable";

const SAME: [&[&str]; 5] = [
    &["boat", "boats", "ship", "ships", "vessel", "vessels", "ferry"],
    &["cost", "costs", "price", "prices", "fare", "expensive"],
    &["vegetarian", "meat", "eats", "eat", "diet", "menu"],
    &["harbour", "port", "quay"],
    &["night", "nights", "evening", "evenings"],
];
/// Other words have random similarity.
const N_OTHERS: usize = 64;
const OTHER_WEIGHT: f32 = 0.2;

/// Returns the answer, or status and body of the error.
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
