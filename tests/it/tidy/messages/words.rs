//! Words and shapes that no message has.

/// A word, and the one to write instead.
const WORDS: &[(&str, &str)] = &[
    ("whoever", "the caller, the worker, the agent"),
    ("nobody", "the subject that does not"),
    ("somebody", "the subject"),
    ("whatever", "any, or a list"),
    ("whichever", "any, or a list"),
    ("wherever", "the places"),
    ("no more than", "at most"),
    ("burned", "used up"),
    ("anew", "again"),
    ("rests", "is paused"),
    ("look whether", "check whether"),
    ("see whether", "check whether"),
    ("write down", "record"),
    ("put itself off", "snoozed"),
    ("did you mean that one", "did you mean"),
    ("purge", "cleanup"),
    ("login", "credential"),
    ("logins", "credentials"),
    ("workflow", "flow template"),
    ("workflows", "flow templates"),
];

/// Words with which no doc comment begins.
pub const NO_TITLE: &[&str] = &["What", "Whether", "Who", "How", "Whose", "Which"];

/// Returns what is wrong with a text. Names in backticks are not words.
pub fn ruled_out(text: &str) -> Vec<String> {
    let outside: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let words = format!(" {} ", normalised(&outside));
    let mut wrong: Vec<String> = WORDS
        .iter()
        .filter(|(word, _)| words.contains(&format!(" {word} ")))
        .map(|(word, instead)| format!("write {instead} instead of `{word}`"))
        .collect();
    for shape in [" is no ", " are no "] {
        let mut before = words.as_str();
        while let Some(at) = before.rfind(shape) {
            let (head, tail) = before.split_at(at);
            if !head.ends_with(" there") && !tail[shape.len()..].starts_with("longer ") {
                wrong.push(format!("say what is, not `{}…`", shape.trim_start()));
            }
            before = &before[..at];
        }
    }
    wrong
}

/// Returns the words in lower case, with single blanks between them.
fn normalised(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '`').filter(|it| !it.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

#[test]
fn words_and_shapes_are_found() {
    assert_eq!(ruled_out("Whoever asks, and nobody else").len(), 2);
    assert_eq!(ruled_out("the body is no JSON").len(), 1);
    assert_eq!(ruled_out("one is no time, others are no lists").len(), 2);
    for fine in ["there is no task {0}", "it is no longer on the queue", "the user `nobody`"] {
        assert_eq!(ruled_out(fine), [""; 0], "{fine}");
    }
}
