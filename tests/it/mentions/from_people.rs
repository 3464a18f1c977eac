//! Posts of people, and the tasks that they create.

use dalsegno::domain::{
    mentions,
    posts::Origin,
    tasks::{self, State},
};

use super::*;

#[tokio::test]
async fn each_mention_becomes_a_task_and_each_answer_a_reply() {
    let fixture = fixture(&["ann", "bea"], &[]).await;
    let posted = post(&fixture, "@ann, @bea: compare. [[sim: say I did.]]").await;
    assert_eq!(called(&posted), ["ann", "bea"]);
    assert_eq!(posted.post.audience, ["ann", "bea"]);
    assert!(posted.unknown.is_empty() && posted.notes.is_empty(), "{posted:?}");
    let ready = "select count(*) from dalsegno.jobs where state = 'ready'";
    assert_eq!(fixture.count(ready).await, 2, "each agent has its own lane");
    let worker = fixture.start_worker().await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    let board = board(&fixture).await;
    assert_eq!(board.len(), 3, "{board:#?}");
    for (place, name) in ["ann", "bea"].into_iter().enumerate() {
        let task = task(&fixture, &posted, place).await;
        assert_eq!((task.agent.as_str(), task.prompt.as_str()), (name, posted.post.text.as_str()));
        let answers = answers_of(&board, posted.post.id);
        let [answer] =
            answers.into_iter().filter(|post| post.sender == name).collect::<Vec<_>>()[..]
        else {
            panic!("{board:#?}")
        };
        assert_eq!(
            (answer.origin, answer.audience.as_slice()),
            (Origin::Agent, &["operator".to_owned()][..])
        );
        assert_eq!((answer.text.as_str(), answer.task_id), ("I did.", Some(task.id)));
        assert_eq!((answer.session_id, answer.turn), (task.session_id, task.turn));
    }
}

#[tokio::test]
async fn mentions_add_tasks_for_exactly_the_named_agents() {
    let fixture = fixture(&["ann", "anna", "ann_2", "bea"], &[]).await;
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("What is the status?", &["planner"], &["planner"]),
        ("@anna is not ann; mail ann@bea.example, `@bea` and \\@bea", &["anna"], &["anna"]),
        ("@ann. @ann, @ann!", &["ann"], &["ann"]),
        (
            "@ann_2 has a file, @bea_2 has none, @bea/eu",
            &["ann_2", "bea/2", "bea/eu"],
            &["ann_2", "bea/2", "bea/eu"],
        ),
        ("_@ann_ and **@bea**", &["ann", "bea"], &["ann", "bea"]),
        ("@all: stop.", &["ann", "ann_2", "anna", "bea", "planner", "writer"], &["all"]),
        ("For @operator alone", &[], &["operator"]),
        ("@ann, and @operator may read it", &["ann"], &["ann", "operator"]),
    ];
    for (text, expected, audience) in cases {
        let posted = post(&fixture, text).await;
        assert_eq!(called(&posted), *expected, "{text}");
        assert_eq!(posted.post.audience, *audience, "{text}");
        assert!(posted.unknown.is_empty(), "{text}");
    }
    let note = ["bea".to_owned()];
    let posted = post_to(&fixture, "For your information.", Some(&note)).await.unwrap();
    assert_eq!((called(&posted), posted.post.audience), (Vec::new(), vec!["bea".to_owned()]));
}

#[tokio::test]
async fn unknown_names_are_reported_with_the_closest_match_and_the_post_stays() {
    let fixture = fixture(&["ann"], &[]).await;
    let posted = post(&fixture, "@wriet and @Ann: @ann should know. @zzz!").await;
    assert_eq!(called(&posted), ["ann"]);
    let unknown: Vec<_> =
        posted.unknown.iter().map(|one| (one.name.as_str(), one.nearest.as_deref())).collect();
    assert_eq!(unknown, [("wriet", Some("writer")), ("Ann", Some("ann")), ("zzz", None)]);
    let posted = post(&fixture, "@stranger: go.").await;
    assert!(posted.tasks.is_empty() && posted.notes[0].contains("No task was added"), "{posted:?}");
    fixture.remove_agent("planner");
    let posted = post(&fixture, "Is anybody there?").await;
    assert!(
        posted.tasks.is_empty() && posted.notes[0].contains("no agent is the lead"),
        "{posted:?}"
    );
    assert_eq!(posted.post.audience, ["operator"]);
    assert_eq!(board(&fixture).await.len(), 3);
}

#[tokio::test]
async fn a_failed_mention_is_answered_with_its_error_and_affects_no_other() {
    let fixture = fixture(&["ann", "bea", "cid"], &[]).await;
    fixture.write_agent("bea", &agent("bea", "window_tokens: 1024\nreserve_tokens: 64\n"));
    let long = "The harbour has a mole. ".repeat(1000);
    let posted = post(&fixture, &format!("@ann @bea @cid: read. [[sim: say Read.]] {long}")).await;
    let cid = task(&fixture, &posted, 2).await;
    fixture.cancel(&cid).await;
    let worker = fixture.start_worker().await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    assert_eq!(task(&fixture, &posted, 1).await.state, State::Failed);
    let board = board(&fixture).await;
    assert_eq!(board.len(), 4, "{:#?}", lines(&board));
    let about = |place: usize| {
        let id = posted.tasks[place].task_id;
        board.iter().find(|post| post.task_id == Some(id)).unwrap()
    };
    assert_eq!((about(0).sender.as_str(), about(0).text.as_str()), ("ann", "Read."));
    for (place, words) in
        [(1, "`bea` did not answer: "), (2, "`cid` did not answer: its task was cancelled.")]
    {
        let post = about(place);
        assert_eq!((post.origin, post.sender.as_str()), (Origin::System, "system"));
        assert_eq!(
            (post.reply_to, post.audience.as_slice()),
            (Some(posted.post.id), &["operator".to_owned()][..])
        );
        assert!(post.text.starts_with(words), "{}", post.text);
    }
    // After a retry, it answers after all.
    let mut tx = fixture.pool.begin().await.unwrap();
    tasks::retry(&mut tx, cid.id, fixture.clock.now()).await.unwrap();
    tx.commit().await.unwrap();
    let worker = fixture.start_worker().await;
    wait_for_all_tasks(&fixture).await;
    worker.stop().await;
    let last = super::board(&fixture).await.pop().unwrap();
    assert_eq!((last.sender.as_str(), last.reply_to), ("cid", Some(posted.post.id)));
}

#[tokio::test]
async fn a_post_whose_tasks_are_refused_is_not_stored() {
    let fixture = fixture(&["ann"], &[("tasks.max_prompt_bytes", "1000")]).await;
    let error = try_post(&fixture, &format!("@ann {}", "a".repeat(1000))).await.unwrap_err();
    assert!(matches!(error, mentions::Error::Task(tasks::Error::Text(_))), "{error:?}");
    sqlx::query("update dalsegno.campaigns set status = 'closed', closed_at = now()")
        .execute(&fixture.pool)
        .await
        .unwrap();
    try_post(&fixture, "@ann: go.").await.unwrap_err();
    assert!(board(&fixture).await.is_empty());
    assert_eq!(fixture.count("select count(*) from dalsegno.tasks").await, 0);
}

#[tokio::test]
async fn an_agent_with_a_broken_file_gets_no_task_and_the_post_reports_it() {
    let fixture = fixture(&["ann", "bea"], &[]).await;
    fixture.write_agent("ann", "no front matter");
    let posted = post(&fixture, "@ann, @bea: compare.").await;
    assert_eq!(called(&posted), ["bea"]);
    assert!(posted.unknown.is_empty(), "{posted:?}");
    assert!(posted.notes.iter().any(|note| note.contains("`ann` got no task")), "{posted:?}");
    // The lead does not replace it.
    let posted = post(&fixture, "@ann: well?").await;
    assert!(called(&posted).is_empty() && posted.notes.len() == 1, "{posted:?}");
    let posted = post(&fixture, "@all: stop.").await;
    assert!(!called(&posted).contains(&"ann".to_owned()) && posted.notes.len() == 1, "{posted:?}");
    fixture.write_agent("planner", "no front matter");
    let posted = post(&fixture, "What is the status?").await;
    assert!(posted.notes[0].contains("one of them may be the lead: ann, planner"), "{posted:?}");
}
