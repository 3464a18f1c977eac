//! Arguments that several nouns share.

use std::path::PathBuf;

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use clap::{ArgGroup, Args, ValueEnum};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    server::Server,
    words::{parse_period, read_text},
};
use crate::{
    clock::{Clock as _, SystemClock},
    domain::{
        agents::MAIN,
        agents::SessionMode as Mode,
        ids::{GivenCampaign, PartialId},
        labels, timestamp,
    },
};

#[derive(Debug, Args)]
pub(super) struct Id {
    /// The id, or a unique beginning or end of it. An end has at least 8 digits.
    pub(super) id: PartialId,
}

#[derive(Debug, Args)]
pub(super) struct CampaignId {
    /// The campaign: its name, its id, or a unique beginning or end (8 digits or more) of the id.
    #[arg(value_name = "CAMPAIGN")]
    pub(super) id: GivenCampaign,
}

/// The time until which something holds.
#[derive(Debug, Args)]
pub(super) struct Expiry {
    /// Lifetime: 24h, 90d. Default: until it is revoked.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    expires_in: Option<TimeDelta>,
    /// Time at which it expires: 2026-11-20T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = timestamp::parse, conflicts_with = "expires_in")]
    expires_at: Option<DateTime<Utc>>,
}

impl Expiry {
    pub(super) fn at(&self, context: &Context) -> Result<Option<DateTime<Utc>>, Failure> {
        let Some(period) = self.expires_in else { return Ok(self.expires_at) };
        let at = SystemClock.now() + period;
        context.refuse_relative("--expires-in", "--expires-at", at)?;
        Ok(Some(at))
    }
}

/// The campaign of a command: as argument, option or variable.
#[derive(Debug, Args)]
pub(super) struct CampaignChoice {
    /// The campaign: its name, its id, or a unique beginning or end (8 digits or more) of the id.
    #[arg(value_name = "CAMPAIGN", conflicts_with = "campaign")]
    id: Option<GivenCampaign>,
    #[command(flatten)]
    named: InCampaign,
}

impl CampaignChoice {
    pub(super) async fn id(&self, context: &Context, server: &Server) -> Result<Uuid, Failure> {
        match &self.id {
            Some(given) => server.campaign(given).await,
            None => self.named.id(context, server).await,
        }
    }
}

/// The campaign that a command works in.
#[derive(Debug, Args)]
pub(super) struct InCampaign {
    /// The campaign: its name, its id, or a unique beginning or end (8 digits or more) of the id.
    ///
    /// DALSEGNO_CAMPAIGN sets it, too.
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: Option<GivenCampaign>,
}

impl InCampaign {
    /// Returns true if the option is set. DALSEGNO_CAMPAIGN does not count, because it is meant for other commands,
    /// too.
    pub(super) fn is_given(&self) -> bool {
        self.campaign.is_some()
    }

    pub(super) async fn id(&self, context: &Context, server: &Server) -> Result<Uuid, Failure> {
        server.campaign(&self.require_campaign(context)?).await
    }

    /// Resolves the campaign for lists, which show all campaigns if none is given.
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

    pub(super) fn require_campaign(&self, context: &Context) -> Result<GivenCampaign, Failure> {
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
        if !context.output.is_structured() {
            context.output.print_note(&format!("campaign: {set} (DALSEGNO_CAMPAIGN)"));
        }
        Ok(Some(given))
    }
}

/// One page of a list.
#[derive(Debug, Args)]
pub(super) struct Paging {
    /// Continues after this item: the last id of the previous page.
    #[arg(long, value_name = "ID")]
    pub(super) after: Option<PartialId>,
    /// Maximum number of items, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub(super) limit: i64,
}

/// The agent that is asked, and the prompt.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("prompt_given").required(true).args(["prompt", "prompt_file"])))]
pub(super) struct Question {
    #[command(flatten)]
    pub(super) campaign: InCampaign,
    /// The agent: `dalsegno agent ls` lists them. curator_2 is instance 2 of curator.
    #[arg(long, required = true)]
    agent: Option<String>,
    /// Instance of the agent; each has a conversation of its own.
    #[arg(long, default_value = MAIN)]
    pub(super) instance: String,
    /// The prompt; `-` reads it from the standard input.
    prompt: Option<String>,
    /// File with the prompt; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// Session of the task. Default: the agent's file decides.
    #[arg(long)]
    session: Option<SessionMode>,
}

/// Tags and metadata for something new.
#[derive(Debug, Args)]
pub(super) struct LabelFlags {
    /// Tag to find it by; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    pub(super) tags: Vec<String>,
    /// Key and value to find it by; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,
}

/// Tags and metadata to filter a list by.
#[derive(Debug, Args)]
pub(super) struct LabelFilter {
    /// Only those with this tag; may be repeated.
    #[arg(long = "tag", value_name = "TAG", value_parser = labels::tag)]
    tags: Vec<String>,
    /// Only those with this metadata value; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,
}

/// Named values for the calls of a campaign or a task.
#[derive(Debug, Args)]
pub(super) struct ParameterFlags {
    /// Named value that its calls contain, such as agent_mode=plan; may be repeated.
    ///
    /// The value is JSON, or else a text. Those of a task win over those of its campaign.
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, Value)>,
}

impl ParameterFlags {
    pub(super) fn object(&self) -> Map<String, Value> {
        self.parameters.iter().cloned().collect()
    }
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) =
        text.split_once('=').ok_or("use NAME=VALUE, for example agent_mode=plan")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
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

    pub(super) fn tags_and_metadata(&self) -> (Vec<String>, Map<String, Value>) {
        (self.tags.clone(), object(&self.metadata))
    }

    /// Returns the tags, separated by commas, as list operations expect them.
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
    let (key, value) = text.split_once('=').ok_or("use KEY=VALUE, for example order=17")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SessionMode {
    /// Continues the conversation.
    Continue,
    /// Begins a new session.
    Fresh,
    /// Uses a session of its own, which no other task continues.
    None,
}

impl Question {
    /// Returns the agent. It is empty only where another argument excludes it.
    pub(super) fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or_default()
    }

    pub(super) fn prompt(&self) -> Result<String, Failure> {
        Ok(read_text(self.prompt.as_deref(), self.prompt_file.as_ref())?.unwrap_or_default())
    }

    pub(super) fn session_mode(&self) -> Option<Mode> {
        self.session.map(|mode| match mode {
            SessionMode::Continue => Mode::Continue,
            SessionMode::Fresh => Mode::Fresh,
            SessionMode::None => Mode::None,
        })
    }
}
