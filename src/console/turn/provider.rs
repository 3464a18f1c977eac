//! The provider's own transcript up to a turn, and the context of a call for a summary or for facts.

use maud::{Markup, html};
use uuid::Uuid;

use super::requests;
use crate::{
    console::{
        page::Page,
        parts::{Tone, empty, section, title},
    },
    domain::class::Kind,
    operations::{ProviderTranscriptState, Refusal, ShowLedgerContext, ShowProviderTranscript},
};

/// Shows the transcript that the provider keeps itself, compared with the stored messages.
pub(super) async fn transcript(page: &Page, id: Uuid, number: i32) -> Result<Markup, Refusal> {
    let ask = ShowProviderTranscript { id, turn: Some(number) };
    let command = format!("dalsegno context show {id} --turn {number} --transcript");
    let framed = |end: &Markup, body: &Markup| html! { div #provider { (section("The provider's own transcript", end, body)) } };
    let own = match page.caller.run(ask).await {
        Ok(own) => own,
        // Most providers keep none.
        Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::Conflict) => {
            return Ok(framed(&html! {}, &empty(&refusal.detail, &command)));
        }
        Err(refusal) => return Err(refusal),
    };
    let problem = own.problem.as_deref();
    let state = match own.state {
        ProviderTranscriptState::Equal => {
            Tone::Done.state("the stored messages, word for word", None)
        }
        ProviderTranscriptState::Differs => Tone::Failed.state("differs", problem),
        ProviderTranscriptState::NotCompared => Tone::Waiting.state("not compared", problem),
    };
    let body = html! {
        p.small { (state) }
        p."small soft" { "File " code { bdi { (own.file) } } " of " (own.provider) ", " bdi { (own.model) } }
        @for entry in &own.entries {
            details { summary { (format!("{:?}: ", entry.message.role)) (title(&entry.message.text)) @if entry.added { span.soft { " (added by the provider's program)" } } } pre."code wrap" dir="auto" { (entry.message.text) } }
        }
    };
    Ok(framed(&html! { (own.entries.len()) " entries" }, &body))
}

/// Shows what a call was sent that is charged to the turn, but does not belong to it.
pub(super) async fn side_call(page: &Page, ledger_id: i64) -> Result<Markup, Refusal> {
    let framed = |body: &Markup| html! { div #side-call { (section("Call beside the turn", &html! { "row " (ledger_id) " of the ledger" }, body)) } };
    match page.caller.run(ShowLedgerContext { ledger_id }).await {
        Ok(sent) => Ok(framed(&requests::texts(&sent))),
        Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::Conflict) => Ok(framed(
            &empty(&refusal.detail, &format!("dalsegno context show --ledger {ledger_id}")),
        )),
        Err(refusal) => Err(refusal),
    }
}
