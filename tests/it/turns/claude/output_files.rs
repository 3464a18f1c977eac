//! Files that the real CLI writes to `out/` in its working directory.

use std::{os::unix::process::ExitStatusExt as _, path::PathBuf};

use rustix::process::Signal;
use serde_json::json;

use super::{Setup, WRITER};
use crate::{providers::claude::api::Play, turns::output_files::outline};

fn writer(tools: &str) -> String {
    WRITER.replace("model:", &format!("tools: {tools}\nmodel:"))
}

impl Setup {
    /// Returns the folder `out` of the only session.
    async fn output_folder(&self) -> PathBuf {
        let sql = "select external_session_id from dalsegno.sessions";
        let session: String = sqlx::query_scalar(sql).fetch_one(&self.fixture.pool).await.unwrap();
        let data = self.fixture.folder().canonicalize().unwrap().join("data/claude");
        data.join(session).join("work/out")
    }
}

#[tokio::test]
async fn what_a_tool_writes_is_stored_with_the_task_and_the_next_one_begins_empty() {
    let Some(setup) = Setup::new(&[("output_files.max_file_bytes", "1000")]).await else { return };
    setup.api.counts();
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &writer("Bash, Write"));
    let worker = fixture.start_worker().await;
    let command = "mkdir -p out/charts && printf a,b > out/charts/a.csv && ln -s /etc/passwd out/link && mkfifo out/pipe \
                   && printf '%2000s' > out/long && touch $'out/new\\nline' && printf x > beside.txt";
    setup.api.plays([Play::Calls("Bash", json!({ "command": command }))]);
    let first = setup.run_prompt("One.").await;
    let said = setup.api.last_messages();
    assert_eq!(
        outline(&fixture.files(&first).await),
        [
            "charts/a.csv",
            "link: it is a symbolic link, and only regular files are kept",
            "long: it has 2000 bytes, more than output_files.max_file_bytes (1000)",
            "new\\u{a}line: its name contains the character U+000A, which is not allowed in names",
            "pipe: it is a pipe, and only regular files are kept",
        ],
        "{said:?}"
    );
    let report = setup.output_folder().await.join("report.txt");
    let write = json!({ "file_path": report, "content": "All is well." });
    setup.api.plays([Play::Calls("Write", write)]);
    let second = setup.run_prompt("Two.").await;
    assert_eq!(outline(&fixture.files(&second).await), ["report.txt"]);
    assert_eq!(fixture.file(&second, "report.txt").await, "All is well.");
    let third = setup.run_prompt("Three.").await;
    assert!(fixture.files(&third).await.is_empty());
    // An agent that may not write has no such folder.
    fixture.write_agent("writer", &writer("Read"));
    setup.run_prompt("Four.").await;
    fixture.settled().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_retry_after_a_crash_stores_what_the_lost_turn_has_written() {
    let Some(setup) = Setup::new(&[]).await else { return };
    setup.api.counts();
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &writer("Bash"));
    setup.api.plays([Play::Calls("Bash", json!({ "command": "printf text > out/report.txt" }))]);
    let task = fixture.add("One.").await;
    let mut armed = fixture.process(&[("worker.crash_turns_at", "after_call")]);
    let died = armed.ended_after_pause().await;
    assert_eq!(died.signal(), Some(Signal::ABORT.as_raw()), "{}", armed.log());
    assert!(fixture.files(&task).await.is_empty());
    let heir = fixture.process(&[]);
    let task = fixture.ended_after_pause(&task).await;
    assert_eq!(outline(&fixture.files(&task).await), ["report.txt"], "{}", heir.log());
    assert_eq!(fixture.count("select count(*) from dalsegno.file_contents").await, 1);
    drop(heir);
}
