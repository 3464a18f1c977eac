//! Search over the items of a campaign that the reader may see.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Config, Error, Item, Kind, MemoryCaller, Origin, Trust};
use crate::domain::{
    StatementError,
    search::{self, NearQuery, Question, RankedRow, Searchable, WordQuery},
};

/// Texts up to this length are shown whole as their snippets.
const WHOLE_MAX_BYTES: i32 = 300;

/// An item that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MemoryHit)]
pub struct Hit {
    #[serde(flatten)]
    pub item: Item,
    /// Score; larger is better. Comparable only within one answer.
    pub rank: f64,
    /// The matching passages, with matches between `**` and `**`. The beginning of the text if only its meaning matched.
    pub snippet: String,
}

/// Valid items of a campaign that the reader may see.
struct ReadableItems<'a> {
    campaign_id: Uuid,
    kind: Option<&'static str>,
    /// The only journal that the caller may read; `None` for all.
    journal: Option<&'a str>,
    language: &'a str,
    now: DateTime<Utc>,
}

/// Finds valid items, optionally of one kind, the best first.
pub async fn search(
    conn: &mut PgConnection,
    (campaign_id, kind): (Uuid, Option<Kind>),
    question: Question<'_>,
    who: &MemoryCaller<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Error> {
    question.check()?;
    let (kind, journal) = (kind.map(Kind::as_str), who.journals().column());
    let rows = ReadableItems { campaign_id, kind, journal, language: &config.language, now };
    let found = search::search(&mut *conn, &rows, question).await?;
    let items = rows.read(conn, &found).await?;
    let hit = |(mut item, RankedRow { rank, excerpt, .. }): (Item, _)| {
        let beginning = item.body.take();
        Hit { item, rank, snippet: excerpt.or(beginning).unwrap_or_default() }
    };
    Ok(search::sort_by_rank(found, items, |item| item.id).map(hit).collect())
}

impl Searchable for ReadableItems<'_> {
    const NEAR: &'static str = "dalsegno.memory_embeddings as e join dalsegno.memory_items as i on i.id = e.item_id
         where e.version = i.version and i.campaign_id = $5
           and ($7::text is null or i.kind = $7) and (i.kind <> 'journal' or $8::text is null or i.owner = $8)
           and i.revoked_at is null and (i.expires_at is null or i.expires_at > $6)";

    fn bind<'q>(&'q self, query: NearQuery<'q>) -> NearQuery<'q> {
        query.bind(self.campaign_id).bind(self.now).bind(self.kind).bind(self.journal)
    }

    async fn by_words(
        &self,
        conn: &mut PgConnection,
        query: WordQuery<'_>,
    ) -> Result<Vec<RankedRow>, StatementError> {
        search::by_words!(
            conn, query, in self.language, at self.now,
            from "dalsegno.memory_items" as "memory_items" where "campaign_id" = ("$1::uuid::text", self.campaign_id),
            "($8::text is null or i.kind = $8) and (i.kind <> 'journal' or $9::text is null or i.owner = $9)
             and i.revoked_at is null and (i.expires_at is null or i.expires_at > $6)",
            r#"ts_headline($3::text::regconfig, t.body, a.words,
                           case when octet_length(t.body) <= $10 then 'StartSel=**, StopSel=**, HighlightAll=true'
                                else 'StartSel=**, StopSel=**, MaxFragments=2, MinWords=8, MaxWords=24, FragmentDelimiter=" ... "'
                            end)"#,
            self.kind,
            self.journal,
            WHOLE_MAX_BYTES,
        )
    }
}

impl ReadableItems<'_> {
    /// Reads those that are still valid, with the beginnings of their texts.
    async fn read(
        &self,
        conn: &mut PgConnection,
        found: &[RankedRow],
    ) -> Result<Vec<Item>, StatementError> {
        let ids: Vec<_> = found.iter().map(|found| found.id).collect();
        sqlx::query_as!(
            Item,
            r#"select id, campaign_id, kind as "kind: Kind", nullif(owner, '') as owner, name, version, title,
                      case when octet_length(body) <= $4 then body else left(body, $4) || ' ...' end as body, bytes as "bytes!",
                      trust as "trust: Trust", origin as "origin: Origin", author, task_id, turn, created_at, written_at, expires_at,
                      revoked_at, revoked_by
                 from dalsegno.memory_items
                where campaign_id = $1 and id = any($2) and revoked_at is null and (expires_at is null or expires_at > $3)"#,
            self.campaign_id,
            &ids,
            self.now,
            WHOLE_MAX_BYTES,
        )
        .fetch_all(conn)
        .await
        .map_err(StatementError::to("read the items of a search"))
    }
}
