//! Files of tasks in the working directory of the real CLI.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use super::{Setup, WRITER};
use crate::turns::contexts;

const PDF: &[u8] = b"%PDF-1.4 of the harbour";

fn writer(tools: &str) -> String {
    WRITER.replace("model:", &format!("tools: {tools}\nmodel:"))
}

impl Setup {
    /// Returns the working directory of the only session.
    async fn working_folder(&self) -> PathBuf {
        let sql = "select external_session_id from dalsegno.sessions";
        let session: String = sqlx::query_scalar(sql).fetch_one(&self.fixture.pool).await.unwrap();
        let data = self.fixture.folder().canonicalize().unwrap().join("data/claude");
        data.join(session).join("work")
    }
}

#[tokio::test]
async fn an_agent_that_may_read_finds_its_files_and_another_is_told_of_them() {
    let Some(setup) = Setup::new(&[]).await else { return };
    setup.api.counts();
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &writer("Read"));
    let worker = fixture.start_worker().await;
    let first = fixture.add_with_files("Read it.", &[("report.pdf", PDF)]).await;
    fixture.done(&first).await;
    let digest = fixture.files(&first).await[0].sha256.clone().unwrap();
    let path = format!("in/{}/report.pdf", &digest[..8]);
    let said = setup.api.last_messages().join("\n");
    assert!(said.contains(&format!("file=\"{path}\"")), "{said}");
    let placed = setup.working_folder().await.join(&path);
    assert_eq!(fs::read(&placed).unwrap(), PDF);
    assert_eq!(fs::metadata(&placed).unwrap().permissions().mode() & 0o777, 0o400);
    // The next turn restores a file that is gone: an earlier message names it.
    fs::remove_file(&placed).unwrap();
    setup.run_prompt("Go on.").await;
    assert_eq!(fs::read(&placed).unwrap(), PDF);
    fixture.settled().await;
    worker.stop().await;
    contexts::assert_exact(&fixture.pool).await;

    fixture.write_agent("writer", &writer("Bash"));
    let worker = fixture.start_worker().await;
    let other = fixture.add_with_files("Read it.", &[("other.pdf", PDF)]).await;
    fixture.done(&other).await;
    let said = setup.api.last_messages().join("\n");
    assert!(said.contains("the agent has no tool to read files"), "{said}");
    fixture.settled().await;
    worker.stop().await;
}
