//! The actions on a campaign as a whole: pause, resume, close, erase.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation},
    },
    domain::campaigns::Status,
    operations::{CloseCampaign, EraseCampaign, PauseCampaign, ResumeCampaign},
};

pub(super) fn show(page: &Page, campaign: Uuid, status: Status) -> Markup {
    let given = campaign.to_string();
    let here = format!("/campaigns/{given}");
    let fields = [("id", given.as_str())];
    let resume = Action::of::<ResumeCampaign>("Resume", "running", &fields, &here);
    let pause = Confirmation {
        action: Action::of::<PauseCampaign>("Pause", "paused", &fields, &here),
        id: "confirm-pause",
        heading: "Pause this campaign",
        consequences: html! { p { "No further turn starts. Turns that run go on to their end; tasks can still be added." } },
        fields: html! { div.field { label for="pause-reason" { "Reason, shown with each waiting task" } input #pause-reason name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno campaign pause {given}"),
    };
    let close = Confirmation {
        action: Action::of::<CloseCampaign>("Close", "", &fields, &here),
        id: "confirm-close",
        heading: "Close this campaign",
        consequences: html! { p { "It takes no more tasks, posts and edits. Waiting tasks still run. It cannot be opened again." } },
        fields: html! {},
        command: format!("dalsegno campaign close {given}"),
    };
    let receipt = format!("/erasures/{given}");
    let erase = Confirmation {
        action: Action::of::<EraseCampaign>("Erase", "", &fields, &receipt).class("btn danger"),
        id: "confirm-erase",
        heading: "Erase this campaign",
        consequences: html! { p { "A worker deletes its conversations, prompts, results, board, memory and brief for good. Its costs and a signed receipt stay. It cannot be undone." } },
        fields: html! { div.field { label for="erase-reason" { "Reason; it stays in the receipt, so it must not name what is erased" } input #erase-reason name="reason" data-flag="--reason" required maxlength="300"; } },
        command: format!("dalsegno campaign erase {given} --yes"),
    };
    let (view, caller) = (&page.view, &page.caller);
    html! {
        div.actions {
            @match status {
                Status::Active => { (pause.button(view, caller)) (close.button(view, caller)) },
                Status::Paused => { (resume.button(view, caller)) (close.button(view, caller)) },
                Status::Closed => {},
            }
            (erase.button(view, caller))
        }
    }
}
