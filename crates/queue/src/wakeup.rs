//! Listens for new work between the polls.
//!
//! One connection per process listens. Notifications are only hints: the claimer polls anyhow, so without them
//! everything works, only later. Three faults would make a listener deaf without an error, and each is handled here.
//! - Some errors end the connection without being recognised as a lost connection (a terminated backend, a reset). So
//!   *every* error leads to a new connection, for ever.
//! - A half-open connection never fails and never speaks. So a listener that heard nothing for a while sends itself a
//!   notification, and reconnects when it does not come back.
//! - Notifications sent between two connections are lost. So each new connection wakes all parts once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener, PgNotification, PgPoolOptions},
};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{config::Config, jitter, telemetry};
use dalsegno_base::causes::causes;

/// The channel of the schema: new work, cancellations, and notices for other parts of the process.
pub(super) const CHANNEL: &str = "dalsegno";

/// The signals by which the parts of a worker wake each other.
#[derive(Default)]
pub(super) struct WakeSignals {
    /// Rung when there may be jobs to claim.
    pub(super) work: Notify,
    /// Rung when a job that may run here was cancelled.
    pub(super) cancel: Notify,
    /// The job that may only run in an idle worker, by the last heartbeat.
    pub(super) run_alone: watch::Sender<RunAloneJob>,
    /// True if jobs may run according to the database but not in this process.
    pub(super) recount: AtomicBool,
    /// Signals for parts of the process outside the queue.
    pub(super) notices: Arc<Notices>,
}

/// A ready job that may only run in an idle worker.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunAloneJob {
    /// Seconds that it has been ready; 0 if there is none.
    pub(super) ready_secs: u32,
    /// Number of workers that make room for it before this one.
    pub(super) n_ahead: u32,
}

/// Notifications on the channel that are not about jobs, for other parts of the process. They are only hints.
#[derive(Debug, Default)]
pub struct Notices {
    /// True while notifications arrive. Otherwise polling has to find everything.
    hearing: AtomicBool,
    bell: Notify,
}

impl Notices {
    /// Returns once there may be news: a notice, or the beginning or end of a time without notifications.
    pub async fn wait(&self) {
        self.bell.notified().await;
    }

    /// Returns true while notifications arrive.
    pub fn is_hearing(&self) -> bool {
        self.hearing.load(Ordering::Relaxed)
    }

    /// Records whether notifications arrive, and wakes the other part, because it may have missed some. Does not wake it if
    /// they did not arrive before and still do not.
    pub fn set_hearing(&self, hearing: bool) {
        if self.hearing.swap(hearing, Ordering::Relaxed) || hearing {
            self.ring();
        }
    }

    /// Wakes the other part of the process.
    pub fn ring(&self) {
        self.bell.notify_one();
    }
}

/// The reason why a listening connection was abandoned.
#[derive(Debug, thiserror::Error)]
enum ListenError {
    #[error("cannot connect to the database")]
    Connect(#[source] sqlx::Error),
    #[error("cannot listen for notifications")]
    Listen(#[source] sqlx::Error),
    #[error("the listening connection was closed")]
    Ended,
    #[error("cannot send the probe")]
    SendProbe(#[source] sqlx::Error),
    #[error(
        "no notification came back for {0:?}; the connection is half open, or a pooler drops notifications"
    )]
    NoEcho(Duration),
}

/// Listens until `stop`.
pub(super) async fn listen(
    options: PgConnectOptions,
    config: &Config,
    bells: &WakeSignals,
    stop: CancellationToken,
) {
    let own_channel = format!("dalsegno_probe_{}", Uuid::new_v4().simple());
    let mut n_failures = 0;
    loop {
        let Some(deaf) = stop
            .run_until_cancelled(listen_once(
                &options,
                &own_channel,
                config,
                bells,
                &mut n_failures,
            ))
            .await
        else {
            return;
        };
        bells.notices.set_hearing(false);
        // The claimer may sleep for the long interval, which needs notifications.
        bells.work.notify_one();
        n_failures += 1;
        let wait = jitter::wait_after_failure(n_failures);
        tracing::warn!(
            error = causes(&deaf),
            retry_in_ms = wait.as_millis() as u64,
            "notifications do not arrive: polling for jobs"
        );
        if stop.run_until_cancelled(sleep(wait)).await.is_none() {
            return;
        }
    }
}

/// Listens on one connection until it fails.
async fn listen_once(
    options: &PgConnectOptions,
    own_channel: &str,
    config: &Config,
    bells: &WakeSignals,
    n_failures: &mut u32,
) -> ListenError {
    match connect(options, own_channel, config.listen_ping()).await {
        Ok((pool, mut listener)) => {
            *n_failures = 0;
            bells.notices.set_hearing(true);
            ring_all(bells);
            let deaf =
                forward_notifications(&mut listener, own_channel, config.listen_ping(), bells)
                    .await;
            drop(listener);
            // Not awaited: a half-open connection would take as long to close as it took to fail.
            tokio::spawn(async move { timeout(Duration::from_secs(5), pool.close()).await });
            deaf
        }
        Err(deaf) => deaf,
    }
}

async fn connect(
    options: &PgConnectOptions,
    own_channel: &str,
    patience: Duration,
) -> Result<(PgPool, PgListener), ListenError> {
    // A pool of its own, because the listener keeps its connection and could not get one from a busy pool.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(patience)
        .connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&pool).await.map_err(ListenError::Connect)?;
    listener.eager_reconnect(false);
    listener.ignore_pool_close_event(true);
    listener.listen_all([CHANNEL, own_channel]).await.map_err(ListenError::Listen)?;
    Ok((pool, listener))
}

/// Rings the bells for incoming notifications. After one silent interval it sends a probe; after another it gives up.
async fn forward_notifications(
    listener: &mut PgListener,
    own_channel: &str,
    interval: Duration,
    bells: &WakeSignals,
) -> ListenError {
    let mut probe_sent = false;
    loop {
        match timeout(interval, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => {
                probe_sent = false;
                telemetry::record_notification();
                ring(&notification, bells);
            }
            Ok(Ok(None)) => return ListenError::Ended,
            Ok(Err(error)) => return ListenError::Listen(error),
            Err(_) if probe_sent => return ListenError::NoEcho(interval),
            Err(_) => {
                let probe =
                    sqlx::query!("SELECT pg_notify($1, '')", own_channel).execute(&mut *listener);
                match timeout(interval, probe).await {
                    Ok(Ok(_)) => probe_sent = true,
                    Ok(Err(error)) => return ListenError::SendProbe(error),
                    Err(_) => return ListenError::NoEcho(interval),
                }
            }
        }
    }
}

fn ring(notification: &PgNotification, bells: &WakeSignals) {
    if notification.channel() != CHANNEL {
        return;
    }
    match notification.payload() {
        payload if payload.starts_with("ready") => bells.work.notify_one(),
        payload if payload.starts_with("cancel") => bells.cancel.notify_one(),
        _ => bells.notices.ring(),
    }
}

fn ring_all(bells: &WakeSignals) {
    bells.work.notify_one();
    bells.cancel.notify_one();
}
