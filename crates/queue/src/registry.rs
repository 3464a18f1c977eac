//! The list of handlers of a worker.
//!
//! A worker claims the kinds in its list and no others. A job of a kind that no worker knows stays where it is,
//! visible, until a worker with a handler for it starts; [`explain`](fn@super::admin::explain) says so.

use std::{collections::HashMap, future::Future};

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    job::{HandlerResult, Job, LaneFailure, Policy},
    run::Run,
};

/// The handlers of a worker, and the state that they share.
#[must_use = "a registry does nothing until a worker runs it"]
pub struct Registry<S> {
    state: S,
    handlers: Handlers,
    repeated: Option<&'static str>,
}

/// The handlers by kind, without the type of their state.
pub(super) type Handlers = HashMap<&'static str, Handler>;

/// The handler of one kind, which takes the undecoded payload.
pub(super) struct Handler {
    pub(super) policy: Policy,
    call: Call,
}

/// Decodes a payload and starts the handler.
type Call = Box<dyn Fn(&str, Run) -> DecodeResult + Send + Sync>;

/// The started handler, or the error of its payload.
type DecodeResult = Result<BoxFuture<'static, HandlerResult>, serde_json::Error>;

impl<S: Clone + Send + Sync + 'static> Registry<S> {
    /// Creates an empty list. Every run gets a clone of `state`.
    pub fn new(state: S) -> Self {
        Self { state, handlers: HashMap::new(), repeated: None }
    }

    /// Adds the handler of the kind that its first argument names.
    pub fn with<J, F, Fut>(mut self, handle: F) -> Self
    where
        J: Job,
        F: Fn(J, Run, S) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        let state = self.state.clone();
        let call = move |payload: &str, run: Run| {
            let job: J = serde_json::from_str(payload)?;
            Ok(handle(job, run, state.clone()).boxed())
        };
        let handler = Handler { policy: J::policy(), call: Box::new(call) };
        if self.handlers.insert(J::KIND, handler).is_some() {
            self.repeated = Some(J::KIND);
        }
        self
    }

    /// Returns the handlers, or the kind that was registered twice.
    pub(super) fn into_handlers(self) -> Result<Handlers, &'static str> {
        match self.repeated {
            Some(kind) => Err(kind),
            None => Ok(self.handlers),
        }
    }
}

impl Handler {
    /// Returns true if the lane waits for a person when a job of this kind dies.
    pub(super) fn holds_lane(&self) -> bool {
        self.policy.lane_failure == LaneFailure::Hold
    }

    /// Decodes the payload and starts the handler. The error is always about the payload.
    pub(super) fn call(&self, payload: &str, run: Run) -> DecodeResult {
        (self.call)(payload, run)
    }
}
