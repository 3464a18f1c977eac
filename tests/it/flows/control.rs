//! Pausing, resuming, retrying and cancelling flows.

use dalsegno::domain::{
    attention,
    bulk_actions::{self, Action},
    erasures, explanations,
    flows::{self, State},
    tasks::{self, State as TaskState},
    transaction::{begin, commit},
};

use super::{ended, fixture, inputs, retry, show, start, states, task};
use crate::{
    app::{eventually, noon, until_blocked},
    turns::fixture::Fixture,
};

async fn pause(fixture: &Fixture, id: uuid::Uuid) -> Result<flows::Flow, flows::Error> {
    let mut tx = begin(&fixture.pool).await.unwrap();
    let flow = flows::pause(&mut tx, id, noon()).await?;
    commit(tx).await.unwrap();
    Ok(flow)
}

async fn cancel(fixture: &Fixture, id: uuid::Uuid) -> Result<flows::CancelledFlow, flows::Error> {
    let mut tx = begin(&fixture.pool).await.unwrap();
    let cancelled = flows::cancel(&mut tx, id, "too late", noon()).await?;
    commit(tx).await.unwrap();
    Ok(cancelled)
}

async fn resume(fixture: &Fixture, id: uuid::Uuid) -> Result<flows::Flow, flows::Error> {
    let mut tx = begin(&fixture.pool).await.unwrap();
    let flow = flows::resume(&mut tx, id, noon()).await?;
    commit(tx).await.unwrap();
    Ok(flow)
}

#[tokio::test]
async fn no_task_of_a_paused_flow_begins_and_others_continue() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("x", &["a", "b"])).await.unwrap();
    assert_eq!(pause(&fixture, flow.id).await.unwrap().state, State::Paused);
    assert!(matches!(pause(&fixture, flow.id).await, Err(flows::Error::Paused(_))));
    assert!(matches!(retry(&fixture, flow.id, "plan").await, Err(flows::Error::Paused(_))));
    let other = fixture.add_for("planner", "main", "Meanwhile.").await;
    let worker = fixture.start_worker().await;
    // It is in the lane of the step that would begin.
    fixture.done(&other).await;
    let plan = task(&fixture, flow.id, 0).await;
    assert_eq!(plan.state, TaskState::Queued);
    let mut conn = fixture.pool.acquire().await.unwrap();
    let told = explanations::explain(&mut conn, plan.id).await.unwrap();
    assert!(told.because.contains("is paused") && told.next.contains("flow resume"), "{told:?}");
    resume(&fixture, flow.id).await.unwrap();
    assert!(matches!(resume(&fixture, flow.id).await, Err(flows::Error::NotPaused(_))));
    let shown = ended(&fixture, flow.id).await;
    worker.stop().await;
    assert_eq!(shown.flow.state, State::Done, "{:?}", states(&shown));
    assert!(matches!(pause(&fixture, flow.id).await, Err(flows::Error::Ended(_))));
}

#[tokio::test]
async fn a_running_step_of_a_paused_flow_ends_and_starts_no_other() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("x", &["a", "b"])).await.unwrap();
    let plan = task(&fixture, flow.id, 0).await;
    let mut ending = fixture.pool.begin().await.unwrap();
    let done = tasks::End::Done { result: "A plan.", result_json: None };
    tasks::end(&mut ending, plan.id, done, dalsegno::domain::Amount::ZERO, noon()).await.unwrap();
    // Both at once: in either order of commits, no step begins.
    let (paused, ended_) = tokio::join!(pause(&fixture, flow.id), ending.commit());
    paused.unwrap();
    ended_.unwrap();
    let waiting = "select count(*) from dalsegno.jobs where kind = 'run_joined_turn' and wait_reason = 'signal'";
    assert_eq!(fixture.count(waiting).await, 4);
    resume(&fixture, flow.id).await.unwrap();
    assert_eq!(fixture.count(waiting).await, 2, "the two parts are missing");
}

#[tokio::test]
async fn the_end_of_a_step_and_the_resumption_of_its_flow_do_not_block_each_other() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
    pause(&fixture, flow.id).await.unwrap();
    let plan = task(&fixture, flow.id, 0).await;
    let mut ending = fixture.pool.begin().await.unwrap();
    let done = tasks::End::Done { result: "A plan.", result_json: None };
    tasks::end(&mut ending, plan.id, done, dalsegno::domain::Amount::ZERO, noon()).await.unwrap();
    // It holds the row of the flow by now, and waits for that of the step.
    let commits = async {
        until_blocked(&fixture.pool).await;
        ending.commit().await
    };
    let (resumed, ended) = tokio::join!(resume(&fixture, flow.id), commits);
    ended.unwrap();
    resumed.unwrap();
    let waiting = "select count(*) from dalsegno.jobs where kind = 'run_joined_turn' and wait_reason = 'signal'";
    assert_eq!(fixture.count(waiting).await, 2, "the part continues");
}

#[tokio::test]
async fn the_end_of_a_step_and_a_change_of_its_flow_do_not_block_each_other() {
    for retries in [false, true] {
        let fixture = fixture().await;
        let flow = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
        let plan = task(&fixture, flow.id, 0).await;
        let mut ending = fixture.pool.begin().await.unwrap();
        let done = tasks::End::Done { result: "A plan.", result_json: None };
        let spent = dalsegno::domain::Amount::ZERO;
        tasks::end(&mut ending, plan.id, done, spent, noon()).await.unwrap();
        let commits = async {
            until_blocked(&fixture.pool).await;
            ending.commit().await
        };
        if retries {
            let (retried, ended) = tokio::join!(retry(&fixture, flow.id, "review"), commits);
            ended.unwrap();
            retried.unwrap();
            let waiting = "select count(*) from dalsegno.jobs where kind = 'run_joined_turn' and wait_reason = 'signal'";
            assert_eq!(fixture.count(waiting).await, 2, "the part continues at once");
        } else {
            let (cancelled, ended) = tokio::join!(cancel(&fixture, flow.id), commits);
            ended.unwrap();
            let cancelled = cancelled.unwrap();
            assert_eq!((cancelled.cancel.cancelled, cancelled.had_ended), (3, 1));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn many_concurrent_ends_and_changes_of_flows_cause_no_deadlock() {
    let fixture = fixture().await;
    for _ in 0..20 {
        let parts = ["a", "b", "c", "d"];
        let flow = start(&fixture, "series", &inputs("x", &parts)).await.unwrap();
        let steps = show(&fixture, flow.id).await.steps;
        let end = async |task_id| {
            let mut tx = fixture.pool.begin().await.unwrap();
            let done = tasks::End::Done { result: "A part.", result_json: None };
            let spent = dalsegno::domain::Amount::ZERO;
            match tasks::end(&mut tx, task_id, done, spent, noon()).await {
                Err(error) => assert!(matches!(error, tasks::Error::Ended { .. }), "{error:?}"),
                Ok(()) => tx.commit().await.unwrap(),
            }
        };
        let ends = futures_util::future::join_all(steps.iter().map(|step| end(step.task_id)));
        let ((), retried, cancelled) = tokio::join!(
            async { drop(ends.await) },
            retry(&fixture, flow.id, "review"),
            cancel(&fixture, flow.id)
        );
        for error in retried.err().into_iter().chain(cancelled.err()) {
            assert!(matches!(error, flows::Error::Ended(_)), "{error:?}");
        }
    }
    let deadlocks =
        "select pg_stat_get_db_deadlocks(oid) from pg_database where datname = current_database()";
    assert_eq!(fixture.count(deadlocks).await, 0);
}

#[tokio::test]
async fn the_sweep_of_waits_does_not_write_to_a_paused_flow() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
    pause(&fixture, flow.id).await.unwrap();
    let rows = "select coalesce(sum(hashtext(w.ctid::text || w::text)), 0)::bigint from dalsegno.task_waits as w";
    let before = fixture.count(rows).await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    crate::dependencies::end_due_waits(&mut conn).await;
    assert_eq!(fixture.count(rows).await, before);
}

/// All ways in which the job of a step returns while the flow is paused.
#[tokio::test]
async fn a_job_that_returns_during_a_pause_is_held_when_its_turn_would_begin() {
    let fixture = fixture().await;
    let mut flows = Vec::new();
    let again = async |id: uuid::Uuid| {
        let mut tx = begin(&fixture.pool).await.unwrap();
        tasks::retry(&mut tx, id, noon()).await.unwrap();
        commit(tx).await.unwrap();
    };
    let services = fixture.services(&[]);
    // All of them are in one lane, and only its head can have been postponed.
    for how in ["put off", "tried again after a turn", "tried again", "released", "was locked"] {
        let topic = match how {
            "tried again after a turn" => "x [[sim: error 400 once]]",
            _ => "x",
        };
        let flow = start(&fixture, "series", &inputs(topic, &["a"])).await.unwrap();
        let plan = task(&fixture, flow.id, 0).await;
        let run = async |sql: &'static str| {
            sqlx::query(sql).bind(plan.job_id).execute(&fixture.pool).await.unwrap();
        };
        match how {
            "tried again" => {
                fixture.cancel(&plan).await;
                pause(&fixture, flow.id).await.unwrap();
                again(plan.id).await;
            }
            "tried again after a turn" => {
                let worker = fixture.start_worker_on(services.clone(), &[]).await;
                fixture.ended(&plan).await;
                worker.stop().await;
                pause(&fixture, flow.id).await.unwrap();
                again(plan.id).await;
            }
            "released" => {
                run("select dalsegno.hold_job($1, 'a look at it')").await;
                pause(&fixture, flow.id).await.unwrap();
                run("select dalsegno.release_job($1)").await;
            }
            "put off" => {
                run("update dalsegno.jobs set state = 'scheduled', wait_reason = 'snooze' where id = $1").await;
                pause(&fixture, flow.id).await.unwrap();
            }
            _ => {
                let mut other = fixture.pool.begin().await.unwrap();
                let lock = "select from dalsegno.jobs where id = $1 for update";
                sqlx::query(lock).bind(plan.job_id).execute(&mut *other).await.unwrap();
                pause(&fixture, flow.id).await.unwrap();
                other.rollback().await.unwrap();
            }
        }
        flows.push((flow.id, how));
    }
    let worker = fixture.start_worker_on(services, &[]).await;
    // In the same lane, behind all of them.
    fixture.done(&fixture.add_for("planner", "main", "Meanwhile.").await).await;
    for (id, how) in &flows {
        let plan = task(&fixture, *id, 0).await;
        assert_eq!(plan.state, TaskState::Queued, "{how}");
        let told = explanations::explain(&mut fixture.pool.acquire().await.unwrap(), plan.id)
            .await
            .unwrap();
        assert!(told.because.contains("is paused"), "{how}: {told:?}");
        let aside =
            "select wait_reason = 'signal' and attempt = 0 from dalsegno.jobs where id = $1";
        let is_aside: bool =
            sqlx::query_scalar(aside).bind(plan.job_id).fetch_one(&fixture.pool).await.unwrap();
        assert!(is_aside, "{how}");
        resume(&fixture, *id).await.unwrap();
    }
    for (id, how) in &flows {
        let shown = ended(&fixture, *id).await;
        assert_eq!(shown.flow.state, State::Done, "{how}: {:?}", states(&shown));
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_pause_does_not_change_the_handling_of_failures() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
    for place in [0, 1] {
        let step = task(&fixture, flow.id, place).await;
        let mut tx = begin(&fixture.pool).await.unwrap();
        let done = tasks::End::Done { result: "Done.", result_json: None };
        tasks::end(&mut tx, step.id, done, dalsegno::domain::Amount::ZERO, noon()).await.unwrap();
        commit(tx).await.unwrap();
    }
    // The review could begin now.
    pause(&fixture, flow.id).await.unwrap();
    resume(&fixture, flow.id).await.unwrap();
    let steps = tasks::of_flow(&fixture.pool, flow.id).await.unwrap();
    assert_eq!((steps[2].step.as_str(), steps[2].on_failure), ("review", tasks::OnFailure::Cancel));
}

#[tokio::test]
async fn a_cancelled_flow_is_cancelled_as_a_whole_with_a_reason() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
    let mut tx = begin(&fixture.pool).await.unwrap();
    let cancelled = flows::cancel(&mut tx, flow.id, "too late", noon()).await.unwrap();
    commit(tx).await.unwrap();
    assert_eq!((cancelled.flow.state, cancelled.flow.cancelled), (State::Cancelled, 4));
    assert_eq!(cancelled.cancel, tasks::DescendantCounts { cancelled: 4, stopping: 0 });
    assert_eq!(cancelled.had_ended, 0);
    let mut conn = fixture.pool.acquire().await.unwrap();
    for step in show(&fixture, flow.id).await.steps {
        let why = tasks::detail(&mut conn, step.task_id).await.unwrap().cancelled_because.unwrap();
        assert_eq!(why, format!("too late (with its flow {})", flow.id), "{}", step.step);
    }
    let again = flows::cancel(&mut conn, flow.id, "x", noon()).await.unwrap_err();
    assert!(matches!(again, flows::Error::Ended(_)), "{again}");
    // From its first step it starts again.
    assert_eq!(retry(&fixture, flow.id, "plan").await.unwrap().state, State::Running);
}

#[tokio::test]
async fn cancelling_a_flow_lists_ended_running_and_cancelled_tasks() {
    let fixture = fixture().await;
    fixture.write_template("series", &super::SERIES.replace("{{item}}", "{{item}} [[sim: stall]]"));
    let flow = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
    let worker = fixture.start_worker().await;
    eventually("the draft runs", async || {
        (task(&fixture, flow.id, 1).await.state == TaskState::Running).then_some(())
    })
    .await;
    let mut tx = begin(&fixture.pool).await.unwrap();
    let cancelled = flows::cancel(&mut tx, flow.id, "too late", noon()).await.unwrap();
    commit(tx).await.unwrap();
    assert_eq!(cancelled.cancel, tasks::DescendantCounts { cancelled: 2, stopping: 1 });
    assert_eq!((cancelled.had_ended, cancelled.flow.open), (1, 1));
    ended(&fixture, flow.id).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_retried_step_leaves_no_dead_letter() {
    let fixture = fixture().await;
    let fails = super::SERIES.replace("{{item}}", "{{item}} [[sim: error 404]]");
    fixture.write_template("series", &fails);
    let flow = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
    let worker = fixture.start_worker().await;
    ended(&fixture, flow.id).await;
    worker.stop().await;
    let letters = "select count(*) from dalsegno.dead_jobs";
    assert_eq!(fixture.count(letters).await, 1);
    retry(&fixture, flow.id, "draft").await.unwrap();
    assert_eq!(fixture.count(letters).await, 0);
}

/// Returns the flow's events in order.
async fn flow_events(fixture: &Fixture) -> Vec<String> {
    let feed = fixture.feed().await.into_iter().filter(|event| event.kind.starts_with("flow."));
    let words = |event: dalsegno::domain::feed::Event| match event.data["state"].as_str() {
        Some(state) => format!("{} {state}", event.kind),
        None => event.kind,
    };
    feed.map(words).collect()
}

#[tokio::test]
async fn the_feed_reports_changes_and_the_end_of_a_flow() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("x", &["a", "b"])).await.unwrap();
    pause(&fixture, flow.id).await.unwrap();
    resume(&fixture, flow.id).await.unwrap();
    let worker = fixture.start_worker().await;
    ended(&fixture, flow.id).await;
    let before = ["flow.started", "flow.paused", "flow.resumed", "flow.ended done"];
    assert_eq!(flow_events(&fixture).await, before);
    retry(&fixture, flow.id, "review").await.unwrap();
    ended(&fixture, flow.id).await;
    worker.stop().await;
    // Cancelled as a whole: four of its tasks end in one transaction.
    let other = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
    let mut tx = begin(&fixture.pool).await.unwrap();
    flows::cancel(&mut tx, other.id, "too late", noon()).await.unwrap();
    commit(tx).await.unwrap();
    let after = ["flow.retried", "flow.ended done", "flow.started", "flow.ended cancelled"];
    assert_eq!(flow_events(&fixture).await, [&before[..], &after].concat());
    let ends = fixture.feed().await.into_iter().filter(|event| event.kind == "flow.ended");
    let ids: Vec<_> = ends.map(|event| event.data["flow_id"].clone()).collect();
    let [first, second] = [flow.id, other.id].map(|id| serde_json::json!(id));
    assert_eq!(ids, [first.clone(), first, second]);
}

/// Each of them sees the others as open until it ends.
#[tokio::test]
async fn the_end_of_a_flow_is_reported_once_for_concurrent_ends() {
    let fixture = fixture().await;
    fixture.write_template(
        "wide",
        "---\nname: wide\ndescription: d\ninputs:\n  parts: One line each\nsteps:\n  - step: draft\n    agent: copywriter\n    instance: part\n    each: parts\n---\n## draft\n\nWrite {{item}}\n",
    );
    for _ in 0..10 {
        let parts = serde_json::json!({ "parts": ["a", "b", "c", "d", "e", "f"] });
        let inputs: flows::Inputs = serde_json::from_value(parts).unwrap();
        let flow = start(&fixture, "wide", &inputs).await.unwrap();
        let end = async |task_id| {
            let mut tx = fixture.pool.begin().await.unwrap();
            let done = tasks::End::Done { result: "A part.", result_json: None };
            tasks::end(&mut tx, task_id, done, dalsegno::domain::Amount::ZERO, noon())
                .await
                .unwrap();
            tx.commit().await.unwrap();
        };
        let steps = show(&fixture, flow.id).await.steps;
        futures_util::future::join_all(steps.iter().map(|step| end(step.task_id))).await;
        assert_eq!(show(&fixture, flow.id).await.flow.state, State::Done);
    }
    let told = flow_events(&fixture).await;
    let ends = told.iter().filter(|kind| *kind == "flow.ended done").count();
    assert_eq!((ends, told.len()), (10, 20), "{told:?}");
}

#[tokio::test]
async fn an_erasure_removes_inputs_and_reasons_of_flows() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("xylograph", &["xylograph"])).await.unwrap();
    let mut tx = begin(&fixture.pool).await.unwrap();
    flows::cancel(&mut tx, flow.id, "xylograph", noon()).await.unwrap();
    erasures::request(&mut tx, fixture.campaign.id, "by request", noon()).await.unwrap();
    let mut step = Some(erasures::Step::FIRST);
    while let Some(now) = step {
        let more = erasures::next_batch(&mut tx, fixture.campaign.id, now).await.unwrap();
        step = if more { Some(now) } else { now.next() };
    }
    erasures::finish(&mut tx, fixture.campaign.id, 0, noon()).await.unwrap();
    commit(tx).await.unwrap();
    for sql in [
        "select count(*) from dalsegno.tasks as t where t::text like '%xylograph%'",
        "select count(*) from dalsegno.flows as f where f::text like '%xylograph%'",
        "select count(*) from dalsegno.feed as f where f::text like '%xylograph%'",
        "select count(*) from dalsegno.runs as r where r::text like '%xylograph%'",
    ] {
        assert_eq!(fixture.count(sql).await, 0, "{sql}");
    }
}

#[tokio::test]
async fn a_failed_step_is_retried_with_its_flow_and_then_needs_no_person() {
    let fixture = fixture().await;
    let flow = start(&fixture, "series", &inputs("x", &["a"])).await.unwrap();
    let plan = task(&fixture, flow.id, 0).await;
    let fail = "update dalsegno.tasks set state = 'failed', started_at = created_at, ended_at = $2, error = 'no login' where id = $1";
    sqlx::query(fail).bind(plan.id).bind(noon()).execute(&fixture.pool).await.unwrap();
    let mut conn = fixture.pool.acquire().await.unwrap();
    let listed = attention::list(&mut conn, 0, noon()).await.unwrap().items;
    let failed = listed.iter().find(|it| it.kind == attention::Kind::FailedTask).unwrap();
    let retry_flow = format!("dalsegno flow retry {} --from plan", flow.id);
    assert_eq!((&failed.command, failed.flow_id), (&retry_flow, Some(flow.id)));
    let told = explanations::explain(&mut conn, plan.id).await.unwrap();
    assert!(told.next.contains(&format!("`{retry_flow}`")), "{told:?}");
    // Many tasks at once: the preview says why the step is left out, and the action leaves it as it is.
    let filter = tasks::TaskFilter { agent: Some("planner".to_owned()), ..Default::default() };
    let preview = bulk_actions::preview(
        &mut conn,
        Action::Retry,
        &filter,
        noon() + chrono::TimeDelta::days(9_000),
    );
    let preview = preview.await.unwrap();
    assert_eq!((preview.matched, preview.refused.len()), (1, 1), "{preview:?}");
    assert_eq!(
        (&preview.refused[0].command, preview.refused[0].flow_id),
        (&retry_flow, Some(flow.id))
    );
    assert!(preview.describe_refused().contains("is a step of a flow"), "{preview:?}");
    let new = bulk_actions::New {
        action: Action::Retry,
        filter: &filter,
        reason: "",
        expected_count: None,
    };
    let action = bulk_actions::request(&mut conn, &new, noon()).await.unwrap();
    assert!(bulk_actions::start(&fixture.pool, action.id, noon()).await.unwrap());
    bulk_actions::step(&mut conn, &action, plan.id, noon()).await.unwrap();
    let action = bulk_actions::get(&fixture.pool, action.id).await.unwrap();
    assert_eq!((action.done, action.skipped), (0, 1));
    assert_eq!(task(&fixture, flow.id, 0).await.state, TaskState::Failed);
    retry(&fixture, flow.id, "plan").await.unwrap();
    let listed = attention::list(&mut conn, 0, noon()).await.unwrap().items;
    assert!(listed.iter().all(|it| it.kind != attention::Kind::FailedTask), "{listed:?}");
    assert_ne!(task(&fixture, flow.id, 0).await.id, plan.id);
}
