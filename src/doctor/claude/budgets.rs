//! Check for models without a price in campaigns whose budget is in money.

use sqlx::PgPool;

use super::{Finding, models, uses};
use crate::{
    config::Config,
    domain::{agents::Catalogue, campaigns, text::count},
    providers::claude::{self, is_same_model},
};

const CHECK: &str = "claude prices";
const WHY: &str = "a budget in money can reserve only models with a price; other turns are charged the cost that Claude Code reports";

/// Returns nothing where no budget is in money.
pub(in crate::doctor) async fn budgets(config: &Config, pool: &PgPool) -> Option<Finding> {
    let n_limited = match campaigns::limited_in_money(pool).await {
        Ok(0) => return None,
        Ok(n_limited) => n_limited,
        Err(error) => {
            return Some(Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up"));
        }
    };
    let catalogue = Catalogue::load(&config.agents).unwrap_or_default();
    let agents = catalogue.agents().map(AsRef::as_ref).filter(|agent| uses(config, agent));
    let unpriced: Vec<&str> = agents
        .filter(|agent| models(config, agent).any(|model| !is_priced(config, model)))
        .map(|agent| agent.name.as_str())
        .collect();
    let fix = "add the models to prices.models; `dalsegno config template` shows how";
    Some(match unpriced.is_empty() {
        true => Finding::ok(CHECK, "every model has a price", WHY),
        false => {
            let names = unpriced.join(", ");
            let limited = count(n_limited, "campaign has", "campaigns have");
            let what = format!("{limited} a budget in money, and models of {names} no price");
            Finding::warn(CHECK, what, WHY, fix)
        }
    })
}

fn is_priced(config: &Config, model: &str) -> bool {
    let mut prices = config.prices.models.iter();
    prices.any(|price| {
        price.provider == claude::NAME
            && (is_same_model(&price.model, model) || is_same_model(model, &price.model))
    })
}
