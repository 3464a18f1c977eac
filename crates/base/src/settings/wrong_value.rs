//! The text for a value of the wrong type, without Rust's names of types.

/// Rust's names of types at the end of serde's messages, and their meaning.
const EXPECTED: [(&str, &str); 14] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number of 0 or more"),
    ("usize", "a whole number of 0 or more"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a string", "text in quotes"),
    ("a sequence", "a list in brackets"),
    ("path string", "text in quotes"),
];

/// Translates a message of serde. Its expected type comes last, behind the quoted value.
pub(super) fn describe(error: &str) -> String {
    let translated = error.rsplit_once(", expected ").and_then(|(found, expected)| {
        let (_, words) = EXPECTED.iter().find(|(name, _)| *name == expected)?;
        Some(format!("{found}, expected {words}"))
    });
    translated.unwrap_or_else(|| error.to_owned())
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn said<T: DeserializeOwned>(value: Value) -> String {
        describe(&serde_json::from_value::<T>(value).err().unwrap().to_string())
    }

    #[test]
    fn types_of_rust_are_told_in_words() {
        let words = said::<u32>(json!("many"));
        assert!(words.ends_with("expected a whole number from 0 to 4294967295"), "{words}");
        assert!(said::<u32>(json!(-1)).ends_with("from 0 to 4294967295"));
        assert!(said::<u64>(json!(true)).ends_with("expected a whole number of 0 or more"));
        assert!(said::<f64>(json!("x")).ends_with("expected a number"));
        assert!(said::<bool>(json!(1)).ends_with("expected true or false"));
        assert!(said::<Vec<String>>(json!(1)).ends_with("expected a list in brackets"));
        // The value is quoted as it is.
        let quoted = said::<u32>(json!("a, expected u32"));
        assert!(quoted.contains("\"a, expected u32\""), "{quoted}");
        assert_eq!(describe("missing field `a`"), "missing field `a`");
    }
}
