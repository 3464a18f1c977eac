//! Runs of an eval, from their tasks and reruns.

use std::{cmp::Reverse, collections::HashSet};

use chrono::{DateTime, Utc};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    cli::{Failure, server::Server},
    domain::{
        evals::{Answer, Eval, Place, ReportedRun, RerunCase, RunReport, VariantReport},
        reruns::Rerun,
        tasks::ListedTask,
    },
    operations::{ListReruns, ListTasks, RecordEvalRun},
};

/// Maximum number of tasks that are read to find the runs.
const MAX_READ: i64 = 10_000;

/// Key of the metadata of reruns that names the campaign of the run.
pub(super) const EVAL_CAMPAIGN: &str = "eval_campaign";

pub(super) struct StoredRun {
    pub(super) id: String,
    /// Digest of the file when the run began.
    digest: String,
    pub(super) answers: Vec<Answer>,
    pub(super) campaign_id: Uuid,
}

/// Lists the runs of an eval, the newest first. The verdicts of the judge are not read yet.
pub(super) async fn list_runs(
    eval: &Eval,
    campaign_id: Uuid,
    server: &Server,
) -> Result<Vec<StoredRun>, Failure> {
    let mut runs: Vec<StoredRun> = Vec::new();
    let mut add = |metadata: &Map<String, Value>, answer: &dyn Fn(Place) -> Answer| {
        let word = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, digest) = (word("eval_run").to_owned(), word("eval_file").to_owned());
        // Another system may use the same labels.
        let place = metadata.get("eval_place").and_then(|it| Place::deserialize(it).ok());
        let Some(place) = place else { return };
        let at = runs.iter().position(|run| run.id == id).unwrap_or_else(|| {
            runs.push(StoredRun { id, digest, answers: Vec::new(), campaign_id });
            runs.len() - 1
        });
        runs[at].answers.push(answer(place));
    };
    for listed in list_tasks(campaign_id, &eval.label(), server).await? {
        let ListedTask { task, metadata, is_unpriced, .. } = listed;
        add(&metadata, &|place| Answer::of_task(place, &task, is_unpriced));
    }
    for rerun in list_reruns(eval, campaign_id, server).await? {
        add(&rerun.metadata, &|place| Answer::of_rerun(place, &rerun));
    }
    let places = eval.places();
    let rank = |answer: &Answer| places.iter().position(|place| *place == answer.place);
    runs.iter_mut().for_each(|run| run.answers.sort_by_key(rank));
    runs.sort_by_key(|run| Reverse(run.begun()));
    Ok(runs)
}

/// Lists the reruns of the eval's cases, of all its runs in a campaign.
async fn list_reruns(
    eval: &Eval,
    campaign_id: Uuid,
    server: &Server,
) -> Result<Vec<Rerun>, Failure> {
    let mut all = Vec::new();
    let mut known = HashSet::new();
    for RerunCase { session, turn, call } in eval.cases.iter().filter_map(|case| case.rerun) {
        // Two cases may check the same call.
        if known.insert((session, turn, call)) {
            let list = ListReruns { id: session, number: turn, call: Some(call) };
            all.extend(server.call(list).await?.reruns);
        }
    }
    let has = |rerun: &Rerun, key, word: &str| {
        rerun.metadata.get(key).and_then(Value::as_str) == Some(word)
    };
    let campaign = campaign_id.to_string();
    all.retain(|it| has(it, "eval", &eval.name) && has(it, EVAL_CAMPAIGN, &campaign));
    Ok(all)
}

async fn list_tasks(
    campaign_id: Uuid,
    label: &Value,
    server: &Server,
) -> Result<Vec<ListedTask>, Failure> {
    let page = |cursor: Option<String>, limit| ListTasks {
        campaign_id: Some(campaign_id),
        metadata: Some(label.to_string()),
        cursor: cursor.and_then(|cursor| cursor.parse().ok()),
        limit: Some(limit),
        ..ListTasks::default()
    };
    server.items(MAX_READ, page).await
}

impl StoredRun {
    /// Returns true if the run belongs to the present text of the file.
    pub(super) fn is_of(&self, eval: &Eval) -> bool {
        self.digest == eval.digest
    }

    /// Adds up the run beside the answers of the run before.
    pub(super) fn report(&self, eval: &Eval, before: &[Answer]) -> RunReport {
        let reported = ReportedRun {
            campaign_id: self.campaign_id,
            id: &self.id,
            answers: &self.answers,
            is_current: self.is_of(eval),
        };
        RunReport::of(eval, reported, before)
    }

    /// Stores the results of the run, so that they can be read without the file.
    pub(super) async fn record(
        &self,
        eval: &Eval,
        report: &RunReport,
        server: &Server,
    ) -> Result<(), Failure> {
        let Some(began_at) = self.begun() else { return Ok(()) };
        let answers = self.answers.iter();
        let answers =
            answers.filter_map(|answer| Some(answer.result(eval.case(&answer.place)?))).collect();
        let record = RecordEvalRun {
            id: self.campaign_id,
            eval: report.eval.clone(),
            run: self.id.clone(),
            began_at,
            unfinished: i32::try_from(report.unfinished).unwrap_or(i32::MAX),
            judge_micros: report.judge_micros,
            variants: report.variants.iter().map(VariantReport::result).collect(),
            answers,
        };
        server.call(record).await.map(drop)
    }

    pub(super) fn begun(&self) -> Option<DateTime<Utc>> {
        self.answers.iter().map(|answer| answer.created_at).min()
    }

    /// Reads the tasks in which the judge has read the answers.
    pub(super) async fn load_verdicts(
        &mut self,
        eval: &Eval,
        server: &Server,
    ) -> Result<(), Failure> {
        if eval.judge.is_none() {
            return Ok(());
        }
        let judged = list_tasks(self.campaign_id, &eval.judge_label(&self.id), server).await?;
        for ListedTask { task, metadata, .. } in judged {
            let of = metadata.get("eval_answer").and_then(|id| Uuid::deserialize(id).ok());
            let rubric = metadata.get("eval_rubric").and_then(Value::as_str);
            let answer = self.answers.iter_mut().find(|answer| Some(answer.source.id()) == of);
            if let Some((answer, rubric)) = answer.zip(rubric) {
                answer.judged.insert(rubric.to_owned(), task);
            }
        }
        Ok(())
    }
}
