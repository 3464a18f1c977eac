//! Answers of agents that call other agents.

use dalsegno::domain::posts::Origin;

use super::*;
use crate::providers::fake_ollama::{FakeOllama, Play};

/// A lead on a server that answers when the test lets it.
const ON_OLLAMA: &str = "lead: true\nprovider: ollama\nmodel: qwen3:8b\n";

#[tokio::test]
async fn the_lead_hands_on_and_the_answers_come_back_to_it() {
    let ground = ground(&["ann", "bea"], &[]).await;
    let worker = ground.work().await;
    let asked = "Plan it. `[[sim: say First @ann and @bea, not me, @planner. Nor @anm.]]`";
    let posted = post(&ground, asked).await;
    assert_eq!(called(&posted), ["planner"]);
    all_ended(&ground).await;
    worker.stop().await;
    let board = board(&ground).await;
    let plan = answers_to(&board, posted.post.id)[0];
    assert_eq!(plan.audience, ["operator", "ann", "bea"]);
    let said = answers_to(&board, plan.id);
    assert_eq!(said.len(), 3, "{:#?}", lines(&board));
    let notice = said.iter().find(|post| post.origin == Origin::System).unwrap();
    assert_eq!(
        (notice.text.as_str(), notice.audience.as_slice()),
        ("Unknown name `anm`: did you mean `ann`?", &["planner".to_owned()][..])
    );
    for name in ["ann", "bea"] {
        let answer = said.iter().find(|post| post.sender == name).unwrap();
        assert_eq!(answer.audience, ["planner"]);
        let task = tasks::get(&ground.pool, answer.task_id.unwrap()).await.unwrap();
        assert_eq!(task.prompt, plan.text);
    }
    assert_eq!(board.len(), 5, "{:#?}", lines(&board));
}

#[tokio::test]
async fn an_agent_whose_file_does_not_let_it_calls_nobody() {
    let ground = ground(&["ann", "bea"], &[]).await;
    ground.write_agent("bea", &agent("bea", "mentions: true\n"));
    ground.write_agent("planner", &agent("planner", "lead: true\nmentions: false\n"));
    let worker = ground.work().await;
    post(&ground, "@planner @ann @bea `[[sim: say Let @writer do it.]]`").await;
    all_ended(&ground).await;
    worker.stop().await;
    let board = board(&ground).await;
    let by_writer: Vec<_> = board.iter().filter(|post| post.sender == "writer").collect();
    assert_eq!(by_writer.len(), 1, "{:#?}", lines(&board));
    assert_eq!(by_writer[0].audience, ["bea"]);
    assert_eq!(board.len(), 5, "{:#?}", lines(&board));
}

#[tokio::test]
async fn an_answer_to_a_task_that_nobody_posted_is_no_post() {
    let ground = ground(&["ann"], &[]).await;
    let worker = ground.work().await;
    ground.done(&ground.add_for("planner", "main", "[[sim: say @ann do it.]]").await).await;
    all_ended(&ground).await;
    worker.stop().await;
    assert!(board(&ground).await.is_empty());
    assert_eq!(ground.count("select count(*) from dalsegno.tasks").await, 1);
}

#[tokio::test]
async fn tasks_that_are_refused_are_told_to_whoever_called_and_its_answer_stands() {
    let fake = FakeOllama::playing([Play::gated("@ann", " go.")]).await;
    let url = format!("http://{}", fake.addr);
    let settings = [("tasks.max_prompt_bytes", "100"), ("ollama.base_url", url.as_str())];
    let ground = ground(&["ann"], &settings).await;
    let worker = ground.work().await;
    let long = "a".repeat(60);
    let posted = post(&ground, &format!("@planner `[[sim: say @ann {long}]]`")).await;
    all_ended(&ground).await;
    assert_eq!(board(&ground).await.len(), 3, "it fits");
    sqlx::query("update dalsegno.campaign_budgets set limit_tokens = 100000")
        .execute(&ground.pool)
        .await
        .unwrap();
    ground.write_agent("planner", &agent("planner", ON_OLLAMA));
    let posted_too = post(&ground, "@planner Go.").await;
    eventually("the turn has begun", async || {
        let running = "select count(*) from dalsegno.turns where state = 'running'";
        (ground.count(running).await == 1).then_some(())
    })
    .await;
    sqlx::query("update dalsegno.campaign_budgets set limit_tokens = 1")
        .execute(&ground.pool)
        .await
        .unwrap();
    fake.open();
    all_ended(&ground).await;
    worker.stop().await;
    let board = board(&ground).await;
    let answer = answers_to(&board, posted_too.post.id)[0];
    assert_eq!(answer.text, "@ann go.");
    let notice = answers_to(&board, answer.id)[0];
    assert!(
        notice.text.starts_with("No tasks were added for ann: ") && notice.text.contains("budget"),
        "{}",
        notice.text
    );
    assert_eq!(notice.audience, ["planner"]);
    assert_ne!(posted.post.id, posted_too.post.id);
}

/// The answer counts, and creates no task.
#[tokio::test]
async fn an_answer_of_a_task_that_was_asked_to_stop_calls_nobody() {
    let fake = FakeOllama::playing([Play::gated("First", " @ann.")]).await;
    let url = format!("http://{}", fake.addr);
    let ground = ground(&["ann"], &[("ollama.base_url", url.as_str())]).await;
    ground.write_agent("planner", &agent("planner", ON_OLLAMA));
    let worker = ground.work().await;
    let posted = post(&ground, "Plan it.").await;
    let plan = task(&ground, &posted, 0).await;
    let session_id = eventually("it runs", async || {
        let plan = ground.task(&plan).await;
        plan.session_id.filter(|_| plan.state == tasks::State::Running)
    })
    .await;
    let mut tx = ground.pool.begin().await.unwrap();
    let now = ground.clock.now();
    tasks::interrupt(&mut tx, session_id, tasks::How::Soft, "not wanted", now).await.unwrap();
    tx.commit().await.unwrap();
    fake.open();
    let plan = ground.done(&plan).await;
    all_ended(&ground).await;
    worker.stop().await;
    assert!(plan.result.unwrap().contains("First @ann."));
    let board = board(&ground).await;
    let answer = answers_to(&board, posted.post.id)[0];
    assert_eq!(answer.audience, ["operator"]);
    let notice = answers_to(&board, answer.id)[0];
    assert!(notice.text.starts_with("No task was added: "), "{:#?}", lines(&board));
    assert_eq!(ground.count("select count(*) from dalsegno.tasks").await, 1);
}
