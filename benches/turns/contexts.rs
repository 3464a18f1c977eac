//! Stored contexts: the time to assemble one again, and the space of their texts.

use std::time::Instant;

use anyhow::Context as _;
use dalsegno::{domain::contexts, operations::SentContext};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    common::size,
    fixture::{Conversation, Fixture, LEAD},
};

/// Length of the conversation, none of which is summarised: each context contains all of it.
fn n_turns() -> usize {
    size::of(2_000, 4)
}

fn n_shown() -> usize {
    size::of(20, 1)
}

pub async fn show(ground: &Fixture) -> anyhow::Result<Value> {
    let conversations = ground.conversations(1, 1).await?;
    let at_500 = n_turns() / 4;
    ground.run(&conversations, at_500).await?;
    let bytes = bytes(ground).await?;
    ground.run(&conversations, n_turns() - at_500).await?;
    ground.settle().await?;
    let newest = "select session_id, turn from dalsegno.manifests order by turn desc limit 1";
    let (session_id, turn): (Uuid, i32) = sqlx::query_as(newest).fetch_one(&ground.pool).await?;
    let mut millis = Vec::with_capacity(n_shown());
    let mut text_bytes = 0;
    for _ in 0..n_shown() {
        let mut conn = ground.pool.acquire().await?;
        let began = Instant::now();
        let found = contexts::find(&mut conn, session_id, Some(turn), 1).await?;
        let shown = SentContext::of(found)?;
        millis.push(began.elapsed().as_secs_f64() * 1e3);
        text_bytes = shown.messages.iter().map(|message| message.text.len()).sum();
        shown.system.context("the context can be assembled")?;
    }
    millis.sort_by(f64::total_cmp);
    Ok(json!({
        "scenario": "show_context", "turns": n_turns(), "text_bytes": text_bytes, "median_ms": millis[millis.len() / 2],
        "bytes_after_500_turns": bytes,
    }))
}

/// The space that a lead's texts take: the statuses of its colleagues are another text in each of its turns.
pub async fn of_lead(ground: &Fixture) -> anyhow::Result<Value> {
    ground.add_lead()?;
    let mut conversations = ground.conversations(1, 1).await?;
    conversations.extend_from_within(..);
    conversations[1] = Conversation { agent: LEAD, ..conversations[1].clone() };
    let n_turns = size::of(500, 4);
    ground.run(&conversations, n_turns).await?;
    let statuses = "select count(*), coalesce(sum(octet_length(t.content)), 0)::bigint
                      from dalsegno.context_texts as t join dalsegno.context_text_uses as u on u.sha256 = t.sha256
                      join dalsegno.sessions as s on s.id = u.session_id where s.agent_type = $1";
    let (n_texts, text_bytes): (i64, i64) =
        sqlx::query_as(statuses).bind(LEAD).fetch_one(&ground.pool).await?;
    Ok(json!({
        "scenario": "lead_context", "turns_of_each": n_turns, "texts_of_the_lead": n_texts, "text_bytes_of_the_lead": text_bytes,
        "bytes": bytes(ground).await?,
    }))
}

/// Returns the size of the stored texts beside that of all tables.
async fn bytes(ground: &Fixture) -> anyhow::Result<Value> {
    let sizes = "select sum(pg_total_relation_size(c.oid)) filter (where c.relname like 'context_text%')::bigint,
                        sum(pg_total_relation_size(c.oid))::bigint
                   from pg_class as c where c.relnamespace = 'dalsegno'::regnamespace and c.relkind = 'r'";
    let (texts, all): (i64, i64) = sqlx::query_as(sizes).fetch_one(&ground.pool).await?;
    Ok(json!({ "texts": texts, "all": all, "percent": texts as f64 / all as f64 * 100.0 }))
}
