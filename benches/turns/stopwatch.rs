//! Times runs by the metrics that the worker reports anyway, so that the measured code is that of the service.
//!
//! A run begins when its claim is sent, and ends when the commit of its end is acknowledged: the worker then counts it
//! as finished. With one run at a time, a claim and an end belong together.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tokio::sync::Notify;

#[derive(Default)]
pub struct Stopwatch {
    claim: Mutex<Claim>,
    millis: Mutex<Vec<f64>>,
    n_finished: AtomicUsize,
    n_claims: AtomicUsize,
    finished: Notify,
}

#[derive(Default)]
struct Claim {
    took: Duration,
    sent_at: Option<Instant>,
}

/// The recorder for the metrics' macros, which need one of their own.
struct StopwatchRecorder(Arc<Stopwatch>);

struct Took(Arc<Stopwatch>);
struct ClaimCounter(Arc<Stopwatch>);
struct FinishCounter(Arc<Stopwatch>);

impl Stopwatch {
    pub fn install() -> anyhow::Result<Arc<Self>> {
        let stopwatch = Arc::new(Self::default());
        let recording = StopwatchRecorder(Arc::clone(&stopwatch));
        metrics::set_global_recorder(recording)
            .map_err(|_| anyhow::anyhow!("there is another recorder of metrics"))?;
        Ok(stopwatch)
    }

    pub fn n_finished(&self) -> usize {
        self.n_finished.load(Ordering::SeqCst)
    }

    /// Returns the number of answered claims, empty ones too.
    pub fn n_claims(&self) -> usize {
        self.n_claims.load(Ordering::SeqCst)
    }

    /// Waits until that many runs have ended since the process began.
    pub async fn until_finished(&self, n_runs: usize) {
        while self.n_finished() < n_runs {
            let finished = self.finished.notified();
            if self.n_finished() >= n_runs {
                break;
            }
            let _ = tokio::time::timeout(Duration::from_millis(100), finished).await;
        }
    }

    /// Returns the times of the runs since the last call, in the order of their ends.
    pub fn take_millis(&self) -> Vec<f64> {
        std::mem::take(&mut self.millis.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn claim(&self) -> std::sync::MutexGuard<'_, Claim> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistogramFn for Took {
    fn record(&self, secs: f64) {
        self.0.claim().took = Duration::from_secs_f64(secs);
        self.0.n_claims.fetch_add(1, Ordering::SeqCst);
    }
}

impl HistogramFn for ClaimCounter {
    fn record(&self, _waited_secs: f64) {
        let mut claim = self.0.claim();
        claim.sent_at = Instant::now().checked_sub(claim.took);
    }
}

impl CounterFn for FinishCounter {
    fn increment(&self, n_runs: u64) {
        // Counters are created at a process's start by adding 0 to them.
        if n_runs == 0 {
            return;
        }
        if let Some(sent_at) = self.0.claim().sent_at {
            let millis = sent_at.elapsed().as_secs_f64() * 1e3;
            self.0.millis.lock().unwrap_or_else(PoisonError::into_inner).push(millis);
        }
        self.0.n_finished.fetch_add(n_runs as usize, Ordering::SeqCst);
        self.0.finished.notify_waiters();
    }

    fn absolute(&self, _value: u64) {}
}

impl Recorder for StopwatchRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let is_done = key.labels().any(|label| label.key() == "outcome" && label.value() == "done");
        match key.name() {
            "dalsegno_jobs_finished_total" if is_done => {
                Counter::from_arc(Arc::new(FinishCounter(Arc::clone(&self.0))))
            }
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match key.name() {
            "dalsegno_job_claim_duration_seconds" => {
                Histogram::from_arc(Arc::new(Took(Arc::clone(&self.0))))
            }
            "dalsegno_job_wait_seconds" => {
                Histogram::from_arc(Arc::new(ClaimCounter(Arc::clone(&self.0))))
            }
            _ => Histogram::noop(),
        }
    }
}
