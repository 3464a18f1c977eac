//! Text output of a context that would be sent now.

use super::show::{format_request, format_texts};
use crate::{cli::output::format_wrapped_fields, domain::context_previews::ContextPreview};

pub(super) fn format_preview(preview: &ContextPreview) -> String {
    let texts = format_texts(Some(&preview.system), &preview.messages, &preview.tools);
    format!("{}{texts}", format_wrapped_fields(&fields(preview)))
}

fn fields(preview: &ContextPreview) -> Vec<(&'static str, String)> {
    let ContextPreview { agent, instance, provider, model, .. } = preview;
    let session = preview.session_id.map(|id| id.to_string());
    let mut fields = vec![
        ("agent", format!("{agent}/{instance}")),
        ("session", session.unwrap_or_else(|| "a new one".to_owned())),
        ("turn", preview.turn.to_string()),
        ("model", format!("{model} on {provider}")),
        ("tokens", format!("{} estimated", preview.estimated_tokens)),
    ];
    fields.extend(preview.task_id.map(|id| ("task", id.to_string())));
    fields.extend(preview.notes.iter().map(|note| ("note", note.clone())));
    fields.extend(preview.problem.iter().map(|problem| ("problem", problem.clone())));
    fields.extend(preview.request.as_ref().map(|request| ("request", format_request(request))));
    fields
}
