//! The examples for other systems, run unchanged against a service.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpListener,
    process::{Child, Command},
};
use uuid::Uuid;

use super::{
    ExternalSystem,
    packages::{examples, node_modules, python},
};
use crate::{
    app::{SOON, eventually, get},
    required_packages::{NODE, PSQL, PYTHON},
    service::command,
};

const PROMPT: &str = "Write about the harbour.";

impl ExternalSystem {
    /// Builds the command of a program in a folder of its own, which finds database and service by its environment.
    fn program(&self, program: &Path) -> Command {
        let options = &self.database.options;
        let host = match options.get_socket() {
            Some(folder) => folder.display().to_string(),
            None => options.get_host().to_owned(),
        };
        let mut command = command(program.to_str().unwrap(), self.folder.path());
        command
            .env("PGHOST", host)
            .env("PGPORT", options.get_port().to_string())
            .env("PGUSER", options.get_username())
            // The password is in hex, like that of a private server.
            .env("PGPASSWORD", password(&self.database.url()))
            .env("PGDATABASE", &self.database.name)
            .env("DALSEGNO_URL", self.url())
            .env("CAMPAIGN", self.campaign_id.to_string())
            .kill_on_drop(true);
        command
    }

    fn psql(&self, campaign: Uuid) -> Command {
        let mut command = self.program(Path::new("psql"));
        command.arg("--no-psqlrc").arg("-v").arg(format!("campaign={campaign}"));
        command.arg("-v").arg(format!("prompt={PROMPT}"));
        command.arg("-f").arg(examples().join("psql/enqueue.sql"));
        command
    }

    fn python(&self, python: &Path, way: &str) -> Command {
        let mut command = self.program(python);
        command.arg(examples().join("python/enqueue.py")).args([way, PROMPT]);
        command
    }

    fn node(&self, way: &str) -> Command {
        let mut command = self.program(Path::new("node"));
        command.arg(self.folder.path().join("node/enqueue.mjs")).args([way, PROMPT]);
        command
    }

    /// Copies a script beside its modules, where Node looks for them.
    fn copy_script(&self, modules: &Path) {
        let folder = self.folder.path().join("node");
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(examples().join("node/enqueue.mjs"), folder.join("enqueue.mjs")).unwrap();
        std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    }

    /// Returns the task for which the example has waited.
    async fn waited_task(&self, command: Command) -> Uuid {
        let output = run_to_end(command).await;
        let said = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success(), "{output:?}");
        let id = said.strip_prefix("task ").and_then(|rest| rest.get(..36)).unwrap().parse();
        let id = id.unwrap_or_else(|_| panic!("{said}"));
        let sql =
            "select result from dalsegno.tasks where id = $1 and state = 'done' and prompt = $2";
        let result: String =
            sqlx::query_scalar(sql).bind(id).bind(PROMPT).fetch_one(&self.pool).await.unwrap();
        assert_eq!(said.trim_end(), format!("task {id} is done: {result}").trim_end());
        id
    }

    /// Returns the tasks that the example's own table knows.
    async fn ordered(&self) -> Vec<Option<Uuid>> {
        let sql = "select task_id from orders order by id";
        sqlx::query_scalar(sql).fetch_all(&self.pool).await.unwrap()
    }
}

fn password(url: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    url.password().unwrap_or_default().to_owned()
}

async fn run_to_end(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    tokio::time::timeout(SOON, child.wait_with_output()).await.unwrap().unwrap()
}

#[tokio::test]
async fn psql_adds_a_task_with_its_own_row() {
    let Some(()) = PSQL.program("psql") else { return };
    let external = ExternalSystem::new().await;
    let task = external.waited_task(external.psql(external.campaign_id)).await;
    assert_eq!(external.ordered().await, [Some(task)]);
    let refused = run_to_end(external.psql(Uuid::nil())).await;
    assert!(!refused.status.success());
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("there is no campaign") && words.contains("campaign ls"), "{words}");
    assert_eq!(external.ordered().await, [Some(task)]);
}

#[tokio::test]
async fn python_adds_a_task_with_its_own_row_and_over_http() {
    let external = ExternalSystem::new().await;
    let Some(python) = python() else { return };
    let task = external.waited_task(external.python(&python, "sql")).await;
    assert_eq!(external.ordered().await, [Some(task)]);
    let mut refused = external.python(&python, "sql");
    refused.env("CAMPAIGN", Uuid::nil().to_string());
    assert!(!run_to_end(refused).await.status.success());
    assert_eq!(external.ordered().await, [Some(task)]);
    // The standard library is sufficient, so each Python works.
    let other = external.waited_task(external.python(Path::new("python3"), "http")).await;
    assert_ne!(other, task);
}

#[tokio::test]
async fn node_adds_a_task_with_its_own_row_and_over_http() {
    let external = ExternalSystem::new().await;
    let Some(modules) = node_modules() else { return };
    external.copy_script(&modules);
    let task = external.waited_task(external.node("sql")).await;
    assert_eq!(external.ordered().await, [Some(task)]);
    let mut refused = external.node("sql");
    refused.env("CAMPAIGN", Uuid::nil().to_string());
    assert!(!run_to_end(refused).await.status.success());
    assert_eq!(external.ordered().await, [Some(task)]);
    let other = external.waited_task(external.node("http")).await;
    assert_eq!(external.ordered().await, [Some(task), Some(other)]);
}

/// Readers copy from the page, so its code has to be the code that was run.
#[test]
fn the_documentation_page_matches_the_receivers() {
    let page = include_str!("../../../docs/how-to/enqueue.md");
    for (language, example) in [("python", "python/receiver.py"), ("js", "node/receiver.mjs")] {
        let code = std::fs::read_to_string(examples().join(example)).unwrap();
        let shown = page.split(&format!("```{language}\n")).nth(1).unwrap();
        let shown = shown.split("```").next().unwrap();
        assert!(code.contains(shown.trim_end()), "{example} is shown as\n{shown}");
    }
}

/// A listening receiver of the examples, with the lines that it prints.
struct ReceiverProcess {
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
    _child: Child,
}

impl ReceiverProcess {
    async fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = Self { lines, _child: child };
        assert_eq!(told.line().await, "listening");
        told
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(SOON, self.lines.next_line()).await;
        line.unwrap().unwrap().expect("the receiver continues")
    }
}

#[tokio::test]
async fn the_receivers_get_deliveries_and_verify_the_signature() {
    let programs = [(PSQL, "psql"), (PYTHON, "python3"), (NODE, "node")];
    if programs.iter().any(|(need, program)| need.program(program).is_none()) {
        return;
    }
    let external = ExternalSystem::new().await;
    let receivers = [("python3", "python/receiver.py"), ("node", "node/receiver.mjs")];
    for (interpreter, example) in receivers {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let url = format!("http://{free}/hooks");
        let webhook = external.run_operator_command(&["webhook", "add", &url]).await;
        let mut command = external.program(Path::new(interpreter));
        command.arg(examples().join(example)).env("PORT", free.port().to_string());
        command.env("WEBHOOK_SECRET", webhook["secret"].as_str().unwrap());
        let mut told = ReceiverProcess::start(command).await;

        let unsigned = get_status(free, "POST", "{}").await;
        assert_eq!(unsigned, 401, "{example}");
        let task = external.waited_task(external.psql(external.campaign_id)).await;
        let line = told.line().await;
        assert!(line.starts_with(&format!("task.done {task} ")), "{example}: {line}");

        let id = webhook["id"].as_str().unwrap();
        let deliveries =
            external.run_operator_command(&["webhook", "deliveries", "--webhook", id]).await;
        assert_eq!(deliveries[0]["task_id"], task.to_string());
        eventually("the delivery is stored", async || {
            let deliveries =
                external.run_operator_command(&["webhook", "deliveries", "--webhook", id]).await;
            (deliveries[0]["state"] == "delivered").then_some(())
        })
        .await;
        external.run_operator_command(&["webhook", "rm", id]).await;
    }
    let metrics = get(external.service.address, "/metrics").await.unwrap();
    let counted = r#"dalsegno_webhook_attempts_total{outcome="delivered"} 2"#;
    assert!(metrics.body.contains(counted), "{}", metrics.body);
}

async fn get_status(address: std::net::SocketAddr, method: &str, body: &str) -> u16 {
    crate::http::client::send(address, method, "/hooks", &[], body).await.status
}
