//! The files of agents, skills, nodes and flow templates, and the versions of agents' prompts that sessions were made with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Call, Operation, Refusal, Spec};
use crate::{
    domain::{
        agents::{Agent, Catalogue, LookupError, MAIN},
        class::{Class, Kind},
        files::{Problem, SourceFile, SourceKind, nearest},
        flows::Templates,
        ids::NotFound,
        prompt_versions::{self, PromptVersion},
    },
    tools::agent_problems,
};

const TAG: &str = "agents";
const UNKNOWN_FILE: Class = Class::of(Kind::NotFound, "unknown_file");
const UNKNOWN_VERSION: Class = Class::of(Kind::NotFound, "unknown_version");

/// Names the prompt of an agent's file in place of a hash.
pub const FILE_VERSION: &str = "file";

/// Lists the files of agents, skills, nodes and flow templates with their problems.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFiles {}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Files {
    pub items: Vec<SourceFile>,
    /// Problems of folders: the files in use are those before the problem.
    pub problems: Vec<Problem>,
    /// Keys with which agents cannot work as their files say: rules for unknown tools, windows and budgets that are too small. The files
    /// are in use.
    #[serde(default)]
    pub warnings: Vec<Problem>,
}

/// Shows a file of an agent, a skill, a node or a flow template as it was written, with its problems.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowFile {
    #[schema(inline)]
    pub kind: SourceKind,
    pub name: String,
}

/// A file with its text.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SourceText {
    #[serde(flatten)]
    pub file: SourceFile,
    /// Null: the file cannot be read.
    pub text: Option<String>,
}

/// Lists the versions of an agent's prompt that sessions were made with, the last used first.
///
/// `show_prompt_version` has the text of a version.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListPromptVersions {
    pub name: String,
}

/// At most 100 versions.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PromptVersions {
    pub items: Vec<PromptVersion>,
}

/// Shows the text of a version of an agent's prompt.
///
/// It is the text of the agent file alone. Skills, edicts and other parts of the system prompt belong to no version: `show_context` of a turn
/// has them.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowPromptVersion {
    pub name: String,
    /// The hash of the version, or a unique beginning of it. `file`: the prompt of the file as it is now.
    pub version: String,
}

/// The text of a version of an agent's prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PromptText {
    /// The hash of the version.
    pub prompt_hash: String,
    /// True: sessions that open now are made with it.
    pub is_current: bool,
    /// Null: no context of a call with this version is stored.
    pub text: Option<String>,
}

impl Operation for ListFiles {
    const SPEC: Spec = Spec::read("list_files", "/v1/files", "agent files").tag(TAG);
    type Output = Files;

    async fn run(self, call: &Call) -> Result<Files, Refusal> {
        files(call).await
    }
}

impl Operation for ShowFile {
    const SPEC: Spec = Spec::read("show_file", "/v1/files/{kind}/{name}", "agent file")
        .tag(TAG)
        .refuses(&[UNKNOWN_FILE]);
    type Output = SourceText;

    async fn run(self, call: &Call) -> Result<SourceText, Refusal> {
        let of_kind = files(call).await?.items.into_iter().filter(|file| file.kind == self.kind);
        let of_kind: Vec<SourceFile> = of_kind.collect();
        match of_kind.iter().find(|file| file.name == self.name) {
            Some(file) => {
                let text = file.text.as_deref().map(str::to_owned);
                Ok(SourceText { file: file.clone(), text })
            }
            None => Err(self.unknown(&of_kind)),
        }
    }
}

impl ShowFile {
    fn unknown(&self, of_kind: &[SourceFile]) -> Refusal {
        let names = of_kind.iter().map(|file| file.name.as_str());
        let advice = match nearest(&self.name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`dalsegno agent files` lists them".to_owned(),
        };
        let Self { kind, name } = self;
        let detail = format!("no {} has a file of the name `{name}`: {advice}", kind.as_str());
        Refusal::new(UNKNOWN_FILE.kind, UNKNOWN_FILE.code, detail)
    }
}

impl Operation for ListPromptVersions {
    const SPEC: Spec =
        Spec::read("list_prompt_versions", "/v1/agents/{name}/versions", "agent versions")
            .tag(TAG)
            .refuses(&[LookupError::UNKNOWN_AGENT]);
    type Output = PromptVersions;

    async fn run(self, call: &Call) -> Result<PromptVersions, Refusal> {
        let catalogue = call.catalogue()?;
        catalogue.check_name(&self.name)?;
        let current = current_hashes(&catalogue, &self.name);
        let items = prompt_versions::list(&call.pool, &self.name, &current).await?;
        Ok(PromptVersions { items })
    }
}

impl Operation for ShowPromptVersion {
    const SPEC: Spec =
        Spec::read("show_prompt_version", "/v1/agents/{name}/versions/{version}", "agent versions")
            .tag(TAG)
            .refuses(&[
                LookupError::UNKNOWN_AGENT,
                LookupError::BROKEN_AGENT,
                UNKNOWN_VERSION,
                NotFound::AMBIGUOUS,
            ]);
    type Output = PromptText;

    async fn run(self, call: &Call) -> Result<PromptText, Refusal> {
        let catalogue = call.catalogue()?;
        catalogue.check_name(&self.name)?;
        if self.version == FILE_VERSION {
            let agent = catalogue.agent(&self.name)?;
            let prompt_hash = catalogue.prompt_hash(agent, MAIN);
            let text = Some(agent.prompt.clone());
            return Ok(PromptText { prompt_hash, is_current: true, text });
        }
        let current = current_hashes(&catalogue, &self.name);
        let mut transaction = call.begin_read().await?;
        let versions = prompt_versions::list(&mut *transaction, &self.name, &current).await?;
        let version = self.find(versions)?;
        let file = catalogue.agent(&self.name).ok().filter(|_| version.is_current);
        let text = match file {
            Some(agent) => Some(agent.prompt.clone()),
            None => prompt_versions::find_text(&mut transaction, &version).await?,
        };
        let PromptVersion { prompt_hash, is_current, .. } = version;
        Ok(PromptText { prompt_hash, is_current, text })
    }
}

impl ShowPromptVersion {
    /// Finds the only version whose hash begins with the given digits.
    fn find(&self, versions: Vec<PromptVersion>) -> Result<PromptVersion, Refusal> {
        let Self { name, version } = self;
        let digits = version.to_ascii_lowercase();
        let is_meant =
            |it: &PromptVersion| !digits.is_empty() && it.prompt_hash.starts_with(&digits);
        let mut meant = versions.into_iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => {
                let detail = format!(
                    "the prompt of agent `{name}` has no version `{version}`: `dalsegno agent versions {name}` lists the versions, and `file` is the prompt of the file"
                );
                Err(Refusal::new(UNKNOWN_VERSION.kind, UNKNOWN_VERSION.code, detail))
            }
            (Some(_), Some(_)) => {
                let detail = format!(
                    "more than one version of the prompt of agent `{name}` begins with `{version}`: write more of the hash; `dalsegno agent versions {name}` lists the versions"
                );
                Err(Refusal::new(NotFound::AMBIGUOUS.kind, NotFound::AMBIGUOUS.code, detail))
            }
        }
    }
}

/// Returns the hashes of the prompts that sessions are made with now; none for a broken file.
fn current_hashes(catalogue: &Catalogue, name: &str) -> Vec<String> {
    // An instance that is not the main one has no roster in its prompt.
    let hashes = |agent: &Agent| [MAIN, ""].map(|instance| catalogue.prompt_hash(agent, instance));
    catalogue.agent(name).map(|agent| hashes(agent).to_vec()).unwrap_or_default()
}

async fn files(call: &Call) -> Result<Files, Refusal> {
    let catalogue = call.catalogue()?;
    let mut items = catalogue.sources().to_vec();
    let mut problems = catalogue.problems().0;
    problems.retain(|problem| items.iter().all(|file| file.path != problem.file));
    match Templates::load_in_thread(&call.config.flows, Arc::clone(&catalogue)).await {
        Ok(templates) => items.extend_from_slice(templates.sources()),
        Err(of_folder) => problems.extend(of_folder.0),
    }
    items.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(Files { items, problems, warnings: agent_problems(&catalogue, &call.config.agents) })
}
