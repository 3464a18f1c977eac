//! Answers of agents that call other agents.

use dalsegno::domain::posts::Origin;

use super::*;
use crate::providers::fake_ollama::{FakeOllama, Play};

/// A lead on a server that answers when the test lets it.
const ON_OLLAMA: &str = "lead: true\nprovider: ollama\nmodel: qwen3:8b\n";

#[tokio::test]
async fn the_lead_delegates_by_mentions_and_gets_the_answers() {
    let fixture = fixture(&["ann", "bea"], &[]).await;
    let worker = fixture.start_worker().await;
    let asked = "Plan it. `[[sim: say First @ann and @bea, not me, @planner. Nor @anm.]]`";
    let posted = post(&fixture, asked).await;
    assert_eq!(called(&posted), ["planner"]);
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    let board = board(&fixture).await;
    let plan = answers_of(&board, posted.post.id)[0];
    assert_eq!(plan.audience, ["operator", "ann", "bea"]);
    let said = answers_of(&board, plan.id);
    assert_eq!(said.len(), 3, "{:#?}", lines(&board));
    let notice = said.iter().find(|post| post.origin == Origin::System).unwrap();
    assert_eq!(
        (notice.text.as_str(), notice.audience.as_slice()),
        ("Unknown name `anm`: did you mean `ann`?", &["planner".to_owned()][..])
    );
    for name in ["ann", "bea"] {
        let answer = said.iter().find(|post| post.sender == name).unwrap();
        assert_eq!(answer.audience, ["planner"]);
        let task = tasks::get(&fixture.pool, answer.task_id.unwrap()).await.unwrap();
        assert_eq!(task.prompt, plan.text);
    }
    assert_eq!(board.len(), 5, "{:#?}", lines(&board));
}

#[tokio::test]
async fn an_agent_without_permission_adds_no_tasks_by_mentions() {
    let fixture = fixture(&["ann", "bea"], &[]).await;
    fixture.write_agent("bea", &agent("bea", "mentions: true\n"));
    fixture.write_agent("planner", &agent("planner", "lead: true\nmentions: false\n"));
    let worker = fixture.start_worker().await;
    post(&fixture, "@planner @ann @bea `[[sim: say Let @writer do it.]]`").await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    let board = board(&fixture).await;
    let by_writer: Vec<_> = board.iter().filter(|post| post.sender == "writer").collect();
    assert_eq!(by_writer.len(), 1, "{:#?}", lines(&board));
    assert_eq!(by_writer[0].audience, ["bea"]);
    assert_eq!(board.len(), 5, "{:#?}", lines(&board));
}

#[tokio::test]
async fn the_answer_to_a_task_without_a_post_is_not_posted() {
    let fixture = fixture(&["ann"], &[]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add_for("planner", "main", "[[sim: say @ann do it.]]").await).await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    assert!(board(&fixture).await.is_empty());
    assert_eq!(fixture.count("select count(*) from dalsegno.tasks").await, 1);
}

#[tokio::test]
async fn refused_tasks_are_reported_to_the_mentioning_agent_and_its_answer_stays() {
    let fake = FakeOllama::playing([Play::gated("@ann", " go.")]).await;
    let url = format!("http://{}", fake.addr);
    let settings = [("tasks.max_prompt_bytes", "100"), ("ollama.base_url", url.as_str())];
    let fixture = fixture(&["ann"], &settings).await;
    let worker = fixture.start_worker().await;
    let long = "a".repeat(60);
    let posted = post(&fixture, &format!("@planner `[[sim: say @ann {long}]]`")).await;
    wait_for_all_tasks(&fixture).await;
    assert_eq!(board(&fixture).await.len(), 3, "the answer fits");
    sqlx::query("update dalsegno.campaign_budgets set limit_tokens = 100000")
        .execute(&fixture.pool)
        .await
        .unwrap();
    fixture.write_agent("planner", &agent("planner", ON_OLLAMA));
    let posted_too = post(&fixture, "@planner Go.").await;
    eventually("the turn has begun", async || {
        let running = "select count(*) from dalsegno.turns where state = 'running'";
        (fixture.count(running).await == 1).then_some(())
    })
    .await;
    sqlx::query("update dalsegno.campaign_budgets set limit_tokens = 1, on_limit = 'fail'")
        .execute(&fixture.pool)
        .await
        .unwrap();
    fake.open();
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    let board = board(&fixture).await;
    let answer = answers_of(&board, posted_too.post.id)[0];
    assert_eq!(answer.text, "@ann go.");
    let notice = answers_of(&board, answer.id)[0];
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
async fn the_answer_of_an_interrupted_task_adds_no_tasks() {
    let fake = FakeOllama::playing([Play::gated("First", " @ann.")]).await;
    let url = format!("http://{}", fake.addr);
    let fixture = fixture(&["ann"], &[("ollama.base_url", url.as_str())]).await;
    fixture.write_agent("planner", &agent("planner", ON_OLLAMA));
    let worker = fixture.start_worker().await;
    let posted = post(&fixture, "Plan it.").await;
    let plan = task(&fixture, &posted, 0).await;
    let session_id = eventually("the task runs", async || {
        let plan = fixture.task(&plan).await;
        plan.session_id.filter(|_| plan.state == tasks::State::Running)
    })
    .await;
    let mut tx = fixture.pool.begin().await.unwrap();
    let now = fixture.clock.now();
    tasks::interrupt(&mut tx, session_id, tasks::InterruptMode::Soft, "not wanted", now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    fake.open();
    let plan = fixture.done(&plan).await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    assert!(plan.result.unwrap().contains("First @ann."));
    let board = board(&fixture).await;
    let answer = answers_of(&board, posted.post.id)[0];
    assert_eq!(answer.audience, ["operator"]);
    let notice = answers_of(&board, answer.id)[0];
    assert!(notice.text.starts_with("No task was added: "), "{:#?}", lines(&board));
    assert_eq!(fixture.count("select count(*) from dalsegno.tasks").await, 1);
}
