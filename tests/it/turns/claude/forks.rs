//! Forks on the CLI: their transcripts are written from the stored messages.

use super::Setup;
use crate::turns::forks::{fork, run};

#[tokio::test]
async fn a_fork_gets_a_transcript_up_to_its_turn_and_is_resumed_from_then_on() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    let worker = fixture.start_worker().await;
    setup.run_prompt("The harbour is called Vik.").await;
    setup.run_prompt("It has a mole.").await;
    let third = setup.run_prompt("It has a light.").await;
    let parent = fixture.session(&third).await;
    let fork = fork(fixture, parent.id, 2).await;
    assert_eq!((fork.external_session_id.as_deref(), fork.context_tokens > 0), (None, true));
    let task = run(fixture, &fork.instance, "It has a crane.").await;
    let said = setup.api.last_messages().join("\n");
    for words in ["called Vik.", "It has a mole.", "It has a crane."] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("It has a light.") && !said.contains("restored"), "{said}");
    run(fixture, &fork.instance, "And a ferry.").await;
    let said = setup.api.last_messages().join("\n");
    assert!(said.contains("called Vik.") && said.contains("It has a crane."), "{said}");
    setup.run_prompt("And a tower.").await;
    let said = setup.api.last_messages().join("\n");
    assert!(said.contains("It has a light.") && !said.contains("It has a crane."), "{said}");
    fixture.settled().await;
    worker.stop().await;
    let forked = fixture.session(&task).await;
    assert_eq!((forked.id, forked.turns), (fork.id, 4));
    assert!(forked.external_session_id.is_some());
    assert_ne!(forked.external_session_id, parent.external_session_id);
    let starts = ["new", "resumed", "resumed", "rewritten", "resumed", "resumed"];
    assert_eq!(setup.session_starts().await, starts);
}
