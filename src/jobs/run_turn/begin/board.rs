//! Unseen posts of the campaign's board, for a turn.
//!
//! A campaign without posts needs no query here: the last place of its board is read with the task.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    context::{
        Calibration, Weight, fixed_weight,
        manifest::{PartReason, Span},
        parts::{self, NotShown},
        posts::{ArchiveSummary, ArchivedSender, Post, Posts},
    },
    domain::{
        ids, messages,
        posts::{self, Viewer},
        sessions::SessionRow,
        turn_phases::{self, BoardProgress, OmissionReason, ShownPosts, UnseenPosts, UnseenQuery},
    },
    jobs::run_turn::{error::Error, load::assignment::Assignment, notices},
    transcript::Role,
};

/// Unseen posts, and those that the turn does not show.
#[derive(Serialize, Deserialize)]
pub struct Board {
    entry_id: Uuid,
    /// Cursor of the session after the turn is committed.
    cursor: i64,
    #[serde(deserialize_with = "read_posts")]
    shown: Posts<'static>,
    seqs: Vec<i64>,
    not_shown: Vec<NotShown>,
    pub weight: Weight,
}

/// The entry of the shown posts, and its reserved place in the transcript.
pub struct Entry {
    new: messages::New,
    seq: i64,
}

/// Divisor of the room beside reserve, prompt, skills and tools: posts may take this part. The rest is for the task, the conversation, and
/// at least one round of tools, whose results take up to a third of the room each.
const ROOM_DIVISOR: u64 = 4;
/// Bytes per token: more than the average of any tokeniser. Posts that were read are weighed afterwards.
const BYTES_PER_TOKEN: u64 = 8;

/// Reads posts that own their texts.
fn read_posts<'de, D: Deserializer<'de>>(from: D) -> Result<Posts<'static>, D::Error> {
    Posts::deserialize(serde_json::Value::deserialize(from)?).map_err(D::Error::custom)
}

/// Reads the unseen posts. `None` if there are none.
pub async fn load_board(
    conn: &mut PgConnection,
    assignment: &Assignment<'_>,
    session: &SessionRow,
    calibration: &Calibration,
    now: DateTime<Utc>,
) -> Result<Option<Board>, Error> {
    let Assignment { agent, last_post, .. } = assignment;
    let is_new = session.context_tokens == 0;
    let is_seen = !is_new && *last_post <= session.board_cursor;
    if *last_post == 0 || agent.history_window == 0 || is_seen {
        return Ok(None);
    }
    let name = posts::reader(&session.agent, &session.instance);
    let viewer = match agent.leads(&session.instance) {
        true => Viewer::All,
        false => Viewer::Reader(&name),
    };
    let room_tokens = room_tokens(assignment, calibration);
    let max_bytes = i64::try_from(room_tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(i64::MAX);
    let window = i64::from(agent.history_window);
    let look = UnseenQuery { session, task_id: assignment.task.id, viewer, window, max_bytes };
    let unseen = turn_phases::find_unseen_posts(&mut *conn, &look).await?;
    let archived = match is_new && unseen.archived_seq > 0 {
        true => archive_summary(posts::archive_of(conn, session.campaign_id, viewer).await?),
        false => None,
    };
    let mut board = Board::of(unseen, calibration.weight_within(room_tokens), now);
    board.weight = board.weight + archived.iter().map(ArchiveSummary::weight).sum::<Weight>();
    board.shown.archived = archived;
    Ok(Some(board))
}

/// Returns the summary of an archive for a conversation that begins. `None`: the agent may see none of its posts.
fn archive_summary(archive: posts::Archive) -> Option<ArchiveSummary> {
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let senders = archive.senders.into_iter().map(|one| ArchivedSender {
        sender: one.sender,
        posts: one.posts,
        first_at: time(one.first_at),
        last_at: time(one.last_at),
    });
    let senders: Vec<ArchivedSender> = senders.collect();
    (!senders.is_empty()).then_some(ArchiveSummary { up_to: archive.archived_seq, senders })
}

/// Returns the tokens that the posts of a turn may take.
fn room_tokens(assignment: &Assignment<'_>, calibration: &Calibration) -> u64 {
    let Assignment { agent, skills, tools, route, .. } = assignment;
    let skills = skills.iter().map(|skill| skill.text.as_str());
    let fixed_tokens = calibration.tokens(fixed_weight(&agent.prompt, skills, tools));
    let taken_tokens = route.reserve_tokens.saturating_add(fixed_tokens);
    route.window_tokens.saturating_sub(taken_tokens) / ROOM_DIVISOR
}

impl Board {
    fn of(mut unseen: UnseenPosts, max_weight: Weight, now: DateTime<Utc>) -> Self {
        // Before the oldest posts are removed.
        let older = (unseen.n_older > 0).then(|| older(&unseen));
        let read = std::mem::take(&mut unseen.posts);
        let (posts, weight, too_much) = fit(read, max_weight);
        let is_long =
            |why: &OmissionReason| matches!(why, OmissionReason::Long | OmissionReason::Full);
        let n_long = unseen.not_shown.iter().filter(|(_, why)| is_long(why)).count();
        let n_left_out = i64::try_from(n_long + too_much.len()).unwrap_or(i64::MAX);
        let not_shown = unseen.not_shown.iter().map(|(seq, why)| (*seq, reason(*why)));
        let mut not_shown = spans(
            not_shown.chain(too_much.into_iter().map(|seq| (seq, PartReason::NoRoom))).collect(),
        );
        not_shown.extend(older);
        let left_out = unseen.n_older.saturating_add(n_left_out);
        let seqs = posts.iter().map(|post| post.seq).collect();
        Self {
            entry_id: ids::new_at(now),
            cursor: unseen.to_seq,
            shown: Posts { left_out, posts, archived: None },
            seqs,
            not_shown,
            weight,
        }
    }

    /// Returns true if there are posts to show, a number of posts that are left out, or a summary of archived ones.
    pub fn shows_posts(&self) -> bool {
        !self.shown.is_empty()
    }

    pub fn part(&self) -> parts::Board<'_> {
        let (shown, not_shown) = (&self.shown, &self.not_shown);
        parts::Board { entry_id: self.entry_id, shown, not_shown }
    }

    /// Builds the transcript's entry for the posts, at the place that the begin of the turn has reserved.
    pub fn entry(&self, seq: i64) -> Option<Entry> {
        let new = || notices::message(self.entry_id, Role::Posts, self.shown.to_entry());
        self.shows_posts().then(|| Entry { new: new(), seq })
    }

    pub fn seen<'a>(&'a self, entry: Option<&'a Entry>) -> BoardProgress<'a> {
        let shown =
            entry.map(|entry| ShownPosts { posts: &self.seqs, entry: &entry.new, seq: entry.seq });
        BoardProgress { cursor: self.cursor, shown }
    }
}

/// Leaves out posts that are too heavy alone, and the oldest of those that are too heavy together. Returns the rest as they are sent,
/// their weight, and the places of those that are left out.
fn fit(read: Vec<posts::Post>, max_weight: Weight) -> (Vec<Post<'static>>, Weight, Vec<i64>) {
    let (mut total, mut too_much, mut is_full) = (Weight::ZERO, Vec::new(), false);
    let mut kept = Vec::with_capacity(read.len());
    for post in read.into_iter().rev().map(as_sent) {
        let weight = post.weight();
        let is_long = weight > max_weight;
        is_full = is_full || (!is_long && total + weight > max_weight);
        if is_long || is_full {
            too_much.push(post.seq);
        } else {
            total = total + weight;
            kept.push(post);
        }
    }
    kept.reverse();
    (kept, total, too_much)
}

fn reason(why: OmissionReason) -> PartReason {
    match why {
        OmissionReason::Own => PartReason::OwnAnswer,
        OmissionReason::Task => PartReason::IsATask,
        OmissionReason::Shown => PartReason::ShownBefore,
        OmissionReason::Long | OmissionReason::Full => PartReason::NoRoom,
    }
}

/// Merges posts with the same reason into one line.
fn spans(posts: Vec<(i64, PartReason)>) -> Vec<NotShown> {
    let mut spans: Vec<NotShown> = Vec::new();
    for (seq, why) in posts {
        match spans.iter_mut().find(|known| known.why == why) {
            Some(NotShown { span, .. }) => {
                (span.from_seq, span.to_seq) = (span.from_seq.min(seq), span.to_seq.max(seq));
                span.count = span.count.map(|count| count + 1);
            }
            None => {
                let span = Span { from_seq: seq, to_seq: seq, count: Some(1) };
                spans.push(NotShown { why, span });
            }
        }
    }
    spans
}

/// Builds the line for older posts, which were counted but not read.
fn older(unseen: &UnseenPosts) -> NotShown {
    let first_seq = unseen.first_seq();
    let count = usize::try_from(unseen.n_older).ok();
    let span = Span { from_seq: 1, to_seq: (first_seq - 1).max(1), count };
    NotShown { why: PartReason::BeyondWindow, span }
}

fn as_sent(post: posts::Post) -> Post<'static> {
    Post {
        id: post.id,
        seq: post.seq,
        sender: post.sender.into(),
        to: post.audience.join(" ").into(),
        trust: Some(post.trust.as_str().into()),
        posted_at: post.posted_at.to_rfc3339_opts(SecondsFormat::Secs, true).into(),
        reply_to: post.reply_to,
        text: post.text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(seq: i64, text: &str) -> posts::Post {
        posts::Post {
            id: Uuid::from_u128(1),
            seq,
            sender: "ann".to_owned(),
            origin: posts::Origin::Agent,
            trust: posts::Trust::Agent,
            author: None,
            audience: vec!["all".to_owned()],
            reply_to: None,
            posted_at: DateTime::UNIX_EPOCH,
            task_id: None,
            session_id: None,
            turn: None,
            text: text.to_owned(),
        }
    }

    #[test]
    fn an_oversized_post_is_omitted_alone_and_excess_posts_oldest_first() {
        let long = "word ".repeat(2000);
        let posts = vec![post(3, "a"), post(4, "b"), post(7, &long), post(9, "c"), post(10, "d")];
        let not_shown =
            vec![(5, OmissionReason::Own), (6, OmissionReason::Task), (8, OmissionReason::Own)];
        let unseen =
            UnseenPosts { to_seq: 11, posts, not_shown, n_older: 2, ..UnseenPosts::default() };
        let shown = [post(4, "b"), post(9, "c"), post(10, "d")];
        let room: Weight = shown.into_iter().map(|post| as_sent(post).weight()).sum();
        let board = Board::of(unseen, room, DateTime::UNIX_EPOCH);
        assert_eq!(board.weight, room);
        assert_eq!((board.seqs.as_slice(), board.cursor), ([4, 9, 10].as_slice(), 11));
        // The long one, the oldest, and the two beyond the window.
        assert_eq!(board.shown.left_out, 4);
        let said: Vec<_> = board.not_shown.iter().map(|it| (it.why, it.span.count)).collect();
        let expected = [
            (PartReason::OwnAnswer, Some(2)),
            (PartReason::IsATask, Some(1)),
            (PartReason::NoRoom, Some(2)),
            (PartReason::BeyondWindow, Some(2)),
        ];
        assert_eq!(said, expected);
        // Post 3 was read, although it is not shown.
        let older = board.not_shown.last().map(|it| (it.span.from_seq, it.span.to_seq));
        assert_eq!(older, Some((1, 2)));
    }
}
