//! Stored results of runs: names, numbers and ids, without texts of answers.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::RecordError;
use crate::domain::{StatementError, agents::is_name};

/// Maximum number of answers of a run.
pub(super) const MAX_ANSWERS: usize = 2_000;

/// The results of a run, without its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EvalRun {
    pub id: i64,
    pub campaign_id: Uuid,
    pub eval: String,
    pub run: String,
    /// The moment at which its first answer was requested.
    pub began_at: DateTime<Utc>,
    pub recorded_at: DateTime<Utc>,
    /// Answers that were missing or not judged when it was recorded.
    pub unfinished: i32,
    /// Cost of the judge, in millionths.
    pub judge_micros: i64,
    #[schema(value_type = Vec<VariantResult>)]
    pub variants: Json<Vec<VariantResult>>,
    /// Names of the variants with answers that cost 0 only because no price was set for their model.
    // Derived from the ledger: older versions refuse fields that they do not know in stored results.
    #[serde(default)]
    pub variants_without_price: Vec<String>,
}

/// The results of a variant in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VariantResult {
    pub variant: String,
    pub agent: String,
    /// Finished answers.
    pub answers: i64,
    /// Answers that passed all checks.
    pub passed: i64,
    pub tokens: i64,
    /// Cost in millionths, without the judge.
    pub micros: i64,
    /// Median time from the start of a task or of a call to its end.
    pub median_ms: Option<i64>,
}

/// The result of an answer. It comes from a task, or from a rerun of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerResult {
    pub variant: String,
    pub case: String,
    /// From 1.
    pub repetition: u32,
    /// Null: it is missing, or not judged.
    pub passed: Option<bool>,
    /// Number of checks that it failed.
    pub failed_checks: u32,
    pub task_id: Option<Uuid>,
    /// The session of the turn that was made again.
    pub session_id: Option<Uuid>,
    pub turn: Option<i32>,
    pub tokens: i64,
    /// Cost in millionths.
    pub micros: i64,
    pub took_ms: Option<i64>,
}

/// A run as it is stored.
#[derive(Debug, Clone)]
pub struct NewEvalRun<'a> {
    pub campaign_id: Uuid,
    pub eval: &'a str,
    pub run: &'a str,
    pub began_at: DateTime<Utc>,
    pub unfinished: i32,
    pub judge_micros: i64,
    pub variants: &'a [VariantResult],
    pub answers: &'a [AnswerResult],
}

/// The runs of a list. A caller that is bound to campaigns sees those of its campaigns.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvalRunFilter<'a> {
    pub campaign_id: Option<Uuid>,
    pub eval: Option<&'a str>,
    pub run: Option<&'a str>,
    pub within: Option<&'a [Uuid]>,
}

impl VariantResult {
    /// Returns the share of answers that passed, in percent.
    pub fn percent(&self) -> i64 {
        (self.passed * 100).checked_div(self.answers).unwrap_or(0)
    }
}

impl NewEvalRun<'_> {
    /// Refuses anything that is not a name, so that no text of a campaign is stored.
    fn check(&self) -> Result<(), RecordError> {
        let variants = self.variants.iter().flat_map(|it| [&it.variant, &it.agent]);
        let answers = self.answers.iter().flat_map(|it| [&it.variant, &it.case]);
        let names = variants.chain(answers).map(String::as_str);
        let mut names = [self.eval, self.run].into_iter().chain(names);
        if let Some(name) = names.find(|name| !is_name(name)) {
            return Err(RecordError::BadName(name.chars().take(80).collect()));
        }
        match self.answers.len() {
            0..=MAX_ANSWERS => Ok(()),
            n => Err(RecordError::TooMany(n)),
        }
    }
}

/// Stores a run, or replaces its earlier results. Returns false for results that were stored before.
pub async fn record(
    conn: &mut PgConnection,
    new: &NewEvalRun<'_>,
    now: DateTime<Utc>,
) -> Result<(EvalRun, bool), RecordError> {
    new.check()?;
    if let Some(mut stored) = store(&mut *conn, new, now).await? {
        find_unpriced(conn, std::slice::from_mut(&mut stored)).await?;
        return Ok((stored, true));
    }
    let filter = EvalRunFilter {
        campaign_id: Some(new.campaign_id),
        eval: Some(new.eval),
        run: Some(new.run),
        within: None,
    };
    let known = list_runs(conn, filter, None, 1).await?.into_iter().next();
    // The row is locked by the insert.
    Ok((known.ok_or(RecordError::Unknown(0))?, false))
}

/// Stores a run; `None`: it is stored with the same results.
async fn store(
    conn: &mut PgConnection,
    new: &NewEvalRun<'_>,
    now: DateTime<Utc>,
) -> Result<Option<EvalRun>, StatementError> {
    sqlx::query_as!(
        EvalRun,
        r#"insert into dalsegno.eval_runs (campaign_id, eval, run, began_at, recorded_at, unfinished, judge_micros, variants, answers)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
               on conflict (campaign_id, eval, run) do update
              set began_at = excluded.began_at, recorded_at = excluded.recorded_at, unfinished = excluded.unfinished,
                  judge_micros = excluded.judge_micros, variants = excluded.variants, answers = excluded.answers
            where (eval_runs.unfinished, eval_runs.judge_micros, eval_runs.variants, eval_runs.answers)
                  is distinct from (excluded.unfinished, excluded.judge_micros, excluded.variants, excluded.answers)
           returning id, campaign_id, eval, run, began_at, recorded_at, unfinished, judge_micros, variants as "variants: Json<Vec<VariantResult>>",
                     array[]::text[] as "variants_without_price!""#,
        new.campaign_id,
        new.eval,
        new.run,
        new.began_at,
        now,
        new.unfinished,
        new.judge_micros,
        Json(new.variants) as Json<&[VariantResult]>,
        Json(new.answers) as Json<&[AnswerResult]>,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("store the results of an eval run"))
}

/// Lists runs, those that were recorded last first. `before` is the id of the last one that was read.
pub async fn list_runs(
    conn: &mut PgConnection,
    filter: EvalRunFilter<'_>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<EvalRun>, StatementError> {
    let mut runs = sqlx::query_as!(
        EvalRun,
        r#"select r.id, r.campaign_id, r.eval, r.run, r.began_at, r.recorded_at, r.unfinished, r.judge_micros,
                  r.variants as "variants: Json<Vec<VariantResult>>", array[]::text[] as "variants_without_price!"
             from dalsegno.eval_runs as r
            where r.id < $1 and ($2::uuid is null or r.campaign_id = $2) and ($3::text is null or r.eval = $3)
              and ($4::uuid[] is null or r.campaign_id = any ($4)) and ($6::text is null or r.run = $6)
            order by r.id desc limit $5"#,
        before.unwrap_or(i64::MAX),
        filter.campaign_id,
        filter.eval,
        filter.within as Option<&[Uuid]>,
        limit,
        filter.run,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("list eval runs"))?;
    find_unpriced(conn, &mut runs).await?;
    Ok(runs)
}

/// Notes the variants with answers that have calls without a price.
async fn find_unpriced(
    conn: &mut PgConnection,
    runs: &mut [EvalRun],
) -> Result<(), StatementError> {
    if runs.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = runs.iter().map(|run| run.id).collect();
    let found = sqlx::query_file!("src/domain/evals/unpriced_variants.sql", &ids)
        .fetch_all(conn)
        .await
        .map_err(StatementError::to("find answers of eval runs without a price"))?;
    for run in runs {
        let own = found.iter().filter(|row| row.id == run.id);
        run.variants_without_price = own.map(|row| row.variant.clone()).collect();
    }
    Ok(())
}

impl EvalRun {
    /// Returns true if answers of the variant cost 0 only because no price was set for their model.
    pub fn is_without_price(&self, variant: &str) -> bool {
        self.variants_without_price.iter().any(|name| name == variant)
    }

    /// Builds the metadata by which the judge's tasks of the run are found.
    pub fn judge_label(&self) -> Value {
        super::judge_label(&self.eval, &self.run)
    }
}

/// Reads the answers of a run, in order; `None`: it is not recorded.
pub async fn answers_of(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    id: i64,
) -> Result<Option<Vec<AnswerResult>>, StatementError> {
    let answers = sqlx::query_scalar!(
        r#"select answers as "answers: Json<Vec<AnswerResult>>" from dalsegno.eval_runs where id = $1 and campaign_id = $2"#,
        id,
        campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the answers of an eval run"))?;
    Ok(answers.map(|answers| answers.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first version that stores results refuses all other fields, also those of newer processes.
    #[test]
    fn stored_results_have_only_fields_that_the_oldest_version_reads() {
        let (variant, agent, case) = ("now".to_owned(), "writer".to_owned(), "lamp".to_owned());
        let result = VariantResult {
            variant: variant.clone(),
            agent,
            answers: 1,
            passed: 1,
            tokens: 9,
            micros: 0,
            median_ms: None,
        };
        let answer = AnswerResult {
            variant,
            case,
            repetition: 1,
            passed: None,
            failed_checks: 0,
            task_id: None,
            session_id: None,
            turn: None,
            tokens: 9,
            micros: 0,
            took_ms: None,
        };
        let fields = |value: Value| {
            let mut fields: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            fields.sort_unstable();
            fields.join(" ")
        };
        assert_eq!(
            fields(serde_json::to_value(result).unwrap()),
            "agent answers median_ms micros passed tokens variant"
        );
        assert_eq!(
            fields(serde_json::to_value(answer).unwrap()),
            "case failed_checks micros passed repetition session_id task_id tokens took_ms turn variant"
        );
    }
}
