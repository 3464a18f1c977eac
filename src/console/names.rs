//! Names of conversations: lanes have the id of their campaign in front of agent and instance.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{TITLE_MAX_CHARS, agent_name, linked_words},
    },
    domain::campaigns::Campaign,
    operations::{ListCampaigns, MAX_LIMIT, Refusal},
};

/// Names of the newest campaigns.
#[derive(Debug, Default)]
pub(in crate::console) struct Names(BTreeMap<Uuid, CampaignName>);

#[derive(Debug)]
struct CampaignName {
    name: String,
    is_erased: bool,
    is_of_eval: bool,
}

impl Names {
    pub(in crate::console) async fn load(page: &Page) -> Result<Self, Refusal> {
        let named = newest_campaigns(page).await?.into_iter().map(|campaign| {
            let is_of_eval = campaign.is_of_eval();
            let Campaign { id, name, is_erased, .. } = campaign;
            (id, CampaignName { name, is_erased, is_of_eval })
        });
        Ok(Self(named.collect()))
    }

    /// Names a lane: `copywriter · Harbour series`, or as it is.
    pub(in crate::console) fn lane(&self, lane: &str) -> String {
        match conversation(lane) {
            Some((campaign, agent, instance)) => match self.name(campaign) {
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
            @match id.and_then(|id| self.name(id).map(|name| (id, name))) {
                Some((id, name)) => a href={ "/campaigns/" (id) } { bdi { (name) } },
                None => bdi { (group) },
            }
        }
    }

    /// Links to a campaign by its name, or by its id if it is older than those that are known.
    pub(in crate::console) fn campaign(&self, id: Uuid) -> Markup {
        html! { a href={ "/campaigns/" (id) } { @match self.name(id) { Some(name) => bdi { (name) }, None => (super::parts::id("", id)) } } }
    }

    /// Renders the first line of a reason, shortened: campaigns are links by their names, and the id of a pause, which people do not use, is
    /// left out.
    pub(in crate::console) fn in_words(&self, text: &str) -> Markup {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
        let line = without_pause(line);
        let (mut rest, mut n_left) = (line.as_str(), TITLE_MAX_CHARS);
        let mut shown = String::new();
        loop {
            let (words, campaign, after) = match next_campaign(rest) {
                Some((words, id, after)) => (words, Some(id), after),
                None => (rest, None, ""),
            };
            let n_chars = words.chars().count();
            if n_chars > n_left {
                let cut: String = words.chars().take(n_left).chain(['…']).collect();
                shown.push_str(&linked_words(&cut).0);
                break;
            }
            n_left -= n_chars;
            shown.push_str(&linked_words(words).0);
            let Some(id) = campaign else { break };
            shown.push_str(&self.campaign(id).0);
            rest = after;
        }
        PreEscaped(shown)
    }

    /// Returns the name of a campaign.
    pub(in crate::console) fn name(&self, id: Uuid) -> Option<&str> {
        self.0.get(&id).map(|campaign| campaign.name.as_str())
    }

    /// Returns true if there may be older campaigns, which have no option.
    pub(in crate::console) fn are_cut(&self) -> bool {
        self.0.len() as i64 >= MAX_LIMIT
    }

    /// Returns all names, the newest campaign first, without those of erased campaigns.
    pub(in crate::console) fn newest(&self) -> impl Iterator<Item = &str> {
        let offered = self.0.values().rev().filter(|campaign| !campaign.is_erased);
        offered.map(|campaign| campaign.name.as_str())
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

    /// Renders the campaigns as options of a choice, the newest first, and those of evals last. Erased ones are left out, unless one is chosen.
    pub(in crate::console) fn options(&self, chosen: &str) -> Markup {
        let chosen: Option<Uuid> = chosen.parse().ok();
        let offered =
            |(id, campaign): &(&Uuid, &CampaignName)| !campaign.is_erased || chosen == Some(**id);
        let (of_evals, others): (Vec<_>, Vec<_>) =
            self.0.iter().rev().filter(offered).partition(|(_, campaign)| campaign.is_of_eval);
        let options = others.into_iter().chain(of_evals);
        html! { @for (id, campaign) in options { option value=(id) selected[chosen == Some(*id)] { (campaign.name) } } }
    }

    /// Renders the campaigns as options of a choice that has to be made. None of an eval is chosen before.
    pub(in crate::console) fn required_options(&self) -> Markup {
        let has_usual = self.0.values().any(|campaign| !campaign.is_erased && !campaign.is_of_eval);
        html! { @if !has_usual { (no_campaign()) } (self.options("")) }
    }
}

/// Returns the newest campaigns, the newest first. A caller who may not list them gets none.
pub(in crate::console) async fn newest_campaigns(page: &Page) -> Result<Vec<Campaign>, Refusal> {
    let list = ListCampaigns { tags: None, metadata: None, cursor: None, limit: Some(MAX_LIMIT) };
    let listing = page.caller.run_if_allowed(list).await?;
    Ok(listing.map(|listing| listing.items).unwrap_or_default())
}

/// An option without a value: a campaign has to be chosen.
pub(in crate::console) fn no_campaign() -> Markup {
    html! { option value="" { "choose a campaign" } }
}

/// Reads campaign, agent and instance of a conversation's lane.
pub(in crate::console) fn conversation(lane: &str) -> Option<(Uuid, &str, &str)> {
    let mut parts = lane.splitn(3, '/');
    let campaign = parts.next()?.parse().ok()?;
    Some((campaign, parts.next()?, parts.next()?))
}

/// Leaves the id of the pause out of the reason of a job that it holds, which
/// [`hold_reason`](crate::domain::agent_pauses::Pause::hold_reason) has built.
fn without_pause(reason: &str) -> String {
    let parts = reason.strip_prefix("agent `").and_then(|rest| {
        let (agent, rest) = rest.split_once("` is paused in ")?;
        let (place, rest) = rest.split_once(" (")?;
        let (pause, rest) = rest.split_at_checked(36)?;
        let campaign = place.strip_prefix("campaign ").and_then(|id| id.parse::<Uuid>().ok());
        let is_place = campaign.is_some() || place == "all campaigns";
        pause.parse::<Uuid>().ok().filter(|_| is_place)?;
        Some((agent, place, rest.strip_prefix("):")?))
    });
    match parts {
        Some((agent, place, why)) => format!("agent `{agent}` is paused in {place}:{why}"),
        None => reason.to_owned(),
    }
}

/// Finds the first id of a campaign that is not part of a command. Returns the text before it, and the one behind it.
fn next_campaign(text: &str) -> Option<(&str, Uuid, &str)> {
    text.match_indices("campaign ").find_map(|(at, word)| {
        let begin = at + word.len();
        let id = text.get(begin..begin + 36)?.parse().ok()?;
        let is_code = text[..at].matches('`').count() % 2 == 1;
        (!is_code).then(|| (&text[..begin], id, &text[begin + 36..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> CampaignName {
        CampaignName { name: name.to_owned(), is_erased: false, is_of_eval: false }
    }

    #[test]
    fn a_lane_of_a_conversation_has_the_name_of_its_campaign() {
        let id = Uuid::from_u128(7);
        let names = Names([(id, named("Harbour series"))].into());
        assert_eq!(names.lane(&format!("{id}/copywriter/main")), "copywriter · Harbour series");
        assert_eq!(names.lane(&format!("{id}/curator/2")), "curator/2 · Harbour series");
        let unknown = Uuid::from_u128(8);
        assert_eq!(names.lane(&format!("{unknown}/planner/main")), "planner");
        assert_eq!(names.lane("nightly/cleanup"), "nightly/cleanup");
    }

    #[test]
    fn an_erased_campaign_is_offered_only_where_it_is_chosen() {
        let [open, like_erased, erased] = [7, 8, 9].map(Uuid::from_u128);
        let gone = CampaignName { is_erased: true, ..named("(erased)") };
        let names = Names(
            [(open, named("Harbour series")), (like_erased, named("(erased)")), (erased, gone)]
                .into(),
        );
        let shown = names.select("campaign_id", "").0;
        assert!(shown.contains("Harbour series"), "{shown}");
        // A person has named one of them like this.
        assert!(shown.contains(&format!("value=\"{like_erased}\">(erased)")), "{shown}");
        assert!(!shown.contains(&erased.to_string()), "{shown}");
        let shown = names.select("campaign_id", &erased.to_string()).0;
        assert!(shown.contains(&format!("value=\"{erased}\" selected>(erased)")), "{shown}");
        assert_eq!(names.newest().collect::<Vec<_>>(), ["(erased)", "Harbour series"]);
    }

    #[test]
    fn campaigns_of_evals_are_offered_last_and_never_chosen_before() {
        let [usual, eval] = [7, 8].map(Uuid::from_u128);
        let of_eval = || CampaignName { is_of_eval: true, ..named("eval captions") };
        let names = Names([(usual, named("Harbour series")), (eval, of_eval())].into());
        let shown = names.required_options().0;
        assert!(shown.starts_with(&format!("<option value=\"{usual}\"")), "{shown}");
        assert!(shown.contains(&eval.to_string()), "{shown}");
        let shown = Names([(eval, of_eval())].into()).required_options().0;
        assert!(shown.starts_with("<option value=\"\">"), "{shown}");
    }

    #[test]
    fn a_reason_names_campaigns_and_has_no_id_of_a_pause() {
        let (id, pause) = (Uuid::from_u128(7), Uuid::from_u128(9));
        let names = Names([(id, named("Harbour series"))].into());
        let text = format!("agent `scout` is paused in campaign {id} ({pause}): too dear");
        let shown = format!(
            "agent <code>scout</code> is paused in campaign <a href=\"/campaigns/{id}\"><bdi>Harbour series</bdi></a>: too dear"
        );
        assert_eq!(names.in_words(&text).0, shown);
        let text = format!("agent `scout` is paused in all campaigns ({pause}): see task {id}");
        let shown = names.in_words(&text).0;
        assert!(shown.contains(&format!("href=\"/tasks/{id}\"")), "{shown}");
        assert!(shown.contains("in all campaigns: see task"), "{shown}");
    }

    #[test]
    fn a_reason_keeps_its_commands_and_other_ids_and_is_shortened_as_a_whole() {
        let (id, other) = (Uuid::from_u128(7), Uuid::from_u128(9));
        let names = Names([(id, named("Harbour series"))].into());
        let command = format!("run `dalsegno task ls --campaign {id}`");
        let shown = names.in_words(&command).0;
        assert_eq!(shown, format!("run <code>dalsegno task ls --campaign {id}</code>"));
        let shown = names.in_words(&format!("asked by a person ({other}): wait")).0;
        assert!(shown.contains(&other.to_string()[28..]), "{shown}");
        let long = format!("{} campaign {id} {}", "a".repeat(50), "b".repeat(50));
        let shown = names.in_words(&long).0;
        assert!(shown.contains("Harbour series") && shown.ends_with("bbb…"), "{shown}");
        assert_eq!(shown.matches('b').count(), 32, "with the tags of a name: {shown}");
    }
}
