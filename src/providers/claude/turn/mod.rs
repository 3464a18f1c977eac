//! One call: prepares the session, runs the CLI, judges the output and collects what is kept.

mod files;
mod folder_access;
mod outcome;

use std::{ffi::OsString, io, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Claude, Config, Credential, Error, HostEnvironment,
    credential::CredentialChannel,
    drive::{self, Watch},
    envelope::{self, Envelope},
    input_files::{self, InputFile},
    launch::{self, CallFiles, CallFolder, Child, Launch, Plan, Start},
    neutralise,
    prestart::{Fingerprint, PrestartPool, PrestartedProcess},
    rates::Rates,
    secrets::Secrets,
    space,
    verdict::Case,
};
use crate::providers::{
    self, CallTexts, Conversation, EventSink, Grants, Outcome, Request, SentRequest,
    TranscriptFile, TurnStart, stream_json::Limits,
};
use crate::transcript::Media;

use self::folder_access::prefer_no_space;
pub(super) use self::folder_access::run_blocking_in;

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
        let output_of = grants.output.map(|_| request.turn.clone());
        let inputs = input_files_of(request);
        let prepare = move || {
            let output_of = output_of.as_deref();
            let plan = Plan { session, call, is_kept, system: &system, output_of, grants: &grants };
            let ground = CallFolder::prepare(&sessions, &plan)?;
            space::require(&sessions)?;
            input_files::place(ground.cwd(), &inputs).map(|()| ground)
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
        let files = self.collect_output().await;
        let outcome = match kept {
            Ok((result, kept)) => {
                let outcome = self.outcome(&heard, ended, (result, kept, files), spent, meter);
                self.start_ahead(&outcome);
                Ok(outcome)
            }
            Err(error) => Err((error, spent, files)),
        };
        self.ground.clear().await;
        outcome.map_err(|(error, spent, files)| {
            let error = prefer_no_space(error, sessions).with_cost(spent);
            let error = error.with_has_acted(heard.answer.has_acted());
            error.with_said(heard.answer.messages()).with_files(files)
        })
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

/// Lists the files of the whole conversation: earlier messages, which the CLI has itself, name theirs, too.
fn input_files_of(request: &Request) -> Vec<InputFile> {
    let media = request.messages.iter().flat_map(|message| &message.media);
    let file = |media: &Media| {
        let content = Arc::clone(media.attachment.content.as_ref()?);
        Some(InputFile { path: media.attachment.path(), content })
    };
    media.filter_map(file).collect()
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

/// Returns the credential that the session began on. For a new session, and if that one is not configured any more, returns the first one.
fn credential<'a>(all: &'a [Credential], name: Option<&String>) -> Result<&'a Credential, Error> {
    let own = all.iter().find(|credential| Some(&credential.name) == name);
    own.or(all.first()).ok_or(Error::NoCredential)
}
