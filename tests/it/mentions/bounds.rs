//! Limits that keep agents from calling each other forever.

use dalsegno::domain::posts::Origin;

use super::*;

/// Starts two agents that always call each other.
async fn loop_of_two(settings: &[(&str, &str)]) -> (Ground, Vec<Post>) {
    let say = ("sim.faults", r#"["say @ann and @bea: your turn."]"#);
    let settings: Vec<_> = settings.iter().copied().chain([say]).collect();
    let ground = ground(&[], &settings).await;
    for name in ["ann", "bea"] {
        ground.write_agent(name, &agent(name, "mentions: true\n"));
    }
    let worker = ground.work().await;
    post(&ground, "@ann: begin.").await;
    all_ended(&ground).await;
    worker.stop().await;
    let board = board(&ground).await;
    (ground, board)
}

fn said(board: &[Post]) -> Vec<&str> {
    let by_agents = board.iter().filter(|post| post.origin == Origin::Agent);
    by_agents.map(|post| post.sender.as_str()).collect()
}

#[tokio::test]
async fn a_chain_of_answers_ends_where_it_is_as_long_as_allowed() {
    let settings = [("mentions.max_depth", "4"), ("mentions.max_repeats", "1000")];
    let (_ground, board) = loop_of_two(&settings).await;
    assert_eq!(said(&board), ["ann", "bea", "ann", "bea", "ann"]);
    let last = board.last().unwrap();
    assert_eq!((last.origin, last.audience.as_slice()), (Origin::System, &["ann".to_owned()][..]));
    assert!(last.text.contains("mentions.max_depth"), "{}", last.text);
    assert_eq!(last.reply_to, Some(board[board.len() - 2].id));
    // An agent that gets no task is not addressed, either.
    assert_eq!(board[board.len() - 2].audience, ["bea"]);
    assert_eq!(board.len(), 7);
}

#[tokio::test]
async fn agents_call_nobody_where_no_chain_is_allowed() {
    let (_ground, board) = loop_of_two(&[("mentions.max_depth", "0")]).await;
    assert_eq!(said(&board), ["ann"]);
    assert!(board[2].text.contains("mentions.max_depth"), "{:#?}", lines(&board));
}

#[tokio::test]
async fn who_repeats_itself_calls_nobody_again_until_time_has_passed() {
    let settings = [
        ("mentions.max_depth", "1000"),
        ("mentions.max_repeats", "2"),
        ("mentions.repeat_window_secs", "60"),
    ];
    let (ground, board) = loop_of_two(&settings).await;
    assert_eq!(said(&board), ["ann", "bea", "ann", "bea", "ann"]);
    assert!(board[6].text.contains("mentions.max_repeats"), "{:#?}", lines(&board));
    ground.advance(chrono::TimeDelta::seconds(61));
    let worker = ground.work().await;
    post(&ground, "@ann: once more.").await;
    all_ended(&ground).await;
    worker.stop().await;
    assert_eq!(said(&super::board(&ground).await).len(), 10);
}

/// Each called agent calls all others, in a text of its own.
#[tokio::test]
async fn what_one_post_leads_to_is_bounded_however_it_branches() {
    let settings = [
        ("mentions.max_tasks", "5"),
        ("mentions.max_depth", "100"),
        ("mentions.max_repeats", "1000"),
        ("sim.faults", r#"["say @all: go on."]"#),
    ];
    let ground = ground(&[], &settings).await;
    for name in ["ann", "bea", "cid"] {
        ground.write_agent(name, &agent(name, "mentions: true\n"));
    }
    let worker = ground.work().await;
    for n_posts in 1..=2 {
        // Ann, and then the four others, of which the writer may not call agents.
        post(&ground, "@ann: begin.").await;
        all_ended(&ground).await;
        assert_eq!(ground.count("select count(*) from dalsegno.tasks").await, 5 * n_posts);
        let board = board(&ground).await;
        let cut: Vec<_> =
            board.iter().filter(|post| post.text.contains("mentions.max_tasks")).collect();
        assert_eq!(i64::try_from(cut.len()).unwrap(), 3 * n_posts, "{:#?}", lines(&board));
        assert!(cut[0].text.starts_with("No task was added: one post has led to 5 tasks"));
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_post_calls_no_more_than_so_many_and_names_those_who_were_left_out() {
    let ground = ground(&["ann", "bea", "cid", "dan"], &[("mentions.max_fan_out", "2")]).await;
    let posted = post(&ground, "@dan @ann @cid @bea").await;
    assert_eq!(called(&posted), ["dan", "ann"]);
    assert_eq!(posted.post.audience, ["dan", "ann"]);
    assert!(posted.notes[0].contains("No tasks were added for cid, bea."), "{:?}", posted.notes);
    let worker = ground.work().await;
    all_ended(&ground).await;
    let handed = post(&ground, "@planner `[[sim: say @all: go.]]`").await;
    all_ended(&ground).await;
    worker.stop().await;
    let board = board(&ground).await;
    assert_eq!(
        (board[1].origin, board[1].text.as_str()),
        (Origin::System, posted.notes[0].as_str())
    );
    let plan = answers_to(&board, handed.post.id)[0];
    // All agents read it, but not all get a task.
    assert_eq!(plan.audience, ["all"]);
    let answers = answers_to(&board, plan.id);
    let senders: Vec<_> = answers.iter().map(|post| post.sender.as_str()).collect();
    assert_eq!(senders.iter().filter(|sender| **sender != "system").count(), 2, "{senders:?}");
    let notice = answers.iter().find(|post| post.sender == "system").unwrap();
    assert!(notice.text.contains("mentions.max_fan_out"), "{}", notice.text);
}
