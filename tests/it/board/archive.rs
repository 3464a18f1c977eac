//! The archive of a board, as agents and people see it.

use dalsegno::domain::{
    cleanups::{self, BoardRules, Walk},
    posts::Config,
    transaction::{begin, commit},
};
use uuid::Uuid;

use super::setup::{BoardSetup, read, sent, texts};

impl BoardSetup {
    /// Archives all but the newest posts. Returns the number of archived ones.
    async fn archive(&self, keep_posts: u32) -> i64 {
        let (config, now) = (self.fixture.config(), super::at());
        let catalogue = dalsegno::domain::agents::Library::open(&config.agents).unwrap().current();
        let rules = BoardRules::new(Config { keep_days: 0, keep_posts }, &catalogue);
        let walk = Walk::new(now, &config.sessions, &config.memory).archiving(rules);
        let mut tx = begin(&self.fixture.pool).await.unwrap();
        let mut n_archived = 0;
        for board in cleanups::due_boards(&mut tx, &walk, Uuid::nil()).await.unwrap() {
            n_archived += cleanups::archive_board(&mut tx, &walk, &board).await.unwrap();
        }
        commit(tx).await.unwrap();
        n_archived
    }
}

#[tokio::test]
async fn a_later_conversation_begins_with_the_summary_of_the_archive_and_the_live_posts() {
    let board_setup = BoardSetup::new(&["ann", "bea"], "").await;
    board_setup.write("cat", "history_window: 0\n", "");
    for number in 1..=3 {
        board_setup.post(&["all"], &format!("Post {number}.")).await;
    }
    board_setup.post(&["ann"], "A secret.").await;
    board_setup.post(&["all"], "Post 5.").await;
    let worker = board_setup.fixture.start_worker().await;
    let done = async |reader: &str, text: &str| {
        board_setup.fixture.done(&board_setup.ask(reader, text, None).await).await
    };
    // An agent that reads no posts holds none.
    done("cat", "Begin, cat.").await;
    done("ann", "Begin, ann.").await;
    assert_eq!(board_setup.archive(1).await, 4);
    done("ann", "Go on, ann.").await;
    let first = done("bea", "Begin, bea.").await;
    board_setup.post(&["all"], "Post 6.").await;
    let second = done("bea", "Go on, bea.").await;
    worker.stop().await;
    assert_eq!(first.session_id, second.session_id);

    let request = |prompt: &str| sent(&board_setup.requests_with(prompt).pop().unwrap());
    let ann = request("Go on, ann.");
    assert!(!ann.contains("<archived") && ann.contains("A secret."), "she has seen the posts");
    let bea = request("Begin, bea.");
    // Three posts: she may not know of the fourth one.
    let summary = "<archived posts=\"3\">\n<from sender=\"operator\" posts=\"3\"";
    assert!(bea.contains(summary) && !bea.contains("left_out"), "{bea}");
    assert_eq!(texts(&read(&bea)), ["Post 5."]);
    let later = request("Go on, bea.");
    assert_eq!(later.matches("<archived").count(), 1, "{later}");
    assert!(later.contains(summary));
    assert_eq!(texts(&read(&later)), ["Post 5.", "Post 6."]);
}
