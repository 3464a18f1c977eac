//! A server whose service was killed and is not restarted.

use std::{path::Path, process::Command};

use dalsegno::db::embedded::{self, EmbeddedServer};
use rustix::process::Signal;
use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};

use super::support::{Place, Service, send, servers, wait_for};
use crate::{
    app::SOON,
    volume::{self, Volume},
};

pub struct LonelyServer {
    pub options: PgConnectOptions,
    pub place: Place,
    pid: u32,
}

impl LonelyServer {
    pub async fn start() -> Self {
        Self::on(Place::new()).await
    }

    pub async fn on(place: Place) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_first-run-service"));
        let command = place.command(program);
        Self::left_by(command, place).await
    }

    /// Creates one with a small volume beside its data.
    pub async fn with_volume(mib: u32) -> (Self, Volume) {
        let place = Place::new();
        let folder = place.folder.path().join("small");
        std::fs::create_dir(&folder).unwrap();
        let mut command = Command::new(volume::PROGRAM);
        command.args(volume::arguments(mib, &folder, env!("CARGO_BIN_EXE_first-run-service")));
        command.arg(&place.config.data_dir).arg(&place.config.fallback_dir);
        let server = Self::left_by(command, place).await;
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
        let cluster = self.place.cluster();
        let gone = wait_for(SOON, || servers(&cluster).is_empty().then_some(()));
        gone.expect("backends outlive the postmaster");
    }

    /// Restarts it at the same address.
    pub async fn restart(&self) -> EmbeddedServer {
        embedded::start(&self.place.config).await.unwrap()
    }

    async fn left_by(command: Command, place: Place) -> Self {
        let service = Service::spawn(command);
        service.expect("READY ");
        service.kill();
        let attached = embedded::attach(&place.config).await.unwrap().unwrap();
        Self { options: attached.connect_options(), pid: attached.pid(), place }
    }
}
