//! The output of a turn whose worker is killed in the middle of an answer.

use std::time::{Duration, Instant};

use dalsegno::{
    domain::{
        feed, messages, sessions,
        tasks::{State, Task},
        turn_phases, turns,
    },
    transcript::Role,
};
use serde_json::json;
use uuid::Uuid;

use super::{Fixture, fixture::WRITER};
use crate::{
    app::{eventually, noon},
    conversations::world::{TurnSettings, World, message},
    providers::fake_ollama::{FakeOllama, Play, Step, line},
};

const CHUNK_INTERVAL: Duration = Duration::from_millis(50);

fn chunk(number: usize) -> Vec<u8> {
    let message = json!({ "role": "assistant", "content": format!("<b>piece-{number:04}</b> ") });
    line(&json!({ "model": "qwen3:8b", "message": message, "done": false }))
}

/// Returns an answer of many pieces.
fn long_answer() -> Play {
    let pieces = (1..2_000).map(chunk).collect();
    Play::Stream(vec![Step::Trickle { pieces, every: CHUNK_INTERVAL }, Step::End])
}

async fn fixture(fake: &FakeOllama) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let settings = [("ollama.base_url", url.as_str()), ("ollama.num_ctx", "65536")];
    let fixture = Fixture::new(&settings).await;
    let writer = WRITER.replace("description:", "provider: ollama\nmodel: qwen3:8b\ndescription:");
    fixture.write_agent("writer", &writer);
    fixture
}

async fn stored(fixture: &Fixture) -> Option<String> {
    let sql = "select text from dalsegno.partial_outputs";
    sqlx::query_scalar(sql).fetch_optional(&fixture.pool).await.unwrap()
}

fn n_pieces(text: &str) -> usize {
    text.matches("piece-").count()
}

async fn is_stored(fixture: &Fixture) {
    eventually("a part is stored", async || stored(fixture).await.map(drop)).await;
}

/// Returns the interrupted answers in the transcript.
async fn interrupted_answers(fixture: &Fixture, task: &Task) -> Vec<String> {
    let messages = fixture.messages(fixture.task(task).await.session_id.unwrap()).await;
    let partial = messages.into_iter().filter(|stored| stored.partial);
    partial.map(|stored| stored.message.text).collect()
}

#[tokio::test]
async fn partial_output_of_a_killed_worker_is_stored_and_shown_to_the_next_attempt() {
    let fake = FakeOllama::playing([Play::Says(&["One."]), long_answer()]).await;
    let fixture = fixture(&fake).await;
    let victim = fixture.process(&[]);
    let first = fixture.ended_after_pause(&fixture.add("Part one.").await).await;
    assert_eq!(first.state, State::Done);
    let task = fixture.add("Part two.").await;
    is_stored(&fixture).await;
    // More is stored while the answer continues. Its end is a minute and a half away.
    let n_sent = *fake.state.transport.n_trickled.borrow() + 7;
    eventually("later output is stored, too", async || {
        (n_pieces(&stored(&fixture).await?) >= n_sent).then_some(())
    })
    .await;
    victim.kill().await;
    let n_at_death = *fake.state.transport.n_trickled.borrow();
    let kept = stored(&fixture).await.expect("the partial output is still stored");
    println!("{} of {n_at_death} pieces were stored", n_pieces(&kept));
    assert!(n_pieces(&kept) >= n_sent, "of {n_sent} chunks: {kept}");

    let heir = fixture.process(&[]);
    let task = fixture.ended_after_pause(&task).await;
    assert_eq!(task.result.as_deref(), Some("A good answer."));
    assert_eq!(interrupted_answers(&fixture, &task).await, [kept]);
    let chat = fake.chats().pop().unwrap()["messages"].clone();
    let last = chat.as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user", "{chat}");
    let said = last["content"].as_str().unwrap();
    let places: Vec<_> = ["<interrupted_answer ", "piece-0001", "was interrupted", "Part two."]
        .map(|words| said.find(words).unwrap_or_else(|| panic!("no {words}: {said}")))
        .into();
    assert!(places.is_sorted(), "{said}");
    assert!(said.contains("&lt;b&gt;piece-0001"), "the partial output is not fenced: {said}");
    assert!(said.contains("stands above as `interrupted_answer`; it is not complete"), "{said}");
    fixture.settled().await;
    assert_eq!(stored(&fixture).await, None, "the turn has ended");
    drop(heir);
}

#[tokio::test]
async fn the_simulation_stores_partial_output_too() {
    let fixture = Fixture::new(&[("sim.chunk_delay_ms", "20"), ("sim.chunk_chars", "4")]).await;
    let victim = fixture.process(&[]);
    let task = fixture.add("Write. [[sim: words 2000]]").await;
    is_stored(&fixture).await;
    victim.kill().await;
    let kept = stored(&fixture).await.unwrap();
    let heir = fixture.process(&[("sim.chunk_delay_ms", "0"), ("sim.chunk_chars", "4000")]);
    let task = fixture.ended_after_pause(&task).await;
    assert_eq!(task.state, State::Done, "{task:?}");
    assert_eq!(interrupted_answers(&fixture, &task).await, [kept]);
    fixture.settled().await;
    assert_eq!(stored(&fixture).await, None);
    drop(heir);
}

/// One row for the turn, written at most once a second, and only if there is new output.
#[tokio::test]
async fn partial_output_is_stored_once_a_second_and_only_when_it_has_grown() {
    let pieces = (1..=60).map(chunk).collect();
    let stalls = vec![Step::Trickle { pieces, every: CHUNK_INTERVAL }, Step::Stall];
    let fake = FakeOllama::playing([Play::Stream(stalls)]).await;
    let fixture = fixture(&fake).await;
    for sql in [
        "create table public.written (at timestamptz not null default clock_timestamp(), n_bytes integer)",
        "create function public.note() returns trigger language plpgsql as $body$
         begin insert into public.written (n_bytes) values (octet_length(new.text)); return new; end $body$",
        "create trigger note after insert or update on dalsegno.partial_outputs for each row execute function public.note()",
    ] {
        sqlx::query(sql).execute(&fixture.pool).await.unwrap();
    }
    let worker = fixture.start_worker_with(&[("ollama.idle_timeout_secs", "4")]).await;
    let began = Instant::now();
    let task = fixture.add("Write.").await;
    let task = fixture.ended(&task).await;
    worker.stop().await;
    assert_eq!(task.state, State::Done, "{task:?}");
    // From some seconds of output and four of silence: each row had more than the one before.
    let n_written = fixture.count("select count(*) from public.written").await;
    let n_different = fixture.count("select count(distinct n_bytes) from public.written").await;
    assert!(n_written >= 2, "{n_written}");
    assert_eq!(n_written, n_different, "unchanged output was written again");
    let took = began.elapsed();
    assert!(n_written <= i64::try_from(took.as_secs()).unwrap() + 1, "{n_written} in {took:?}");
}

#[tokio::test]
async fn a_run_without_its_lease_stores_no_output_and_no_event() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    let output = message(Uuid::new_v4(), Role::Assistant, "Half an answ");
    let event = feed::New {
        campaign_id: Some(begun.campaign_id),
        task_id: Some(begun.task_id),
        session_id: Some(begun.session_id),
        kind: feed::Kind::TurnProgress,
        data: json!({ "turn": begun.turn, "text": "Half an answ" }),
    };
    // Returns the answer, and the numbers of stored outputs and events.
    let store = async |begun: &turn_phases::StartedTurn, output: Option<&messages::New>| {
        let events = std::slice::from_ref(&event);
        let stored = turn_phases::store_progress(&world.pool, begun, output, events, noon());
        let is_running = stored.await.unwrap();
        let rows = "select (select count(*) from dalsegno.partial_outputs),
                           (select count(*) from dalsegno.feed where kind = 'turn.progress')";
        let rows: (i64, i64) = sqlx::query_as(rows).fetch_one(&world.pool).await.unwrap();
        (is_running, rows.0, rows.1)
    };
    let late = turn_phases::StartedTurn { lease: begun.lease - 1, ..begun };
    assert_eq!(store(&late, Some(&output)).await, (false, 0, 0));
    assert_eq!(store(&begun, None).await, (true, 0, 1));
    assert_eq!(store(&begun, Some(&output)).await, (true, 1, 2));
    // The next run takes the turn over; then this run can write no more.
    let (_, next) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    assert_eq!(store(&begun, Some(&output)).await, (false, 0, 2));
    let messages = world.transcript(next.session_id).await;
    assert!(messages.contains(&"Assistant: Half an answ".to_owned()), "{messages:?}");
}

/// Like a worker that was frozen for longer than its lease, so that another one has ended its turn.
#[tokio::test]
async fn a_worker_whose_turn_was_ended_adds_no_progress_to_the_feed() {
    let fake = FakeOllama::playing([long_answer()]).await;
    let fixture = fixture(&fake).await;
    let worker = fixture.start_worker().await;
    let task = fixture.add("Part one.").await;
    is_stored(&fixture).await;
    let id = fixture.task(&task).await.session_id.unwrap();
    let session = sessions::read_live(&fixture.pool, id).await.unwrap();
    let mut tx = fixture.pool.begin().await.unwrap();
    turns::interrupt_leftover(&mut tx, &session, noon()).await.unwrap();
    tx.commit().await.unwrap();
    let newest = fixture.count("select max(id) from dalsegno.feed").await;
    // Enough output for three rows of the feed.
    let n_sent = *fake.state.transport.n_trickled.borrow() + 60;
    eventually("the answer continues", async || {
        (*fake.state.transport.n_trickled.borrow() >= n_sent).then_some(())
    })
    .await;
    let mut progress = fixture.feed().await;
    progress.retain(|event| event.kind == "turn.progress" && event.id > newest);
    assert!(progress.is_empty(), "{progress:?}");
    assert_eq!(stored(&fixture).await, None);
    worker.stop_only().await;
}
