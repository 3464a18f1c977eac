//! Flows from their start to their end.

use dalsegno::domain::{
    flows::State,
    tasks::{self, State as TaskState},
};

use super::{SERIES, ended, fixture, inputs, retry, show, start, states};

#[tokio::test]
async fn a_flow_runs_its_steps_in_order_and_each_gets_the_earlier_results() {
    let fixture = fixture().await;
    let given = inputs("a harbour", &["History [[sim: say old]]", "Boats [[sim: say wet]]"]);
    let flow = start(&fixture, "series", &given).await.unwrap();
    assert_eq!((flow.state, flow.tasks, flow.open), (State::Running, 5, 5));
    let shown = show(&fixture, flow.id).await;
    let steps: Vec<_> = shown
        .steps
        .iter()
        .map(|step| (step.step.as_str(), step.instance.as_str(), step.after.len()))
        .collect();
    let expected = [
        ("plan", "main", 0),
        ("draft", "part_1", 1),
        ("draft", "part_2", 1),
        ("review", "main", 2),
        ("finish", "main", 3),
    ];
    assert_eq!(steps, expected);
    let worker = fixture.start_worker().await;
    let shown = ended(&fixture, flow.id).await;
    worker.stop().await;
    assert_eq!((shown.flow.state, shown.flow.done), (State::Done, 5));
    assert!(shown.flow.ended_at.is_some());
    let get =
        async |place: usize| tasks::get(&fixture.pool, shown.steps[place].task_id).await.unwrap();
    let (plan, draft, finish) = (get(0).await, get(2).await, get(4).await);
    assert_eq!(plan.prompt, "Plan a harbour: - History [[sim: say old]]\n- Boats [[sim: say wet]]");
    assert_eq!(draft.prompt, "Write 2: Boats [[sim: say wet]]");
    assert_eq!(
        finish.session_id, plan.session_id,
        "the step runs in the planner's own conversation"
    );
    let told = tasks::predecessors(&fixture.pool, finish.id, 100).await.unwrap();
    let told: Vec<_> = told.iter().map(|one| one.text.as_deref().unwrap()).collect();
    assert_eq!(told, ["old", "wet", "fine"]);
    let detail =
        tasks::detail(&mut fixture.pool.acquire().await.unwrap(), finish.id).await.unwrap();
    assert_eq!(detail.added_by.as_deref(), Some("key boss"));
}

#[tokio::test]
async fn a_failed_step_cancels_strict_dependents_and_is_reported_to_the_others() {
    let fixture = fixture().await;
    // The planner's prompt has no part with a directive for another step.
    fixture
        .write_template("series", &SERIES.replace("Plan {{topic}}: {{parts}}", "Plan {{topic}}."));
    let given = inputs("x", &["fine", "[[sim: error 400]]"]);
    let flow = start(&fixture, "series", &given).await.unwrap();
    let worker = fixture.start_worker().await;
    let shown = ended(&fixture, flow.id).await;
    let expected = ["plan done", "draft done", "draft failed", "review cancelled", "finish done"];
    assert_eq!(
        (shown.flow.state, states(&shown)),
        (State::Failed, expected.map(str::to_owned).to_vec())
    );

    // A retry from the review keeps the parts, and repeats the tasks that depend on the review.
    let before = shown;
    let unknown = retry(&fixture, flow.id, "revue").await.unwrap_err().to_string();
    assert!(unknown.contains("did you mean `review`?"), "{unknown}");
    retry(&fixture, flow.id, "draft").await.unwrap();
    let shown = ended(&fixture, flow.id).await;
    worker.stop().await;
    let same: Vec<bool> = before
        .steps
        .iter()
        .zip(&shown.steps)
        .map(|(before, after)| before.task_id == after.task_id)
        .collect();
    assert_eq!(same, [true, false, false, false, false]);
    assert_eq!(states(&shown), states(&before), "the step fails again");
    assert_eq!(shown.steps[4].after, [1, 2, 3].map(|place: usize| shown.steps[place].task_id));
    let old = tasks::get(&fixture.pool, before.steps[2].task_id).await.unwrap();
    assert_eq!(old.state, TaskState::Failed, "finished steps stay");
    assert_eq!(shown.flow.tasks, 5);
}

#[tokio::test]
async fn an_invalid_start_of_a_flow_leaves_nothing() {
    let fixture = fixture().await;
    let long = "x".repeat(300_000);
    let error = start(&fixture, "series", &inputs(&long, &["a"])).await.unwrap_err().to_string();
    assert!(error.starts_with("step `plan`: "), "{error}");
    let left =
        "select (select count(*) from dalsegno.flows) + (select count(*) from dalsegno.tasks)";
    assert_eq!(fixture.count(left).await, 0);
}

#[tokio::test]
async fn tasks_of_a_step_have_its_time_for_answers_also_after_a_retry() {
    let fixture = fixture().await;
    fixture.write_template(
        "series",
        &SERIES.replace("    each: parts\n", "    each: parts\n    within: 24h\n"),
    );
    let flow = start(&fixture, "series", &inputs("x", &["a", "b"])).await.unwrap();
    let times = async || {
        let sql = "select t.within_secs from dalsegno.flow_steps as s join dalsegno.tasks as t on t.id = s.task_id
                    where s.flow_id = $1 order by s.place";
        let times = sqlx::query_scalar::<_, Option<i32>>(sql).bind(flow.id);
        times.fetch_all(&fixture.pool).await.unwrap()
    };
    let expected = [None, Some(86_400), Some(86_400), None, None];
    assert_eq!(times().await, expected);
    let first = show(&fixture, flow.id).await.steps[1].task_id;
    retry(&fixture, flow.id, "draft").await.unwrap();
    assert_ne!(show(&fixture, flow.id).await.steps[1].task_id, first);
    assert_eq!(times().await, expected);
}
