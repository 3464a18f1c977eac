//! A server whose service was killed and is not restarted.

use std::{path::Path, process::Command};

use dalsegno::db::embedded::{self, EmbeddedServer};
use rustix::process::Signal;
use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};

use super::support::{EmbeddedSetup, Service, send, servers, wait_for};
use crate::{
    app::SOON,
    volume::{self, Volume},
};

pub struct OrphanedServer {
    pub options: PgConnectOptions,
    pub setup: EmbeddedSetup,
    pid: u32,
}

impl OrphanedServer {
    pub async fn start() -> Self {
        Self::on(EmbeddedSetup::new()).await
    }

    pub async fn on(setup: EmbeddedSetup) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_first-run-service"));
        let command = setup.command(program);
        Self::left_by(command, setup).await
    }

    /// Creates one with a small volume beside its data.
    pub async fn with_volume(mib: u32) -> (Self, Volume) {
        let setup = EmbeddedSetup::new();
        let folder = setup.folder.path().join("small");
        std::fs::create_dir(&folder).unwrap();
        let mut command = Command::new(volume::PROGRAM);
        command.args(volume::arguments(mib, &folder, env!("CARGO_BIN_EXE_first-run-service")));
        command.arg(&setup.config.data_dir).arg(&setup.config.fallback_dir);
        let server = Self::left_by(command, setup).await;
        let volume = Volume::seen_by(server.pid, &folder);
        (server, volume)
    }

    /// Returns its `DATABASE_URL`.
    pub fn url(&self) -> String {
        self.options.to_url_lossy().to_string()
    }

    /// Kills the postmaster and waits until its backends have ended.
    pub fn kill(&self) {
        send(self.pid, Signal::KILL);
        let cluster = self.setup.cluster();
        let gone = wait_for(SOON, || servers(&cluster).is_empty().then_some(()));
        gone.expect("backends outlive the postmaster");
    }

    /// Restarts it at the same address.
    pub async fn restart(&self) -> EmbeddedServer {
        embedded::start(&self.setup.config).await.unwrap()
    }

    async fn left_by(command: Command, setup: EmbeddedSetup) -> Self {
        let service = Service::spawn(command);
        service.expect("READY ");
        service.kill();
        let attached = embedded::attach(&setup.config).await.unwrap().unwrap();
        Self { options: attached.connect_options(), pid: attached.pid(), setup }
    }
}
