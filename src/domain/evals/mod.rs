//! Evals: prompts for variants of an agent, with checks of the answers.
//!
//! An eval is a file. Its runs are tasks: their metadata names the eval, the run, the variant and the case. The results of their checks are stored
//! beside them (`results.rs`), so that they can be read without the file.

mod answer;
mod check;
mod error;
mod judge;
mod report;
mod results;

use std::{collections::HashSet, fmt, io};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub use self::{
    answer::{Answer, AnswerSource, FailedAnswer},
    check::Check,
    error::{Error, RecordError},
    judge::{Verdict, judge_prompt, rubric_key},
    report::{ReportedRun, RunReport, Totals, VariantReport},
    results::{
        AnswerResult, EvalRun, EvalRunFilter, NewEvalRun, VariantResult, answers_of, list_runs,
        record,
    },
};
use super::limits::{
    LimitEffect::{Refused, Sentence},
    LimitEntry,
};
use crate::context::Digest;

/// Maximum repetitions of a case.
const MAX_TIMES: u32 = 20;
/// Maximum number of tasks of a run, without those of the judge.
const MAX_TASKS: usize = 2_000;

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "repetitions of a case (`times`)",
        MAX_TIMES as u64,
        Sentence("`eval run` refuses the file."),
    ),
    LimitEntry::fixed(
        "tasks of an eval run, without those of the judge",
        MAX_TASKS as u64,
        Sentence("`eval run` refuses the file."),
    ),
    LimitEntry::fixed(
        "answers of the stored results of a run",
        results::MAX_ANSWERS as u64,
        Refused(RecordError::TOO_MANY.code),
    ),
];
/// Digits of the digests of files and rubrics, as tasks have them.
const DIGEST_DIGITS: usize = 16;

/// An eval, as its file describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Eval {
    pub name: String,
    /// Brief of the campaign that is created for the eval.
    #[serde(default)]
    pub brief: String,
    /// Repetitions of each case, because models answer differently each time.
    #[serde(default = "once")]
    pub times: u32,
    /// The agent that answers `judge` checks.
    pub judge: Option<String>,
    pub variants: Vec<Variant>,
    pub cases: Vec<Case>,
    /// Digest of the file, to tell if a run belongs to its present text.
    #[serde(skip)]
    pub digest: String,
}

/// An agent to compare with others.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    pub agent: String,
    /// An agent file for reruns, beside the eval file. Without it, reruns have the context that the call had.
    pub file: Option<String>,
    /// Another model for reruns.
    pub model: Option<String>,
    /// The text of `file`.
    #[serde(skip)]
    pub agent_file: Option<String>,
}

/// A prompt, or a call that is made again, and the checks of the answers. It has one of both.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub prompt: Option<String>,
    pub rerun: Option<RerunCase>,
    pub checks: Vec<Check>,
}

/// A call of a conversation that is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerunCase {
    pub session: Uuid,
    pub turn: i32,
    /// Number of the call in its turn, from 1.
    #[serde(default = "first")]
    pub call: i32,
}

/// The place of a task in a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    pub variant: String,
    pub case: String,
    /// From 1.
    pub repetition: u32,
}

impl Eval {
    /// Reads an eval from the text of a file. `path` is for errors, `read_file` reads the agent files that it names.
    pub fn read(
        path: &str,
        text: &str,
        read_file: impl Fn(&str) -> io::Result<String>,
    ) -> Result<Self, Error> {
        let mut eval: Self = toml::from_str(text)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        let invalid = |problem| Error::Invalid { path: path.to_owned(), problem };
        eval.check().map_err(invalid)?;
        let mut all = text.to_owned();
        for variant in &mut eval.variants {
            let Some(file) = &variant.file else { continue };
            let agent_file = read_file(file).map_err(|source| Error::AgentFile {
                path: path.to_owned(),
                file: file.clone(),
                source,
            })?;
            all.push_str(&agent_file);
            variant.agent_file = Some(agent_file);
        }
        eval.digest = short_digest(&all);
        Ok(eval)
    }

    /// Lists the places of a run, in order.
    pub fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for repetition in 1..=self.times {
            for case in &self.cases {
                places.extend(self.variants.iter().map(|variant| Place {
                    variant: variant.name.clone(),
                    case: case.name.clone(),
                    repetition,
                }));
            }
        }
        places
    }

    pub fn variant(&self, place: &Place) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == place.variant)
    }

    pub fn case(&self, place: &Place) -> Option<&Case> {
        self.cases.iter().find(|case| case.name == place.case)
    }

    /// Builds the metadata by which the tasks of all runs are found.
    pub fn label(&self) -> Value {
        json!({ "eval": self.name })
    }

    /// Builds the metadata by which the judge's tasks of a run are found.
    pub fn judge_label(&self, run: &str) -> Value {
        judge_label(&self.name, run)
    }

    /// Builds the metadata of a task.
    pub fn metadata(&self, run: &str, place: &Place) -> Map<String, Value> {
        let all = json!({
            "eval": self.name,
            "eval_run": run,
            "eval_file": self.digest,
            "eval_place": place,
        });
        all.as_object().cloned().unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        check_name("name", &self.name)?;
        check_list("variants", self.variants.iter().map(|variant| &*variant.name))?;
        check_list("cases", self.cases.iter().map(|case| &*case.name))?;
        if !(1..=MAX_TIMES).contains(&self.times) {
            return Err(format!("`times` is {}: write 1 to {MAX_TIMES}", self.times));
        }
        let n_tasks = self.places().len();
        if n_tasks > MAX_TASKS {
            return Err(format!(
                "a run has {n_tasks} tasks, more than {MAX_TASKS}: split the file into several"
            ));
        }
        self.cases.iter().try_for_each(|case| self.check_case(case))
    }

    /// Refuses variants that would answer a prompt in the same way: files and models are for reruns.
    fn check_agents(&self, case: &Case) -> Result<(), String> {
        let mut known = HashSet::new();
        match self.variants.iter().find(|variant| !known.insert(&*variant.agent)) {
            None => Ok(()),
            Some(Variant { name, agent, .. }) => Err(format!(
                "variant `{name}` gives case `{}` to the agent `{agent}`, as another one does: `file` and `model` are for reruns only, so install the changed file as an agent of another name",
                case.name
            )),
        }
    }

    fn check_rerun(&self, case: &Case, rerun: &RerunCase) -> Result<(), String> {
        if rerun.turn < 1 || rerun.call < 1 {
            return Err(format!("case `{}`: turns and calls are counted from 1", case.name));
        }
        let n_same = self.variants.iter().filter(|it| it.file.is_none() && it.model.is_none());
        match n_same.count() {
            0 | 1 => Ok(()),
            n => Err(format!(
                "{n} variants have neither `file` nor `model`, so the reruns of case `{}` would be the same: add one of both to all but one",
                case.name
            )),
        }
    }

    fn check_case(&self, case: &Case) -> Result<(), String> {
        match (&case.prompt, &case.rerun) {
            (Some(prompt), None) if prompt.trim().is_empty() => {
                return Err(format!("the prompt of case `{}` is empty", case.name));
            }
            (Some(_), None) => self.check_agents(case)?,
            (None, Some(rerun)) => self.check_rerun(case, rerun)?,
            (None, None) | (Some(_), Some(_)) => {
                return Err(format!(
                    "case `{}` needs either a `prompt` for new tasks, or `rerun = {{ session = \"…\", turn = 7 }}`",
                    case.name
                ));
            }
        }
        if case.checks.is_empty() {
            return Err(format!("case `{}` has no checks, so it would always pass", case.name));
        }
        for check in &case.checks {
            check.validate().map_err(|problem| format!("case `{}`: {problem}", case.name))?;
            if check.rubric().is_some() && self.judge.is_none() {
                return Err(format!(
                    "case `{}` has a `judge` check, but the file names no agent for it: add `judge = \"reviewer\"` at the top",
                    case.name
                ));
            }
        }
        Ok(())
    }
}

fn short_digest(text: &str) -> String {
    let mut digest = Digest::of(text).to_string();
    digest.truncate(DIGEST_DIGITS);
    digest
}

fn once() -> u32 {
    1
}

fn first() -> i32 {
    1
}

/// Checks that a list is not empty and names each item once.
fn check_list<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut known = HashSet::new();
    for name in names {
        check_name(key, name)?;
        if !known.insert(name) {
            return Err(format!("two of `{key}` have the name `{name}`: rename one"));
        }
    }
    match known.is_empty() {
        true => Err(format!("`{key}` is empty: add at least one [[{key}]]")),
        false => Ok(()),
    }
}

fn check_name(key: &str, name: &str) -> Result<(), String> {
    match super::agents::is_name(name) {
        true => Ok(()),
        false => Err(format!(
            "`{name}` in `{key}` is not a name: write small letters, digits, - and _, at most 64"
        )),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.variant, self.case, self.repetition)
    }
}

fn judge_label(eval: &str, run: &str) -> Value {
    json!({ "eval_judged": eval, "eval_run": run })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        name = "short"
        times = 2
        judge = "reviewer"
        [[variants]]
        name = "now"
        agent = "copywriter"
        [[variants]]
        name = "next"
        agent = "copywriter-short"
        [[cases]]
        name = "launch"
        prompt = "Write a line about LH-0042."
        checks = [{ contains = "LH-0042" }, { max_words = 30 }, { judge = "Is it a single line?" }]
    "#;

    fn read(text: &str) -> Result<Eval, Error> {
        Eval::read("short.toml", text, |file| match file {
            "short.md" => Ok("You are short.".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    const PROMPT: &str = "prompt = \"Write a line about LH-0042.\"";
    const RERUN: &str = "rerun = { session = \"0198f2a4-0000-7000-8000-000000000001\", turn = 7 }";

    #[test]
    fn a_changed_agent_file_is_another_eval() {
        let file = FILE.replacen(PROMPT, RERUN, 1);
        let text =
            file.replacen("copywriter-short\"", "copywriter-short\"\nfile = \"short.md\"", 1);
        let eval = read(&text).unwrap();
        assert_eq!(eval.cases[0].rerun.unwrap().call, 1);
        assert_eq!(eval.variants[1].agent_file.as_deref(), Some("You are short."));
        let changed = Eval::read("short.toml", &text, |_| Ok("You are brief.".to_owned()));
        assert_ne!(changed.unwrap().digest, eval.digest);
    }

    #[test]
    fn an_eval_has_a_task_for_each_variant_case_and_repetition() {
        let eval = read(FILE).unwrap();
        let places: Vec<_> = eval.places().iter().map(Place::to_string).collect();
        assert_eq!(places, ["now/launch/1", "next/launch/1", "now/launch/2", "next/launch/2"]);
        assert_eq!(eval.variant(&eval.places()[1]).unwrap().agent, "copywriter-short");
        assert_eq!(eval.digest.len(), DIGEST_DIGITS);
    }

    #[test]
    fn each_mistake_in_a_file_is_named() {
        let message = |from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            read(&FILE.replacen(from, to, 1)).unwrap_err().to_string()
        };
        for (from, to, expected) in [
            ("times = 2", "times = 0", "`times` is 0"),
            ("copywriter-short", "copywriter", "variant `next` gives case `launch` to the agent"),
            ("times = 2", "time = 2", "unknown field `time`"),
            ("name = \"next\"", "name = \"now\"", "the name `now`"),
            ("name = \"launch\"", "name = \"Launch!\"", "`Launch!` in `cases`"),
            ("judge = \"reviewer\"", "", "names no agent for it"),
            ("max_words", "max_word", "unknown variant `max_word`"),
            ("Write a line about LH-0042.", " ", "prompt of case `launch` is empty"),
            ("prompt = \"Write a line about LH-0042.\"", "", "needs either a `prompt`"),
            (
                "agent = \"copywriter\"",
                "agent = \"copywriter\"\nfile = \"none.md\"",
                "agent file none.md",
            ),
            (PROMPT, RERUN, "2 variants have neither `file` nor `model`"),
            (PROMPT, "rerun = { session = \"7\", turn = 7 }", "invalid length"),
        ] {
            let told = message(from, to);
            assert!(told.contains(expected) && told.contains("short.toml"), "{told}");
        }
    }
}
