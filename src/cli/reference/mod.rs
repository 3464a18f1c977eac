//! `dalsegno reference`: the documents of `docs/reference` that are generated from the code.

mod campaign_file;
mod cells;
mod commands;
mod errors;
mod events;
mod files;
mod http;
mod http_types;
mod limits;
mod settings;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

pub use self::limits::limits;
use super::{Context, Exit, Failure};
use crate::{
    domain::{agents, campaign_files, flows},
    metric_catalogue, tools,
};

#[derive(Debug, Args)]
pub(super) struct Reference {
    /// Existing folder to write into.
    folder: PathBuf,
}

/// A generated document.
#[derive(Debug)]
pub struct Document {
    /// Name of its file.
    pub name: &'static str,
    pub text: String,
}

pub(super) fn run(reference: &Reference, context: &Context) -> Result<Exit, Failure> {
    let documents = documents().map_err(Failure::failed)?;
    for document in &documents {
        let path = reference.folder.join(document.name);
        std::fs::write(&path, &document.text)
            .with_context(|| format!("cannot write the document {}", path.display()))
            .map_err(Failure::failed)?;
    }
    let n_documents = documents.len();
    context.output.print_note(&format!(
        "{n_documents} documents are written to {}",
        reference.folder.display()
    ));
    Ok(Exit::Ok)
}

/// Generates all documents.
///
/// # Errors
///
/// A documented example or schema is invalid, or a document cannot be written as JSON.
pub fn documents() -> anyhow::Result<Vec<Document>> {
    let campaign_file = serde_json::to_string_pretty(&campaign_files::schema())? + "\n";
    let mut documents = vec![
        Document { name: "campaign-file.md", text: campaign_file::markdown() },
        Document { name: "campaign-file.schema.json", text: campaign_file },
        Document { name: "commands.md", text: commands::markdown() },
        Document { name: "errors.md", text: errors::markdown()? },
        Document { name: "events.md", text: events::markdown() },
        Document { name: "http.md", text: http::markdown()? },
        Document { name: "limits.md", text: limits::markdown() },
        Document { name: "mcp-tools.md", text: tools::markdown() },
        Document { name: "metrics.md", text: metric_catalogue::markdown() },
        Document { name: "openapi.json", text: crate::http::document().to_owned() },
        Document { name: "settings.md", text: settings::markdown() },
    ];
    let formats = [
        ("agent-files.md", "agent.schema.json", files::AGENTS, agents::agent_format()),
        ("flow-templates.md", "flow-template.schema.json", files::FLOWS, flows::template_format()),
        ("nodes.md", "node.schema.json", files::NODES, agents::node_format()),
        ("skills.md", "skill.schema.json", files::SKILLS, agents::skill_format()),
    ];
    for (name, schema_name, head, format) in formats {
        let schema = format.schema().map_err(anyhow::Error::msg)?;
        documents.push(Document { name, text: files::markdown(head, &format, &schema) });
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        documents.push(Document { name: schema_name, text });
    }
    Ok(documents)
}
