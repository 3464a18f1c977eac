//! Limits that keep agents from calling each other forever.

use dalsegno::domain::posts::Origin;

use super::*;

/// Starts two agents that always call each other.
async fn start_answer_loop(settings: &[(&str, &str)]) -> (Fixture, Vec<Post>) {
    let say = ("sim.faults", r#"["say @ann and @bea: your turn."]"#);
    let settings: Vec<_> = settings.iter().copied().chain([say]).collect();
    let fixture = fixture(&[], &settings).await;
    for name in ["ann", "bea"] {
        fixture.write_agent(name, &agent(name, "mentions: true\n"));
    }
    let worker = fixture.start_worker().await;
    post(&fixture, "@ann: begin.").await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    let board = board(&fixture).await;
    (fixture, board)
}

fn post_texts(board: &[Post]) -> Vec<&str> {
    let by_agents = board.iter().filter(|post| post.origin == Origin::Agent);
    by_agents.map(|post| post.sender.as_str()).collect()
}

#[tokio::test]
async fn a_chain_of_answers_ends_at_its_maximum_length() {
    let settings = [("mentions.max_depth", "4"), ("mentions.max_repeats", "1000")];
    let (_ground, board) = start_answer_loop(&settings).await;
    assert_eq!(post_texts(&board), ["ann", "bea", "ann", "bea", "ann"]);
    let last = board.last().unwrap();
    assert_eq!((last.origin, last.audience.as_slice()), (Origin::System, &["ann".to_owned()][..]));
    assert!(last.text.contains("mentions.max_depth"), "{}", last.text);
    assert_eq!(last.reply_to, Some(board[board.len() - 2].id));
    // An agent that gets no task is not addressed, either.
    assert_eq!(board[board.len() - 2].audience, ["bea"]);
    assert_eq!(board.len(), 7);
}

#[tokio::test]
async fn agents_add_no_tasks_by_mentions_when_no_chain_is_allowed() {
    let (_ground, board) = start_answer_loop(&[("mentions.max_depth", "0")]).await;
    assert_eq!(post_texts(&board), ["ann"]);
    assert!(board[2].text.contains("mentions.max_depth"), "{:#?}", lines(&board));
}

#[tokio::test]
async fn a_repeated_answer_adds_no_tasks_until_a_pause_has_passed() {
    let settings = [
        ("mentions.max_depth", "1000"),
        ("mentions.max_repeats", "2"),
        ("mentions.repeat_window_secs", "60"),
    ];
    let (fixture, board) = start_answer_loop(&settings).await;
    assert_eq!(post_texts(&board), ["ann", "bea", "ann", "bea", "ann"]);
    assert!(board[6].text.contains("mentions.max_repeats"), "{:#?}", lines(&board));
    fixture.advance(chrono::TimeDelta::seconds(61));
    let worker = fixture.start_worker().await;
    post(&fixture, "@ann: once more.").await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    assert_eq!(post_texts(&super::board(&fixture).await).len(), 10);
}

/// Each called agent calls all others, in a text of its own.
#[tokio::test]
async fn tasks_that_descend_from_one_post_are_limited_across_branches() {
    let settings = [
        ("mentions.max_tasks", "5"),
        ("mentions.max_depth", "100"),
        ("mentions.max_repeats", "1000"),
        ("sim.faults", r#"["say @all: go on."]"#),
    ];
    let fixture = fixture(&[], &settings).await;
    for name in ["ann", "bea", "cid"] {
        fixture.write_agent(name, &agent(name, "mentions: true\n"));
    }
    let worker = fixture.start_worker().await;
    for n_posts in 1..=2 {
        // Ann, and then the four others, of which the writer may not call agents.
        post(&fixture, "@ann: begin.").await;
        wait_for_all_tasks(&fixture).await;
        assert_eq!(fixture.count("select count(*) from dalsegno.tasks").await, 5 * n_posts);
        let board = board(&fixture).await;
        let cut: Vec<_> =
            board.iter().filter(|post| post.text.contains("mentions.max_tasks")).collect();
        assert_eq!(i64::try_from(cut.len()).unwrap(), 3 * n_posts, "{:#?}", lines(&board));
        assert!(cut[0].text.starts_with("No task was added: one post has led to 5 tasks"));
    }
    worker.stop().await;
}

#[tokio::test]
async fn tasks_per_post_are_limited_and_the_omitted_names_are_reported() {
    let fixture = fixture(&["ann", "bea", "cid", "dan"], &[("mentions.max_fan_out", "2")]).await;
    let posted = post(&fixture, "@dan @ann @cid @bea").await;
    assert_eq!(called(&posted), ["dan", "ann"]);
    assert_eq!(posted.post.audience, ["dan", "ann"]);
    assert!(posted.notes[0].contains("No tasks were added for cid, bea."), "{:?}", posted.notes);
    let worker = fixture.start_worker().await;
    wait_for_all_tasks(&fixture).await;
    let handed = post(&fixture, "@planner `[[sim: say @all: go.]]`").await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    let board = board(&fixture).await;
    assert_eq!(
        (board[1].origin, board[1].text.as_str()),
        (Origin::System, posted.notes[0].as_str())
    );
    let plan = answers_of(&board, handed.post.id)[0];
    // All agents read it, but not all get a task.
    assert_eq!(plan.audience, ["all"]);
    let answers = answers_of(&board, plan.id);
    let senders: Vec<_> = answers.iter().map(|post| post.sender.as_str()).collect();
    assert_eq!(senders.iter().filter(|sender| **sender != "system").count(), 2, "{senders:?}");
    let notice = answers.iter().find(|post| post.sender == "system").unwrap();
    assert!(notice.text.contains("mentions.max_fan_out"), "{}", notice.text);
}
