//! Ends the worker if one of its parts panics.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
};

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::{super::completer::EndsToWrite, Parts};

/// Records a panic and stops the worker.
struct Watch {
    panicked: Arc<OnceLock<&'static str>>,
    soft: CancellationToken,
}

impl Parts {
    pub(super) fn watch_panics(
        &self,
        part: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let watch = self.watch();
        async move {
            watch.run(part, work).await;
        }
    }

    /// Runs a writer of ends, and again after a panic, so that the ends of drained runs are written. The ends that it
    /// held are dropped, and their jobs come back with the lease.
    pub(super) fn run_writer_watched(
        &self,
        waiting: EndsToWrite,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (watch, mut writer) = (self.watch(), self.completer());
        async move {
            while !watch.run("writer of job results", writer.run(&waiting)).await {}
            writer.link.close().await;
        }
    }

    fn watch(&self) -> Watch {
        Watch { panicked: Arc::clone(&self.panicked), soft: self.shutdown.soft.clone() }
    }
}

impl Watch {
    /// Runs a part. Returns false if it panicked.
    async fn run(&self, part: &'static str, work: impl Future<Output = ()>) -> bool {
        if AssertUnwindSafe(work).catch_unwind().await.is_ok() {
            return true;
        }
        tracing::error!(
            part,
            "a part of the worker panicked: stopping, so that the process is restarted"
        );
        let _ = self.panicked.set(part);
        self.soft.cancel();
        false
    }
}
