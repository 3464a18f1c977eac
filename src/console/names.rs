//! Names of conversations: lanes have the id of their campaign in front of agent and instance.

use std::collections::BTreeMap;

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{agent_name, linked_words, title},
    },
    operations::{ListCampaigns, MAX_LIMIT, Refusal},
};

/// Names of the newest campaigns.
#[derive(Debug, Default)]
pub(in crate::console) struct Names(BTreeMap<Uuid, String>);

impl Names {
    pub(in crate::console) async fn load(page: &Page) -> Result<Self, Refusal> {
        let list =
            ListCampaigns { tags: None, metadata: None, cursor: None, limit: Some(MAX_LIMIT) };
        let campaigns = page.caller.run_if_allowed(list).await?;
        let campaigns = campaigns.map(|listing| listing.items).unwrap_or_default();
        Ok(Self(campaigns.into_iter().map(|campaign| (campaign.id, campaign.name)).collect()))
    }

    /// Names a lane: `copywriter · Harbour series`, or as it is.
    pub(in crate::console) fn lane(&self, lane: &str) -> String {
        match conversation(lane) {
            Some((campaign, agent, instance)) => match self.0.get(&campaign) {
                Some(name) => format!("{} · {name}", agent_name(agent, instance)),
                None => agent_name(agent, instance),
            },
            None => lane.to_owned(),
        }
    }

    /// Names the campaign of a group, or the group.
    pub(in crate::console) fn group(&self, group: &str) -> Markup {
        let id: Option<Uuid> = group.parse().ok();
        html! {
            @match id.and_then(|id| self.0.get(&id).map(|name| (id, name))) {
                Some((id, name)) => a href={ "/campaigns/" (id) } { bdi { (name) } },
                None => bdi { (group) },
            }
        }
    }

    /// Links to a campaign by its name, or by its id if it is older than those that are known.
    pub(in crate::console) fn campaign(&self, id: Uuid) -> Markup {
        html! { a href={ "/campaigns/" (id) } { @match self.0.get(&id) { Some(name) => bdi { (name) }, None => (super::parts::id("", id)) } } }
    }

    /// Renders a reason: campaigns are links by their names, and the id of a pause, which people do not use, is left out.
    pub(in crate::console) fn in_words(&self, text: &str) -> Markup {
        let found = text.match_indices(' ').find_map(|(at, _)| {
            let rest = &text[at + 1..];
            let (open, id) = rest.strip_prefix('(').map_or(("", rest), |id| ("(", id));
            let id: Uuid = id.get(..36)?.parse().ok()?;
            let end = at + 1 + open.len() + 36;
            let is_pause = !open.is_empty() && text[end..].starts_with(')');
            let is_campaign = open.is_empty() && text[..at].ends_with("campaign");
            match (is_pause, is_campaign) {
                (true, _) => Some((at, html! {}, end + 1)),
                (_, true) => Some((at + 1, self.campaign(id), end)),
                _ => None,
            }
        });
        match found {
            Some((begin, shown, end)) => {
                html! { (linked_words(&text[..begin])) (shown) @if end < text.len() { (self.in_words(&text[end..])) } }
            }
            None => {
                let space = if text.starts_with(' ') { " " } else { "" };
                html! { (space) (linked_words(&title(text))) }
            }
        }
    }

    /// Returns the name of a campaign.
    pub(in crate::console) fn name(&self, id: Uuid) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }

    /// Returns all names, the newest campaign first.
    pub(in crate::console) fn newest(&self) -> impl Iterator<Item = &str> {
        self.0.values().rev().map(String::as_str)
    }

    /// Renders a choice of a campaign.
    pub(in crate::console) fn select(&self, field: &str, chosen: &str) -> Markup {
        self.choice(field, chosen, "any")
    }

    /// Renders a choice of a campaign that is left out.
    pub(in crate::console) fn select_except(&self, field: &str, chosen: &str) -> Markup {
        self.choice(field, chosen, "none")
    }

    fn choice(&self, field: &str, chosen: &str, empty: &str) -> Markup {
        let id: Option<Uuid> = chosen.parse().ok();
        let is_other = id.is_some_and(|id| !self.0.contains_key(&id));
        html! {
            select name=(field) {
                option value="" { (empty) }
                // The URL may name one that is older than these.
                @if is_other { option value=(chosen) selected { (chosen) } }
                (self.options(chosen))
            }
        }
    }

    /// Renders the campaigns as options of a choice, the newest first.
    pub(in crate::console) fn options(&self, chosen: &str) -> Markup {
        html! { @for (id, name) in self.0.iter().rev() { option value=(id) selected[id.to_string() == chosen] { (name) } } }
    }
}

/// Reads campaign, agent and instance of a conversation's lane.
pub(in crate::console) fn conversation(lane: &str) -> Option<(Uuid, &str, &str)> {
    let mut parts = lane.splitn(3, '/');
    let campaign = parts.next()?.parse().ok()?;
    Some((campaign, parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_of_a_conversation_has_the_name_of_its_campaign() {
        let id = Uuid::from_u128(7);
        let names = Names([(id, "Harbour series".to_owned())].into());
        assert_eq!(names.lane(&format!("{id}/copywriter/main")), "copywriter · Harbour series");
        assert_eq!(names.lane(&format!("{id}/curator/2")), "curator/2 · Harbour series");
        let unknown = Uuid::from_u128(8);
        assert_eq!(names.lane(&format!("{unknown}/planner/main")), "planner");
        assert_eq!(names.lane("nightly/cleanup"), "nightly/cleanup");
    }

    #[test]
    fn a_reason_names_campaigns_and_has_no_id_of_a_pause() {
        let (id, pause) = (Uuid::from_u128(7), Uuid::from_u128(9));
        let names = Names([(id, "Harbour series".to_owned())].into());
        let text = format!("agent `scout` is paused in campaign {id} ({pause}): too dear");
        let shown = format!(
            "agent <code>scout</code> is paused in campaign <a href=\"/campaigns/{id}\"><bdi>Harbour series</bdi></a>: too dear"
        );
        assert_eq!(names.in_words(&text).0, shown);
        let text = format!("task {id} is paused in all campaigns ({pause}): rest");
        let shown = names.in_words(&text).0;
        assert!(shown.contains(&format!("href=\"/tasks/{id}\"")), "{shown}");
        assert!(shown.ends_with("is paused in all campaigns: rest"), "{shown}");
    }
}
