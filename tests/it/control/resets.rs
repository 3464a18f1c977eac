//! Resets of all conversations of a campaign while turns run.

use std::collections::BTreeMap;

use dalsegno::domain::{
    audit::Actor,
    conversations,
    sessions::{Reason, State},
    turns,
};

use crate::{
    app::{eventually, noon},
    turns::fixture::Fixture,
};

const EDITOR: &str = "---\nname: editor\ndescription: Edits\n---\nYou edit.\n";

#[tokio::test]
async fn a_reset_restarts_all_conversations_once_and_disturbs_no_turn() {
    const INSTANCES: usize = 30;
    let fixture = Fixture::new(&[("sim.latency_ms", "30"), ("worker.turns_slots", "16")]).await;
    fixture.write_agent("editor", EDITOR);
    let who = Actor::cli("ann", "host");
    let names: Vec<String> = (0..INSTANCES).map(|number| format!("i{number}")).collect();
    let agent = |number: usize| if number.is_multiple_of(10) { "editor" } else { "writer" };
    let mut tasks = Vec::new();
    for round in 0..3 {
        for (number, name) in names.iter().enumerate() {
            tasks.push(fixture.add_for(agent(number), name, &format!("Write part {round}.")).await);
        }
    }
    let worker = fixture.start_worker().await;
    // In the middle: each conversation has a session, and many of them run.
    eventually("all turns have begun", async || {
        (fixture.count("select count(*) from dalsegno.sessions").await >= INSTANCES as i64)
            .then_some(())
    })
    .await;
    let whom = (fixture.campaign.id, None);
    let reset = conversations::reset_agents(&fixture.pool, &who, whom, true, noon()).await.unwrap();
    assert_eq!(reset.session_ids.len(), INSTANCES);
    let mut last = Vec::new();
    for (number, name) in names.iter().enumerate() {
        last.push(fixture.add_for(agent(number), name, "Write the last.").await);
    }
    for task in tasks.iter().chain(&last) {
        let task = fixture.done(task).await;
        let turns = fixture.turns(&task).await;
        let done = turns.iter().filter(|turn| turn.state == turns::State::Done).count();
        assert_eq!(done, 1, "{turns:?}");
    }
    fixture.settled().await;
    let mut by_instance: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for session in fixture.sessions().await {
        by_instance.entry(session.instance.clone()).or_default().push(session);
    }
    assert_eq!(by_instance.len(), INSTANCES);
    for (name, sessions) in &by_instance {
        let [old, new] = sessions.as_slice() else { panic!("{name}: {sessions:?}") };
        assert_eq!((old.state, old.closed_because), (State::Closed, Some(Reason::Fresh)), "{name}");
        assert_eq!((new.opened_because, new.rebuild_because), (Reason::Fresh, None), "{name}");
        assert!(reset.session_ids.contains(&old.id));
        // It is fresh, and both sessions together have answered all four tasks.
        let (before, after) = (fixture.transcript(old.id).await, fixture.transcript(new.id).await);
        assert_eq!(before.len() + after.len(), 8, "{name}: {before:?} {after:?}");
        assert!(after.last().unwrap().starts_with("Assistant") && after[0].starts_with("User"));
    }
    let told =
        fixture.feed().await.into_iter().filter(|event| event.kind == "session.reset").count();
    assert_eq!(told, INSTANCES);
    let lines =
        fixture.count("select count(*) from dalsegno.audit where action = 'agent.reset'").await;
    assert_eq!(lines, 1);

    // A reset of one agent, with inheritance.
    let whom = (fixture.campaign.id, Some("editor"));
    let reset =
        conversations::reset_agents(&fixture.pool, &who, whom, false, noon()).await.unwrap();
    assert_eq!(reset.session_ids.len(), INSTANCES / 10);
    let task = fixture.done(&fixture.add_for("editor", "i0", "Go on.").await).await;
    let session = fixture.session(&task).await;
    assert_eq!(session.opened_because, Reason::Reset);
    assert!(fixture.transcript(session.id).await.len() > 2, "the messages were inherited");
    let other = fixture.done(&fixture.add_for("writer", "i1", "Go on.").await).await;
    assert_eq!(fixture.session(&other).await.opened_because, Reason::Fresh);
    worker.stop().await;
}
