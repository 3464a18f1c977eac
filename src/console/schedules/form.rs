//! The form of a schedule that adds a task at each of its times.

use maud::{Markup, html};

use super::HERE;
use crate::{
    console::{
        campaign_choice::CampaignChoice,
        page::Page,
        parts::{Action, section},
    },
    domain::schedules::Schedule,
    operations::{ListAgents, PutSchedule, Refusal},
};

/// Names of campaigns and agents, for the fields.
pub(super) struct Choices {
    campaigns: CampaignChoice,
    agents: Vec<String>,
}

impl Choices {
    /// Loads them with the campaign of the schedule; the id is empty for a new one.
    pub(super) async fn load(page: &Page, campaign: &str) -> Result<Self, Refusal> {
        let campaigns = CampaignChoice::load(page, campaign).await?;
        let agents = page.caller.run_if_allowed(ListAgents {}).await?;
        let items = agents.into_iter().flat_map(|all| all.items);
        let agents = items.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect();
        Ok(Self { campaigns, agents })
    }
}

/// Renders the form for a new schedule, or for the change of one.
pub(super) fn show(page: &Page, choices: &Choices, schedule: Option<&Schedule>) -> Markup {
    let put = Action::of::<PutSchedule>("Save", "", &[], HERE);
    if !put.is_allowed(&page.caller) {
        return html! {};
    }
    let text = |name: &str| {
        schedule.and_then(|it| it.payload[name].as_str()).unwrap_or_default().to_owned()
    };
    let session = text("session");
    let zone = schedule.map_or(page.caller.time_zone(), |it| it.time_zone.as_str());
    let catch_up = schedule.map_or(3_600, |it| it.catch_up_secs);
    let form = html! {
        input type="hidden" name="task.instance" value=(if text("instance").is_empty() { "main".to_owned() } else { text("instance") });
        // Without a field, a change would remove it.
        @if !session.is_empty() { input type="hidden" name="task.session" value=(session); }
        @match schedule {
            Some(it) => input type="hidden" name="name" value=(it.name);,
            None => div.field { label for="schedule-name" { "Name; an existing one is changed" } input #schedule-name name="name" required maxlength="64" placeholder="weekly" autocomplete="off"; },
        }
        div.field { label for="cron" { "When: second, minute, hour, day of month, month, day of week" } input #cron name="cron" required maxlength="120" placeholder="0 30 7 * * Mon" autocomplete="off" value=[schedule.map(|it| it.cron.as_str())]; }
        div.field { label for="zone" { "Time zone" } input #zone name="time_zone" required maxlength="60" autocomplete="off" value=(zone); }
        div.field { label for="catch-up" { "Seconds after a missed moment during which the task is still added" } input #catch-up name="number:catch_up_secs" type="number" min="1" required value=(catch_up); }
        div.field { label for="schedule-campaign" { "Campaign" } select #schedule-campaign name="task.campaign_id" required { (choices.campaigns.options()) } }
        div.field {
            label for="schedule-agent" { "Agent" }
            input #schedule-agent name="task.agent" list="schedule-agents" required maxlength="130" autocomplete="off" value=(text("agent"));
            datalist #schedule-agents { @for name in &choices.agents { option value=(name) {} } }
        }
        div.field { label for="schedule-prompt" { "Prompt" } textarea #schedule-prompt name="task.prompt" rows="4" required dir="auto" { "\n" (text("prompt")) } }
        div."actions after" { button."btn primary" { "Save" } }
    };
    let heading = if schedule.is_some() { "Change" } else { "Add a schedule" };
    section(heading, &html! {}, &put.form(&page.view, &form))
}
