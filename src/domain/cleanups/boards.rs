//! The archiving of old posts.
//!
//! A post stays on the board until each open session whose agent may see it has shown it, and until no open task answers it. Posts are archived
//! in the order of their places, so such a post keeps those behind it.

use std::collections::HashSet;

use sqlx::PgConnection;
use uuid::Uuid;

use super::Walk;
use crate::domain::{
    StatementError,
    agents::Catalogue,
    posts::{self, Config, DueBoard, Viewer},
    sessions::{self, BoardReader},
    tasks,
};

/// The settings of boards, and the agents that read them.
#[derive(Debug, Clone)]
pub struct BoardRules {
    pub(super) config: Config,
    lead: Option<String>,
    /// Agents whose turns show no posts.
    blind: HashSet<String>,
}

/// Numbers of posts that are due for the archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DuePosts {
    pub archived: i64,
    /// Due posts that stay: an agent has not seen them or one before them, or an open task answers one.
    pub held: i64,
}

/// Most posts that one transaction archives.
const POSTS: i64 = 20_000;
/// Boards that are looked at together.
const PAGE: i64 = 200;

impl BoardRules {
    pub fn new(config: Config, catalogue: &Catalogue) -> Self {
        let blind = catalogue.agents().filter(|agent| agent.history_window == 0);
        Self {
            config,
            lead: catalogue.lead().map(|lead| lead.name.clone()),
            blind: blind.map(|agent| agent.name.clone()).collect(),
        }
    }

    /// Returns the reader whose posts a session shows. `None`: it shows none.
    fn viewer<'a>(&self, session: &BoardReader, name: &'a str) -> Option<Viewer<'a>> {
        let leads = Some(&session.agent) == self.lead.as_ref()
            && session.instance == crate::domain::agents::MAIN;
        match self.blind.contains(&session.agent) {
            true => None,
            false if leads => Some(Viewer::All),
            false => Some(Viewer::Reader(name)),
        }
    }
}

/// Lists the next boards with posts to archive, in the order of their campaigns.
pub async fn due_boards(
    conn: &mut PgConnection,
    walk: &Walk,
    after: Uuid,
) -> Result<Vec<DueBoard>, StatementError> {
    match &walk.boards {
        Some(rules) => posts::list_due(conn, &rules.config, after, PAGE, walk.now).await,
        None => Ok(Vec::new()),
    }
}

/// Archives up to a number of posts of a board, and returns how many. The caller commits.
pub async fn archive_board(
    conn: &mut PgConnection,
    walk: &Walk,
    board: &DueBoard,
) -> Result<i64, StatementError> {
    let Some(archived_seq) = posts::lock_board(&mut *conn, board.campaign_id).await? else {
        return Ok(0);
    };
    let board = DueBoard { archived_seq, ..*board };
    let to_seq = last_free(&mut *conn, walk, &board).await?.min(archived_seq + POSTS);
    if to_seq <= archived_seq {
        return Ok(0);
    }
    posts::archive(conn, board.campaign_id, (archived_seq, to_seq), walk.now).await?;
    Ok(to_seq - archived_seq)
}

/// Counts the posts of all boards that would be archived now, and those that are due and would stay.
pub(super) async fn count_due(
    conn: &mut PgConnection,
    walk: &Walk,
) -> Result<DuePosts, StatementError> {
    let (mut due, mut after) = (DuePosts::default(), Uuid::nil());
    loop {
        let boards = due_boards(&mut *conn, walk, after).await?;
        let Some(last) = boards.last() else { return Ok(due) };
        after = last.campaign_id;
        for board in &boards {
            let to_seq = last_free(&mut *conn, walk, board).await?;
            due.archived += to_seq - board.archived_seq;
            due.held += board.due_seq - to_seq;
        }
    }
}

/// Returns the last due place that nothing holds on the board.
async fn last_free(
    conn: &mut PgConnection,
    walk: &Walk,
    board: &DueBoard,
) -> Result<i64, StatementError> {
    let DueBoard { campaign_id, archived_seq, due_seq } = *board;
    let Some(rules) = &walk.boards else { return Ok(archived_seq) };
    let mut last = due_seq;
    let readers = sessions::list_board_readers(&mut *conn, campaign_id, due_seq, walk.now).await?;
    for reader in &readers {
        let name = posts::reader(&reader.agent, &reader.instance);
        let Some(viewer) = rules.viewer(reader, &name) else { continue };
        let seen = reader.board_cursor.max(archived_seq);
        let next = posts::first_visible_after(&mut *conn, campaign_id, viewer, seen).await?;
        last = next.map_or(last, |next| last.min(next - 1));
    }
    let asked = tasks::list_awaiting_posts(&mut *conn, campaign_id).await?;
    if let Some(first) = posts::first_place_of(conn, campaign_id, &asked).await? {
        last = last.min(first - 1);
    }
    Ok(last.max(archived_seq))
}
