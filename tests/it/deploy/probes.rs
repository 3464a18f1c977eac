//! A service and a worker in processes of their own, as in containers.

use crate::{
    app::{eventually, get},
    service::{Service, dalsegno},
};

#[tokio::test]
async fn a_service_without_slots_leaves_turns_to_workers_which_answer_probes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let no_turns = [("DALSEGNO_WORKER__TURNS_SLOTS", "0"), ("DALSEGNO_SIM__LATENCY_MS", "0")];
    let service = Service::start(folder, &no_turns).await;
    let campaign = run_json(folder, &["campaign", "create", "Harbour"]).await;
    let id = campaign["id"].as_str().unwrap();
    let task =
        run_json(folder, &["task", "add", "--campaign", id, "--agent", "copywriter", "Hello."])
            .await;
    let id = task["id"].as_str().unwrap().to_owned();
    let asked = run_json(folder, &["task", "explain", &id]).await;
    assert_eq!(asked["state"], "queued");

    let listen = ("DALSEGNO_WORKER__LISTEN", "127.0.0.1:0");
    let mut worker = Service::worker(folder, &[listen, ("DALSEGNO_SIM__LATENCY_MS", "0")]).await;
    worker.listening().await;
    worker.ready().await;
    eventually("the worker has run it", async || {
        let task = run_json(folder, &["task", "show", &id]).await;
        (task["state"] == "done").then_some(())
    })
    .await;
    let metrics = get(worker.address, "/metrics").await.unwrap();
    assert!(metrics.body.contains("dalsegno_build_info{"), "{}", metrics.body);
    // The worker's address serves no API.
    assert_eq!(get(worker.address, "/v1/campaigns").await.unwrap().status, 404);
    let own = format!("worker.listen={}", worker.address);
    assert_eq!(code(folder, &["health", "--worker", "--set", &own]).await, 0);
    assert_eq!(code(folder, &["health", "--worker", "--live", "--set", &own]).await, 0);
    assert_eq!(code(folder, &["health", "--worker"]).await, 2, "it has no address by default");

    worker.signal("TERM");
    assert_eq!(worker.exit_code().await, 0);
    assert_eq!(code(folder, &["health", "--worker", "--set", &own]).await, 7);
    drop(service);
}

#[tokio::test]
async fn a_worker_without_slots_does_not_pretend_to_work() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = crate::service::command(env!("CARGO_BIN_EXE_worker-upkeep"), folder.path());
    let output = worker.env("DALSEGNO_WORKER__UPKEEP_SLOTS", "0").output().await.unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("worker.upkeep_slots is 0"), "{words}");
}

async fn run_json(folder: &std::path::Path, arguments: &[&str]) -> serde_json::Value {
    let output = dalsegno(folder).args(arguments).arg("--json").output().await.unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {words}");
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn code(folder: &std::path::Path, arguments: &[&str]) -> i32 {
    let output = dalsegno(folder).args(arguments).output().await.unwrap();
    output.status.code().unwrap()
}

#[tokio::test]
async fn a_service_that_waits_for_a_server_names_it_and_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    let patience = ("DALSEGNO_DATABASE__CONNECT_TIMEOUT_SECS", "1");
    for (name, value, place) in [
        ("PGHOST", "/no/such/folder", "/no/such/folder/.s.PGSQL.5432"),
        ("DATABASE_URL", "postgres://me:hunter2@127.0.0.1:9/mine", "127.0.0.1:9/mine"),
    ] {
        let mut service = dalsegno(folder.path());
        let listen = ("DALSEGNO_HTTP__LISTEN", "127.0.0.1:0");
        let output = service.arg("serve").envs([patience, listen, (name, value)]).output().await;
        let words = String::from_utf8(output.unwrap().stderr).unwrap();
        let named = format!("{place} (from the environment variable {name}");
        // Once while it waits, and once when it gives up.
        assert!(words.matches(&named).count() >= 2 && !words.contains("hunter2"), "{words}");
        assert_eq!(
            words.contains("unset it for the private Postgres"),
            name == "PGHOST",
            "{words}"
        );
    }
}
