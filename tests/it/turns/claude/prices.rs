//! Costs of turns where the CLI reports none, and where several names mean one model.

use dalsegno::domain::{amount::Limit, tasks::State};
use serde_json::json;
use sqlx::Row as _;

use super::{Setup, WRITER};
use crate::{
    app::eventually,
    providers::claude::{api::Play, cli::Cli},
};

fn price(model: &str, micros: u64) -> String {
    format!("{{ provider = \"claude\", model = \"{model}\", input = {micros}, output = {micros} }}")
}

impl Setup {
    /// Returns model, cost, tokens, and the model of the frozen price, of each line of the ledger.
    async fn ledger(&self) -> Vec<(String, i64, i64, Option<String>)> {
        let lines = "select model, cost_micros, input_tokens + output_tokens + coalesce(cache_read_tokens, 0)
                            + coalesce(cache_creation_tokens, 0) as tokens, price ->> 'model' as priced
                       from dalsegno.usage order by called_at, model";
        let rows = sqlx::query(lines).fetch_all(&self.fixture.pool).await.unwrap();
        let line = |row: &sqlx::postgres::PgRow| {
            (row.get("model"), row.get("cost_micros"), row.get("tokens"), row.get("priced"))
        };
        rows.iter().map(line).collect()
    }
}

#[tokio::test]
async fn an_alias_has_its_configured_price() {
    let prices = format!("[{}]", price("sonnet", 7_000_000));
    let Some(setup) = Setup::new(&[("prices.models", &prices)]).await else { return };
    let fixture = &setup.fixture;
    fixture.write_agent("writer", &WRITER.replace("claude-sonnet-5", "sonnet"));
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    fixture.settled().await;
    worker.stop().await;
    let ledger = setup.ledger().await;
    let [(model, cost, tokens, priced)] = ledger.as_slice() else { panic!("{ledger:?}") };
    assert!(model.starts_with("claude-sonnet"), "{model}");
    assert_eq!((*cost, priced.as_deref()), (tokens * 7, Some("sonnet")));
}

#[tokio::test]
async fn each_model_of_a_turn_has_its_own_price_and_odd_names_are_stored() {
    let prices =
        format!("[{}, {}]", price("claude-sonnet-5", 7_000_000), price("haiku", 1_000_000));
    let settings =
        [("prices.models", prices.as_str()), ("claude.pass_variables", "[\"FAKE_CLAUDE\"]")];
    let setup = Setup::on(&Cli::Fake, &settings).await.unwrap();
    let fixture =
        setup.fixture.with_variable("FAKE_CLAUDE", "two models, and a NUL in their names");
    let setup = Setup { fixture, ..setup };
    let worker = setup.fixture.start_worker().await;
    setup.run_prompt("One.").await;
    setup.fixture.settled().await;
    worker.stop().await;
    let line =
        |model: &str, cost, priced: &str| (model.to_owned(), cost, 43, Some(priced.to_owned()));
    assert_eq!(
        setup.ledger().await,
        [line("claude-haiku-4-5", 43, "haiku"), line("claude-sonnet-5", 301, "claude-sonnet-5")]
    );
}

#[tokio::test]
async fn a_model_priced_only_by_the_cli_is_charged_and_reserved_for() {
    let limit = Limit { micros: Some(50_000_000), tokens: None };
    let Some(setup) = Setup::with_limit(limit).await else { return };
    let fixture = &setup.fixture;
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    let spent = "select sum(cost_micros)::bigint from dalsegno.usage";
    assert!(fixture.count(spent).await > 0, "the cost reported by the CLI is charged");
    setup.api.plays([Play::Hangs]);
    let task = fixture.add("Two.").await;
    eventually("the model is called", async || (setup.api.requests().len() == 2).then_some(()))
        .await;
    let reserved = fixture.count("select reserved_micros from dalsegno.campaign_budgets").await;
    assert!(reserved > 0, "the first turn has reported the price");
    fixture.cancel(&task).await;
    assert_eq!(fixture.ended(&task).await.state, State::Cancelled);
    let unpaid = "select count(*) from dalsegno.usage where cost_micros = 0";
    assert_eq!(
        fixture.count(unpaid).await,
        0,
        "the interrupted call is charged as well: {:?}",
        json!(setup.ledger().await)
    );
    fixture.settled().await;
    worker.stop().await;
}
