//! The way down: from asking to killing, one step after the other, each with its time.
//!
//! A request to interrupt comes first because it is the only one after which the CLI says what the turn had cost. SIGTERM
//! comes late because a tool that is cut off by it makes the CLI ask the model once more. The last step, SIGKILL of
//! everything, is the caller's and needs nobody's consent.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Watch, input,
    pump::{Pump, Stop},
};

pub(super) struct Ladder {
    interrupt: Duration,
    end_of_input: Duration,
    terminate: Duration,
}

impl Ladder {
    pub(super) fn of(watch: &Watch) -> Self {
        Self {
            interrupt: watch.interrupt,
            end_of_input: watch.end_of_input,
            terminate: watch.terminate,
        }
    }

    /// Stops at the first step that ended the process.
    pub(super) async fn climb(&self, pump: &mut Pump<'_, '_>) {
        // Whoever cancelled is not asked again.
        let never = CancellationToken::new();
        if pump.interject(&input::interrupt()) {
            let until = Instant::now() + self.interrupt;
            while pump.run(until, Stop::Line, &never).await == Stop::Line {}
        }
        pump.close_input();
        if pump.exit(Instant::now() + self.end_of_input, &never).await.is_ok() {
            return;
        }
        pump.terminate();
        let _ = pump.exit(Instant::now() + self.terminate, &never).await;
    }
}
