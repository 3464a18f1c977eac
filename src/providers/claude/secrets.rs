//! Secrets that no output may contain: credentials, and values of the service's variables in agents' files.
//!
//! The CLI quotes its input, and a tool may print what it was given. All text on its way to people, logs and the database is cleaned here.

use std::borrow::Cow;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

/// Replacement for a secret.
pub(super) const MASK: &str = "[secret]";
/// Minimum size of a secret from a variable: shorter values are common words. Text of this size that was held back is masked, too.
const MIN_BYTES: usize = 8;

#[derive(Debug)]
pub(super) struct Secrets {
    /// Longest first, because one may be part of another.
    all: Vec<SecretString>,
    /// Credentials as JSON writes them. Variables are left out, because they may hold a word that a line of a transcript needs.
    in_json: Vec<SecretString>,
}

/// Filter for text that comes in pieces: a secret may be split between two of them.
#[derive(Debug)]
pub(super) struct SecretFilter<'s> {
    secrets: &'s Secrets,
    /// End of the text so far, which may be the beginning of a secret.
    held_back: String,
}

impl Secrets {
    pub(super) fn new<'a>(
        credentials: impl Iterator<Item = &'a SecretString>,
        variables: &[SecretString],
    ) -> Self {
        let credentials: Vec<SecretString> = credentials.cloned().collect();
        let escaped = |secret: &SecretString| {
            let json = Value::from(secret.expose_secret()).to_string();
            SecretString::from(&json[1..json.len() - 1])
        };
        let in_json = credentials.iter().map(escaped).collect();
        let long = variables.iter().filter(|value| value.expose_secret().len() >= MIN_BYTES);
        let mut all: Vec<SecretString> = credentials.iter().chain(long).cloned().collect();
        all.retain(|secret| !secret.expose_secret().is_empty());
        all.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        Self { all, in_json }
    }

    /// Returns these secrets together with those of a single turn.
    pub(super) fn and(&self, others: &[SecretString]) -> Self {
        let mut both = Self::new(others.iter(), &[]);
        both.all.extend(self.all.iter().cloned());
        both.in_json.extend(self.in_json.iter().cloned());
        both.all.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        both
    }

    pub(super) fn clean_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.texts().filter(|secret| !secret.is_empty()) {
            if text.contains(secret) {
                text = text.replace(secret, MASK);
            }
        }
        text
    }

    /// Cleans a name for a column or a key, which must not contain a NUL.
    pub(super) fn cleaned_name(&self, name: &str) -> String {
        self.clean_text(name).replace('\0', "")
    }

    /// Cleans every text in a value.
    pub(super) fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.clean_text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.clean_value(value)),
            Value::Object(fields) => {
                let cleaned = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    self.clean_value(&mut value);
                    (self.clean_text(&name), value)
                });
                *fields = cleaned.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Removes credentials from lines of JSON.
    pub(super) fn cleaned_lines<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let text = String::from_utf8_lossy(bytes);
        let mut cleaned: Option<String> = None;
        for secret in self.in_json.iter().map(|secret| secret.expose_secret()) {
            let so_far = cleaned.as_deref().unwrap_or(&*text);
            if !secret.is_empty() && so_far.contains(secret) {
                cleaned = Some(so_far.replace(secret, MASK));
            }
        }
        cleaned.map_or(Cow::Borrowed(bytes), |cleaned| Cow::Owned(cleaned.into_bytes()))
    }

    /// Returns the number of bytes at the end that may be the beginning of a secret.
    fn n_doubtful_bytes(&self, text: &str) -> usize {
        let of_one = |secret: &str| {
            let ends = secret.char_indices().map(|(at, _)| at).rev();
            ends.filter(|end| *end > 0).find(|end| text.ends_with(&secret[..*end])).unwrap_or(0)
        };
        self.texts().map(of_one).max().unwrap_or(0)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|secret| secret.expose_secret())
    }
}

impl<'s> SecretFilter<'s> {
    pub(super) fn new(secrets: &'s Secrets) -> Self {
        Self { secrets, held_back: String::new() }
    }

    /// Returns the text that can be shown by now.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut text = std::mem::take(&mut self.held_back);
        text.push_str(piece);
        let mut text = self.secrets.clean_text(&text);
        let n_shown = text.len() - self.secrets.n_doubtful_bytes(&text);
        self.held_back = text.split_off(n_shown);
        text
    }

    /// Returns the held-back text at the end of the stream. A long one is masked, because it may be most of a secret.
    pub(super) fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held_back);
        if rest.len() < MIN_BYTES { rest } else { MASK.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "sk-ant-0123456789";

    fn secrets() -> Secrets {
        let credentials = [SecretString::from(KEY), SecretString::from("with\"quote-and-more")];
        Secrets::new(credentials.iter(), &["board-token-ü".into(), "short".into()])
    }

    #[test]
    fn secrets_are_removed_from_every_text_and_other_text_stays() {
        let secrets = secrets();
        assert_eq!(secrets.clean_text(&format!("a {KEY}b short")), "a [secret]b short");
        let mut value = json!({ KEY: [1, format!("<{KEY}>")], "short": null });
        secrets.clean_value(&mut value);
        assert_eq!(value, json!({ "[secret]": [1, "<[secret]>"], "short": null }));
        let mut nested = json!([{ "a": "board-token-ü" }]);
        secrets.clean_value(&mut nested);
        assert_eq!(nested, json!([{ "a": "[secret]" }]));
    }

    #[test]
    fn lines_lose_credentials_in_their_json_form() {
        let line = json!({ "text": format!("{KEY} with\"quote-and-more board-token-ü") });
        let cleaned = secrets().cleaned_lines(line.to_string().as_bytes()).into_owned();
        let cleaned: Value = serde_json::from_slice(&cleaned).unwrap();
        assert_eq!(cleaned["text"], "[secret] [secret] board-token-ü");
        assert!(matches!(secrets().cleaned_lines(b"{}\n\xff"), Cow::Borrowed(_)));
    }

    #[test]
    fn no_split_of_a_stream_shows_a_secret() {
        let secrets = secrets();
        let text = format!("The key sk-an is not {KEY}, but the board-token-ü! sk-");
        let whole = "The key sk-an is not [secret], but the [secret]! sk-";
        for size in 1..text.chars().count() {
            let (mut veil, mut shown) = (SecretFilter::new(&secrets), String::new());
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(size) {
                shown.push_str(&veil.push(&piece.iter().collect::<String>()));
            }
            shown.push_str(&veil.finish());
            assert_eq!(shown, whole, "chunks of {size}");
        }
        let mut veil = SecretFilter::new(&secrets);
        assert_eq!(veil.push(&KEY[..KEY.len() - 1]), "");
        assert_eq!(veil.finish(), MASK);
    }
}
