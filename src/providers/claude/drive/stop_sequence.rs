//! Stops a turn in steps, from a request to a signal, each with its own time.
//!
//! The interrupt request comes first: it is the only step after which the CLI reports the cost of the turn. SIGTERM comes late, because a
//! tool that it cuts off makes the CLI call the model once more. The last step, SIGKILL for everything, is the caller's.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Watch, input,
    pump::{Pump, Stop},
};

pub(super) struct StopSequence {
    interrupt: Duration,
    end_of_input: Duration,
    terminate: Duration,
}

impl StopSequence {
    pub(super) fn of(watch: &Watch) -> Self {
        Self {
            interrupt: watch.interrupt,
            end_of_input: watch.end_of_input,
            terminate: watch.terminate,
        }
    }

    /// Runs the steps until the process has ended.
    pub(super) async fn run_steps(&self, pump: &mut Pump<'_, '_>) {
        // A cancellation does not interrupt the steps: the turn ends in any case.
        let never = CancellationToken::new();
        if pump.send_line(&input::interrupt_request()) {
            let until = Instant::now() + self.interrupt;
            while pump.run(until, Stop::Line, &never).await == Stop::Line {}
        }
        pump.close_input();
        if pump.wait_for_exit(Instant::now() + self.end_of_input, &never).await.is_ok() {
            return;
        }
        pump.terminate();
        let _ = pump.wait_for_exit(Instant::now() + self.terminate, &never).await;
    }
}
