//! Estimates compared with a tokeniser that the code under test does not know.

use dalsegno::{
    context::{Calibration, Checkpoint, Entry, assemble, compaction::View},
    transcript::Role,
};

use super::support::{Tokeniser, calling, entry, message, parts, prose, result, seed};

/// Tokenisers of different model families.
const TOKENISERS: [Tokeniser; 4] = [
    Tokeniser { letters: 7, per_han: 1, per_message: 4 },
    Tokeniser { letters: 4, per_han: 2, per_message: 8 },
    Tokeniser { letters: 3, per_han: 3, per_message: 3 },
    Tokeniser { letters: 2, per_han: 1, per_message: 12 },
];

fn turn_texts(language: &str, turn: usize) -> (String, String) {
    match language {
        "prose" => (prose(turn, 3), prose(turn + 1000, 12)),
        "code" => (
            format!("Fix `step_{turn}` please."),
            format!("fn step_{turn}(x: &mut Vec<u64>) -> u64 {{\n    x.push({turn} * 17);\n    x.iter().sum()\n}}\n").repeat(6),
        ),
        "chinese" => (
            "请写第二部分，关于港口的历史。".repeat(1 + turn % 3),
            "港口的历史从古代的商人开始，他们带来了货物和故事。".repeat(4 + turn % 5),
        ),
        _ => {
            let languages = ["prose", "code", "chinese"];
            turn_texts(languages[turn % 3], turn)
        }
    }
}

/// Returns the largest relative errors: from the eleventh turn on, and of the first.
fn errors(tokeniser: Tokeniser, language: &str) -> (f64, f64) {
    let mut calibration = Calibration::cold();
    let mut anchor: Option<Checkpoint> = None;
    let mut entries: Vec<Entry> = Vec::new();
    let (mut first, mut later) = (0.0, 0.0_f64);
    for turn in 0..40 {
        let (prompt, reply) = turn_texts(language, turn);
        let view = View::of(&entries, &[], 0).unwrap();
        let assembled = assemble(&parts(view, &prompt), &seed(), &calibration);
        let projected = calibration.project(anchor.as_ref(), assembled.weight);
        let real_tokens = tokeniser.count_call(&assembled.system, &assembled.messages);
        let error = (projected as f64 - real_tokens as f64) / real_tokens as f64;
        if turn == 0 {
            first = error;
        } else if turn >= 10 {
            later = later.max(error.abs());
        }
        let checkpoint = Checkpoint { weight: assembled.weight, real_tokens };
        calibration.observe(checkpoint);
        anchor = Some(checkpoint);
        let mut add = |message| entries.push(entry(entries.len() as i64 + 1, message));
        add(message(Role::User, &prompt));
        if turn % 4 == 0 {
            add(calling("", &["call"]));
            add(result("call", &prose(turn + 500, 5)));
        }
        add(message(Role::Assistant, &reply));
    }
    (first, later)
}

#[test]
fn after_ten_turns_an_estimate_is_within_ten_per_cent() {
    for tokeniser in TOKENISERS {
        for language in ["prose", "code", "chinese", "mixed"] {
            let (first, later) = errors(tokeniser, language);
            println!(
                "{language:8} {} letters/token: first {:+.1} %, after ten turns at most {:.2} %",
                tokeniser.letters,
                first * 100.0,
                later * 100.0
            );
            assert!(later <= 0.10, "{language}, {} letters: {later}", tokeniser.letters);
        }
    }
}

#[test]
fn a_known_model_needs_no_anchor() {
    for tokeniser in TOKENISERS {
        let mut calibration = Calibration::cold();
        for turn in 0..10 {
            let text = prose(turn, 40);
            let view = View::of(&[], &[], 0).unwrap();
            let assembled = assemble(&parts(view, &text), &seed(), &calibration);
            let real_tokens = tokeniser.count_call(&assembled.system, &assembled.messages);
            calibration.observe(Checkpoint { weight: assembled.weight, real_tokens });
        }
        let text = prose(99, 80);
        let view = View::of(&[], &[], 0).unwrap();
        let assembled = assemble(&parts(view, &text), &seed(), &calibration);
        let real = tokeniser.count_call(&assembled.system, &assembled.messages) as f64;
        let error = (calibration.tokens(assembled.weight) as f64 - real).abs() / real;
        assert!(error <= 0.10, "{} letters: {error}", tokeniser.letters);
    }
}
