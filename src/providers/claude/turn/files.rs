//! The files of a turn: the transcript before it, and its growth.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    super::{
        Error,
        drive::TurnOutput,
        launch::Start,
        neutralise, output,
        transcript::{self, LocalState},
    },
    Turn,
};
use crate::providers::{Conversation, FileGrowth, Flag, OutputFiles, TranscriptFile, TurnStart};

/// Parts of a turn that are kept.
pub(super) struct TurnState {
    pub(super) head: Uuid,
    pub(super) grown: Vec<FileGrowth>,
    pub(super) not_stored: Option<Flag>,
}

impl Turn<'_> {
    /// Makes the files equal to the caller's, and chooses the start of the session.
    pub(super) async fn restore_files(&mut self) -> Result<(), Error> {
        let (project, session) = (self.ground.project(), self.conversation.external_id);
        let held = std::mem::take(&mut self.conversation.transcript);
        // Without a head there is no place to continue from, so the files are not used.
        let held = if self.conversation.head.is_some() { held } else { Vec::new() };
        let claim = self.ground.claim();
        let restore = move || {
            claim.check()?;
            Ok((transcript::restore(&project, session, &held)?, held))
        };
        let (local, held) = self.blocking("repair the transcript", restore).await?;
        match (self.conversation.head, local) {
            (Some(_), _) if held.is_empty() => return Err(Error::TranscriptLost),
            (Some(_), LocalState::Lost) => return Err(Error::TranscriptLost),
            (Some(at), local) => {
                self.start = Start::Resume { session, at };
                self.began = if local == LocalState::Same {
                    TurnStart::Resumed
                } else {
                    TurnStart::Restored
                };
                // The bytes are on the disk now. Names, sizes and digests are small.
                let known = |file| TranscriptFile { bytes: None, ..file };
                self.held = held.into_iter().map(known).collect();
            }
            (None, _) => self.rewrite().await?,
        }
        Ok(())
    }

    /// Writes the transcript of a session that has none from the messages, if there are any.
    async fn rewrite(&mut self) -> Result<(), Error> {
        let history = neutralise::history(&self.request.messages);
        if history.is_empty() {
            return Ok(());
        }
        let (history, model) = (history.to_vec(), self.request.model.clone());
        let (now, claim) = (self.surroundings.clock.now(), self.ground.claim());
        let session = self.conversation.external_id;
        let path = self.ground.project().join(transcript::main_name(session));
        let write = move || {
            let Some(written) = transcript::synthesise(&history, &model, now) else {
                return Ok(None);
            };
            claim.check()?;
            transcript::write_private(&path, &written.bytes).map(|()| Some(written.head))
        };
        if let Some(at) = self.blocking("write the transcript", write).await? {
            self.start = Start::Resume { session, at };
            self.began = TurnStart::Rewritten;
        }
        Ok(())
    }

    /// Returns the place to continue from and the growth of the files. A turn counts only if the CLI has stored it.
    pub(super) async fn collect_kept(
        &self,
        heard: &TurnOutput,
    ) -> Result<Option<TurnState>, Error> {
        if !self.is_kept() {
            return Ok(None);
        }
        let head = heard.answer.head.ok_or(Error::NotPersisted)?;
        let (project, held) = (self.ground.project(), self.held.clone());
        let Conversation { external_id: session, is_temporary, .. } = self.conversation;
        let (claim, secrets) = (self.ground.claim(), Arc::clone(&self.secrets));
        let side_max_bytes = self.config.side_files_max_bytes;
        let collect = move || {
            claim.check()?;
            if !transcript::is_persisted(&project, session, &held, head)? {
                return Ok(None);
            }
            if is_temporary {
                return Ok(Some((Vec::new(), None)));
            }
            transcript::find_growth(&project, session, &held, &secrets, side_max_bytes).map(Some)
        };
        let collected = self.blocking("read the transcript", collect).await?;
        let (grown, not_stored) = collected.ok_or(Error::NotPersisted)?;
        Ok(Some(TurnState { head, grown, not_stored }))
    }

    /// Reads the files that the agent has written for the readers of its task. A failure is logged, because the answer counts without them.
    pub(super) async fn collect_output(&self) -> OutputFiles {
        let Some(limits) = self.conversation.grants.output else { return OutputFiles::default() };
        let (folder, claim) = (self.ground.output(), self.ground.claim());
        let read = move || {
            let files = output::read(&folder, limits)?;
            // Another call would have begun its own files.
            claim.check().map(|()| files)
        };
        match self.blocking("read the output files", read).await {
            Ok(files) => files,
            Err(error) => {
                let session = self.conversation.external_id;
                tracing::warn!(session.external_id = %session, %error, "cannot read the output files of a turn");
                OutputFiles::default()
            }
        }
    }
}
