//! The choice of an open campaign, in forms that add work to it.

use maud::{Markup, html};
use uuid::Uuid;

use super::{
    names::{newest_campaigns, no_campaign},
    page::Page,
};
use crate::{
    domain::{
        campaigns::{Campaign, Status},
        class::Kind,
    },
    operations::{Refusal, ShowCampaign},
};

/// The open ones of the newest campaigns, and the campaign that a page names. That one is never replaced by another one without a word: a
/// prompt would reach the conversation of another client.
#[derive(Debug, Default)]
pub(in crate::console) struct CampaignChoice {
    open: Vec<Campaign>,
    /// The id that the page names, as it is written; empty for none.
    named: String,
    /// The campaign of this id, if it is not among `open` and the caller may see it.
    other: Option<Campaign>,
}

impl CampaignChoice {
    pub(in crate::console) async fn load(page: &Page, named: &str) -> Result<Self, Refusal> {
        let newest = newest_campaigns(page).await?;
        let (closed, open): (Vec<_>, Vec<_>) =
            newest.into_iter().partition(|campaign| campaign.status == Status::Closed);
        let mut choice = Self { open, named: named.trim().to_owned(), other: None };
        let id = choice.id().filter(|id| choice.open.iter().all(|campaign| campaign.id != *id));
        if let Some(id) = id {
            let listed = closed.into_iter().find(|campaign| campaign.id == id);
            choice.other = if listed.is_some() { listed } else { find(page, id).await? };
        }
        Ok(choice)
    }

    /// Returns true if there is nothing to choose.
    pub(in crate::console) fn is_empty(&self) -> bool {
        let is_closed = self.other.as_ref().is_some_and(|it| it.status == Status::Closed);
        self.open.is_empty() && (self.id().is_none() || is_closed)
    }

    /// Renders the options of a choice that has to be made, those of evals last. None of an eval is chosen before.
    pub(in crate::console) fn options(&self) -> Markup {
        let chosen = self.id();
        let (of_evals, others): (Vec<_>, Vec<_>) =
            self.open.iter().partition(|campaign| campaign.is_of_eval());
        let is_listed = self.open.iter().any(|campaign| chosen == Some(campaign.id));
        html! {
            @match (&self.other, chosen) {
                _ if is_listed => {},
                (Some(other), _) if other.status == Status::Closed => option value="" { "choose a campaign: “" (other.name) "” is closed" },
                (Some(other), _) => option value=(other.id) selected { (other.name) },
                // Another service may have it, or a key that reaches further: the form is refused, and nothing else is chosen.
                (None, Some(id)) => option value=(id) selected { (id) },
                (None, None) => @if others.is_empty() || !self.named.is_empty() { (no_campaign()) },
            }
            @for it in others.iter().chain(&of_evals) { option value=(it.id) selected[chosen == Some(it.id)] { (it.name) } }
        }
    }

    fn id(&self) -> Option<Uuid> {
        self.named.parse().ok()
    }
}

/// Finds a campaign that is not among the newest ones; `None` if there is none, or the caller may not see it.
async fn find(page: &Page, id: Uuid) -> Result<Option<Campaign>, Refusal> {
    match page.caller.run_if_allowed(ShowCampaign { id, summary: true }).await {
        Err(refusal) if refusal.kind == Kind::NotFound => Ok(None),
        found => Ok(found?.map(|overview| overview.campaign)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::campaigns::EVAL_TAG;

    fn campaign(id: u128, name: &str, status: &str, tags: &[&str]) -> Campaign {
        let campaign = serde_json::json!({
            "id": Uuid::from_u128(id), "name": name, "status": status, "brief": "", "client_context": null, "parameters": {},
            "created_at": "2026-11-20T12:00:00Z", "closed_at": null, "tags": tags, "metadata": {},
        });
        serde_json::from_value(campaign).unwrap()
    }

    fn choice(open: Vec<Campaign>, named: &str, other: Option<Campaign>) -> CampaignChoice {
        CampaignChoice { open, named: named.to_owned(), other }
    }

    #[test]
    fn campaigns_of_evals_are_offered_last_and_never_chosen_before() {
        let [usual, eval] = [7, 8].map(Uuid::from_u128);
        let of_eval = || campaign(8, "eval captions", "active", &[EVAL_TAG]);
        let all = vec![of_eval(), campaign(7, "Harbour series", "active", &["autumn"])];
        let shown = choice(all, "", None).options().0;
        assert!(shown.starts_with(&format!("<option value=\"{usual}\">Harbour")), "{shown}");
        let shown = choice(vec![of_eval()], "", None).options().0;
        assert!(shown.starts_with("<option value=\"\">"), "{shown}");
        let shown = choice(vec![of_eval()], &eval.to_string(), None).options().0;
        assert!(shown.starts_with(&format!("<option value=\"{eval}\" selected>")), "{shown}");
    }

    #[test]
    fn no_other_campaign_is_chosen_in_place_of_the_named_one() {
        let open = || vec![campaign(9, "Winter catalogue", "active", &[])];
        let id = Uuid::from_u128(7);
        let named = |name: &str, status| Some(campaign(7, name, status, &[]));
        let shown = choice(open(), &id.to_string(), named("Harbour series", "paused")).options().0;
        let chosen = format!("<option value=\"{id}\" selected>Harbour series</option>");
        assert!(shown.starts_with(&chosen) && shown.matches("selected").count() == 1, "{shown}");
        let closed = choice(open(), &id.to_string(), named("Harbour series", "closed"));
        let shown = closed.options().0;
        assert!(shown.starts_with("<option value=\"\">choose a campaign: "), "{shown}");
        assert!(shown.contains("“Harbour series” is closed"), "{shown}");
        assert!(!shown.contains("selected") && !closed.is_empty(), "{shown}");
        let shown = choice(open(), &id.to_string(), None).options().0;
        assert!(shown.starts_with(&format!("<option value=\"{id}\" selected>{id}")), "{shown}");
        let shown = choice(open(), "harbour", None).options().0;
        assert!(shown.starts_with("<option value=\"\">"), "{shown}");
    }

    #[test]
    fn there_is_nothing_to_choose_without_an_open_campaign() {
        let id = Uuid::from_u128(7).to_string();
        let other = |status| Some(campaign(7, "Harbour series", status, &[]));
        assert!(choice(Vec::new(), "", None).is_empty());
        assert!(choice(Vec::new(), &id, other("closed")).is_empty());
        assert!(!choice(Vec::new(), &id, other("active")).is_empty());
    }
}
