//! Warnings at the start, before the first task fails.

use super::{Setup, WRITER};
use crate::{app::eventually, providers::claude::cli::Cli};

#[tokio::test]
async fn an_unusable_model_of_a_chain_and_a_missing_price_are_logged_at_the_start() {
    let setup = Setup::on(&Cli::Fake, &[]).await.unwrap();
    let fixture = &setup.fixture;
    fixture.write_agent(
        "writer",
        &WRITER.replace(
            "provider: claude\nmodel: claude-sonnet-5",
            "model: [claude/claude-sonnet-5, ollama]",
        ),
    );
    let mut worker = fixture.process(&[]);
    let said = eventually("the warnings are in the log", async || {
        let log = worker.log();
        (log.contains("fail on this model") && log.contains("prices.models")).then_some(log)
    });
    let said = said.await;
    assert!(said.contains("names a provider without a model"), "{said}");
    worker.signal(rustix::process::Signal::TERM);
    worker.ended().await;
}
