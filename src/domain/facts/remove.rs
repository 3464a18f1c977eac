//! Removal of facts: retention and erasure.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::StatementError;

/// Removes some facts that were said in a campaign, and returns their number. Facts about the same users from other campaigns stay.
pub async fn remove_some(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    // Locked in the order in which sessions are shown facts, which avoids a deadlock.
    sqlx::query_scalar!(
        r#"with batch as materialized (select id from dalsegno.facts where campaign_id = $1 limit $2),
                going as materialized (
                  select id from dalsegno.facts where id in (select id from batch) order by id for update),
                gone as (delete from dalsegno.facts where id in (select id from going) returning 1)
           select count(*) as "n!" from gone"#,
        campaign_id,
        limit,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("remove the facts of a campaign"))
}

/// Removes the user of a campaign, and some records of what was read and shown in it. Returns the larger of both counts.
pub async fn remove_some_records(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"with users as (delete from dalsegno.campaign_users where campaign_id = $1),
                shown as (
             delete from dalsegno.fact_showings where ctid = any(array(
               select ctid from dalsegno.fact_showings where campaign_id = $1 limit $2)) returning 1),
                read as (
             delete from dalsegno.fact_extractions where ctid = any(array(
               select ctid from dalsegno.fact_extractions where campaign_id = $1 limit $2)) returning 1)
           select greatest((select count(*) from shown), (select count(*) from read)) as "n!""#,
        campaign_id,
        limit,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("remove the extractions of facts of a campaign"))
}

/// Removes some facts that ended before `until`, and some records of what was shown and read that are as old. Returns the number of facts,
/// and the number of records.
pub async fn remove_ended(
    conn: &mut PgConnection,
    until: DateTime<Utc>,
    limit: i64,
) -> Result<(i64, i64), StatementError> {
    // How far a session was read has to be known as long as it is there: of each that is, the last reading stays.
    let n_records = sqlx::query_scalar!(
        r#"with shown as (
             delete from dalsegno.fact_showings where ctid = any(array(
               select ctid from dalsegno.fact_showings where shown_at < $1 order by shown_at limit $2)) returning 1),
                read as (
             delete from dalsegno.fact_extractions as x using (
               select o.session_id, o.to_seq from dalsegno.fact_extractions as o
                where o.ended_at < $1
                  and (exists (select from dalsegno.fact_extractions as l where l.session_id = o.session_id and l.to_seq > o.to_seq and l.outcome = 'done')
                       or not dalsegno.has_session(o.session_id))
                order by o.ended_at limit $2) as old
              where x.session_id = old.session_id and x.to_seq = old.to_seq returning 1)
           select (select count(*) from shown) + (select count(*) from read) as "n!""#,
        until,
        limit,
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(StatementError::to("remove old extractions of facts"))?;
    let n_facts = sqlx::query_scalar!(
        r#"with going as materialized (
             select id from dalsegno.facts
              where (valid_until is not null or expires_at is not null) and least(valid_until, expires_at) < $1
              order by least(valid_until, expires_at) limit $2 for update skip locked),
                gone as (delete from dalsegno.facts where id in (select id from going) returning 1)
           select count(*) as "n!" from gone"#,
        until,
        limit,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("remove ended facts"))?;
    Ok((n_facts, n_records))
}

/// Counts the facts that [`remove_ended`] would remove.
pub async fn count_ended(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.facts
            where (valid_until is not null or expires_at is not null) and least(valid_until, expires_at) < $1"#,
        until,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count ended facts"))
}
