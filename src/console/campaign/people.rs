//! The user for whom a campaign works, and the conversations that were read for facts about them.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{Action, Tone, empty, next_page, place, section, wide},
        users,
    },
    domain::facts::{CampaignUser, Extraction, Outcome},
    operations::{ListExtractions, PutCampaignUser, Refusal, ShowCampaignUser},
};

pub(super) async fn show(page: &Page, campaign: Uuid, cursor: &str) -> Result<Markup, Refusal> {
    let user = page.caller.run(ShowCampaignUser { id: campaign }).await?.0;
    let list = ListExtractions { id: campaign, cursor: place(cursor)?, limit: None };
    let listing = page.caller.run(list).await?;
    let command = format!("dalsegno memory facts readings --campaign {campaign}");
    Ok(html! {
        div.stack {
            (section("User", &html! {}, &of(page, campaign, user.as_ref())))
            @if listing.items.is_empty() {
                (section("Read for facts", &html! { "0" }, &empty("No conversation of this campaign has been read for facts.", &command)))
            } @else {
                (section("Read for facts", &html! { "newest first" }, &wide("Readings", &table(page, &listing.items))))
                (next_page(&format!("/campaigns/{campaign}"), &[("part", "facts")], listing.next.as_deref()))
            }
        }
    })
}

fn of(page: &Page, campaign: Uuid, user: Option<&CampaignUser>) -> Markup {
    let given = campaign.to_string();
    let here = format!("/campaigns/{given}?part=facts");
    let fields = [("id", given.as_str())];
    let put = Action::of::<PutCampaignUser>("Save", "", &fields, &here);
    let form = html! {
        div.field { label for="user" { "Name of the user, such as an id or an e-mail address; empty for none" } input #user name="text:user" maxlength="128" autocomplete="off" value=[user.map(|it| it.user.as_str())]; }
        div."actions after" { button.btn { "Save" } }
    };
    html! {
        @match user {
            Some(it) => p.small { "The campaign works for " a href=(users::address(&it.user)) { bdi { (it.user) } } ". Requests since " (page.view.time(it.since)) " are read for facts about them." },
            None => (empty("The campaign works for no user in particular, so no facts are read from its conversations.", &format!("dalsegno memory facts user --campaign {campaign} ann@example.org"))),
        }
        @if put.is_allowed(&page.caller) { div.after { (put.form(&page.view, &form)) } }
    }
}

fn table(page: &Page, items: &[Extraction]) -> Markup {
    let row = |it: &Extraction| {
        let state = match it.outcome {
            Outcome::Done => Tone::Done.state("done", None),
            Outcome::Refused => Tone::Failed.state("refused", it.reason.as_deref()),
        };
        let target = format!("/sessions/{}?cursor={}", it.session_id, it.from_seq - 1);
        html! {
            tr {
                td { (state) }
                td.text { a href=(target) { "messages " (it.from_seq) " to " (it.to_seq) } " of " bdi { (it.agent) } }
                td { (page.view.time(it.ended_at)) }
                td.num { (it.requests) } td.num { (it.found) } td.num { (it.new) }
            }
        }
    };
    html! {
        table.folds {
            thead { tr { th { "Outcome" } th { "Read" } th { "Ended" } th.num { "Requests" } th.num { "Facts" } th.num { "New" } } }
            tbody { @for it in items { (row(it)) } }
        }
    }
}
