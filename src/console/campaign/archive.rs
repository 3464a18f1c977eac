//! The archive of a board: how many posts the cleanup has archived, and of whom.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{empty, section, wide},
    },
    operations::{Refusal, ShowBoardArchive},
};

pub(super) async fn show(page: &Page, campaign: Uuid) -> Result<Markup, Refusal> {
    let archive = page.caller.run(ShowBoardArchive { id: campaign, viewer: None }).await?;
    let here = format!("/campaigns/{campaign}");
    let Some(at) = archive.archived_at else {
        return Ok(empty(
            "No post is archived. The nightly cleanup archives old posts: turns no longer show them, and the board still lists them.",
            &format!("dalsegno board archive --campaign {campaign}"),
        ));
    };
    let table = html! {
        table.folds {
            thead { tr { th { "Author" } th.num { "Posts" } th { "First" } th { "Last" } } }
            tbody {
                @for it in &archive.senders {
                    tr { td.text { bdi { (it.sender) } } td.num { (it.posts) } td { (page.view.time(it.first_at)) } td { (page.view.time(it.last_at)) } }
                }
            }
        }
    };
    let end = html! { (archive.posts) " posts, up to #" (archive.archived_seq) ", " (page.view.time(at)) };
    let oldest = archive.archived_seq + 1;
    Ok(html! {
        (section("Archive of the board", &end, &wide("Authors", &table)))
        p."small after" { a href={ (here) "?cursor=" (oldest) } { "Read the archived posts" } }
    })
}
