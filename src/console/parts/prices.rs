//! Costs that are unknown, because no price is set. They are told apart from calls that cost nothing.

use maud::{Markup, html};

/// The setting with the prices, on the page of the installation.
const SETTING: &str = "/installation?setting=prices.models";

/// The cost of a call, turn or task without a price.
pub(in crate::console) fn no_price() -> Markup {
    html! { a.faint href=(SETTING) title="No price is set for the model, so its calls count as 0." { "no price" } }
}

/// Counts calls without a price, with the page of the setting.
pub(in crate::console) fn count_unpriced(n: i64) -> Markup {
    html! {
        @if n > 0 {
            p."small soft" {
                (n) @if n == 1 { " call had no price and counts" } @else { " calls had no price and count" } " as 0, also in budgets. "
                a href=(SETTING) { "Set the prices" } " of their models for later calls: the page names the models, and those that are free."
            }
        }
    }
}

/// Names the models without a price, what that means, and the setting that changes it.
pub(in crate::console) fn price_hint<'a>(
    models: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Markup {
    let mut names: Vec<String> =
        models.into_iter().map(|(provider, model)| format!("{provider}/{model}")).collect();
    names.sort();
    names.dedup();
    html! {
        @if !names.is_empty() {
            p."small soft after" {
                "No price is set for " @for (place, name) in names.iter().enumerate() { @if place > 0 { ", " } code { bdi { (name) } } }
                ", so these calls count as 0, also in budgets. The setting " a href=(SETTING) { code { "prices.models" } } " has the prices of later calls; its page names the models that are free."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_counts_and_several_count() {
        assert!(count_unpriced(1).0.contains("1 call had no price and counts as 0"));
        assert!(count_unpriced(2).0.contains("2 calls had no price and count as 0"));
        assert_eq!(count_unpriced(0).0, "");
    }

    #[test]
    fn each_model_without_a_price_is_named_once() {
        let shown = price_hint([("a", "<x>"), ("b", "y"), ("a", "<x>")]).0;
        assert_eq!(shown.matches("a/&lt;x&gt;").count(), 1, "{shown}");
        assert!(shown.contains("b/y") && shown.contains("setting=prices.models"), "{shown}");
        assert_eq!(price_hint([]).0, "");
    }
}
