//! Facts by extraction: sentences of the form `my … is …`. The other modes imitate a careless model, for the code that has to notice.

use serde_json::{Value, json};

use super::config::FactsMode;

/// Wording of a fact: its name and its statement.
type FactWording = (&'static str, &'static str);

/// Statement of users about themselves.
struct UserStatement<'a> {
    /// Number of the request that contains it, from 1.
    request: usize,
    sentence: &'a str,
    about: &'a str,
    value: &'a str,
}

const PLAIN: FactWording = ("{about}", "The {about} of the user: {value}.");
const WORDINGS: [FactWording; 4] = [
    PLAIN,
    ("Kind of {about}", "Says that {value} is what the {about} is."),
    ("{about} of theirs", "{value}: that is their {about}."),
    ("Their {about}", "About the {about}, they want it {value}."),
];

/// Writes the answer. `prompt` is the text that the model is shown.
pub(super) fn write(mode: FactsMode, requests: &[String], prompt: &str) -> String {
    let plain = || said(requests).iter().map(|said| said.in_words(PLAIN)).collect::<Vec<_>>();
    let facts: Vec<Value> = match mode {
        FactsMode::Honest => plain(),
        FactsMode::NoJson => return "I have noted everything.".to_owned(),
        FactsMode::Invents => {
            let invented = json!({ "request": 1, "attribute": "Mood", "fact": "Is always glad.", "quote": "I am always glad" });
            plain().into_iter().chain([invented]).collect()
        }
        FactsMode::Rephrases => rephrased(requests, known(prompt)),
    };
    json!({ "facts": facts }).to_string()
}

/// Words the facts in a way that depends on the requests: the same ones get the same answer.
fn rephrased(requests: &[String], known: &str) -> Vec<Value> {
    let known = known.to_lowercase();
    let n_bytes: usize = requests.iter().map(String::len).sum();
    let wording = WORDINGS[n_bytes % WORDINGS.len()];
    let news =
        said(requests).into_iter().filter(|said| !known.contains(&said.value.to_lowercase()));
    news.map(|said| said.in_words(wording)).collect()
}

/// Returns the facts that the prompt lists as known.
fn known(prompt: &str) -> &str {
    let behind = prompt.split_once("<known ").map_or("", |(_, behind)| behind);
    behind.split_once("</known>").map_or("", |(known, _)| known)
}

fn said(requests: &[String]) -> Vec<UserStatement<'_>> {
    requests.iter().enumerate().flat_map(|(at, request)| of(at + 1, request)).collect()
}

fn of(request: usize, text: &str) -> Vec<UserStatement<'_>> {
    let sentences = text.split(['.', '!', '?', '\n']).map(str::trim);
    let said = sentences.filter_map(|sentence| {
        let rest = sentence.strip_prefix("My ").or_else(|| sentence.strip_prefix("my "))?;
        let (about, value) = rest.split_once(" is ").or_else(|| rest.split_once(" are "))?;
        Some(UserStatement { request, sentence, about, value: value.trim() })
    });
    said.collect()
}

impl UserStatement<'_> {
    fn in_words(&self, (name, words): FactWording) -> Value {
        let fill =
            |words: &str| words.replace("{about}", self.about).replace("{value}", self.value);
        json!({ "request": self.request, "attribute": fill(name), "fact": fill(words), "quote": self.sentence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(mode: FactsMode, requests: &[String], prompt: &str) -> Vec<String> {
        let noted: Value = serde_json::from_str(&write(mode, requests, prompt)).unwrap();
        let noted = noted["facts"].as_array().unwrap();
        noted.iter().map(|it| it["fact"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn only_first_person_statements_are_noted() {
        let requests = [
            "Write it. My diet is vegan! What is my name?".to_owned(),
            "My cats are two".to_owned(),
        ];
        let noted: Value = serde_json::from_str(&write(FactsMode::Honest, &requests, "")).unwrap();
        assert_eq!(
            texts(FactsMode::Honest, &requests, ""),
            ["The diet of the user: vegan.", "The cats of the user: two."]
        );
        assert_eq!(noted["facts"][1]["request"], 2);
    }

    #[test]
    fn the_rephrasing_mode_changes_the_wording_and_omits_known_facts() {
        let said = |text: &str, prompt: &str| {
            texts(FactsMode::Rephrases, &[text.to_owned()], prompt).join("")
        };
        assert_ne!(said("My diet is vegan.", ""), said("My diet is vegan. ", ""));
        let prompt = "<known fence=\"0\"><fact about=\"diet\">Eats Vegan.</fact></known>";
        assert_eq!(said("My diet is vegan.", prompt), "");
        assert!(said("My city is Porto.", prompt).contains("Porto"));
    }
}
