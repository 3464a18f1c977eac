//! Search over the facts about one user.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::{EndReason, Error, Fact, Source, Trust, check_name};
use crate::domain::{
    StatementError,
    search::{self, NearQuery, Question, RankedRow, Searchable, WordQuery},
};

/// A fact that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FactHit)]
pub struct Hit {
    #[serde(flatten)]
    pub fact: Fact,
    /// Larger is better; only to be compared within one answer.
    pub rank: f64,
}

/// Valid facts about a user.
struct ValidFacts<'a> {
    user: &'a str,
    language: &'a str,
    now: DateTime<Utc>,
}

/// Finds valid facts about a user, the best first.
pub async fn search(
    conn: &mut PgConnection,
    user: &str,
    question: Question<'_>,
    language: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Error> {
    check_name(user)?;
    question.check()?;
    let rows = ValidFacts { user, language, now };
    let found = search::search(&mut *conn, &rows, question).await?;
    let facts = rows.read(conn, &found).await?;
    let hit = |(fact, RankedRow { rank, .. })| Hit { fact, rank };
    Ok(search::sort_by_rank(found, facts, |fact| fact.id).map(hit).collect())
}

impl Searchable for ValidFacts<'_> {
    const NEAR: &'static str = "dalsegno.fact_embeddings as e join dalsegno.facts as i on i.id = e.fact_id
         where i.user_name = $5 and i.valid_until is null and (i.expires_at is null or i.expires_at > $6)";

    fn bind<'q>(&'q self, query: NearQuery<'q>) -> NearQuery<'q> {
        query.bind(self.user).bind(self.now)
    }

    async fn by_words(
        &self,
        conn: &mut PgConnection,
        query: WordQuery<'_>,
    ) -> Result<Vec<RankedRow>, StatementError> {
        search::by_words!(
            conn, query, in self.language, at self.now,
            from "dalsegno.facts" as "facts" where "user_name" = ("$1", self.user),
            "i.valid_until is null and (i.expires_at is null or i.expires_at > $6)",
            "null::text",
        )
    }
}

impl ValidFacts<'_> {
    /// Reads those that are still valid.
    async fn read(
        &self,
        conn: &mut PgConnection,
        found: &[RankedRow],
    ) -> Result<Vec<Fact>, StatementError> {
        let ids: Vec<_> = found.iter().map(|found| found.id).collect();
        sqlx::query_as!(
            Fact,
            r#"select id, user_name as user, attribute, text, case when is_written then 'written' else source end as "source!: Source", trust as "trust: Trust", author, campaign_id, session_id,
                      turn, task_id, recorded_at, valid_from, valid_until, ended_because as "ended_because: EndReason", replaced_by, expires_at
                 from dalsegno.facts
                where user_name = $1 and id = any($2) and valid_until is null and (expires_at is null or expires_at > $3)"#,
            self.user,
            &ids,
            self.now,
        )
        .fetch_all(conn)
        .await
        .map_err(StatementError::to("read the facts of a search"))
    }
}
