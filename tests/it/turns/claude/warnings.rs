//! Warnings at the start, before the first task fails.

use super::{Stage, WRITER};
use crate::{app::eventually, providers::claude::cli::Cli};

#[tokio::test]
async fn a_fallback_that_cannot_take_over_and_a_price_that_is_missing_are_said_at_the_start() {
    let stage = Stage::on(&Cli::Fake, &[]).await.unwrap();
    let ground = &stage.ground;
    ground.write_agent("writer", &WRITER.replace("model:", "fallback_provider: ollama\nmodel:"));
    let mut worker = ground.process(&[]);
    let said = eventually("the warnings are in the log", async || {
        let log = worker.log();
        (log.contains("cannot be used") && log.contains("prices.models")).then_some(log)
    });
    let said = said.await;
    assert!(said.contains("names a provider without a model"), "{said}");
    worker.signal(rustix::process::Signal::TERM);
    worker.ended().await;
}
