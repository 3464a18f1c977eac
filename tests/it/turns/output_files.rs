//! Files that agents write for the readers of their tasks, on the simulation.

use std::os::unix::process::ExitStatusExt as _;

use dalsegno::domain::{
    task_files::{self, NewFiles, TaskFile},
    tasks::Task,
};
use rustix::process::Signal;
use serde_json::json;

use super::{Fixture, structured_results};
use crate::app::{noon, until_blocked};

impl Fixture {
    pub async fn files(&self, task: &Task) -> Vec<TaskFile> {
        task_files::list(&self.pool, task.id).await.unwrap()
    }

    pub async fn file(&self, task: &Task, name: &str) -> String {
        let file = task_files::read(&self.pool, task.id, name, None).await.unwrap();
        String::from_utf8(file.content).unwrap()
    }
}

/// Returns the names of stored files, and the others with the reason.
pub fn outline(files: &[TaskFile]) -> Vec<String> {
    let line = |file: &TaskFile| match &file.problem {
        None => file.name.clone(),
        Some(problem) => format!("{}: {problem}", file.name),
    };
    files.iter().map(line).collect()
}

const CONTENTS: &str = "select count(*) from dalsegno.file_contents";

#[tokio::test]
async fn a_file_is_stored_with_its_task_and_its_content_once() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let prompt = "Write. [[sim: file charts/a.csv a,b]] [[sim: file report.txt a,b]]";
    let task = fixture.done(&fixture.add(prompt).await).await;
    let other = fixture.add("Write. [[sim: file copy.txt a,b]] [[sim: file new.txt new]]").await;
    let other = fixture.done(&other).await;
    let none = fixture.done(&fixture.add("Write.").await).await;
    worker.stop().await;
    let files = fixture.files(&task).await;
    assert_eq!(outline(&files), ["charts/a.csv", "report.txt"]);
    assert_eq!((files[0].n_bytes, files[0].media_type.as_deref()), (Some(3), Some("text/plain")));
    assert_eq!(files[0].sha256, files[1].sha256);
    assert_eq!(fixture.file(&task, "report.txt").await, "a,b");
    assert_eq!(outline(&fixture.files(&other).await), ["copy.txt", "new.txt"]);
    assert!(fixture.files(&none).await.is_empty());
    assert_eq!(fixture.count(CONTENTS).await, 2);
    let events = fixture.feed().await;
    let n_files = |task: &Task| {
        let done = events.iter().find(|it| it.task_id == Some(task.id) && it.kind == "turn.done");
        done.unwrap().data.get("files").cloned()
    };
    assert_eq!((n_files(&task), n_files(&none)), (Some(json!(2)), None));
}

#[tokio::test]
async fn files_that_cannot_be_stored_are_reported_and_fail_nothing() {
    let limits = [
        ("output_files.max_files", "3"),
        ("output_files.max_file_bytes", "10"),
        ("output_files.max_turn_bytes", "15"),
    ];
    let fixture = Fixture::new(&limits).await;
    let worker = fixture.start_worker().await;
    let long = "n".repeat(300);
    let names = ["../x", "/etc/passwd", "\"new\\nline\"", "\"nul\\u0000\"", &long];
    let hostile: String = names.iter().map(|name| format!("[[sim: file {name} x]] ")).collect();
    let task = fixture.add(&format!("Write. [[sim: file ok ok]] {hostile}")).await;
    let task = fixture.done(&task).await;
    let prompt = "Write. [[sim: file a 0123456789]] [[sim: file b 01234567890]] [[sim: file c 012345]] \
                  [[sim: file d 1]] [[sim: file e 2]] [[sim: file f 3]]";
    let limited = fixture.done(&fixture.add(prompt).await).await;
    worker.stop().await;
    let outside = "its name is not a path below the folder `out`";
    let refused = |char: &str| {
        format!("its name contains the character {char}, which is not allowed in names")
    };
    assert_eq!(
        outline(&fixture.files(&task).await),
        [
            format!("../x: {outside}"),
            format!("/etc/passwd: {outside}"),
            format!("new\\u{{a}}line: {}", refused("U+000A")),
            format!("{}: its name has 300 bytes, more than 255", "n".repeat(200)),
            format!("nul\\u{{0}}: {}", refused("U+0000")),
            "ok".to_owned(),
        ]
    );
    assert_eq!(
        outline(&fixture.files(&limited).await),
        [
            "a",
            "b: it has 11 bytes, more than output_files.max_file_bytes (10)",
            "c: with its 6 bytes the turn has more than output_files.max_turn_bytes (15)",
            "d",
            "e",
            "f: the turn has more files than output_files.max_files (3)",
        ]
    );
    let error =
        task_files::read(&fixture.pool, limited.id, "b", None).await.unwrap_err().to_string();
    assert!(error.contains("output_files.max_file_bytes"), "{error}");
    let shown = fixture.run_command(&["task", "show", &limited.id.to_string()]).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("not stored: it has 11 bytes, more than output_files"), "{shown}");
}

#[tokio::test]
async fn a_later_turn_of_the_task_replaces_a_file() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let prompt = "Write. [[sim: json {\"title\": 7} once]] [[sim: file a.txt text]]";
    let task = structured_results::ask(&fixture, prompt).await;
    let task = fixture.done(&task).await;
    worker.stop().await;
    assert_eq!(fixture.turns(&task).await.len(), 2, "the first answer does not match");
    let files = fixture.files(&task).await;
    assert_eq!(outline(&files), ["a.txt"]);
    let mut new = NewFiles::default();
    new.add("a.txt", b"other text");
    task_files::store_contents(&fixture.pool, &new, noon()).await.unwrap();
    task_files::record(&fixture.pool, (task.id, 7), &new, noon()).await.unwrap();
    assert_eq!(fixture.files(&task).await[0].turn, Some(7));
    assert_eq!(fixture.file(&task, "a.txt").await, "other text");
    assert_eq!(task_files::remove_unused(&fixture.pool, 100).await.unwrap(), 1);
    assert_eq!(fixture.count(CONTENTS).await, 1);
}

/// A content that a turn is about to use has a locked row, or is stored again.
#[tokio::test]
async fn a_removal_beside_a_turn_leaves_the_content_that_it_uses() {
    let fixture = Fixture::new(&[]).await;
    let task = fixture.add("Write.").await;
    let mut new = NewFiles::default();
    new.add("a.txt", b"text");
    task_files::store_contents(&fixture.pool, &new, noon()).await.unwrap();
    let mut turn = fixture.pool.begin().await.unwrap();
    task_files::store_contents(&mut *turn, &new, noon()).await.unwrap();
    assert_eq!(task_files::remove_unused(&fixture.pool, 100).await.unwrap(), 0);
    task_files::record(&mut *turn, (task.id, 1), &new, noon()).await.unwrap();
    turn.commit().await.unwrap();
    assert_eq!(task_files::remove_unused(&fixture.pool, 100).await.unwrap(), 0);
    assert_eq!(fixture.file(&task, "a.txt").await, "text");
    sqlx::query("delete from dalsegno.task_files").execute(&fixture.pool).await.unwrap();
    assert_eq!(fixture.count(CONTENTS).await, 0, "the content goes with its last file");
}

#[tokio::test]
async fn a_crash_neither_loses_nor_doubles_a_file() {
    let points = [
        ("worker.crash_turns_at", "after_call"),
        ("worker.crash_turns_at", "before_job_end"),
        ("queue.crash_at", "after_end_write_before_commit"),
        ("queue.crash_at", "after_commit"),
    ];
    for (key, point) in points {
        let fixture = Fixture::new(&[]).await;
        let task = fixture.add("Write. [[sim: file report.txt text]]").await;
        let mut armed = fixture.process(&[(key, point)]);
        let died = armed.ended_after_pause().await;
        assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "at {point}: {}", armed.log());
        let n_before = if point == "after_commit" { 1 } else { 0 };
        assert_eq!(fixture.files(&task).await.len(), n_before, "{point}");
        assert_eq!(fixture.count(CONTENTS).await, n_before as i64, "{point}");
        let heir = fixture.process(&[]);
        let task = fixture.ended_after_pause(&task).await;
        assert_eq!(outline(&fixture.files(&task).await), ["report.txt"], "{point}");
        assert_eq!(fixture.count(CONTENTS).await, 1, "{point}");
        drop(heir);
    }
}

#[tokio::test]
async fn a_lost_lease_stores_no_file() {
    let fixture = Fixture::new(&[]).await;
    let mut new = NewFiles::default();
    new.add("old.txt", b"text");
    task_files::store_contents(&fixture.pool, &new, noon()).await.unwrap();
    // The end of the turn waits for the content, which it stores again.
    let mut lock = fixture.pool.begin().await.unwrap();
    let held = "select from dalsegno.file_contents for update";
    sqlx::query(held).execute(&mut *lock).await.unwrap();
    let task = fixture.add("Write. [[sim: file report.txt text]] [[sim: file b.txt b]]").await;
    let worker = fixture.start_worker().await;
    until_blocked(&fixture.pool).await;
    for sql in [
        "update dalsegno.sessions set lease = lease + 1",
        "update dalsegno.jobs set lease = lease + 1 where state = 'running'",
    ] {
        assert_eq!(sqlx::query(sql).execute(&fixture.pool).await.unwrap().rows_affected(), 1);
    }
    lock.rollback().await.unwrap();
    worker.stop_only().await;
    assert!(fixture.files(&task).await.is_empty());
    assert_eq!(fixture.count(CONTENTS).await, 1);
}

#[tokio::test]
async fn a_command_lists_and_saves_files_and_replaces_none() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let prompt = "Write. [[sim: file charts/a.csv a,b]] [[sim: file ../x x]]";
    let task = fixture.done(&fixture.add(prompt).await).await;
    worker.stop().await;
    let id = task.id.to_string();
    let listed = fixture.run_command(&["task", "files", &id]).await;
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("charts/a.csv") && listed.contains("text/plain"), "{listed}");
    assert!(listed.contains("not stored: its name is not a path below"), "{listed}");
    let save = ["task", "files", &id, "--save", "saved"];
    let saved = fixture.run_command(&save).await;
    assert!(saved.status.success(), "{saved:?}");
    assert!(String::from_utf8_lossy(&saved.stderr).contains("`../x` is not stored"), "{saved:?}");
    let path = fixture.folder().join("saved/charts/a.csv");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a,b");
    std::fs::write(&path, "of a person").unwrap();
    let again = fixture.run_command(&save).await;
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("already exists"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "of a person");
}
