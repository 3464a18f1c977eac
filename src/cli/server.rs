//! The server of a command: a database that the command opens itself, or a Dalsegno server.

use std::{
    fmt::Display,
    sync::{Arc, OnceLock},
};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Context, Exit, Failure, args::Paging, database::with_database, output::Output, remote::Remote,
    watch::watch,
};
use crate::{
    causes::causes,
    clock::{Clock as _, SystemClock},
    config::Config,
    db::{Database, Use},
    doctor,
    domain::{
        agents::{Catalogue, Problems},
        class::Kind,
        context_previews::{Error, Previews},
        ids::{GivenCampaign, PartialId},
        reruns::{self, RerunRoutes},
    },
    jobs::{self, Services},
    operations::{
        Admission, Call, Download, FindId, Intake, Listing, MAX_LIMIT, Noun, Operation, Reach,
        Refusal,
    },
    tools::Meanings,
    traces::Traces,
};

/// Note for a repeated idempotency key.
const REPLAYED: &str = "this idempotency key was used before: showing the result of the first call";

/// Consecutive pages without an item after which a list ends, because a search for text bounds the reads of each page.
const MAX_EMPTY_PAGES: usize = 5;

/// Access to the operations for one command.
pub(super) struct Server {
    pub(super) way: ServerConnection,
    output: Output,
    idempotency_key: Option<String>,
}

pub(super) enum ServerConnection {
    /// Runs operations on the database, in the name of this host's user.
    Local(Box<Call>),
    Remote(Remote),
}

/// Runs a command on the server of `--url`, or else on the database.
pub(super) async fn with_server(
    context: &Context,
    work: impl AsyncFn(&Server) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    with_server_for(context, Use::Look, work).await
}

/// Runs a command as [`with_server`]. `purpose` says how the database is used.
pub(super) async fn with_server_for(
    context: &Context,
    purpose: Use,
    work: impl AsyncFn(&Server) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let (output, idempotency_key) = (context.output, context.idempotency_key.clone());
    let run = async |server: Server| match context.watch {
        Some(every) => watch(every, async || Box::pin(work(&server)).await).await,
        None => Box::pin(work(&server)).await,
    };
    let ended = match &context.target {
        Some(target) => {
            let way = ServerConnection::Remote(Remote::new(target)?);
            run(Server { way, output, idempotency_key }).await
        }
        None => {
            with_database(context, purpose, async |database| {
                let way = ServerConnection::Local(Box::new(call(context, database)?));
                run(Server { way, output, idempotency_key }).await
            })
            .await
        }
    };
    match ended {
        // The end of a watched command, if the database sees the signal first.
        Ok(Exit::Interrupted) if context.watch.is_some() => Ok(Exit::Ok),
        other => other,
    }
}

fn call(context: &Context, database: &Database) -> Result<Call, Failure> {
    let config = context.load()?;
    let (files, output, warns) = (config.agents.clone(), context.output, context.shows_agents);
    let loaded = OnceLock::new();
    let agents = move || match loaded.get() {
        Some(catalogue) => Ok(Arc::clone(catalogue)),
        None => {
            let catalogue = Arc::new(Catalogue::load(&files)?);
            if warns {
                Context::warn_broken_agents(&catalogue, output);
            }
            Ok::<_, Problems>(Arc::clone(loaded.get_or_init(|| catalogue)))
        }
    };
    Ok(Call {
        pool: database.pool.clone(),
        config: Arc::new((&config).into()),
        agents: Arc::new(agents),
        previews: previews(&config),
        rerun_routes: rerun_routes(&config),
        examination: doctor::examination(&config, Arc::new(SystemClock), CancellationToken::new()),
        meanings: Arc::new(Meanings::new(&config.memory, &config.ollama)),
        now: SystemClock.now(),
        clock: Arc::new(SystemClock),
        actor: context.actor(),
        reach: Reach::default(),
        limits: None,
        waits: None,
        admission: Admission::default(),
        intake: Intake::default(),
        idempotency_key: None,
        traces: Traces::default(),
        trace: None,
    })
}

/// Builds the previews of a command, which runs no turns: their services are set up with the first preview.
fn previews(config: &Config) -> Previews {
    let (config, other) = (config.clone(), config.clone());
    let set_up = |config: &Config| {
        let clock = Arc::new(SystemClock);
        let services = Services::build_quietly(config, clock, jobs::program(), Traces::default());
        services.map(jobs::previews).map_err(|error| Error::NotSetUp(causes(&error)))
    };
    Previews::new(
        move |subject, begin| {
            let previews = set_up(&config);
            Box::pin(async move { previews?.draft(subject, begin).await })
        },
        move |subject, begin| {
            let previews = set_up(&other);
            Box::pin(async move { previews?.estimate(subject, begin).await })
        },
    )
}

/// Builds the routes of reruns of a command, in the same way.
fn rerun_routes(config: &Config) -> RerunRoutes {
    let config = config.clone();
    RerunRoutes::new(move |own, options| {
        let clock = Arc::new(SystemClock);
        let services = Services::build_quietly(&config, clock, jobs::program(), Traces::default());
        let services = services.map_err(|error| reruns::Error::NotSetUp(causes(&error)))?;
        jobs::rerun_routes(services).find(own, options)
    })
}

/// Removes the causes of errors in the input, whose text already contains them. Causes of internal errors stay: they
/// are shown here, and a server would write them to its log.
fn without_causes(refusal: Refusal) -> Refusal {
    match refusal.kind {
        Kind::Internal | Kind::Unavailable => refusal,
        _ => Refusal { source: None, ..refusal },
    }
}

impl Server {
    pub(super) async fn call<O: Operation>(&self, operation: O) -> Result<O::Output, Failure> {
        self.call_with(self.idempotency_key.clone(), operation).await
    }

    /// Makes one of several changes of a command. `part` tells it from the others: it is the end of its idempotency key.
    pub(super) async fn call_part<O: Operation>(
        &self,
        part: impl Display,
        operation: O,
    ) -> Result<O::Output, Failure> {
        let key = self.idempotency_key.as_ref().map(|key| format!("{key}/{part}"));
        self.call_with(key, operation).await
    }

    /// Reads a file.
    pub(super) async fn download<D: Download>(&self, download: D) -> Result<Vec<u8>, Failure> {
        match &self.way {
            ServerConnection::Local(call) => {
                let file = download.download(call).await.map_err(without_causes)?;
                Ok(file.content)
            }
            ServerConnection::Remote(remote) => remote.download(&download).await,
        }
    }

    /// Makes a change that has an idempotency key of its own.
    pub(super) async fn call_keyed<O: Operation>(
        &self,
        key: String,
        operation: O,
    ) -> Result<O::Output, Failure> {
        self.call_with(Some(key), operation).await
    }

    async fn call_with<O: Operation>(
        &self,
        idempotency_key: Option<String>,
        operation: O,
    ) -> Result<O::Output, Failure> {
        let (output, is_replay) = match &self.way {
            ServerConnection::Local(call) => {
                let call = Call { now: SystemClock.now(), idempotency_key, ..Call::clone(call) };
                let done = operation.perform(&call).await.map_err(without_causes)?;
                (done.output, done.is_replay)
            }
            ServerConnection::Remote(remote) => {
                remote.call(&operation, idempotency_key.as_deref()).await?
            }
        };
        // Some outputs contain this note already.
        if is_replay && !O::is_replay(&output) {
            self.output.print_note(REPLAYED);
        }
        Ok(output)
    }

    /// Returns a list's items from as many pages as needed. `page` builds the operation from a cursor and a limit.
    pub(super) async fn list<O: Operation<Output = Listing<T>>, T>(
        &self,
        noun: Noun,
        paging: &Paging,
        page: impl Fn(Option<Uuid>, Option<i64>) -> O,
    ) -> Result<Vec<T>, Failure> {
        let after = match &paging.after {
            Some(given) => Some(self.id(noun, given).await?),
            None => None,
        };
        let page = |cursor: Option<String>, limit| {
            page(cursor.map_or(after, |cursor| cursor.parse().ok()), Some(limit))
        };
        self.items(paging.limit, page).await
    }

    /// Returns the first `n` items of a list whose cursor is not an id.
    pub(super) async fn items<O: Operation<Output = Listing<T>>, T>(
        &self,
        n: i64,
        page: impl Fn(Option<String>, i64) -> O,
    ) -> Result<Vec<T>, Failure> {
        let (mut items, mut cursor, mut n_empty) = (Vec::new(), None, 0);
        loop {
            let left = n - i64::try_from(items.len()).unwrap_or(n);
            let listing = self.call(page(cursor, left.min(MAX_LIMIT))).await?;
            n_empty = if listing.items.is_empty() { n_empty + 1 } else { 0 };
            items.extend(listing.items);
            cursor = listing.next;
            if let Some(cursor) = cursor.as_ref().filter(|_| n_empty == MAX_EMPTY_PAGES) {
                self.output.print_note(&format!(
                    "stopped at {cursor}: no match in a long part of the list; continue with `--after {cursor}`"
                ));
                return Ok(items);
            }
            if cursor.is_none() || i64::try_from(items.len()).is_ok_and(|so_far| so_far >= n) {
                return Ok(items);
            }
        }
    }

    /// Resolves an id, or a part of one.
    pub(super) async fn id(&self, noun: Noun, given: &PartialId) -> Result<Uuid, Failure> {
        match given.whole() {
            Some(id) => Ok(id),
            None => self.find(noun, given.text()).await,
        }
    }

    /// Resolves a campaign's name, its id, or a part of the id.
    pub(super) async fn campaign(&self, given: &GivenCampaign) -> Result<Uuid, Failure> {
        match given.whole() {
            Some(id) => Ok(id),
            None => self.find(Noun::Campaign, &given.name).await,
        }
    }

    async fn find(&self, noun: Noun, text: &str) -> Result<Uuid, Failure> {
        Ok(self.call(FindId { noun, text: text.to_owned(), newest: None }).await?.id)
    }
}
