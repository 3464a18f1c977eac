//! Costs that are compared although some calls had no price.

/// Says that costs cannot be compared. `compared`: the name of each of them, and true if a call had no price. `None`: all had one.
pub fn incomparable_costs<N: Into<String>>(
    compared: impl IntoIterator<Item = (N, bool)>,
) -> Option<String> {
    let unpriced = compared.into_iter().filter(|(_, is_unpriced)| *is_unpriced);
    let names: Vec<String> = unpriced.map(|(name, _)| name.into()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Costs cannot be compared: no price is set for models of {}. The setting `prices.models` has the prices of later calls.",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_costs_without_a_price_are_named() {
        let note = incomparable_costs([("now", false), ("next", true), ("last", true)]).unwrap();
        assert!(note.contains(" models of next, last. "), "{note}");
        assert_eq!(incomparable_costs([("now", false)]), None);
    }
}
