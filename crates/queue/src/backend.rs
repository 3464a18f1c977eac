//! apalis-core's `Backend` over the claims that the [claimer](super::claimer) sends.
//!
//! It differs from a backend that polls its own storage in three ways.
//! - It never fails: the error type is [`Infallible`]. An error would end the apalis worker with all runs that it
//!   holds.
//! - It buffers nothing: the claimer claims exactly as many jobs as there are free slots. A claim in the channel has a
//!   slot already and starts at the worker's next poll.
//! - A run is over when its end is acknowledged, not when its handler returns. [`Backend::poll_close`] therefore waits
//!   until all slots are free again.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use apalis_core::{
    backend::{Backend, BackendConfig, finalize::Ephemeral},
    task::Task,
    worker::context::WorkerContext,
};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::layer::util::Identity;

use super::{config::Config, slots::Claim, slots::Slots};

/// The source of jobs of an apalis worker. Clones share one channel, because apalis builds a new worker for each
/// restart.
#[derive(Clone)]
pub(super) struct ClaimedJobs {
    claims: Arc<Mutex<mpsc::UnboundedReceiver<Claim>>>,
    slots: Arc<Slots>,
    config: Arc<Config>,
    exhausted: CancellationToken,
    all_ended: Arc<Mutex<Option<BoxFuture<'static, ()>>>>,
}

impl ClaimedJobs {
    pub(super) fn new(
        claims: mpsc::UnboundedReceiver<Claim>,
        slots: Arc<Slots>,
        config: Arc<Config>,
    ) -> Self {
        Self {
            claims: Arc::new(Mutex::new(claims)),
            slots,
            config,
            exhausted: CancellationToken::new(),
            all_ended: Arc::default(),
        }
    }

    /// Returns a token that is cancelled once the claimer is gone and all its claims were handed to the worker. The
    /// worker may be told to stop only then: earlier, it would leave claimed jobs in the channel until the longest run
    /// is over.
    pub(super) fn exhausted(&self) -> CancellationToken {
        self.exhausted.clone()
    }
}

impl Backend for ClaimedJobs {
    type Task = Task<Claim>;
    type Error = Infallible;

    fn poll_ready(
        &mut self,
        _cx: &mut Context<'_>,
        _worker: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _worker: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Infallible>>> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let claim = std::task::ready!(claims.poll_recv(cx));
        if claim.is_none() {
            self.exhausted.cancel();
        }
        Poll::Ready(claim.map(|claim| Ok(Task::new(claim))))
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _worker: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        let mut all_ended = self.all_ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = all_ended.get_or_insert_with(|| {
            let slots = Arc::clone(&self.slots);
            Box::pin(async move { slots.wait_until_all_free().await })
        });
        Pin::new(waiting).poll(cx).map(Ok)
    }
}

impl BackendConfig for ClaimedJobs {
    type Args = Claim;
    type Id = i64;
    type Kind = Ephemeral;
    type Config = Config;
    type Layer = Identity;

    fn config(&self) -> &Config {
        &self.config
    }

    fn middleware(&mut self, _worker: &mut WorkerContext) -> Identity {
        Identity::new()
    }
}
