//! The pictures of README.md and docs/how-to/console.md, of a campaign that `dalsegno demo --open` has played.
//!
//! `scripts/pictures` makes them, and a recording while it plays; without its variable, the test does nothing.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::browser::Browser;
use crate::{
    app::{SOON, eventually},
    cluster::scratch_folder,
    http::client,
    service::dalsegno,
};

/// The folder of the pictures.
const FOLDER: &str = "DALSEGNO_PICTURES";

/// The size of the recording, and the number and time of its frames.
const FRAME: (u32, u32) = (1024, 640);
const N_FRAMES: usize = 24;
const FRAME_TIME: Duration = Duration::from_millis(400);

/// A page of the demo as a picture.
struct Picture {
    name: &'static str,
    path: String,
    theme: &'static str,
    width: u32,
    height: u32,
}

fn wide(name: &'static str, path: &str) -> Picture {
    let path = path.to_owned();
    Picture { name, path, theme: "light", width: 1280, height: 860 }
}

/// A running demo.
struct Demo {
    child: tokio::process::Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
    address: std::net::SocketAddr,
    campaign: String,
    _folder: tempfile::TempDir,
}

impl Demo {
    async fn start() -> Self {
        let folder = scratch_folder();
        let mut command = dalsegno(folder.path());
        command.args(["demo", "--open"]).stdout(std::process::Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let page = loop {
            let line = lines.next_line().await.unwrap().expect("the demo prints its page");
            if let Some((_, page)) = line.split_once("http://") {
                break page.to_owned();
            }
        };
        let (address, campaign) = page.split_once("/campaigns/").unwrap();
        Self {
            child,
            lines,
            address: address.parse().unwrap(),
            campaign: campaign.trim().to_owned(),
            _folder: folder,
        }
    }

    async fn until_played(&mut self) {
        let played = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if line.contains("until Ctrl-C") {
                    return;
                }
            }
            panic!("the demo ended early");
        };
        tokio::time::timeout(3 * SOON, played).await.unwrap();
    }

    async fn end(mut self) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
        tokio::time::timeout(SOON, self.child.wait()).await.unwrap().unwrap();
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        let reply = client::send(self.address, "GET", path, &[], "").await.expect(200);
        reply["items"].as_array().unwrap().clone()
    }
}

/// Records the campaign page while the demo plays, one file for each frame.
async fn record(browser: &Browser, demo: &Demo, folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    browser.resize(FRAME.0, FRAME.1).await;
    browser.prefer("light").await;
    browser.open(&format!("http://{}/campaigns/{}", demo.address, demo.campaign)).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    let mut ticks = tokio::time::interval(FRAME_TIME);
    for n in 0..N_FRAMES {
        ticks.tick().await;
        browser.save_view(&folder.join(format!("{n:02}.png"))).await;
    }
}

async fn take(browser: &Browser, demo: &Demo, folder: &Path, picture: &Picture) {
    browser.resize(picture.width, picture.height).await;
    browser.prefer(picture.theme).await;
    browser.open(&format!("http://{}{}", demo.address, picture.path)).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    browser.save_view(&folder.join(format!("{}.png", picture.name))).await;
}

#[tokio::test]
async fn pictures_of_the_documents_are_made_on_request() {
    let Ok(folder) = std::env::var(FOLDER).map(PathBuf::from) else { return };
    let browser = Browser::start().await.expect("Chromium makes the pictures");
    let mut demo = Demo::start().await;
    // While the writers write.
    eventually("three turns run", async || {
        (demo.items("/v1/tasks?state=running").await.len() >= 2).then_some(())
    })
    .await;
    browser.open(&format!("http://{}/", demo.address)).await;
    browser.resize(1280, 860).await;
    browser
        .wait_until("[...document.querySelectorAll('.stream:not([hidden])')].some((it) => it.textContent.length > 60)")
        .await;
    browser.save_view(&folder.join("overview.png")).await;
    record(&browser, &demo, &folder.join("frames")).await;
    demo.until_played().await;
    let campaign = format!("/campaigns/{}", demo.campaign);
    let tasks = demo.items(&format!("/v1/tasks?campaign_id={}", demo.campaign)).await;
    let retried = tasks.iter().find(|task| task["attempts"].as_i64() > Some(1));
    let task = retried.unwrap_or(&tasks[0]);
    let sessions = demo.items(&format!("/v1/sessions?campaign_id={}", demo.campaign)).await;
    let folded = sessions.iter().max_by_key(|it| it["generation"].as_i64()).unwrap();
    let session = format!("/sessions/{}", folded["id"].as_str().unwrap());
    let task = format!("/tasks/{}", task["id"].as_str().unwrap());
    let turn = format!("{session}/turns/{}", folded["turns"]);
    let pictures = [
        wide("campaign", &campaign),
        wide("task", &task),
        wide("session", &session),
        wide("turn", &turn),
        Picture { theme: "dark", ..wide("turn-dark", &turn) },
        Picture { width: 390, height: 844, ..wide("task-phone", &task) },
    ];
    for picture in &pictures {
        take(&browser, &demo, &folder, picture).await;
    }
    demo.end().await;
}
