//! Results of eval runs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, page_limit,
};
use crate::domain::{
    audit::Action,
    campaigns,
    evals::{self, AnswerResult, EvalRun, EvalRunFilter, NewEvalRun, RecordError, VariantResult},
};

const TAG: &str = "evals";

/// Stores the results of an eval run, or replaces its earlier ones.
///
/// `dalsegno eval run` and `dalsegno eval report` call it: the checks are in the eval file. Stored are names, numbers and ids; the texts of answers stay in
/// their tasks and reruns.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewEvalRun)]
pub struct RecordEvalRun {
    /// The campaign
    pub id: Uuid,
    pub eval: String,
    pub run: String,
    /// The moment at which the first answer was requested.
    pub began_at: DateTime<Utc>,
    /// Answers that are missing or not judged yet.
    #[schema(minimum = 0)]
    pub unfinished: i32,
    /// Cost of the judge, in millionths.
    pub judge_micros: i64,
    pub variants: Vec<VariantResult>,
    #[schema(max_items = 2000)]
    pub answers: Vec<AnswerResult>,
}

/// Lists recorded eval runs, those that were recorded last first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListEvalRuns {
    pub campaign_id: Option<Uuid>,
    /// Only the runs of this eval.
    pub eval: Option<String>,
    /// The id of the last run that was read.
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Shows the answers of a recorded eval run, each with its task or its turn.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowEvalRun {
    /// The campaign
    pub id: Uuid,
    /// The id of the run in the list.
    pub number: i64,
}

/// The answers of a run: all of them are one page.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EvalAnswers {
    pub items: Vec<AnswerResult>,
}

impl Change for RecordEvalRun {
    const SPEC: Spec = Spec::change("record_eval_run", "/v1/campaigns/{id}/evals", "")
        .tag(TAG)
        .takes_many()
        .refuses(&[campaigns::Error::UNKNOWN, RecordError::BAD_NAME, RecordError::TOO_MANY])
        .without_command("`eval run` and `eval report` call it");
    const ACTION: Action = Action::EvalRecord;
    type Output = EvalRun;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<EvalRun> {
        let new = NewEvalRun {
            campaign_id: self.id,
            eval: &self.eval,
            run: &self.run,
            began_at: self.began_at,
            unfinished: self.unfinished,
            judge_micros: self.judge_micros,
            variants: &self.variants,
            answers: &self.answers,
        };
        campaigns::get(&mut *conn, self.id).await?;
        let (output, is_changed) = evals::record(conn, &new, call.now).await?;
        if !is_changed {
            return Ok(ChangeOutput::nothing(self.id, output));
        }
        let data = json!({ "eval": self.eval, "run": self.run, "unfinished": self.unfinished });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Operation for ListEvalRuns {
    const SPEC: Spec = Spec::read("list_eval_runs", "/v1/evals", "")
        .tag(TAG)
        .for_bound_keys()
        .without_command("`eval ls` reads the runs of a file from their tasks");
    type Output = Listing<EvalRun>;

    async fn run(self, call: &Call) -> Result<Listing<EvalRun>, Refusal> {
        let limit = page_limit(self.limit)?;
        let filter = EvalRunFilter {
            campaign_id: self.campaign_id,
            eval: self.eval.as_deref(),
            run: None,
            within: call.reach.campaigns(),
        };
        let mut transaction = call.begin_read().await?;
        let runs = evals::list_runs(&mut transaction, filter, self.cursor, limit + 1).await?;
        Ok(Listing::of(runs, limit, |run| run.id))
    }
}

impl Operation for ShowEvalRun {
    const SPEC: Spec = Spec::read("show_eval_run", "/v1/campaigns/{id}/evals/{number}", "")
        .tag(TAG)
        .refuses(&[RecordError::UNKNOWN])
        .without_command("`eval report` checks the answers of a run again");
    type Output = EvalAnswers;

    async fn run(self, call: &Call) -> Result<EvalAnswers, Refusal> {
        let answers = evals::answers_of(&call.pool, self.id, self.number).await?;
        Ok(EvalAnswers { items: answers.ok_or(RecordError::Unknown(self.number))? })
    }
}
