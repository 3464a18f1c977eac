//! Nodes, where the CLI holds the conversation: the prompt of a node reaches the model at its entry, once, and stays in
//! its history.

use dalsegno::domain::{amount::Limit, nodes};

use super::Setup;

const ROLE: (&str, &str) = ("writer", "main");

#[tokio::test]
async fn requirements_of_a_node_reach_the_model_at_every_entry() {
    let Some(setup) = Setup::new(&[]).await else { return };
    let fixture = &setup.fixture;
    setup.api.counts();
    for name in ["draft", "review"] {
        let text = format!("---\nname: {name}\ndescription: d\n---\nThe contract of {name}.\n");
        fixture.write_node(name, &text);
    }
    let worker = fixture.start_worker().await;
    let mut last = None;
    for (at, node) in
        [Some("draft"), None, Some("draft"), Some("review"), Some("draft")].into_iter().enumerate()
    {
        let prompt = format!("Part {at}.");
        let task = fixture.add_at_node(ROLE, node, &prompt, None, Limit::default()).await;
        last = Some(fixture.done(&task).await);
        // The API repeats the messages that it was sent.
        let said = setup.api.last_messages().into_iter();
        let said: Vec<_> = said.filter(|text| text.starts_with("user: ")).collect();
        let times =
            |words: &str| said.iter().map(|text| text.matches(words).count()).sum::<usize>();
        let (drafts, reviews) = [(1, 0), (1, 0), (1, 0), (1, 1), (2, 1)][at];
        assert_eq!(times("The contract of draft."), drafts, "{said:#?}");
        assert_eq!(times("The contract of review."), reviews, "{said:#?}");
        let newest = said.last().unwrap();
        assert!(newest.contains(&prompt), "{newest}");
        let enters = newest.contains("The contract of");
        assert_eq!(enters, [true, false, false, true, true][at], "{newest}");
    }
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(setup.session_starts().await, ["new", "resumed", "resumed", "resumed", "resumed"]);
    let session_id = last.unwrap().session_id.unwrap();
    let stays = nodes::of_session(&fixture.pool, session_id).await.unwrap();
    let named: Vec<_> = stays.iter().map(|stay| stay.node.as_str()).collect();
    assert_eq!(named, ["draft", "review", "draft"]);
}
