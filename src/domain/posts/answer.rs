//! The answering post at the end of a task that came from a post.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Audience, Error, New, Post, Sender, SourceTurn, TEXT_MAX_BYTES, add, reader, sender_of,
};

/// A task that has ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedTask<'a> {
    pub campaign_id: Uuid,
    pub task_id: Uuid,
    pub agent: &'a str,
    pub instance: &'a str,
    pub asked_in: Uuid,
    pub outcome: Outcome<'a>,
    /// The turn that gave the answer, if there is one.
    pub said: Option<SourceTurn>,
}

#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    Done { result: &'a str },
    Failed { error: &'a str },
    Cancelled,
}

const EMPTY_ANSWER: &str = "(an empty answer)";
const TRUNCATION_NOTE: &str = "\n\n[The answer is longer: the task has all of it.]";

/// Posts the outcome of a task to the asker. Posts nothing if the question was erased.
pub async fn answer(
    conn: &mut PgConnection,
    ended: &EndedTask<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Post>, Error> {
    answer_to(conn, ended, |asker| Audience::of([asker], |_| true), now).await
}

/// Posts the outcome to an audience that depends on the asker.
pub async fn answer_to(
    conn: &mut PgConnection,
    ended: &EndedTask<'_>,
    audience: impl FnOnce(&str) -> Result<Audience, Error>,
    now: DateTime<Utc>,
) -> Result<Option<Post>, Error> {
    let asker = sender_of(&mut *conn, ended.campaign_id, ended.asked_in).await?;
    let Some(asker) = asker else { return Ok(None) };
    let name = reader(ended.agent, ended.instance);
    let text = match ended.outcome {
        Outcome::Done { result } => fitting(result),
        Outcome::Failed { error } => fitting(&format!("`{name}` did not answer: {error}")),
        Outcome::Cancelled => format!("`{name}` did not answer: its task was cancelled."),
    };
    let sender = match (ended.outcome, ended.said) {
        (Outcome::Done { .. }, Some(said)) => {
            Sender::Agent { agent: ended.agent, instance: ended.instance, said }
        }
        _ => Sender::System { task_id: Some(ended.task_id) },
    };
    let new = New {
        campaign_id: ended.campaign_id,
        sender,
        audience: &audience(&asker)?,
        reply_to: Some(ended.asked_in),
        text: &text,
    };
    add(conn, &new, now).await.map(Some)
}

/// Fits a text into the limits of a post.
fn fitting(text: &str) -> String {
    if text.trim().is_empty() {
        return EMPTY_ANSWER.to_owned();
    }
    if text.len() <= TEXT_MAX_BYTES {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(TEXT_MAX_BYTES - TRUNCATION_NOTE.len());
    format!("{}{TRUNCATION_NOTE}", &text[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_any_length_becomes_a_post() {
        assert_eq!(fitting(" \n"), EMPTY_ANSWER);
        assert_eq!(fitting("Done."), "Done.");
        let long = fitting(&"ä".repeat(TEXT_MAX_BYTES));
        assert!(long.len() <= TEXT_MAX_BYTES && long.ends_with(TRUNCATION_NOTE));
    }
}
