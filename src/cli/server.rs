//! The server of a command: the database that it opens itself, or a Dalsegno server that it calls.

use std::sync::{Arc, OnceLock};

use uuid::Uuid;

use super::{
    Context, Exit, Failure, args::Paging, database::with_database, output::Output, remote::Remote,
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        agents::{Catalogue, Problems},
        class::Kind,
        ids::{Given, GivenCampaign},
    },
    operations::{
        Admission, Call, FindId, Intake, Listing, MAX_LIMIT, Noun, Operation, Reach, Refusal,
    },
    tools::Meanings,
    traces::Traces,
};

/// Said of a command whose idempotency key has been used before.
const REPLAYED: &str = "done before with this idempotency key: this is the result of that time";

/// Pages without an item, one after the other, after which a list ends: a search for text bounds what each of them reads.
const MAX_EMPTY_PAGES: usize = 5;

/// The operations of a server, for one command.
pub(super) struct Server {
    pub(super) way: Way,
    output: Output,
}

pub(super) enum Way {
    /// On the database, in the name of the person at this host.
    Local(Call),
    Remote(Remote),
}

/// Runs a command on the server of `--url`, or else on the database.
pub(super) async fn with_server(
    context: &Context,
    work: impl AsyncFnOnce(&Server) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let output = context.output;
    match &context.target {
        Some(target) => {
            let remote = Remote::new(target, context.idempotency_key.clone())?;
            work(&Server { way: Way::Remote(remote), output }).await
        }
        None => {
            with_database(context, Use::Look, async |database| {
                work(&Server { way: Way::Local(call(context, database)?), output }).await
            })
            .await
        }
    }
}

fn call(context: &Context, database: &Database) -> Result<Call, Failure> {
    let config = context.load()?;
    let (files, output) = (config.agents.clone(), context.output);
    let loaded = OnceLock::new();
    let agents = move || match loaded.get() {
        Some(catalogue) => Ok(Arc::clone(catalogue)),
        None => {
            let catalogue = Arc::new(Catalogue::load(&files)?);
            Context::warn_of(&catalogue, output);
            Ok::<_, Problems>(Arc::clone(loaded.get_or_init(|| catalogue)))
        }
    };
    Ok(Call {
        pool: database.pool.clone(),
        config: Arc::new((&config).into()),
        agents: Arc::new(agents),
        meanings: Arc::new(Meanings::new(&config.memory, &config.ollama)),
        now: SystemClock.now(),
        clock: Arc::new(SystemClock),
        actor: context.who(),
        reach: Reach::default(),
        limits: None,
        waits: None,
        admission: Admission::default(),
        intake: Intake::default(),
        idempotency_key: context.idempotency_key.clone(),
        traces: Traces::default(),
        trace: None,
    })
}

/// A server tells the causes of its own faults only to its log; here a person reads them. Those of a wrong input are in its words.
fn without_causes(refusal: Refusal) -> Refusal {
    match refusal.kind {
        Kind::Internal | Kind::Unavailable => refusal,
        _ => Refusal { source: None, ..refusal },
    }
}

impl Server {
    pub(super) async fn call<O: Operation>(&self, operation: O) -> Result<O::Output, Failure> {
        let (output, is_replay) = match &self.way {
            Way::Local(call) => {
                let call = Call { now: SystemClock.now(), ..call.clone() };
                let done = operation.perform(&call).await.map_err(without_causes)?;
                (done.output, done.is_replay)
            }
            Way::Remote(remote) => remote.call(&operation).await?,
        };
        // Some outputs say it themselves.
        if is_replay && !O::is_replay(&output) {
            self.output.note(REPLAYED);
        }
        Ok(output)
    }

    /// The items of a list that a person asks for, from as many pages as that takes. `page` makes the operation of a cursor and a limit.
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

    /// The first `n` items of a list with another cursor than an id.
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
                self.output.note(&format!(
                    "stopped at {cursor}: a long part of the list has nothing that matches; `--after {cursor}` goes on there"
                ));
                return Ok(items);
            }
            if cursor.is_none() || i64::try_from(items.len()).is_ok_and(|so_far| so_far >= n) {
                return Ok(items);
            }
        }
    }

    /// The thing that a person means.
    pub(super) async fn id(&self, noun: Noun, given: &Given) -> Result<Uuid, Failure> {
        match given.whole() {
            Some(id) => Ok(id),
            None => self.find(noun, given.text()).await,
        }
    }

    /// The campaign that a person means.
    pub(super) async fn campaign(&self, given: &GivenCampaign) -> Result<Uuid, Failure> {
        match given.whole() {
            Some(id) => Ok(id),
            None => self.find(Noun::Campaign, &given.name).await,
        }
    }

    async fn find(&self, noun: Noun, text: &str) -> Result<Uuid, Failure> {
        Ok(self.call(FindId { noun, text: text.to_owned() }).await?.id)
    }
}
