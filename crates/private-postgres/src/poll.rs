//! Waiting for a condition of another process, which nothing announces.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Error;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Asks until there is an answer; `None` when the deadline passes first. It asks at least once.
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
