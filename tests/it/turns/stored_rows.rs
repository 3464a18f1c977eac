//! The rows that the statements of a turn write: the same texts, numbers and times, once.

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::{
    domain::{
        messages::{self, Span},
        turns::State,
    },
    transcript::{Message, Role, ToolCall},
};
use serde_json::json;
use uuid::Uuid;

use super::{Fixture, fixture::WRITER};
use crate::{
    app::{eventually, noon},
    providers::fake_ollama::{FakeOllama, Play},
};

/// Characters with a meaning in JSON, SQL and shells.
const ODD_CHARACTERS: &str = "\"a\" 'b' \\ \\\\ \\u0000 \\n $1 {\"x\":null} -- /* \t\r\n \u{1} \u{7f} \u{2028} é 港 🚢 𝄞 \u{fffd}";

#[tokio::test]
async fn unusual_characters_of_prompts_and_answers_are_stored_unchanged() {
    let fake = FakeOllama::playing([Play::Says(&[ODD_CHARACTERS, "\0."])]).await;
    let url = format!("http://{}", fake.addr);
    let fixture = Fixture::new(&[("ollama.base_url", &url), ("ollama.num_ctx", "8192")]).await;
    let agent = WRITER.replace("description:", "provider: ollama\nmodel: qwen3:8b\ndescription:");
    fixture.write_agent("writer", &agent);
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add(&format!("Repeat: {ODD_CHARACTERS}.")).await).await;
    worker.stop().await;
    // Postgres cannot store NUL.
    let answer = format!("{ODD_CHARACTERS}\u{fffd}.");
    let said = fixture.transcript(task.session_id.unwrap()).await;
    assert_eq!(said, [format!("User: Repeat: {ODD_CHARACTERS}."), format!("Assistant: {answer}")]);
    assert_eq!(task.result, Some(answer));
}

#[tokio::test]
async fn large_numbers_long_texts_and_tool_calls_are_stored_unchanged() {
    let fixture = Fixture::new(&[]).await;
    let message = |role, text: &str, tool_calls| Message {
        role,
        text: text.to_owned(),
        tool_calls,
        tool_call_id: (role == Role::Tool).then(|| ODD_CHARACTERS.to_owned()),
        tool_name: (role == Role::Tool).then(|| ODD_CHARACTERS.to_owned()),
        media: Vec::new(),
    };
    let arguments = json!({ ODD_CHARACTERS: [ODD_CHARACTERS, null, i64::MIN, u64::MAX, 1.5] });
    let call = ToolCall {
        id: ODD_CHARACTERS.to_owned(),
        name: ODD_CHARACTERS.to_owned(),
        arguments,
        thinking: Some(json!([ODD_CHARACTERS])),
    };
    let news = [
        (message(Role::Assistant, "", vec![call]), i64::MAX),
        // A number that a float cannot represent.
        (message(Role::Tool, &ODD_CHARACTERS.repeat(50_000), Vec::new()), (1 << 53) + 1),
    ];
    let news = news.map(|(message, weight)| {
        let digest = std::array::from_fn(|at| u8::MAX - u8::try_from(at).unwrap());
        messages::New { id: Uuid::new_v4(), message, weight, digest, partial: true }
    });
    let (id, mut conn) = (Uuid::new_v4(), fixture.pool.acquire().await.unwrap());
    messages::append(&mut *conn, id, 7, 1 << 60, &news, noon()).await.unwrap();
    let stored = messages::list(&mut *conn, id, Span::all()).await.unwrap();
    assert_eq!(stored.len(), news.len());
    for ((stored, new), place) in stored.into_iter().zip(news).zip(0..) {
        assert_eq!((stored.seq, stored.turn, stored.partial), ((1 << 60) + place, 7, true));
        assert_eq!((stored.id, stored.weight, stored.digest), (new.id, new.weight, new.digest));
        assert!(stored.message == new.message, "{:.300}", format!("{:?}", stored.message));
    }
}

/// If a time were rounded in one place and truncated in another, an end would be before its start.
#[tokio::test]
async fn a_timestamp_has_the_same_microsecond_in_every_row() {
    // Practically without expiry.
    let fixture = Fixture::new(&[("sessions.ttl_days.sim", "36500000")]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    let now = fixture.advance(TimeDelta::hours(2) + TimeDelta::nanoseconds(123_456_789));
    let task = fixture.done(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    let stored = now - TimeDelta::nanoseconds(789);
    let turn = &fixture.turns(&task).await[0];
    assert_eq!((turn.started_at, turn.ended_at), (stored, Some(stored)));
    let session = fixture.session(&task).await;
    assert_eq!(session.expires_at, stored + TimeDelta::days(36_500_000));
    let messages = fixture.messages(session.id).await.into_iter().skip(2);
    let mut moments: Vec<DateTime<Utc>> = messages.map(|message| message.created_at).collect();
    let events = fixture.feed().await.into_iter();
    moments.extend(events.filter(|it| it.task_id == Some(task.id)).map(|it| it.created_at));
    let called = "select called_at from dalsegno.usage where task_id = $1";
    moments.extend::<Vec<DateTime<Utc>>>(
        sqlx::query_scalar(called).bind(task.id).fetch_all(&fixture.pool).await.unwrap(),
    );
    assert!(moments.len() > 5, "{moments:?}");
    assert!(moments.iter().all(|moment| *moment == stored), "{stored}: {moments:?}");
}

/// The statement waits for the session's row, finds it changed and reads it again. Its other effects must not be
/// repeated then.
#[tokio::test]
async fn a_session_changed_during_the_end_of_its_turn_has_every_message_once() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Write part one.").await).await;
    let waits = async |for_what: &'static str| {
        let sql = "select count(*) from pg_stat_activity
                    where datname = current_database() and wait_event_type = 'Lock' and wait_event = $1";
        eventually(for_what, async || {
            let waiting = sqlx::query_scalar(sql).bind(for_what).fetch_one(&fixture.pool).await;
            (waiting.unwrap_or(0_i64) == 1).then_some(())
        })
        .await;
    };
    let mut ledger = fixture.pool.begin().await.unwrap();
    let lock = "lock table dalsegno.usage in exclusive mode";
    sqlx::query(lock).execute(&mut *ledger).await.unwrap();
    let second = fixture.add("Write part two.").await;
    waits("relation").await;
    let mut change = fixture.pool.begin().await.unwrap();
    sqlx::query("update dalsegno.sessions set rejected_turns = '{1}' where id = $1")
        .bind(first.session_id)
        .execute(&mut *change)
        .await
        .unwrap();
    ledger.rollback().await.unwrap();
    waits("transactionid").await;
    change.commit().await.unwrap();
    let second = fixture.done(&second).await;
    worker.stop().await;
    let turns = fixture.turns(&second).await;
    assert_eq!(turns.iter().map(|turn| turn.state).collect::<Vec<_>>(), [State::Done], "{turns:?}");
    assert_eq!(fixture.messages(first.session_id.unwrap()).await.len(), 4);
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 2);
    let rejected = "select to_jsonb(rejected_turns) from dalsegno.sessions";
    assert_eq!(fixture.json(rejected).await, json!([1]));
}
