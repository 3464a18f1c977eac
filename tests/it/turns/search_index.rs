//! The search in ended tasks before and after a job has computed their words.

use dalsegno::domain::{tasks, text_search, transaction};

use super::Fixture;
use crate::app::{eventually, until_blocked};

const BACKLOG: &str = "select count(*) from dalsegno.search_backlog";
const INDEXED: &str =
    "select count(*) from dalsegno.search_words where words @@ dalsegno.text_query('quay')";

impl Fixture {
    /// Returns the number of tasks that `dalsegno search` finds.
    async fn n_found(&self, words: &str) -> usize {
        let found = self.run_command(&["search", words, "--kind", "task", "--json"]).await;
        assert!(found.status.success(), "{found:?}");
        let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
        found.as_array().unwrap().len()
    }

    async fn request_index(&self) {
        let mut tx = transaction::begin(&self.pool).await.unwrap();
        text_search::request_index(&mut tx).await.unwrap();
        transaction::commit(tx).await.unwrap();
    }
}

#[tokio::test]
async fn an_ended_task_is_found_once_before_and_after_its_words_are_computed() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("The quay at night.").await;
    fixture.done(&task).await;
    worker.stop().await;
    assert_eq!((fixture.count(BACKLOG).await, fixture.count(INDEXED).await), (1, 0));
    assert_eq!(fixture.n_found("quay").await, 1);
    fixture.request_index().await;
    let upkeep = fixture.upkeep().await;
    eventually("the words are computed", async || {
        (fixture.count(BACKLOG).await == 0).then_some(())
    })
    .await;
    assert_eq!(fixture.count(INDEXED).await, 1);
    assert_eq!(fixture.n_found("quay").await, 1);
    // It looks for more later, and ends once it has found none.
    let waits =
        "select count(*) from dalsegno.jobs where kind = 'index_texts' and state = 'scheduled'";
    eventually("the job waits", async || (fixture.count(waits).await == 1).then_some(())).await;
    fixture.end_waits().await;
    let rows = "select count(*) from dalsegno.jobs where kind = 'index_texts'";
    eventually("the job ends", async || (fixture.count(rows).await == 0).then_some(())).await;
    fixture.request_index().await;
    assert_eq!(fixture.count(rows).await, 0, "there is nothing to do");
    upkeep.stop().await;
}

#[tokio::test]
async fn no_words_of_an_erased_text_remain() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    for prompt in ["The quay at night.", "The quay by day."] {
        fixture.done(&fixture.add(prompt).await).await;
    }
    worker.stop().await;
    assert_eq!(tasks::index_words(&fixture.pool, 1).await.unwrap(), 1);
    assert_eq!(fixture.count(INDEXED).await, 1);
    let campaign_id = fixture.campaign.id;
    let mut erasure = fixture.pool.begin().await.unwrap();
    assert_eq!(tasks::erase_some(&mut *erasure, campaign_id, 10).await.unwrap().ids.len(), 2);
    // The job waits for the erasure, rather than reading the text before it.
    let pool = fixture.pool.clone();
    let job = tokio::spawn(async move { tasks::index_words(&pool, 10).await.unwrap() });
    until_blocked(&fixture.pool).await;
    erasure.commit().await.unwrap();
    job.await.unwrap();
    // At once: words that were computed before go with the erasure, not with the next run of the job.
    assert_eq!(fixture.count(INDEXED).await, 0);
    tasks::index_words(&fixture.pool, 10).await.unwrap();
    assert_eq!((fixture.count(BACKLOG).await, fixture.count(INDEXED).await), (0, 0));
    assert_eq!(fixture.count("select count(*) from dalsegno.search_words").await, 2);
}
