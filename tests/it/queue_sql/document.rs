//! The drawing of the state machine, compared with the schema.

use crate::app::TestDatabase;

#[tokio::test]
async fn every_term_of_the_schema_occurs_in_the_drawing() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/queue-states.md");
    let text = std::fs::read_to_string(path).unwrap();
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let rules: Vec<(String, String)> = sqlx::query_as(
        "SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint
          WHERE conname IN ('job_state_known', 'wait_reason_known', 'hold_by_known', 'lane_policy_known',
                            'run_outcome_known', 'dead_jobs_reason_known', 'workers_gone_reason_known')",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(rules.len(), 7, "{rules:?}");
    for (name, rule) in rules {
        // The words are quoted; the rest is syntax.
        let words: Vec<&str> = rule.split('\'').skip(1).step_by(2).collect();
        assert!(words.len() > 1, "{rule}");
        for word in words {
            assert!(
                text.contains(&format!("`{word}`")),
                "`{word}` of {name} is not in the drawing"
            );
        }
    }
    pool.close().await;
}

/// The races of a statement that moves jobs have to be documented.
#[test]
fn every_statement_that_moves_jobs_occurs_in_the_document() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/reference/queue-states.md")).unwrap();
    for entry in std::fs::read_dir(root.join("crates/queue/src/sql")).unwrap() {
        let path = entry.unwrap().path();
        let sql = std::fs::read_to_string(&path).unwrap();
        let moves = ["UPDATE dalsegno.jobs", "DELETE FROM dalsegno.jobs", "dalsegno.promote_due("]
            .iter()
            .any(|words| sql.contains(words));
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(!moves || text.contains(&format!("`{name}`")), "{name} is not in the document");
    }
}
