//! Views of conversations that a process has cached, and that the database no longer has.

use std::sync::Arc;

use dalsegno::{
    domain::{
        Amount,
        agents::Library,
        amount::Limit,
        budgets::{self, Payers, Spender},
        campaigns::LimitChange,
        erasures, turn_phases,
    },
    jobs::{Services, sweep_erased},
    transcript::Role,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Fixture, fixture::WRITER};
use crate::{
    app::{eventually, execute, noon},
    conversations::world::{TurnSettings, World, message},
    providers::fake_ollama::FakeOllama,
    restore::{dump, restore},
};

async fn on_ollama(fake: &FakeOllama, limit: Limit) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let settings = [("ollama.base_url", url.as_str()), ("ollama.num_ctx", "16384")];
    let fixture = Fixture::with_limit(&settings, limit).await;
    let writer = WRITER.replace("description:", "provider: ollama\nmodel: qwen3:8b\ndescription:");
    fixture.write_agent("writer", &writer);
    fixture
}

fn last_call(fake: &FakeOllama) -> String {
    fake.chats().pop().unwrap()["messages"].to_string()
}

/// Runs these prompts on a worker of a process that has run others before.
async fn run_all(fixture: &Fixture, services: &Arc<Services>, prompts: &[&str]) {
    let worker = fixture.start_worker_on(Arc::clone(services), &[]).await;
    for prompt in prompts {
        fixture.done(&fixture.add(prompt).await).await;
    }
    fixture.settled().await;
    worker.stop_only().await;
}

/// Once the database has fewer messages than the process knows, and once as many others.
#[tokio::test]
async fn messages_that_a_restored_database_has_lost_are_not_sent() {
    let fake = FakeOllama::playing([]).await;
    let mut fixture = on_ollama(&fake, Limit::default()).await;
    let services = fixture.services(&[]);
    run_all(&fixture, &services, &["The harbour is called Vik."]).await;
    let options = (*fixture.pool.connect_options()).clone();
    let dumped = dump(&options).await;
    let of_other_hosts: [&[&str]; 2] = [&[], &["The tide is low.", "The mole is long."]];
    for others in of_other_hosts {
        run_all(&fixture, &services, &["From now on it is called Bergen.", "Go on."]).await;
        fixture.pool.close().await;
        execute(&options, "drop schema dalsegno cascade").await;
        restore(&options, &dumped).await;
        fixture.pool = PgPool::connect_with(options.clone()).await.unwrap();
        run_all(&fixture, &fixture.services(&[]), others).await;
        run_all(&fixture, &services, &["What is it called?"]).await;
        let said = last_call(&fake);
        assert!(said.contains("Vik") && !said.contains("Bergen"), "{said}");
        for other in others {
            assert_eq!(said.matches(*other).count(), 1, "{other}: {said}");
        }
    }
}

/// The refused begin has read an entry that it was about to store, and that the next transaction stores under another id.
#[tokio::test]
async fn entries_of_a_begin_that_was_rolled_back_are_not_sent() {
    const LIMIT: i64 = 20_000;
    let fake = FakeOllama::playing([]).await;
    let fixture = on_ollama(&fake, Limit { micros: None, tokens: Some(LIMIT) }).await;
    let spender = Spender { agent: "writer", task_id: None };
    let spent = (Amount::ZERO, Amount { micros: 0, tokens: LIMIT - 1 });
    let payers = Payers::campaign(fixture.campaign.id);
    budgets::settle(&fixture.pool, payers, spender, spent, noon()).await.unwrap();
    let task = fixture.add("Write.").await;
    let library = Library::open(&fixture.config().agents).unwrap();
    let hash = library.current().agent("writer").unwrap().prompt_hash.clone();
    let lost = TurnSettings {
        provider: "ollama",
        model: "qwen3:8b",
        prompt_hash: hash.leak(),
        ..TurnSettings::default()
    };
    let world = World::over(fixture.pool.clone(), Limit::default()).await;
    let (_, begun) = world.try_begin(&task, 0, lost, Amount::ZERO).await.unwrap();
    let output = message(Uuid::new_v4(), Role::Assistant, "Half an answ");
    let stored = turn_phases::store_progress(&fixture.pool, &begun, Some(&output), &[], noon());
    assert!(stored.await.unwrap());

    let worker = fixture.start_worker().await;
    fixture.waiting_for_budget(1).await;
    let raised = LimitChange { tokens: Some(Some(100_000_000)), ..Default::default() };
    fixture.change_limit(raised).await;
    let task = fixture.done(&task).await;
    assert_eq!(task.session_id, Some(begun.session_id));
    let said = last_call(&fake);
    assert_eq!(said.matches("Half an answ").count(), 1, "{said}");
    // Compares the call with the stored messages.
    worker.stop().await;
}

#[tokio::test]
async fn each_process_of_a_host_drops_its_views_of_an_erased_campaign() {
    let fixture = Fixture::new(&[]).await;
    let processes = [fixture.services(&[]), fixture.services(&[])];
    for services in &processes {
        run_all(&fixture, services, &["Write."]).await;
        assert_eq!(services.n_cached_conversations(), 1);
    }
    let mut tx = fixture.pool.begin().await.unwrap();
    erasures::request(&mut tx, fixture.campaign.id, "by request", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let upkeep = fixture.upkeep().await;
    eventually("the campaign is erased", async || {
        let ended = "select count(*) from dalsegno.erasures where ended_at is not null";
        (fixture.count(ended).await == 1).then_some(())
    })
    .await;
    upkeep.stop_only().await;
    // Both have the same data folder, so the first one confirms that its files are gone.
    for (services, n_confirmed) in processes.iter().zip([1, 0]) {
        assert_eq!(sweep_erased(services, &fixture.pool, "here").await.unwrap(), n_confirmed);
        assert_eq!(services.n_cached_conversations(), 0);
    }
}
