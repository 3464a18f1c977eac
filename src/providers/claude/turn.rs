//! One call: prepares the session, runs the CLI, judges the output and collects what is kept.

use std::{ffi::OsString, io, path::Path, sync::Arc, time::Duration};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Claude, Config, Credential, Error, HostEnvironment,
    credential::CredentialChannel,
    drive::{self, EndReason, TurnOutput, Watch},
    envelope::{self, Envelope},
    launch::{self, CallFiles, CallFolder, Child, Launch, Plan, Start},
    meter, neutralise,
    prestart::{Fingerprint, PrestartPool, PrestartedProcess},
    rates::{Rates, is_same_model},
    secrets::Secrets,
    space,
    transcript::{self, LocalState},
    verdict::Case,
};
use crate::{
    providers::{
        self, CallTexts, Class, Conversation, ConversationUpdate, Durations, EventSink, FileGrowth,
        Flag, Grants, Meter, ModelSpend, Outcome, Request, SentRequest, StopReason, TranscriptFile,
        TurnStart,
        stream_json::{Limits, TurnResult},
    },
    transcript::{Message, Role},
};

/// A call that is ready to run.
pub(super) struct Turn<'a> {
    config: &'a Config,
    surroundings: &'a HostEnvironment,
    secrets: Arc<Secrets>,
    rates: &'a Rates,
    ahead: &'a PrestartPool,
    /// Process that was started after the turn before this one.
    waiting: Option<PrestartedProcess>,
    was_ahead: bool,
    request: &'a Request,
    credential: &'a Credential,
    conversation: Conversation,
    prompt: String,
    ground: CallFolder,
    start: Start,
    began: TurnStart,
    /// The files as they were when the call began.
    held: Vec<TranscriptFile>,
}

impl<'a> Turn<'a> {
    pub(super) async fn prepare(
        Claude { config, surroundings, secrets, rates, ahead, .. }: &'a Claude,
        request: &'a Request,
    ) -> Result<Self, Error> {
        let prompt = envelope::prompt(&CallTexts::of(request)).ok_or(Error::NothingToSend)?;
        let conversation = request.conversation.clone().unwrap_or_else(|| Conversation {
            external_id: Uuid::new_v4(),
            ..Conversation::default()
        });
        let name = conversation.credential.as_ref().or(request.credential.as_ref());
        let credential = credential(&surroundings.credentials, name)?;
        let session = conversation.external_id;
        let is_kept = request.conversation.is_some() && !conversation.is_temporary;
        // Taken before the folders are touched.
        let waiting = ahead.take(session).and_then(PrestartedProcess::if_running);
        let call = waiting.as_ref().map(PrestartedProcess::call);
        let secrets = match conversation.grants.secrets.as_slice() {
            [] => Arc::clone(secrets),
            own => Arc::new(secrets.and(own)),
        };
        let (sessions, system) = (surroundings.sessions.clone(), request.system.clone());
        let grants = conversation.grants.clone();
        let prepare = move || {
            let plan = Plan { session, call, is_kept, system: &system, grants: &grants };
            let ground = CallFolder::prepare(&sessions, &plan)?;
            space::require(&sessions).map(|()| ground)
        };
        let ground =
            run_blocking_in("prepare the session's folder", &surroundings.sessions, prepare)
                .await?;
        let mut turn = Self {
            config,
            surroundings,
            secrets,
            rates,
            ahead,
            waiting,
            was_ahead: false,
            request,
            credential,
            conversation,
            prompt,
            ground,
            start: Start::New(session),
            began: TurnStart::New,
            held: Vec::new(),
        };
        turn.restore_files().await?;
        Ok(turn)
    }

    pub(super) async fn run(
        mut self,
        events: &mut EventSink,
        cancel: &CancellationToken,
    ) -> Result<Outcome, providers::Error> {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled.with_cost(Vec::new()).before_call());
        }
        let (watch, sessions) = (self.watch(), &self.surroundings.sessions);
        let child = self.child().map_err(|error| error.with_cost(Vec::new()).before_call())?;
        events.send_request(self.sent());
        let what = (self.prompt.as_str(), self.grants().required_servers.as_slice());
        let (heard, ended) = drive::drive(child, what, &watch, &self.secrets, events, cancel).await;
        let (spent, meter) = self.bill(&heard);
        let judged = self.case().judge(&heard, ended, &watch);
        let kept = match judged {
            Ok(result) => self.collect_kept(&heard).await.map(|kept| (result, kept)),
            Err(error) => Err(error),
        };
        let outcome = match kept {
            Ok((result, kept)) => {
                let outcome = self.outcome(&heard, ended, result, kept, spent, meter);
                self.start_ahead(&outcome);
                Ok(outcome)
            }
            Err(error) => Err((error, spent)),
        };
        self.ground.clear().await;
        outcome.map_err(|(error, spent)| {
            let error = prefer_no_space(error, sessions).with_cost(spent);
            error.with_has_acted(heard.answer.has_acted()).with_said(heard.answer.messages())
        })
    }

    /// Makes the files equal to the caller's, and chooses the start of the session.
    async fn restore_files(&mut self) -> Result<(), Error> {
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

    fn sent(&self) -> SentRequest {
        let continues = self.conversation.head.is_some();
        let envelope = Envelope::new(&self.arguments(self.start), continues);
        let body = envelope.to_json(&self.request.system, &self.prompt);
        SentRequest::new(providers::Envelope::Claude(envelope), &body)
    }

    /// Returns the waiting process if it was started as this turn needs it. Otherwise starts a new one.
    fn child(&mut self) -> Result<Child, Error> {
        let wanted = self.fingerprint(self.start);
        let waiting = self.waiting.take().and_then(|waiting| waiting.into_child(wanted));
        self.was_ahead = waiting.is_some();
        waiting.map_or_else(|| self.spawn(self.start), Ok)
    }

    fn spawn(&self, start: Start) -> Result<Child, Error> {
        let Self { config, ground, .. } = self;
        let launch = Launch {
            guard: &self.surroundings.guard,
            program: &config.program,
            arguments: self.arguments(start),
            variables: self.variables(),
            cwd: ground.cwd(),
            limits: &config.limits(),
            lock: &ground.lock(),
        };
        let started = Child::start(launch, self.credential());
        started.map_err(|error| Error::NotStarted {
            program: config.program.clone(),
            message: error.to_string(),
        })
    }

    /// Starts the process of the next turn after a successful one. A failure costs that turn its head start, and nothing else.
    fn start_ahead(&mut self, outcome: &Outcome) {
        let Some(continued) = &outcome.conversation else { return };
        let Conversation { external_id: session, is_warm, is_temporary, .. } = self.conversation;
        // The secrets of this turn would be in the process of the next one.
        let is_only_for_this = !self.conversation.grants.secrets.is_empty();
        if !is_warm || is_temporary || is_only_for_this || !self.ahead.has_room() {
            return;
        }
        let start = Start::Resume { session, at: continued.head };
        let fingerprint = self.fingerprint(start);
        if let Ok(child) = self.spawn(start) {
            self.ahead
                .put(session, PrestartedProcess::new(child, fingerprint, self.ground.take_over()));
        }
    }

    fn fingerprint(&self, start: Start) -> Fingerprint {
        let (arguments, variables) = (self.arguments(start), self.variables());
        let (cwd, credential) = (self.ground.cwd(), &self.credential.name);
        Fingerprint::of(&arguments, &variables, cwd, credential, self.ground.digest())
    }

    /// Returns the channel of the credential. The environment is used only if nothing runs that could read it.
    fn credential(&self) -> CredentialChannel<'_> {
        self.credential.secret_channel(launch::can_run_programs(self.grants()))
    }

    fn arguments(&self, start: Start) -> Vec<OsString> {
        arguments(start, self.request, self.credential, self.grants(), &self.ground.files())
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let Self { config, request, ground, .. } = self;
        let passed = &self.surroundings.passed;
        launch::variables(config, self.credential(), passed, ground, &request.options)
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
            has_history: self.began != TurnStart::New,
            credential: &self.credential.name,
            program: &self.config.program,
            required_servers: &self.grants().required_servers,
            has_memory_limit: self.config.memory_max_bytes > 0,
            rate_limit_pause: Duration::from_secs(self.config.rate_limit_pause_secs),
            now: self.surroundings.clock.now(),
        }
    }

    fn bill(&self, heard: &TurnOutput) -> (Vec<ModelSpend>, Meter) {
        let called: u64 = heard.calls.iter().map(|call| meter::n_tokens_of(&call.usage)).sum();
        let by_calls = || {
            let mut spent = meter::of_calls(&heard.calls);
            self.rates.fill_in(&mut spent, &self.conversation.meter);
            (spent, self.conversation.meter.clone())
        };
        let Some(result) = &heard.result else {
            // A turn that was killed reports no total, but its answers were paid.
            return by_calls();
        };
        // A transcript that was written from messages contains no totals.
        let before = match self.began {
            TurnStart::New | TurnStart::Rewritten => &Meter::default(),
            TurnStart::Resumed | TurnStart::Restored => &self.conversation.meter,
        };
        let (spent, meter) = meter::spent(result, before, called);
        self.rates.learn(&spent);
        // The totals of a turn that was cut off lack the request that was under way.
        match meter::n_tokens_of(&meter::total(&spent)) < called && result.is_error != Some(false) {
            true => by_calls(),
            false => (spent, meter),
        }
    }

    /// Returns the place to continue from and the growth of the files. A turn counts only if the CLI has stored it.
    async fn collect_kept(&self, heard: &TurnOutput) -> Result<Option<TurnState>, Error> {
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

    fn outcome(
        &self,
        heard: &TurnOutput,
        ended: EndReason,
        result: &TurnResult,
        kept: Option<TurnState>,
        spent: Vec<ModelSpend>,
        meter: Meter,
    ) -> Outcome {
        let text = match &result.structured_output {
            Some(value) if **value != Value::Null => value.to_string(),
            _ => heard.answer.text(),
        };
        let message = Message::new(Role::Assistant, text);
        let own = spent.iter().find(|spent| is_same_model(&self.request.model, &spent.model));
        let window_tokens = own.and_then(|spent| spent.window_tokens);
        let mut flags = flags(self.grants(), heard, ended, result, &spent);
        flags.extend(kept.as_ref().and_then(|kept| kept.not_stored.clone()));
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
            conversation: kept.map(|TurnState { head, grown, .. }| {
                Box::new(ConversationUpdate {
                    head,
                    began: self.began,
                    was_ahead: self.was_ahead,
                    messages: heard.answer.messages(),
                    grown,
                    meter,
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
        run_blocking_in(doing, &self.surroundings.sessions, work).await
    }
}

/// Builds the envelope of a call that is not made. The ids of the call and of a transcript that is written first are all zeros.
pub(super) fn envelope_of_next(claude: &Claude, request: &Request) -> Result<Envelope, Error> {
    let conversation = request.conversation.clone().unwrap_or_default();
    let session = conversation.external_id;
    let start = match conversation.head {
        Some(at) => Start::Resume { session, at },
        None if neutralise::history(&request.messages).is_empty() => Start::New(session),
        None => Start::Resume { session, at: Uuid::nil() },
    };
    let credentials = &claude.surroundings.credentials;
    let name = conversation.credential.as_ref().or(request.credential.as_ref());
    let files = CallFiles::of_next_call(&claude.surroundings.sessions, session);
    let credential = credential(credentials, name)?;
    let arguments = arguments(start, request, credential, &conversation.grants, &files);
    Ok(Envelope::new(&arguments, conversation.head.is_some()))
}

fn arguments(
    start: Start,
    request: &Request,
    credential: &Credential,
    grants: &Grants,
    files: &CallFiles,
) -> Vec<OsString> {
    let channel = credential.secret_channel(launch::can_run_programs(grants));
    let is_hidden = matches!(channel, CredentialChannel::Pipe { .. });
    // Measured: the bare mode, which is faster, does not read a pipe.
    let is_bare = credential.works_bare() && !is_hidden && launch::fits_bare(grants);
    let Request { model, options, conversation, .. } = request;
    launch::arguments(start, model, options, grants, files, is_bare, conversation.is_some())
}

/// Parts of a turn that are kept.
struct TurnState {
    head: Uuid,
    grown: Vec<FileGrowth>,
    not_stored: Option<Flag>,
}

/// Runs work on files away from the threads of other turns.
pub(super) async fn run_blocking_in<T: Send + 'static>(
    doing: &'static str,
    folder: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done =
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|gone| Err(io::Error::other(gone)));
    done.map_err(|source| match source.kind() {
        // This kind comes from a claim that was replaced, and from no file.
        io::ErrorKind::ResourceBusy => Error::TakenOver,
        _ => no_space_or_folder(doing, folder, source),
    })
}

/// Replaces an error that may pass by `NoSpace`, if there is no disk space even without the files of the call. The next call then waits for
/// space: an agent that fills the disk is not called again and again.
fn prefer_no_space(error: Error, sessions: &Path) -> Error {
    match (error.class(), space::require(sessions)) {
        (Class::Retry { .. }, Err(source)) if space::is_full(&source) => {
            Error::NoSpace { folder: sessions.to_owned(), source }
        }
        _ => error,
    }
}

fn no_space_or_folder(doing: &'static str, folder: &Path, source: io::Error) -> Error {
    let folder = folder.to_owned();
    match space::is_full(&source) {
        true => Error::NoSpace { folder, source },
        false => Error::Folder { doing, folder, source },
    }
}

/// Returns the credential that the session began on. For a new session, and if that one is not configured any more, returns the first one.
fn credential<'a>(all: &'a [Credential], name: Option<&String>) -> Result<&'a Credential, Error> {
    let own = all.iter().find(|credential| Some(&credential.name) == name);
    own.or(all.first()).ok_or(Error::NoCredential)
}

fn flags(
    grants: &Grants,
    heard: &TurnOutput,
    ended: EndReason,
    result: &TurnResult,
    spent: &[ModelSpend],
) -> Vec<Flag> {
    let mut flags: Vec<Flag> =
        heard.missing_servers.iter().cloned().map(Flag::ServerMissing).collect();
    // Measured: the CLI ignores the name of a tool that it does not know.
    let missing = grants.built_in.iter().filter(|tool| !heard.tools.contains(tool));
    flags.extend(missing.cloned().map(Flag::ToolMissing));
    flags.extend(
        result.permission_denials.iter().map(|denial| Flag::Denied(denial.tool_name.clone())),
    );
    if heard.is_compacted {
        flags.push(Flag::Compacted);
    }
    if ended == EndReason::Hung {
        flags.push(Flag::Hung);
    }
    if spent.is_empty() || spent.iter().any(|spent| spent.cost_micros.is_none()) {
        flags.push(Flag::CostUnknown);
    }
    flags
}
