//! Language of directions: the actions of the simulation, and how often it takes them.
//!
//! ```text
//! error 503        refused with that status      overflow   as if the prompt did not fit
//! stall            silence until the timeout     cut        half an answer and no end
//! truncate         the prompt silently cut       empty      no answer at all
//! length           breaks off in the middle      counts 40  reports 40 % of the prompt's tokens
//! slow 250         250 ms more                   words 300  an answer of about that many words
//! say TEXT         answers exactly TEXT
//! quote PREFIX     answers with the words of the conversation that begin with PREFIX
//! json VALUE       answers this JSON, also as `json VALUE once`
//! file NAME TEXT   writes this file for the readers of the task; NAME may be a JSON string
//! call NAME JSON   asks for this tool with these arguments, and is asked again with its result
//! also NAME JSON   asks for this one together with the call before it
//! ```
//! Each but `say`, `quote`, `file`, `call` and `also` may end with `once`, `3 times` (the first three calls) or `every 4` (each fourth). Otherwise it always holds.
//! Several calls are made one after the other. `call` may end with `3 times`, which makes three calls. A request that offers no tools is
//! answered at once.

use std::{str::FromStr, time::Duration};

use serde_json::Value;

/// An action of the simulation, and how often it is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) fault: Fault,
    often: FaultCount,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    Status(u16),
    Overflow,
    Stall,
    Cut,
    Truncate,
    Empty,
    Length,
    CountedPercent(u32),
    Slow {
        ms: u64,
    },
    Words(u32),
    Say(String),
    Quote(String),
    /// Like `Say`, for answers that differ from call to call.
    Json(String),
    File(File),
    Call(Call),
}

/// File that the simulation writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) text: String,
}

/// Tool call that the simulation makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Value,
    pub(super) n_times: u32,
    /// True for a call that is made together with the one before.
    pub(super) is_joined: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid directive {directive:?} for the simulated model: {reason}; use for example `error 503 once`"
)]
pub struct Error {
    directive: String,
    reason: String,
}

impl Error {
    pub(super) fn reason(&self) -> &str {
        &self.reason
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultCount {
    Always,
    First(u32),
    Every(u32),
}

impl Direction {
    /// Returns true if it holds for the nth call to which it may apply, counted from 1.
    pub(super) fn holds_at(&self, nth: u32) -> bool {
        match self.often {
            FaultCount::Always => true,
            FaultCount::First(n) => nth <= n,
            FaultCount::Every(n) => nth.is_multiple_of(n),
        }
    }

    pub(super) fn counts(&self) -> bool {
        self.often != FaultCount::Always
    }
}

impl Fault {
    pub(super) fn latency(&self) -> Option<Duration> {
        match self {
            Self::Slow { ms } => Some(Duration::from_millis(*ms)),
            _ => None,
        }
    }

    pub(super) fn counted_percent(&self) -> Option<u32> {
        match self {
            Self::CountedPercent(percent) => Some(*percent),
            _ => None,
        }
    }
}

impl FromStr for Direction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if let Some(words) = text.strip_prefix("say ") {
            let fault = Fault::Say(words.trim().to_owned());
            return Ok(Self { fault, often: FaultCount::Always });
        }
        let wrong = |reason| Error { directive: text.to_owned(), reason };
        if let Some(prefix) = text.strip_prefix("quote ") {
            let fault = Fault::Quote(prefix.trim().to_owned());
            return Ok(Self { fault, often: FaultCount::Always });
        }
        if let Some(answer) = text.strip_prefix("json ") {
            return json_answer(answer).map_err(wrong);
        }
        if let Some(written) = text.strip_prefix("file ") {
            let fault = Fault::File(File::parse(written).map_err(wrong)?);
            return Ok(Self { fault, often: FaultCount::Always });
        }
        for (verb, is_joined) in [("call ", false), ("also ", true)] {
            if let Some(asked) = text.strip_prefix(verb) {
                let fault = Fault::Call(Call::parse(asked, is_joined).map_err(wrong)?);
                return Ok(Self { fault, often: FaultCount::Always });
            }
        }
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let often = take_often(&mut words).map_err(wrong)?;
        Ok(Self { fault: fault(&words).map_err(wrong)?, often })
    }
}

impl File {
    /// Parses `NAME TEXT`. The error is the reason.
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if !text.starts_with('"') {
            let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            return Ok(Self { name: name.to_owned(), text: rest.trim().to_owned() });
        }
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = values.next().transpose().map_err(|error| format!("the name: {error}"))?;
        let rest = text.get(values.byte_offset()..).unwrap_or_default().trim();
        Ok(Self { name: name.unwrap_or_default(), text: rest.to_owned() })
    }
}

impl Call {
    /// Parses `NAME`, `NAME JSON` or `NAME JSON 3 times`. The error is the reason.
    fn parse(text: &str, is_joined: bool) -> Result<Self, String> {
        let text = text.trim();
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let arguments = match values.next() {
            Some(value) => value.map_err(|error| {
                format!("the arguments of `{name}` are not valid JSON: {error}")
            })?,
            None => Value::Object(serde_json::Map::new()),
        };
        let after = rest.get(values.byte_offset()..).unwrap_or_default().trim();
        let words: Vec<&str> = after.split_whitespace().collect();
        let n_times = match words.as_slice() {
            [] => 1,
            [n, "times"] if !is_joined => number(n, "before `times`")?,
            _ => return Err(format!("`{after}` may not follow the arguments of `{name}`")),
        };
        Ok(Self { name: name.to_owned(), arguments, n_times, is_joined })
    }
}

/// Parses `VALUE` or `VALUE once`. The error is the reason.
fn json_answer(text: &str) -> Result<Direction, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value =
        values.next().transpose().map_err(|error| format!("it is not valid JSON: {error}"))?;
    let value = value.ok_or("the JSON after `json` is missing")?;
    let mut words: Vec<&str> =
        text.get(values.byte_offset()..).unwrap_or_default().split_whitespace().collect();
    let often = take_often(&mut words)?;
    match words.is_empty() {
        true => Ok(Direction { fault: Fault::Json(value.to_string()), often }),
        false => Err(format!("`{}` may not follow the JSON", words.join(" "))),
    }
}

/// Takes the frequency from the end of the words. The error is the reason.
fn take_often(words: &mut Vec<&str>) -> Result<FaultCount, String> {
    let (n_words, often) = match words.as_slice() {
        [.., "once"] => (1, FaultCount::First(1)),
        [.., n, "times"] => (2, FaultCount::First(number(n, "before `times`")?)),
        [.., "every", n] => match number::<u32>(n, "after `every`")? {
            0 => return Err("the number after `every` has to be above 0".to_owned()),
            n => (2, FaultCount::Every(n)),
        },
        _ => (0, FaultCount::Always),
    };
    words.truncate(words.len() - n_words);
    Ok(often)
}

fn fault(words: &[&str]) -> Result<Fault, String> {
    Ok(match words {
        ["error", status] => match number::<u16>(status, "after `error`")? {
            status @ 400..600 => Fault::Status(status),
            other => return Err(format!("the status {other} is not between 400 and 599")),
        },
        ["overflow"] => Fault::Overflow,
        ["stall"] => Fault::Stall,
        ["cut"] => Fault::Cut,
        ["truncate"] => Fault::Truncate,
        ["empty"] => Fault::Empty,
        ["length"] => Fault::Length,
        ["counts", percent] => Fault::CountedPercent(number(percent, "after `counts`")?),
        ["slow", ms] => Fault::Slow { ms: number(ms, "after `slow`")? },
        ["words", n] => Fault::Words(number(n, "after `words`")?),
        [] => return Err("it names no action".to_owned()),
        ["call" | "also"] => return Err("the name of the tool is missing".to_owned()),
        ["file"] => return Err("the name of the file is missing".to_owned()),
        [verb @ ("error" | "counts" | "slow" | "words"), ..] => {
            return Err(format!("`{verb}` takes one number"));
        }
        _ => return Err(format!("there is no action `{}`", words.join(" "))),
    })
}

fn number<T: FromStr>(text: &str, place: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` {place} is not a valid number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_name_an_effect_and_a_count() {
        let holds = |text: &str| {
            let direction: Direction = text.parse().unwrap();
            (1..=4).filter(|nth| direction.holds_at(*nth)).collect::<Vec<_>>()
        };
        assert_eq!(holds("error 503 once"), [1]);
        assert_eq!(holds(" stall  2 times "), [1, 2]);
        assert_eq!(holds("cut every 2"), [2, 4]);
        assert_eq!(holds("slow 10"), [1, 2, 3, 4]);
        let json: Direction = "json {\"a\": [1]} 2 times".parse().unwrap();
        assert_eq!(json.fault, Fault::Json("{\"a\":[1]}".to_owned()));
        assert!(json.holds_at(2) && !json.holds_at(3));
        let say: Direction = "say it once".parse().unwrap();
        assert_eq!(say.fault, Fault::Say("it once".to_owned()));
        let quote: Direction = "quote PIER- ".parse().unwrap();
        assert_eq!(quote.fault, Fault::Quote("PIER-".to_owned()));
    }

    #[test]
    fn a_directed_call_has_a_name_and_arguments_and_may_repeat() {
        let call = |text: &str| match text.parse::<Direction>().map(|direction| direction.fault) {
            Ok(Fault::Call(call)) => Some((call.name, call.arguments.to_string(), call.n_times)),
            _ => None,
        };
        let expected =
            |name: &str, arguments: &str, n| Some((name.to_owned(), arguments.to_owned(), n));
        assert_eq!(call("call status"), expected("status", "{}", 1));
        assert_eq!(call("call post {\"a\": [1, 2]}"), expected("post", "{\"a\":[1,2]}", 1));
        assert_eq!(call("call post {} 3 times"), expected("post", "{}", 3));
        assert_eq!(call("also post \"odd\""), expected("post", "\"odd\"", 1));
        for wrong in ["call ", "call post {", "call post {} often", "also post {} 2 times"] {
            assert_eq!(call(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_directed_file_has_a_name_and_a_text() {
        let file = |text: &str| match text.parse::<Direction>().map(|direction| direction.fault) {
            Ok(Fault::File(file)) => Some((file.name, file.text)),
            _ => None,
        };
        let expected = |name: &str, text: &str| Some((name.to_owned(), text.to_owned()));
        assert_eq!(file("file a.txt Two words. "), expected("a.txt", "Two words."));
        assert_eq!(file("file a.txt"), expected("a.txt", ""));
        assert_eq!(file("file \"a b\\n\" text"), expected("a b\n", "text"));
        assert_eq!(file("file "), None);
        assert_eq!(file("file \"open"), None);
    }

    #[test]
    fn invalid_directions_are_refused() {
        for text in [
            "json ",
            "json {",
            "json {} often",
            "",
            "error",
            "error 200",
            "error x",
            "cut every 0",
            "explode",
            "stall x times",
        ] {
            assert!(text.parse::<Direction>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_error_of_an_invalid_direction_has_the_reason() {
        let reason = |text: &str| match text.parse::<Direction>() {
            Err(error) => error.reason().to_owned(),
            Ok(direction) => panic!("{direction:?}"),
        };
        assert_eq!(reason(""), "it names no action");
        assert_eq!(reason("explode now"), "there is no action `explode now`");
        assert_eq!(reason("error"), "`error` takes one number");
        assert_eq!(reason("error 200"), "the status 200 is not between 400 and 599");
        assert_eq!(reason("stall x times"), "`x` before `times` is not a valid number");
        assert_eq!(reason("cut every 0"), "the number after `every` has to be above 0");
        assert_eq!(reason("call "), "the name of the tool is missing");
        assert!(reason("call post {").starts_with("the arguments of `post` are not valid JSON: "));
        assert_eq!(reason("call post {} often"), "`often` may not follow the arguments of `post`");
    }
}
