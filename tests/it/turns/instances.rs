//! Several copies of one agent in a campaign.

use dalsegno::domain::agents::{AgentInstance, Library};

use super::Fixture;

/// Adds a task for the agent and instance of this name.
async fn ask(fixture: &Fixture, written: &str, prompt: &str) -> dalsegno::domain::tasks::Task {
    let catalogue = Library::open(&fixture.config().agents).unwrap().current();
    let AgentInstance { agent, instance } = catalogue.resolve_addressee(written, "main").unwrap();
    fixture.add_for(&agent.name, instance, prompt).await
}

#[tokio::test]
async fn each_instance_of_an_agent_has_its_own_session() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let mut sessions = Vec::new();
    for (written, prompt) in
        [("writer", "One."), ("writer_2", "Two."), ("writer_3", "Three."), ("writer_2", "Four.")]
    {
        let task = ask(&fixture, written, prompt).await;
        fixture.done(&task).await;
        sessions.push(fixture.session(&task).await);
    }
    worker.stop().await;
    let named: Vec<_> =
        sessions.iter().map(|it| (it.agent.as_str(), it.instance.as_str())).collect();
    assert_eq!(named, [("writer", "main"), ("writer", "2"), ("writer", "3"), ("writer", "2")]);
    assert_eq!(sessions[1].id, sessions[3].id);
    assert_eq!(fixture.sessions().await.len(), 3);
    // No instance has seen the prompts of the others.
    let asked = async |id| -> Vec<String> {
        let said = fixture.transcript(id).await.into_iter();
        said.filter(|line| line.starts_with("User")).collect()
    };
    assert_eq!(asked(sessions[0].id).await, ["User: One."]);
    assert_eq!(asked(sessions[1].id).await, ["User: Two.", "User: Four."]);
}

#[tokio::test]
async fn a_task_waits_until_the_file_of_its_agent_is_repaired() {
    let fixture = Fixture::new(&[]).await;
    let file = fixture.folder().join("agents/writer.md");
    let fine = std::fs::read_to_string(&file).unwrap();
    fixture.write_agent("other", &fine.replace("name: writer", "name: other"));
    let task = fixture.add("Write.").await;
    fixture.write_agent("writer", "---\nname: writer\n---\n");
    let worker = fixture.start_worker().await;
    crate::app::eventually("the task is postponed", async || {
        let waits = fixture.kinds(&task).await.iter().any(|kind| kind == "task.waiting");
        waits.then_some(())
    })
    .await;
    fixture.done(&fixture.add_for("other", "main", "Write, too.").await).await;
    assert_eq!(fixture.task(&task).await.state, dalsegno::domain::tasks::State::Queued);
    std::fs::write(&file, fine).unwrap();
    let done = fixture.ended_after_waits(&task).await;
    assert_eq!(done.state, dalsegno::domain::tasks::State::Done, "{done:?}");
    worker.stop().await;
}
