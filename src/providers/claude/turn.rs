//! One call: put the session right, run it, judge it, and collect what it left.

use std::{ffi::OsString, io, path::Path, time::Duration};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Claude, Config, Credential, Error, Surroundings,
    ahead::{Ahead, Fingerprint, Waiting},
    drive::{self, Ended, Heard, Watch},
    launch::{self, Child, Ground, Start},
    meter, neutralise,
    transcript::{self, Local},
    verdict::Case,
};
use crate::{
    providers::{
        self, Began, Continued, Conversation, Durations, EventSink, Flag, Grants, Grown, Meter,
        Outcome, Request, Spent, StopReason, TranscriptFile,
        stream_json::{Limits, TurnResult},
    },
    transcript::{Message, Role},
};

/// A call that is ready to run.
pub(super) struct Turn<'a> {
    config: &'a Config,
    surroundings: &'a Surroundings,
    ahead: &'a Ahead,
    /// Started behind the turn before this one.
    waiting: Option<Waiting>,
    was_ahead: bool,
    request: &'a Request,
    credential: &'a Credential,
    conversation: Conversation,
    prompt: String,
    ground: Ground,
    start: Start,
    began: Began,
    /// The files as they were when the call began.
    held: Vec<TranscriptFile>,
}

impl<'a> Turn<'a> {
    pub(super) async fn prepare(
        Claude { config, surroundings, ahead, .. }: &'a Claude,
        request: &'a Request,
    ) -> Result<Self, Error> {
        let prompt = prompt(request).ok_or(Error::NothingToSend)?;
        let is_kept = request.conversation.is_some();
        let conversation = request.conversation.clone().unwrap_or_else(|| Conversation {
            external_id: Uuid::new_v4(),
            ..Conversation::default()
        });
        let login = conversation.credential.as_ref().or(request.login.as_ref());
        let credential = credential(&surroundings.credentials, login)?;
        let session = conversation.external_id;
        // Before the folders are touched.
        let waiting = ahead.take(session);
        let (sessions, system) = (surroundings.sessions.clone(), request.system.clone());
        let grants = conversation.grants.clone();
        let prepare = move || Ground::prepare(&sessions, session, is_kept, &system, &grants);
        let ground =
            blocking("prepare the session's folder", &surroundings.sessions, prepare).await?;
        let mut turn = Self {
            config,
            surroundings,
            ahead,
            waiting,
            was_ahead: false,
            request,
            credential,
            conversation,
            prompt,
            ground,
            start: Start::New(session),
            began: Began::New,
            held: Vec::new(),
        };
        turn.put_right().await?;
        Ok(turn)
    }

    pub(super) async fn run(
        mut self,
        events: &mut EventSink,
        cancel: &CancellationToken,
    ) -> Result<Outcome, providers::Error> {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled.costing(Vec::new()));
        }
        let watch = self.watch();
        let child = self.child().map_err(|error| error.costing(Vec::new()))?;
        let (mut heard, ended) = drive::drive(child, &self.prompt, &watch, events, cancel).await;
        self.redact(&mut heard);
        let (spent, meter) = self.bill(&heard);
        let judged = self.case().judge(&heard, ended, &watch);
        let kept = match judged {
            Ok(result) => self.keep(&heard).await.map(|kept| (result, kept)),
            Err(error) => Err(error),
        };
        match kept {
            Ok((result, kept)) => {
                let outcome = self.outcome(&heard, ended, result, kept, spent, meter);
                self.start_ahead(&outcome);
                Ok(outcome)
            }
            Err(error) => Err(error.costing(spent).having_acted(heard.answer.has_acted())),
        }
    }

    /// Makes the files here what the caller holds, and chooses how to begin.
    async fn put_right(&mut self) -> Result<(), Error> {
        let (project, session) = (self.ground.project(), self.conversation.external_id);
        let held = std::mem::take(&mut self.conversation.transcript);
        // Without a head there is no place to go on from, whatever the files hold.
        let held = if self.conversation.head.is_some() { held } else { Vec::new() };
        let restore = move || Ok((transcript::restore(&project, session, &held)?, held));
        let (local, held) = self.blocking("put the transcript right", restore).await?;
        match (self.conversation.head, local) {
            (Some(_), _) if held.is_empty() => return Err(Error::TranscriptLost),
            (Some(_), Local::Lost) => return Err(Error::TranscriptLost),
            (Some(at), local) => {
                self.start = Start::Resume { session, at };
                self.began = if local == Local::Same { Began::Resumed } else { Began::Restored };
                // The bytes are on the disk now; what has to be known of them is not large.
                let known = |file| TranscriptFile { bytes: None, ..file };
                self.held = held.into_iter().map(known).collect();
            }
            (None, _) => self.rewrite().await?,
        }
        Ok(())
    }

    /// A session that nobody has a transcript of: written from the messages, if there are any.
    async fn rewrite(&mut self) -> Result<(), Error> {
        let history = neutralise::history(&self.request.messages);
        let now = self.surroundings.clock.now();
        let Some(written) = transcript::synthesise(history, &self.request.model, now) else {
            return Ok(());
        };
        let session = self.conversation.external_id;
        let path = self.ground.project().join(transcript::main_name(session));
        let write = move || transcript::write_private(&path, &written.bytes);
        self.blocking("write the transcript", write).await?;
        self.start = Start::Resume { session, at: written.head };
        self.began = Began::Rewritten;
        Ok(())
    }

    /// The one that waits, if it was started as this turn has to be; else a new one.
    fn child(&mut self) -> Result<Child, Error> {
        let waiting = match (self.waiting.take(), self.fingerprint(self.start)) {
            (Some(waiting), Ok(wanted)) => waiting.into_child(wanted),
            _ => None,
        };
        self.was_ahead = waiting.is_some();
        waiting.map_or_else(|| self.spawn(self.start), Ok)
    }

    fn spawn(&self, start: Start) -> Result<Child, Error> {
        let Self { config, ground, .. } = self;
        let guard = &self.surroundings.guard;
        Child::start(
            guard,
            &config.program,
            self.arguments(start),
            self.variables(),
            ground.cwd(),
            &config.limits(),
        )
        .map_err(|error| Error::NotStarted {
            program: config.program.clone(),
            message: error.to_string(),
        })
    }

    /// Behind a turn that went well: what goes wrong here costs the next one its head start, and nothing else.
    fn start_ahead(mut self, outcome: &Outcome) {
        let Some(continued) = &outcome.conversation else { return };
        if !self.conversation.is_warm || !self.ahead.has_room() {
            return;
        }
        let start = Start::Resume { session: continued.external_id, at: continued.head };
        if let (Ok(fingerprint), Ok(child)) = (self.fingerprint(start), self.spawn(start)) {
            let ground = self.ground.take_over();
            self.ahead.put(continued.external_id, Waiting::new(child, fingerprint, ground));
        }
    }

    fn fingerprint(&self, start: Start) -> io::Result<Fingerprint> {
        let [system, servers] = self.ground.files()?;
        let (arguments, variables) = (self.arguments(start), self.variables());
        Ok(Fingerprint::of(&arguments, &variables, self.ground.cwd(), [&system, &servers]))
    }

    fn arguments(&self, start: Start) -> Vec<OsString> {
        let Self { credential, request, ground, .. } = self;
        let is_bare = credential.works_bare() && launch::fits_bare(self.grants());
        let (model, options, is_kept) = (&request.model, &request.options, self.is_kept());
        launch::arguments(start, model, options, self.grants(), ground, is_bare, is_kept)
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let Self { config, credential, request, ground, .. } = self;
        let passed = &self.surroundings.passed;
        launch::variables(config, credential, passed, ground, &request.options)
    }

    fn watch(&self) -> Watch {
        let (config, timeouts) = (self.config, &self.request.timeouts);
        Watch {
            first_line: timeouts.first_byte.unwrap_or(config.first_line_timeout()),
            idle: timeouts.idle.unwrap_or(config.idle_timeout()),
            total: timeouts.total.unwrap_or(config.total_timeout()),
            exit: config.exit_timeout(),
            interrupt: Duration::from_millis(config.interrupt_ms),
            end_of_input: Duration::from_millis(config.end_of_input_ms),
            terminate: Duration::from_millis(config.terminate_ms),
            limits: Limits {
                line_bytes: config.line_max_bytes,
                total_bytes: config.output_max_bytes,
            },
            stderr_max_bytes: config.stderr_max_bytes,
        }
    }

    fn case(&self) -> Case<'_> {
        Case {
            session: self.conversation.external_id,
            has_history: self.began != Began::New,
            credential: &self.credential.name,
            program: &self.config.program,
            has_memory_limit: self.config.memory_max_bytes > 0,
            rate_limit_pause: Duration::from_secs(self.config.rate_limit_pause_secs),
            now: self.surroundings.clock.now(),
        }
    }

    /// Whatever the CLI quotes is on its way to logs and people.
    fn redact(&self, heard: &mut Heard) {
        heard.answer.clean(|text| self.credential.cleaned(text));
        heard.stderr = self.credential.cleaned(&heard.stderr()).into_bytes();
        heard.api_message = self.credential.cleaned(&heard.api_message);
        if let Some(result) = &mut heard.result {
            result.errors = result.errors.iter().map(|e| self.credential.cleaned(e)).collect();
            result.result = result.result.take().map(|text| self.credential.cleaned(&text));
        }
    }

    fn bill(&self, heard: &Heard) -> (Vec<Spent>, Meter) {
        let called: u64 = heard.calls.iter().map(|call| meter::n_tokens_of(&call.usage)).sum();
        let by_calls = || (meter::of_calls(&heard.calls), self.conversation.meter.clone());
        let Some(result) = &heard.result else {
            // A turn that was killed says no total: its answers were paid all the same.
            return by_calls();
        };
        // A transcript that was written anew has no totals in it.
        let before = match self.began {
            Began::New | Began::Rewritten => &Meter::default(),
            Began::Resumed | Began::Restored => &self.conversation.meter,
        };
        let (spent, meter) = meter::spent(result, before, called);
        // A turn that was cut off leaves the request that was under way out of its totals.
        match meter::n_tokens_of(&meter::total(&spent)) < called && result.is_error != Some(false) {
            true => by_calls(),
            false => (spent, meter),
        }
    }

    /// The place to go on from, and what the files grew by. Only what is stored counts.
    async fn keep(&self, heard: &Heard) -> Result<Option<(Uuid, Vec<Grown>)>, Error> {
        if !self.is_kept() {
            return Ok(None);
        }
        let head = heard.answer.head.ok_or(Error::NotPersisted)?;
        let (project, held) = (self.ground.project(), self.held.clone());
        let session = self.conversation.external_id;
        let collect = move || {
            let is_persisted = transcript::is_persisted(&project, session, &held, head)?;
            if is_persisted {
                transcript::grown(&project, session, &held).map(Some)
            } else {
                Ok(None)
            }
        };
        let grown = self.blocking("read the transcript", collect).await?;
        Ok(Some((head, grown.ok_or(Error::NotPersisted)?)))
    }

    fn outcome(
        &self,
        heard: &Heard,
        ended: Ended,
        result: &TurnResult,
        kept: Option<(Uuid, Vec<Grown>)>,
        spent: Vec<Spent>,
        meter: Meter,
    ) -> Outcome {
        let text = match &result.structured_output {
            Some(value) if **value != Value::Null => value.to_string(),
            _ => heard.answer.text(),
        };
        let message = Message {
            role: Role::Assistant,
            text,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
        };
        let own = spent.iter().find(|spent| spent.model.starts_with(&self.request.model));
        let window_tokens = own.and_then(|spent| spent.window_tokens);
        let flags = flags(self.grants(), heard, ended, result, &spent);
        Outcome {
            message,
            thinking: heard.answer.thinking(),
            stop: StopReason::End,
            usage: meter::total(&spent),
            spent,
            window_tokens,
            provider_message_id: heard.answer.last_message_id().map(str::to_owned),
            durations: Durations {
                total: heard.total,
                first_byte: heard.first_word,
                load: heard.first_line,
                ..Durations::default()
            },
            conversation: kept.map(|(head, grown)| {
                Box::new(Continued {
                    external_id: self.conversation.external_id,
                    head,
                    began: self.began,
                    was_ahead: self.was_ahead,
                    messages: heard.answer.messages(),
                    grown,
                    meter,
                    credential: self.credential.name.clone(),
                    calls: heard.calls.clone(),
                    flags,
                })
            }),
        }
    }

    fn grants(&self) -> &Grants {
        &self.conversation.grants
    }

    fn is_kept(&self) -> bool {
        self.request.conversation.is_some()
    }

    async fn blocking<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        blocking(doing, &self.surroundings.sessions, work).await
    }
}

/// Work on files, off the threads that other turns run on.
pub(super) async fn blocking<T: Send + 'static>(
    doing: &'static str,
    folder: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done =
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|gone| Err(io::Error::other(gone)));
    done.map_err(|source| Error::Folder { doing, folder: folder.to_owned(), source })
}

/// The transcript has what was heard, if there is a place in it to go on from.
fn prompt(request: &Request) -> Option<String> {
    let resumed = request.conversation.as_ref().filter(|conversation| conversation.head.is_some());
    match resumed.and_then(|conversation| conversation.unheard.clone()) {
        Some(unheard) => neutralise::plain(unheard),
        None => neutralise::prompt(&request.messages),
    }
}

/// The one that the session began on; a new session takes the first.
fn credential<'a>(all: &'a [Credential], login: Option<&String>) -> Result<&'a Credential, Error> {
    match login {
        None => all.first().ok_or(Error::NoCredential),
        Some(name) => all
            .iter()
            .find(|credential| credential.name == *name)
            .ok_or_else(|| Error::CredentialGone(name.clone())),
    }
}

fn flags(
    grants: &Grants,
    heard: &Heard,
    ended: Ended,
    result: &TurnResult,
    spent: &[Spent],
) -> Vec<Flag> {
    let mut flags: Vec<Flag> =
        heard.missing_servers.iter().cloned().map(Flag::ServerMissing).collect();
    // Measured: a name that the CLI does not know is passed over.
    let missing = grants.built_in.iter().filter(|tool| !heard.tools.contains(tool));
    flags.extend(missing.cloned().map(Flag::ToolMissing));
    flags.extend(
        result.permission_denials.iter().map(|denial| Flag::Denied(denial.tool_name.clone())),
    );
    if heard.is_compacted {
        flags.push(Flag::Compacted);
    }
    if ended == Ended::Hung {
        flags.push(Flag::Hung);
    }
    if spent.is_empty() || spent.iter().any(|spent| spent.cost_micros.is_none()) {
        flags.push(Flag::CostUnknown);
    }
    flags
}
