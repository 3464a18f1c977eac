//! Facts by extraction: sentences that say `my … is …`. The other ones are what a careless model does, for those who have to notice.

use serde_json::{Value, json};

use super::config::FactsMode;

pub(super) fn write(mode: FactsMode, requests: &[String]) -> String {
    let facts: Vec<Value> = match mode {
        FactsMode::Honest => said(requests),
        FactsMode::NoJson => return "I have noted everything.".to_owned(),
        FactsMode::Invents => {
            let invented = json!({ "request": 1, "attribute": "Mood", "fact": "Is always glad.", "quote": "I am always glad" });
            said(requests).into_iter().chain([invented]).collect()
        }
    };
    json!({ "facts": facts }).to_string()
}

fn said(requests: &[String]) -> Vec<Value> {
    let of_request = |(at, request): (usize, &String)| {
        let sentences = request.split(['.', '!', '?', '\n']).map(str::trim);
        let facts = sentences.filter_map(move |sentence| fact(at + 1, sentence));
        facts.collect::<Vec<_>>()
    };
    requests.iter().enumerate().flat_map(of_request).collect()
}

fn fact(number: usize, sentence: &str) -> Option<Value> {
    let rest = sentence.strip_prefix("My ").or_else(|| sentence.strip_prefix("my "))?;
    let (attribute, value) = rest.split_once(" is ").or_else(|| rest.split_once(" are "))?;
    let text = format!("The {attribute} of the user: {value}.");
    Some(json!({ "request": number, "attribute": attribute, "fact": text, "quote": sentence }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_oneself_is_noted_and_nothing_else() {
        let requests = [
            "Write it. My diet is vegan! What is my name?".to_owned(),
            "My cats are two".to_owned(),
        ];
        let noted: Value = serde_json::from_str(&write(FactsMode::Honest, &requests)).unwrap();
        let texts: Vec<_> =
            noted["facts"].as_array().unwrap().iter().map(|it| &it["fact"]).collect();
        assert_eq!(texts, ["The diet of the user: vegan.", "The cats of the user: two."]);
        assert_eq!(noted["facts"][1]["request"], 2);
    }
}
