//! Answer of the simulation in a turn: text about the task's own words, always the same for the same request.
//!
//! The prose does not matter in a demo. The answer shows that it is simulated, follows on from the one before, and tells how much of the
//! conversation the model was shown.

use std::sync::Arc;

use super::{board, calls, fault::Fault, sample, script};
use crate::{
    providers::Request,
    transcript::{Message, Role},
};

/// First line of every answer.
const LABEL: &str = "(Simulated answer: no model was called.)";
const LONGEST_HEADLINE_WORDS: usize = 16;
const MAX_TOPICS: usize = 8;
/// Words that are repeated of each post, enough to recognise it.
const WORDS_OF_POST: usize = 5;

const SENTENCES: [&str; 14] = [
    "{A} is where this begins, and {b} is what the reader should keep.",
    "Three questions decide about {a}: what it costs, whom it serves, and how it ends.",
    "Seen from a distance {a} looks simple; up close, {b} does most of the work.",
    "Nobody asks for {a} until {b} is missing.",
    "The first draft says {a}, the second one shows it.",
    "Where {a} meets {b}, one example is worth more than ten claims.",
    "Put {a} first, keep {b} short, and leave the rest for later.",
    "{A} does not need another promise; it needs a number, a name and a date.",
    "What the client calls {a}, the audience calls {b}.",
    "If only one line survives, let it be the one about {a}.",
    "{A} repeats itself on purpose: that is how {b} is remembered.",
    "There is a quiet version of {a}, and it is the better one.",
    "Readers forgive a plain {a}; they do not forgive a late {b}.",
    "The next part takes up {b} and leaves {a} as it is.",
];

/// Words that tell nothing about the topic of a text.
const COMMON: [&str; 26] = [
    "about", "after", "again", "before", "being", "could", "every", "first", "other", "please",
    "shall", "should", "their", "there", "these", "thing", "those", "three", "under", "until",
    "where", "which", "while", "would", "write", "yours",
];

const IMPERATIVES: [&str; 8] =
    ["write", "draft", "make", "create", "please", "prepare", "give", "produce"];

pub(super) fn write(request: &Request, prompt_tokens: u32, faults: &[Fault]) -> String {
    let said = faults.iter().find_map(|fault| match fault {
        Fault::Say(text) | Fault::Json(text) => Some(text.clone()),
        Fault::Quote(prefix) => Some(quote(request, prefix)),
        _ => None,
    });
    let matching = || request.options.format.as_ref().map(|schema| sample::of(schema).to_string());
    said.or_else(matching).unwrap_or_else(|| write_about(request, prompt_tokens, faults))
}

fn quote(request: &Request, prefix: &str) -> String {
    let texts = request.messages.iter().map(|message| message.text.as_str());
    let words = words_with_prefix(texts, prefix);
    format!("{LABEL}\n\nThe conversation has {}: {}.", words.len(), words.join(", "))
}

/// Returns the words of texts that begin with a prefix and go on after it, each once, in order. A word consists of letters, digits and
/// hyphens.
pub fn words_with_prefix<'a>(texts: impl Iterator<Item = &'a str>, prefix: &str) -> Vec<&'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut words = Vec::new();
    for word in texts.flat_map(|text| text.split(|c: char| !is_part(c))) {
        if word.len() > prefix.len() && word.starts_with(prefix) && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn write_about(request: &Request, prompt_tokens: u32, faults: &[Fault]) -> String {
    let digest = digest(request);
    let mut dice = Dice(digest | 1);
    let prompt = script::prompt(&request.messages).map(|at| &request.messages[at]);
    let prompt = prompt.map(|prompt| prompt.text.as_str()).unwrap_or_default();
    let asked = asked(prompt);
    let task = match board::own_line(&asked, &request.system) {
        Some(own) => without_directives(own),
        None => first_line(&asked),
    };
    let wanted = faults.iter().find_map(|fault| match fault {
        Fault::Words(n) => usize::try_from(*n).ok(),
        _ => None,
    });
    let n_words = wanted.unwrap_or_else(|| 50 + dice.below(40));
    let body = body(&topics(&task, &request.system), n_words, &mut dice);
    let follows = previous_headline(&request.messages);
    let follows = follows.map(|line| format!("Follows on from: {line}\n\n")).unwrap_or_default();
    let shown = board::shown(prompt, headline_of_post);
    let shown = match shown.is_empty() {
        true => String::new(),
        false => format!("On the board: {}.\n\n", shown.join("; ")),
    };
    let handed_on: String =
        board::handed_on(&asked).iter().map(|line| format!("{line}\n\n")).collect();
    let used = calls::used(&request.messages);
    let used = match used.is_empty() {
        true => String::new(),
        false => format!("Tools used: {}.\n\n", used.join(", ")),
    };
    let n_messages = request.messages.len();
    format!(
        "{LABEL}\n\n{}\n\n{shown}{follows}{body}\n\n{handed_on}{used}\
         Context: {n_messages} messages, {prompt_tokens} tokens, digest {:08x}.",
        headline(&task),
        digest >> 32,
    )
}

/// Hashes everything that the model is shown. The standard hashes do not promise to stay the same.
fn digest(request: &Request) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    digest.add(&request.model);
    digest.add(&request.system);
    for message in &request.messages {
        digest.add(&format!("{:?}", message.role));
        digest.add(&message.text);
        for call in &message.tool_calls {
            digest.add(&call.name);
            digest.add(&call.arguments.to_string());
        }
    }
    digest.0
}

/// FNV-1a's step, taken for eight bytes at once, with its high bits folded down: a multiplication alone carries nothing
/// downwards.
struct Digest(u64);

impl Digest {
    fn add(&mut self, text: &str) {
        // The length in front keeps "ab","c" and "a","bc" apart.
        self.step(text.len() as u64);
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        for word in words {
            self.step(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.step(u64::from_le_bytes(last));
    }

    fn step(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Returns the request in a prompt: its last task element, or else the whole prompt. Fenced elements before the request are cut off.
fn asked(prompt: &str) -> String {
    let asked = task_element(prompt).unwrap_or_else(|| prompt.to_owned());
    let mut lines: Vec<&str> = asked.lines().map(str::trim).collect();
    if let Some(fence) = lines.iter().rposition(|line| line.starts_with("</")) {
        lines.drain(..=fence);
    }
    lines.join("\n")
}

/// Returns the first line that has text besides directions.
fn first_line(asked: &str) -> String {
    let first = asked.lines().map(without_directives).find(|line| !line.is_empty());
    first.unwrap_or_default()
}

/// Returns the first words of a post. The simulation's own posts begin with its label, which is skipped.
fn headline_of_post(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && *line != LABEL).unwrap_or_default();
    first.split_whitespace().take(WORDS_OF_POST).collect::<Vec<_>>().join(" ")
}

/// Returns the text of the last task element. Foreign text is escaped in a prompt, so everything that looks like a tag is one.
fn task_element(text: &str) -> Option<String> {
    let (_, element) = text.rsplit_once("<task ")?;
    let (inside, _) = element.split_once('>')?.1.split_once("</task>")?;
    Some(script::plain(inside))
}

fn without_directives(line: &str) -> String {
    let mut parts = line.split("[[sim:");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once("]]").map_or("", |(_, after)| after));
    }
    kept.trim().to_owned()
}

fn headline(task: &str) -> String {
    let words = task.split_whitespace();
    let words = words.skip_while(|word| IMPERATIVES.contains(&word.to_lowercase().as_str()));
    let words: Vec<&str> = words.take(LONGEST_HEADLINE_WORDS).collect();
    match words.is_empty() {
        true => "Untitled".to_owned(),
        false => capitalised(words.join(" ").trim_end_matches(['.', ',', ':', ';'])),
    }
}

/// Returns the headline of the last answer in view, if the simulation wrote it.
fn previous_headline(messages: &[Arc<Message>]) -> Option<&str> {
    let last = messages.iter().rfind(|message| message.role == Role::Assistant)?;
    let after_label = last.text.strip_prefix(LABEL)?;
    after_label.lines().find(|line| !line.is_empty())
}

/// Returns words that the task, or else the system prompt, is about.
fn topics(task: &str, system: &str) -> Vec<String> {
    let mut topics: Vec<String> = Vec::new();
    for word in task.split(|c: char| !c.is_alphabetic()).chain(system.split_whitespace()) {
        let word = word.to_lowercase();
        let tells = word.chars().count() > 4 && word.chars().all(char::is_alphabetic);
        if tells && !COMMON.contains(&word.as_str()) && !topics.contains(&word) {
            topics.push(word);
        }
        if topics.len() == MAX_TOPICS {
            break;
        }
    }
    let fallback = ["the task", "the answer"].map(str::to_owned);
    topics.extend(fallback.into_iter().skip(topics.len().min(2)));
    topics
}

fn body(topics: &[String], n_words: usize, dice: &mut Dice) -> String {
    let mut text = String::new();
    let mut n_written = 0;
    let mut n_sentences = dice.below(SENTENCES.len());
    while n_written < n_words {
        // Steps through all of them before one comes again; 5 and 14 have no common divisor.
        n_sentences += 5;
        let first = dice.below(topics.len());
        let second = (first + 1 + dice.below(topics.len() - 1)) % topics.len();
        let sentence = SENTENCES[n_sentences % SENTENCES.len()]
            .replace("{A}", &capitalised(&topics[first]))
            .replace("{a}", &topics[first])
            .replace("{b}", &topics[second]);
        n_written += sentence.split(' ').count();
        text.push_str(if text.is_empty() { "" } else { " " });
        text.push_str(&sentence);
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Xorshift; its seed must not be 0.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % n.max(1)
    }
}
