//! Arguments that several nouns have.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{ArgGroup, Args, ValueEnum};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Context, Exit, Failure, server::Server, words::given};
use crate::domain::{
    agents::MAIN,
    agents::SessionMode as Mode,
    ids::{Given, GivenCampaign},
    labels,
};

#[derive(Debug, Args)]
pub(super) struct Id {
    /// The id, or as much of its beginning or end as no other has.
    pub(super) id: Given,
}

#[derive(Debug, Args)]
pub(super) struct CampaignId {
    /// Its name, its id, or as much of the beginning or end of that as no other has.
    #[arg(value_name = "CAMPAIGN")]
    pub(super) id: GivenCampaign,
}

/// The campaign that a command works in.
#[derive(Debug, Args)]
pub(super) struct InCampaign {
    /// Campaign, by its name, its id, or as much of the beginning or end of that as no other has; DALSEGNO_CAMPAIGN sets it too.
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: Option<GivenCampaign>,
}

impl InCampaign {
    /// True for the option; the variable names a campaign for other commands, too.
    pub(super) fn is_given(&self) -> bool {
        self.campaign.is_some()
    }

    pub(super) async fn id(&self, context: &Context, server: &Server) -> Result<Uuid, Failure> {
        server.campaign(&self.given(context)?).await
    }

    /// For lists, which have all campaigns where none is given.
    pub(super) async fn id_if_given(
        &self,
        context: &Context,
        server: &Server,
    ) -> Result<Option<Uuid>, Failure> {
        match self.given_or_set(context)? {
            Some(given) => Ok(Some(server.campaign(&given).await?)),
            None => Ok(None),
        }
    }

    pub(super) fn given(&self, context: &Context) -> Result<GivenCampaign, Failure> {
        self.given_or_set(context)?.ok_or_else(|| {
            let words = "name a campaign with --campaign or DALSEGNO_CAMPAIGN: `dalsegno campaign ls` lists them";
            Failure::new(Exit::Usage, anyhow!(words))
        })
    }

    fn given_or_set(&self, context: &Context) -> Result<Option<GivenCampaign>, Failure> {
        if let Some(given) = &self.campaign {
            return Ok(Some(given.clone()));
        }
        let Some(set) = context.environment.get("DALSEGNO_CAMPAIGN") else { return Ok(None) };
        let given = set.parse().map_err(|error| {
            let words = format!("DALSEGNO_CAMPAIGN is `{set}`: {error}");
            Failure::new(Exit::Usage, anyhow!(words))
        })?;
        context.output.note(&format!("campaign: {set} (DALSEGNO_CAMPAIGN)"));
        Ok(Some(given))
    }
}

/// Which part of a list.
#[derive(Debug, Args)]
pub(super) struct Paging {
    /// Only those before this one: the last id of the page before.
    #[arg(long, value_name = "ID")]
    pub(super) after: Option<Given>,
    /// Lists at most this many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub(super) limit: i64,
}

/// Who is asked, and what.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("prompt_given").required(true).args(["prompt", "prompt_file"])))]
pub(super) struct Question {
    #[command(flatten)]
    pub(super) campaign: InCampaign,
    /// Who is asked: `dalsegno agent ls` lists them. curator_2 is instance 2 of curator.
    #[arg(long, required = true)]
    agent: Option<String>,
    /// Which one of several copies of the agent; each has a conversation of its own.
    #[arg(long, default_value = MAIN)]
    pub(super) instance: String,
    /// What is asked; `-` reads it from the standard input.
    prompt: Option<String>,
    /// File with what is asked.
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// Whether the conversation goes on, begins anew, or is nobody else's. Else as the agent's file says.
    #[arg(long)]
    session: Option<SessionMode>,
}

/// The caller's own words about a new thing.
#[derive(Debug, Args)]
pub(super) struct LabelFlags {
    /// A short name to find it by; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    pub(super) tags: Vec<String>,
    /// A key and a value to find it by; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,
}

/// Labels that things have to have.
#[derive(Debug, Args)]
pub(super) struct LabelFilter {
    /// Only those with this tag; may be repeated.
    #[arg(long = "tag", value_name = "TAG", value_parser = labels::tag)]
    tags: Vec<String>,
    /// Only those with this value for this key of the metadata; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,
}

impl LabelFlags {
    pub(super) fn metadata(&self) -> Map<String, Value> {
        object(&self.metadata)
    }
}

impl LabelFilter {
    pub(super) fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.metadata.is_empty()
    }

    pub(super) fn all(&self) -> (Vec<String>, Map<String, Value>) {
        (self.tags.clone(), object(&self.metadata))
    }

    /// As a list of an operation takes them.
    pub(super) fn tags(&self) -> Option<String> {
        (!self.tags.is_empty()).then(|| self.tags.join(","))
    }

    pub(super) fn metadata(&self) -> Option<String> {
        (!self.metadata.is_empty()).then(|| Value::Object(object(&self.metadata)).to_string())
    }
}

fn object(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect()
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SessionMode {
    Continue,
    Fresh,
    None,
}

impl Question {
    /// There is none only where another argument excludes it.
    pub(super) fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or_default()
    }

    pub(super) fn prompt(&self) -> Result<String, Failure> {
        Ok(given(self.prompt.as_deref(), self.prompt_file.as_ref())?.unwrap_or_default())
    }

    pub(super) fn session_mode(&self) -> Option<Mode> {
        self.session.map(|mode| match mode {
            SessionMode::Continue => Mode::Continue,
            SessionMode::Fresh => Mode::Fresh,
            SessionMode::None => Mode::None,
        })
    }
}
