//! Pauses of campaigns, agents and queues by their names: `pause harbour` leads to the confirmation on the page of that campaign.

use maud::html;
use uuid::Uuid;

use super::{Hit, MAX_CAMPAIGNS, MAX_OF_KIND};
use crate::{
    console::{page::Page, parts::url_text},
    domain::campaigns::{NameQuery, Status},
    operations::{
        ListAgentPauses, ListAgents, ListQueues, Operation as _, PauseAgentEverywhere,
        PauseCampaign, PauseQueue, Refusal,
    },
};

const PAUSE: &[&str] = &["pause", "stop", "halt"];
const RESUME: &[&str] = &["resume", "continue", "unpause"];
const NOUNS: &[&str] = &["campaign", "agent", "queue"];
/// Letters of a verb from which it is recognised.
const MIN_VERB: usize = 3;

/// A search such as `pause agent reviewer`.
#[derive(Debug, PartialEq, Eq)]
struct Intent<'a> {
    is_pause: bool,
    noun: Option<&'static str>,
    /// The other words, which names have to contain.
    names: Vec<&'a str>,
}

/// Lists the things that the words name together with a verb. A verb alone names nothing.
pub(super) async fn find(page: &Page, words: &[String]) -> Result<Vec<Hit>, Refusal> {
    let Some(intent) = Intent::of(words) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    if intent.concerns("campaign") && page.caller.may_reach(&PauseCampaign::SPEC) {
        all.extend(campaigns(page, &intent).await?);
    }
    if intent.concerns("agent") && page.caller.may_reach(&PauseAgentEverywhere::SPEC) {
        all.extend(agents(page, &intent).await?);
    }
    if intent.concerns("queue") && page.caller.may_reach(&PauseQueue::SPEC) {
        all.extend(queues(page, &intent).await?);
    }
    Ok(all)
}

impl<'a> Intent<'a> {
    fn of(words: &'a [String]) -> Option<Self> {
        let is_verb = |word: &str, verbs: &[&str]| {
            word.len() >= MIN_VERB && verbs.iter().any(|verb| verb.starts_with(word))
        };
        let is_pause = words.iter().any(|word| is_verb(word, PAUSE));
        let is_resume = words.iter().any(|word| is_verb(word, RESUME));
        let noun = NOUNS.iter().copied().find(|noun| words.iter().any(|word| word == noun));
        let is_name =
            |word: &&str| !is_verb(word, PAUSE) && !is_verb(word, RESUME) && !NOUNS.contains(word);
        let names: Vec<&str> = words.iter().map(String::as_str).filter(is_name).collect();
        let is_known = is_pause != is_resume && (noun.is_some() || !names.is_empty());
        is_known.then_some(Self { is_pause, noun, names })
    }

    fn concerns(&self, noun: &str) -> bool {
        self.noun.is_none_or(|own| own == noun)
    }

    fn fits(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.iter().all(|word| name.contains(word))
    }

    fn verb(&self) -> &'static str {
        if self.is_pause { "Pause" } else { "Resume" }
    }

    /// Builds a result: `Pause the agent reviewer everywhere`.
    fn found(&self, noun: &'static str, name: &str, more: &str, target: String) -> Hit {
        Hit {
            target,
            name: html! { (self.verb()) " the " (noun) " " bdi { (name) } (more) },
            kind: "action",
        }
    }
}

async fn campaigns(page: &Page, intent: &Intent<'_>) -> Result<Vec<Hit>, Refusal> {
    let status = if intent.is_pause { Status::Active } else { Status::Paused };
    let words: Vec<String> = intent.names.iter().map(|word| (*word).to_owned()).collect();
    let (status, limit) = (Some(status), MAX_CAMPAIGNS);
    let query = NameQuery { words: &words, status, within: None, limit };
    let fitting = page.caller.search_campaigns(query).await?;
    let anchor = if intent.is_pause { "#confirm-pause" } else { "" };
    let found = |(id, name): &(Uuid, String)| {
        intent.found("campaign", name, "", format!("/campaigns/{id}{anchor}"))
    };
    Ok(fitting.iter().map(found).collect())
}

async fn agents(page: &Page, intent: &Intent<'_>) -> Result<Vec<Hit>, Refusal> {
    let pauses = page.caller.run_if_allowed(ListAgentPauses {}).await?;
    let pauses = pauses.map(|all| all.items).unwrap_or_default();
    if !intent.is_pause {
        let fitting = pauses.iter().filter(|pause| intent.fits(&pause.agent));
        let found = |pause: &crate::domain::agent_pauses::Pause| match pause.campaign_id {
            Some(id) => {
                let target = format!("/campaigns/{id}?part=agents");
                intent.found("agent", &pause.agent, " in its campaign", target)
            }
            None => intent.found("agent", &pause.agent, " everywhere", page_of(&pause.agent)),
        };
        return Ok(fitting.take(MAX_OF_KIND).map(found).collect());
    }
    let agents = page.caller.run_if_allowed(ListAgents {}).await?;
    let names = agents.into_iter().flat_map(|all| all.items);
    let names = names.filter_map(|it| it["name"].as_str().map(str::to_owned));
    let is_paused = |name: &String| {
        pauses.iter().any(|pause| pause.campaign_id.is_none() && pause.agent == *name)
    };
    let fitting = names.filter(|name| intent.fits(name) && !is_paused(name));
    let found = |name: String| {
        let target = format!("{}#pause-everywhere", page_of(&name));
        intent.found("agent", &name, " everywhere", target)
    };
    Ok(fitting.take(MAX_OF_KIND).map(found).collect())
}

fn page_of(agent: &str) -> String {
    format!("/catalogue/agent/{}", url_text(agent))
}

async fn queues(page: &Page, intent: &Intent<'_>) -> Result<Vec<Hit>, Refusal> {
    let queues = page.caller.run_if_allowed(ListQueues {}).await?;
    let queues = queues.map(|all| all.items).unwrap_or_default();
    let fitting = queues
        .iter()
        .filter(|it| it.paused_at.is_none() == intent.is_pause && intent.fits(&it.queue));
    let anchor = if intent.is_pause { "#confirm-pause" } else { "" };
    let found = |it: &crate::queue::admin::QueueView| {
        let target = format!("/work?queue={}{anchor}", url_text(&it.queue));
        intent.found("queue", &it.queue, "", target)
    };
    Ok(fitting.take(MAX_OF_KIND).map(found).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_needs_a_noun_or_a_name() {
        let words = |text: &str| super::super::destinations::words_of(text);
        let pause = words("pause the agents");
        let intent = Intent::of(&pause).unwrap();
        assert_eq!(intent, Intent { is_pause: true, noun: Some("agent"), names: Vec::new() });
        let resume = words("resume Harbour");
        let intent = Intent::of(&resume).unwrap();
        assert_eq!(intent, Intent { is_pause: false, noun: None, names: vec!["harbour"] });
        assert!(intent.fits("Harbour series") && !intent.fits("Letters"));
        for text in ["pause", "harbour", "resume pause harbour", "pa harbour"] {
            assert_eq!(Intent::of(&words(text)), None, "{text}");
        }
    }
}
