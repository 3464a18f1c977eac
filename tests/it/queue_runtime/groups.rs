//! Groups: claims look at 32 of them, and reach all.

use dalsegno::queue::{End, HandlerResult, Job, Options, Registry, Run, enqueue, enqueue_many};
use serde::{Deserialize, Serialize};

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog},
};

/// A job that notes its group.
#[derive(Debug, Serialize, Deserialize)]
struct GroupJob {
    group: String,
}

impl Job for GroupJob {
    const KIND: &'static str = "note_group";
}

async fn note_group(job: GroupJob, _run: Run, handler_log: HandlerLog) -> HandlerResult {
    handler_log.note(job.group);
    Ok(End::Done)
}

/// The worker is not woken between the claims of a round: it polls once an hour.
#[tokio::test(flavor = "multi_thread")]
async fn groups_with_jobs_of_unknown_kinds_hide_no_group_behind_them() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let strange = "SELECT count(dalsegno.enqueue('strange', group_key => 'group-' || n)) FROM generate_series(100, 199) AS n";
    let n_strange: i64 = sqlx::query_scalar(strange).fetch_one(&fixture.pool).await.unwrap();
    let put = async |group: &str| {
        let options = Options { group_key: Some(group.to_owned()), ..Options::default() };
        enqueue(&fixture.pool, &TestJob::Nothing, &options).await.unwrap().job_id
    };
    let last = put("z").await;
    let worker =
        fixture.start(Fixture::notification_config(), Registry::new(handler_log).with(act));
    fixture.until_state(last, "gone").await;
    for group in ["group-150", "group-050", "group-199"] {
        fixture.until_state(put(group).await, "gone").await;
    }
    let left = "SELECT count(*) FROM dalsegno.jobs WHERE kind = 'strange' AND state = 'ready'";
    let n_left: i64 = sqlx::query_scalar(left).fetch_one(&fixture.pool).await.unwrap();
    assert_eq!((n_strange, n_left), (100, 100));
    worker.stop().await;
}

/// The group of the urgent job is behind the 32 of the first claim, and others are behind it.
#[tokio::test(flavor = "multi_thread")]
async fn an_urgent_job_of_any_group_runs_first_and_the_groups_keep_their_turns() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let groups: Vec<String> = (100..140).map(|n| format!("group-{n}")).collect();
    let urgent = "group-135-urgent";
    let usual = groups.iter().map(|group| (group.as_str(), None));
    let jobs = usual.chain([(urgent, Some(10))]).map(|(group, priority)| {
        let options = Options { group_key: Some(group.to_owned()), priority, ..Options::default() };
        (GroupJob { group: group.to_owned() }, options)
    });
    enqueue_many(&fixture.pool, jobs).await.unwrap();
    let config = dalsegno::queue::Config { slots: 1, ..Fixture::config() };
    let worker = fixture.start(config, Registry::new(handler_log.clone()).with(note_group));
    let lines = handler_log.until(groups.len() + 1).await;
    assert_eq!((lines[0].as_str(), &lines[1..]), (urgent, &groups[..]));
    worker.stop().await;
}
