//! The end of a task that came from a post.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::HandedOn;
use crate::domain::{
    posts::{self, Audience, Said, Sender, TEXT_MAX_BYTES},
    tasks::End,
};

/// What is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    pub campaign_id: Uuid,
    pub task_id: Uuid,
    pub agent: &'a str,
    pub instance: &'a str,
    pub asked_in: Uuid,
    pub end: End<'a>,
    /// Where in a conversation the answer was given.
    pub said: Option<Said>,
    pub handed_on: Option<&'a HandedOn>,
}

const NOTHING: &str = "(an empty answer)";
const CUT: &str = "\n\n[The answer is longer: the task has all of it.]";

/// Posts how the task ended, for whoever asked. Posts nothing where the question was erased, or the task goes on.
pub async fn answer(
    conn: &mut PgConnection,
    ended: &Ended<'_>,
    now: DateTime<Utc>,
) -> Result<(), posts::Error> {
    if matches!(ended.end, End::Queued) {
        return Ok(());
    }
    let asker = posts::sender_of(&mut *conn, ended.campaign_id, ended.asked_in).await?;
    let Some(asker) = asker else { return Ok(()) };
    let to_asker = Audience::of([asker.as_str()], |_| true)?;
    let audience = match ended.handed_on {
        Some(handed_on) => handed_on.audience(&asker)?,
        None => to_asker,
    };
    let name = posts::reader(ended.agent, ended.instance);
    let text = match ended.end {
        End::Done { result } => fitting(result),
        End::Failed { error } => fitting(&format!("No answer comes from `{name}`: {error}")),
        _ => format!("No answer comes from `{name}`: its task was cancelled."),
    };
    let sender = match (ended.end, ended.said) {
        (End::Done { .. }, Some(said)) => {
            Sender::Agent { agent: ended.agent, instance: ended.instance, said }
        }
        _ => Sender::System { task_id: Some(ended.task_id) },
    };
    let new = posts::New {
        campaign_id: ended.campaign_id,
        sender,
        audience: &audience,
        reply_to: Some(ended.asked_in),
        text: &text,
    };
    let post = posts::add(&mut *conn, &new, now).await?;
    match ended.handed_on {
        Some(handed_on) => handed_on.settle(conn, &post, ended.campaign_id, now).await,
        None => Ok(()),
    }
}

/// The text as a post may be.
fn fitting(text: &str) -> String {
    if text.trim().is_empty() {
        return NOTHING.to_owned();
    }
    if text.len() <= TEXT_MAX_BYTES {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(TEXT_MAX_BYTES - CUT.len());
    format!("{}{CUT}", &text[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_any_length_makes_a_post() {
        assert_eq!(fitting(" \n"), NOTHING);
        assert_eq!(fitting("Done."), "Done.");
        let long = fitting(&"ä".repeat(TEXT_MAX_BYTES));
        assert!(long.len() <= TEXT_MAX_BYTES && long.ends_with(CUT));
    }
}
