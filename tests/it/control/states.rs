//! The views of past states of sessions and agents, derived from the rows that turns write.

use dalsegno::domain::agent_pauses::{self, PauseScope};

use crate::{app::noon, turns::fixture::Fixture};

async fn rows(fixture: &Fixture, sql: &'static str) -> Vec<String> {
    sqlx::query_scalar(sql).fetch_all(&fixture.pool).await.unwrap()
}

#[tokio::test]
async fn each_agent_state_has_its_row_and_the_last_one_is_the_sessions() {
    let fixture = Fixture::new(&[]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    fixture.ended(&fixture.add("Write. [[sim: error 400]]").await).await;
    fixture.done(&fixture.add_for("writer", "second", "Write.").await).await;
    fixture.settled().await;
    worker.stop().await;
    let mut tx = fixture.pool.begin().await.unwrap();
    let place = PauseScope { campaign_id: Some(fixture.campaign.id), agent: "writer" };
    agent_pauses::pause(&mut tx, place, "too expensive", "cli:ann@host", noon()).await.unwrap();
    agent_pauses::resume(&mut tx, place, "cli:ann@host", noon()).await.unwrap();
    tx.commit().await.unwrap();
    // A 400 counts as a rejected conversation, so the session is rebuilt, and rejected again.
    let of_first = "select string_agg(state, ' ' order by place) from dalsegno.session_states
                     where session_id = (select id from dalsegno.sessions where instance = 'main' order by created_at, id limit 1)";
    let states = rows(&fixture, of_first).await;
    assert!(states[0].starts_with("idle running idle running error"), "{states:?}");
    let wrong = "select s.id::text || ' ' || s.state || ' ' || v.state from dalsegno.sessions as s
                   join lateral (select state from dalsegno.session_states as v where v.session_id = s.id
                                  order by place desc limit 1) as v on v.state <> s.state";
    assert_eq!(rows(&fixture, wrong).await, [""; 0]);
    let of_second = "select string_agg(state, ' ' order by at, state desc) from dalsegno.agent_states where instance = 'second'";
    assert_eq!(rows(&fixture, of_second).await, ["working idle"]);
    let for_all = "select state || ': ' || because from dalsegno.agent_states where agent = 'writer' and instance is null order by 1";
    assert_eq!(rows(&fixture, for_all).await, ["paused: too expensive", "resumed: cli:ann@host"]);
}
