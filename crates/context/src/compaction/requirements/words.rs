//! Normalises the words of a sentence for comparison with lists.

/// Returns lower case, one blank around each word, no punctuation but `'`, `-` and `%` within words: ` don't use it `.
pub(super) fn normalised(sentence: &str) -> String {
    let mut out = String::with_capacity(sentence.len() + 2);
    out.push(' ');
    for character in sentence.chars() {
        match character {
            '’' | '‘' | 'ʼ' => out.push('\''),
            '\'' | '-' | '%' => out.push(character),
            _ if character.is_alphanumeric() => out.extend(character.to_lowercase()),
            _ if out.ends_with(' ') => {}
            _ => out.push(' '),
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}
