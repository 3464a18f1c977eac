//! Chromium, driven over the WebDriver protocol of W3C through `chromedriver`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::LazyLock,
};

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{app::eventually, required_packages::RequiredPackage};

const CHROMIUM: RequiredPackage =
    RequiredPackage { package: "Chromium", command: "apt-get install chromium chromium-driver" };
/// The variable that asks for pictures: `DALSEGNO_LOOKS=1 cargo test --test it -- console`.
const LOOKS: &str = "DALSEGNO_LOOKS";
/// Key of an element in answers of the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with an empty profile. Everything that it has started ends with it.
pub struct Browser {
    client: reqwest::Client,
    session: String,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser; `None` if none is installed.
    pub async fn start() -> Option<Self> {
        CHROMIUM.program("chromedriver")?;
        CHROMIUM.program("chromium")?;
        let profile = tempfile::tempdir().unwrap();
        let (driver, port) = eventually("chromedriver starts", start_driver).await;
        let client = dalsegno::outbound::client(None).no_proxy().build().unwrap();
        let root = format!("http://127.0.0.1:{port}/session");
        let folder = profile.path().display().to_string();
        let answer = send(&client, Method::POST, &root, &capabilities(&folder)).await.unwrap();
        let session = format!("{root}/{}", answer["sessionId"].as_str().unwrap());
        Some(Self { client, session, driver, _profile: profile })
    }

    pub async fn open(&self, url: &str) {
        self.post("url", &json!({ "url": url })).await;
    }

    pub async fn url(&self) -> String {
        self.get("url").await.as_str().unwrap().to_owned()
    }

    /// Returns the handle of the present tab.
    pub async fn tab(&self) -> String {
        self.get("window").await.as_str().unwrap().to_owned()
    }

    /// Opens another tab, and returns its handle. Both belong to one browser, and share its workers.
    pub async fn new_tab(&self) -> String {
        let tab = self.post("window/new", &json!({ "type": "tab" })).await;
        let handle = tab["handle"].as_str().unwrap().to_owned();
        self.switch_to(&handle).await;
        handle
    }

    pub async fn switch_to(&self, tab: &str) {
        self.post("window", &json!({ "handle": tab })).await;
    }

    /// Runs the body of a function in the page, and returns its value.
    pub async fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// Runs a script that calls its last argument with the result.
    pub async fn run_async(&self, script: &str) -> Value {
        self.post("execute/async", &json!({ "script": script, "args": [] })).await
    }

    pub async fn text(&self, css: &str) -> String {
        let element = self.find(css).await;
        self.get(&format!("element/{element}/text")).await.as_str().unwrap().to_owned()
    }

    pub async fn has(&self, css: &str) -> bool {
        let script = format!("return document.querySelector({}) !== null", json!(css));
        self.run(&script).await == true
    }

    pub async fn click(&self, css: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/click"), &json!({})).await;
    }

    pub async fn write(&self, css: &str, text: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/value"), &json!({ "text": text })).await;
    }

    /// Presses keys, wherever the focus is.
    pub async fn press(&self, keys: &[&str]) {
        let down = keys.iter().map(|key| json!({ "type": "keyDown", "value": key }));
        let up = keys.iter().rev().map(|key| json!({ "type": "keyUp", "value": key }));
        let actions: Vec<Value> = down.chain(up).collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("actions", &json!({ "actions": [keyboard] })).await;
    }

    /// Presses a key many times.
    pub async fn press_often(&self, key: &str, n: usize) {
        let once =
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })];
        let actions: Vec<Value> = (0..n).flat_map(|_| once.clone()).collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("actions", &json!({ "actions": [keyboard] })).await;
    }

    pub async fn resize(&self, width: u32, height: u32) {
        self.command(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
        )
        .await;
    }

    /// Gives the window a width and the system a theme, without motion, so that colours change at once.
    pub async fn show_as(&self, width: u32, theme: &str) {
        self.resize(width, 900).await;
        let features = json!([
            { "name": "prefers-color-scheme", "value": theme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        self.wait_until(&format!(
            "innerWidth === {width} && matchMedia('(prefers-color-scheme: {theme})').matches"
        ))
        .await;
    }

    /// Emulates the theme of the system: `light` or `dark`.
    pub async fn prefer(&self, theme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        // Colours change within some milliseconds.
        self.wait_until("document.getAnimations().every((it) => it.playState !== 'running')").await;
    }

    /// Switches scripts off, or on again.
    pub async fn without_scripts(&self, off: bool) {
        self.command("Emulation.setScriptExecutionDisabled", json!({ "value": off })).await;
    }

    pub async fn command(&self, name: &str, params: Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": name, "params": params })).await
    }

    /// Saves the whole page below `target/tmp/console`, if pictures are asked for. One costs more than the checks of a page.
    pub async fn save_picture(&self, name: &str) {
        if !are_pictures_asked_for() {
            return;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console");
        let path = folder.join(format!("{name}.png"));
        self.save(&json!({ "captureBeyondViewport": true }), &path).await;
    }

    /// Saves the part of the page that is in view.
    pub async fn save_view(&self, path: &Path) {
        self.save(&json!({}), path).await;
    }

    async fn save(&self, params: &Value, path: &Path) {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let answer = self.command("Page.captureScreenshot", params.clone()).await;
        let bytes = STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Returns errors and warnings of the console since the last call, also violations of the policy.
    pub async fn complaints(&self) -> Vec<String> {
        let lines = self.post("se/log", &json!({ "type": "browser" })).await;
        let lines = lines.as_array().unwrap().iter();
        let bad = lines.filter(|line| line["level"] == "SEVERE" || line["level"] == "WARNING");
        bad.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until an expression is true in the page.
    pub async fn wait_until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        let probe = async || self.try_run(&script).await.filter(|value| *value == true);
        eventually(expression, probe).await;
    }

    /// Runs a script, unless the page is being left.
    async fn try_run(&self, script: &str) -> Option<Value> {
        let body = json!({ "script": script, "args": [] });
        let url = format!("{}/execute/sync", self.session);
        send(&self.client, Method::POST, &url, &body).await.ok()
    }

    async fn find(&self, css: &str) -> String {
        let query = json!({ "using": "css selector", "value": css });
        let url = format!("{}/element", self.session);
        let probe = async || send(&self.client, Method::POST, &url, &query).await.ok();
        let found = eventually(css, probe).await;
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let url = format!("{}/{path}", self.session);
        send(&self.client, Method::POST, &url, body)
            .await
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn get(&self, path: &str) -> Value {
        let url = format!("{}/{path}", self.session);
        send(&self.client, Method::GET, &url, &Value::Null)
            .await
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium is in the group of its driver.
        if let Some(group) = self.driver.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Returns true if this run saves pictures.
pub fn are_pictures_asked_for() -> bool {
    static ASKED: LazyLock<bool> = LazyLock::new(|| std::env::var_os(LOOKS).is_some());
    *ASKED
}

/// Starts the driver on a free port; `None` if the port that it has chosen was taken meanwhile.
async fn start_driver() -> Option<(Child, String)> {
    let mut driver = Command::new("chromedriver")
        .args(["--port=0", "--log-level=WARNING"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some((_, port)) = line.split_once("successfully on port ") {
            let port = port.trim_end_matches('.').to_owned();
            // The driver must be able to write on, or it would stop.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Some((driver, port));
        }
    }
    None
}

fn capabilities(profile: &str) -> Value {
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        &format!("--user-data-dir={profile}"),
    ];
    let chromium = json!({ "args": flags });
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "goog:chromeOptions": chromium,
        "goog:loggingPrefs": { "browser": "ALL" },
    } } })
}

async fn send(
    client: &reqwest::Client,
    method: Method,
    url: &str,
    body: &Value,
) -> Result<Value, String> {
    let request = client.request(method.clone(), url);
    let request = if method == Method::POST { request.json(body) } else { request };
    let answer = request.send().await.map_err(|error| error.to_string())?;
    let is_ok = answer.status().is_success();
    let mut answer: Value = answer.json().await.map_err(|error| error.to_string())?;
    let value = answer["value"].take();
    if is_ok { Ok(value) } else { Err(value["message"].as_str().unwrap_or_default().to_owned()) }
}
