//! Deals with the server that an earlier service has left in the home, if any.
//!
//! The caller holds the folder's lock, so no other service acts here. The cases by what is seen:
//!
//! | postmaster.pid names | home occupied | meaning | what happens |
//! |---|---|---|---|
//! | a living server, ready | yes | it lost its service | taken over |
//! | a living server, not ready | yes | it starts, recovers or ends | wait |
//! | nothing or a foreign process | yes | a server about to write the file or just gone, or backends that outlive it | wait, then end the orphans |
//! | nothing or a foreign process | no | dead | the stale file is removed |

use std::time::Duration;

use tokio::time::Instant;

use crate::home::Home;
use crate::occupancy::Vacancy;
use crate::pidfile::{self, PidFile};
use crate::process::{self, Signal};
use crate::{Error, poll};

/// Idle backends notice the death of their postmaster at once; one that is busy does not.
const ORPHAN_GRACE: Duration = Duration::from_millis(700);

pub(super) enum DataFolderState {
    Running(PidFile),
    Vacant(Vacancy),
}

/// Waits until the home has a running server or is vacant.
pub(super) async fn wait_until_settled(
    home: &Home,
    deadline: Instant,
) -> Result<DataFolderState, Error> {
    let mut headless_since = None;
    let settled = poll::until(deadline, || match living_server(home)? {
        Some(record) => {
            headless_since = None;
            Ok(record.is_ready.then_some(DataFolderState::Running(record)))
        }
        None => match claim(home)? {
            Some(vacancy) => Ok(Some(DataFolderState::Vacant(vacancy))),
            None => {
                let since = *headless_since.get_or_insert_with(Instant::now);
                if since.elapsed() > ORPHAN_GRACE {
                    end_orphans(home);
                }
                Ok(None)
            }
        },
    });
    settled.await?.ok_or_else(|| Error::Occupied {
        folder: home.root().to_path_buf(),
        pids: process::servers(&home.data(), &home.cluster_name()),
    })
}

/// Asks the server of the home to end, and waits until its last process has ended.
pub(crate) async fn stop_server(home: &Home, deadline: Instant) -> Result<(), Error> {
    if let Some(record) = living_server(home)? {
        process::send(record.pid, Signal::INT);
    }
    wait_until_vacant(home, deadline).await
}

/// Waits until the last process of a server has ended.
pub(crate) async fn wait_until_vacant(home: &Home, deadline: Instant) -> Result<(), Error> {
    let vacant = poll::until(deadline, || Ok(Vacancy::claim(home)?.map(drop)));
    vacant.await?.ok_or_else(|| Error::Occupied {
        folder: home.root().to_path_buf(),
        pids: process::servers(&home.data(), &home.cluster_name()),
    })
}

fn living_server(home: &Home) -> Result<Option<PidFile>, Error> {
    let record = PidFile::read(&home.data())?;
    Ok(record.filter(|record| process::is_server(record.pid, &home.data(), &home.cluster_name())))
}

fn claim(home: &Home) -> Result<Option<Vacancy>, Error> {
    let Some(vacancy) = Vacancy::claim(home)? else {
        return Ok(None);
    };
    // A server that a person started by hand does not hold the lock. It may have come up between the look at the file
    // and the claim, and its file must not be removed.
    if living_server(home)?.is_some() {
        return Ok(None);
    }
    pidfile::remove_stale(home)?;
    Ok(Some(vacancy))
}

/// Ends backends without a postmaster. Their work is lost anyway, and their commits are in the write-ahead log.
fn end_orphans(home: &Home) {
    for pid in process::servers(&home.data(), &home.cluster_name()) {
        tracing::info!(pid, "stopping a backend that outlived its server");
        process::send(pid, Signal::QUIT);
    }
}
