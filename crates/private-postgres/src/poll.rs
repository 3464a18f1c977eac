//! Polls for a condition of another process that sends no event.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Error;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Calls `ask` until it returns an answer, at least once. Returns `None` if the deadline passes first.
pub(super) async fn until<T>(
    deadline: Instant,
    mut ask: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(answer) = ask()? {
            return Ok(Some(answer));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
