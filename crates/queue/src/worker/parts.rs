//! Builds the parts of a worker.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use uuid::Uuid;

use super::{
    super::{
        claimer::Claimer,
        completer::{Completer, Ends},
        heartbeat::Heartbeat,
        link::Link,
        retention::Retention,
        runner::{CallHandler, EndEveryRun},
        slots::Claim,
        upkeep::Upkeep,
        wakeup,
    },
    Parts,
};

/// Time limit of a statement of the worker's own parts.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of a renewal, which must not come late.
const RENEWAL_PATIENCE: Duration = Duration::from_secs(4);

impl Parts {
    pub(super) fn end_every_run(&self, ends: Ends) -> EndEveryRun {
        EndEveryRun {
            handlers: Arc::clone(&self.handlers),
            ends,
            crash_points: self.shared.crash_points,
            cancel_grace: self.config.cancel_grace(),
        }
    }

    pub(super) fn handler(&self) -> CallHandler {
        CallHandler { handlers: Arc::clone(&self.handlers) }
    }

    pub(super) fn claimer(
        &self,
        identity: watch::Receiver<Option<Uuid>>,
        claims: mpsc::UnboundedSender<Claim>,
    ) -> Claimer {
        Claimer {
            link: self.link("claimer", PATIENCE),
            slots: Arc::clone(&self.slots),
            bells: Arc::clone(&self.bells),
            config: Arc::clone(&self.config),
            shared: Arc::clone(&self.shared),
            handlers: Arc::clone(&self.handlers),
            queues: self.registration.queues.clone(),
            identity,
            claims,
        }
    }

    pub(super) fn completer(&self) -> Completer {
        Completer {
            link: self.link("completer", PATIENCE),
            slots: Arc::clone(&self.slots),
            bells: Arc::clone(&self.bells),
            config: Arc::clone(&self.config),
            crash_points: self.shared.crash_points,
            abandon: self.abandon.clone(),
        }
    }

    pub(super) fn heartbeat(&self, identity: watch::Sender<Option<Uuid>>) -> Heartbeat {
        Heartbeat {
            link: self.link("heartbeat", RENEWAL_PATIENCE),
            slots: Arc::clone(&self.slots),
            bells: Arc::clone(&self.bells),
            config: Arc::clone(&self.config),
            crash_points: self.shared.crash_points,
            registration: self.registration.clone(),
            identity,
        }
    }

    pub(super) fn upkeep(&self, identity: watch::Receiver<Option<Uuid>>) -> Upkeep {
        Upkeep {
            link: self.link("upkeep", PATIENCE),
            bells: Arc::clone(&self.bells),
            config: Arc::clone(&self.config),
            crash_points: self.shared.crash_points,
            identity,
            retention: Retention::new(self.config.keep.clone(), Instant::now()),
            published: BTreeSet::new(),
        }
    }

    pub(super) fn listener(&self) -> impl Future<Output = ()> + Send + 'static {
        let (config, bells, ended) =
            (Arc::clone(&self.config), Arc::clone(&self.bells), self.ended.clone());
        let session = self.session.clone().filter(|_| config.listen);
        async move {
            match session {
                Some(options) => {
                    let options = options.application_name("dalsegno listener");
                    wakeup::listen(options, &config, &bells, ended).await;
                }
                None => bells.notices.set_hearing(false),
            }
        }
    }

    fn link(&self, part: &str, patience: Duration) -> Link {
        let pooled = || (*self.shared.pool.connect_options()).clone();
        let options = self.session.clone().unwrap_or_else(pooled);
        let options = options.application_name(&format!("dalsegno {part}"));
        Link::new(options, patience, self.session.is_some())
    }
}
