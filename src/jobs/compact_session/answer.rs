//! One call of a summariser.

use std::sync::Arc;

use super::{Error, Folder, fold::Summariser};
use crate::{
    context::compaction::{ladder::CompactionStep, prompt, sections::SECTIONS},
    domain::sessions::SessionRow,
    jobs::side_call::{Payer, SideCall, clamp_to_u32},
    providers::{Options, Purpose, Request, Think},
    transcript::{Message, Role},
};

/// The text of a summariser, or the reason why there is none.
pub(super) type Answer = Result<String, String>;

/// A request for a summary, with its model.
pub(super) struct Call<'a> {
    pub(super) session: &'a SessionRow,
    pub(super) model: &'a str,
    pub(super) request: &'a prompt::Request,
    pub(super) prompt_tokens: u64,
    pub(super) pinned: Vec<String>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        scribe: &Summariser<'a>,
        rung: CompactionStep,
        request: &'a prompt::Request,
        pinned: Vec<String>,
    ) -> Self {
        let own = scribe.session.model.as_str();
        let alternate = scribe.folder.alternate_model.unwrap_or(own);
        let model = if rung == CompactionStep::Alternate { alternate } else { own };
        let prompt_tokens = scribe.tokens_of(&request.system) + scribe.tokens_of(&request.prompt);
        Self { session: scribe.session, model, request, prompt_tokens, pinned }
    }

    /// Returns the reason why the budget of the campaign or of the task does not allow the call, if there is one.
    pub(super) async fn refusal(&self, folder: &Folder<'_>) -> Result<Option<String>, Error> {
        let call = self.side_call(folder);
        Ok(call.refusal(self.prompt_tokens, self.request.reply_max_tokens).await?)
    }

    /// Makes the call and records its cost. After an error there was no call.
    pub(super) async fn ask(&self, folder: &Folder<'_>) -> Result<Answer, Error> {
        let answer = self.side_call(folder).ask(self.request(folder), &self.request.cuts).await?;
        Ok(answer.map_err(|no_answer| no_answer.to_string()))
    }

    fn side_call<'b>(&'b self, folder: &'b Folder<'_>) -> SideCall<'b> {
        SideCall {
            pool: folder.pool,
            clock: folder.clock,
            cancel: folder.cancel,
            provider: folder.provider,
            model: self.model,
            cost: folder.cost,
            payer: Payer {
                campaign_id: self.session.campaign_id,
                session_id: self.session.id,
                turn: self.session.turn_count,
                task_id: folder.waiting.map(|task| task.id),
                agent: &self.session.agent,
                provider: &self.session.provider,
            },
            busy: folder.busy,
            rate_limits: folder.rate_limits,
        }
    }

    fn request(&self, folder: &Folder<'_>) -> Request {
        let sections = SECTIONS.iter().map(|(title, _)| (*title).to_owned()).collect();
        let prompt = Message::new(Role::User, self.request.prompt.clone());
        Request {
            turn: format!("{}/{}/summary", self.session.id, self.session.turn_count),
            purpose: Purpose::Summary { sections, pinned: self.pinned.clone() },
            model: self.model.to_owned(),
            system: self.request.system.clone(),
            messages: vec![Arc::new(prompt)],
            tools: Vec::new(),
            window_tokens: clamp_to_u32(folder.summariser_window_tokens),
            reserve_tokens: clamp_to_u32(self.request.reply_max_tokens),
            estimated_prompt_tokens: Some(clamp_to_u32(self.prompt_tokens)),
            options: Options {
                // A summary copies facts; thinking would use up the tokens of the answer.
                temperature: Some(0.0),
                think: Some(Think::Off),
                ..Options::default()
            },
            timeouts: folder.timeouts,
            conversation: None,
            credential: self.session.credential.clone(),
        }
    }
}
