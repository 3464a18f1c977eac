//! Metrics of alerts and dashboard: all of them exist.

use std::collections::BTreeSet;

use serde_json::Value;

use super::yaml::{documents, root, text};
use crate::{
    app::{TestDatabase, eventually, get},
    service::Service,
};

/// Returns all metric names in the sources.
fn source_metrics() -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    let mut folders = vec![root().join("src"), root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => told.extend(names(&std::fs::read_to_string(path).unwrap())),
            }
        }
    }
    told
}

fn names(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let rest = text.split("dalsegno_").skip(1);
    rest.map(|rest| format!("dalsegno_{}", rest.split(|c| !is_part(c)).next().unwrap())).collect()
}

#[test]
fn alerts_and_dashboard_use_existing_metrics() {
    let told = source_metrics();
    let dashboard: Value = serde_json::from_str(&text("deploy/monitoring/dashboard.json")).unwrap();
    let mut asked = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            asked.extend(names(target["expr"].as_str().unwrap()));
        }
    }
    let alerts = &documents(&root().join("deploy/monitoring/alerts.yaml"))[0];
    let rules = alerts["groups"][0]["rules"].as_array().unwrap();
    for rule in rules {
        let found = names(rule["expr"].as_str().unwrap());
        assert!(!found.is_empty() && rule["annotations"]["action"].is_string(), "{rule}");
        asked.extend(found);
    }
    assert!(asked.len() > 20);
    for name in asked {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        assert!(told.contains(&name) || base.is_some_and(|base| told.contains(base)), "{name}");
    }
}

/// Returns the metrics of an expression with their labels: `name{outcome="dead"}`.
fn selectors(text: &str) -> Vec<(String, Vec<String>)> {
    let parts = text.split("dalsegno_").skip(1);
    let selector = |part: &str| {
        let name = names(&format!("dalsegno_{part}")).swap_remove(0);
        let rest = &part[name.len() - "dalsegno_".len()..];
        let labels = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let labels = labels.map_or_else(Vec::new, |(labels, _)| labels.split(',').collect());
        let exact = labels.into_iter().filter(|label| !label.contains('~') && !label.contains('$'));
        (name, exact.map(|label| label.trim().to_owned()).collect())
    };
    parts.map(selector).collect()
}

/// Returns the metrics of alerts and dashboard.
fn used_metrics() -> Vec<(String, Vec<String>)> {
    let dashboard: Value = serde_json::from_str(&text("deploy/monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let shown = targets.flat_map(|target| selectors(target["expr"].as_str().unwrap()));
    let alerts = &documents(&root().join("deploy/monitoring/alerts.yaml"))[0];
    let rules = alerts["groups"][0]["rules"].as_array().unwrap().iter();
    rules.flat_map(|rule| selectors(rule["expr"].as_str().unwrap())).chain(shown).collect()
}

fn missing(metrics: &str) -> Vec<String> {
    let is_there = |(name, labels): &(String, Vec<String>)| {
        metrics.lines().any(|line| {
            let rest = line.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label.as_str()))
        })
    };
    used_metrics().into_iter().filter(|it| !is_there(it)).map(|it| format!("{it:?}")).collect()
}

/// An alert misses an event if its series begins with that event.
#[tokio::test]
async fn a_fresh_service_and_fresh_workers_have_every_series_of_the_alerts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let service = Service::start(folder, &[]).await;
    let all = eventually("the service shows every series", async || {
        let metrics = get(service.address, "/metrics").await.unwrap().body;
        missing(&metrics).is_empty().then_some(metrics)
    });
    all.await;
    drop(service);

    let folder = tempfile::tempdir().unwrap();
    let no_slots = [("DALSEGNO_WORKER__TURNS_SLOTS", "0"), ("DALSEGNO_WORKER__UPKEEP_SLOTS", "0")];
    let _front = Service::start(folder.path(), &no_slots).await;
    let mut workers = Vec::new();
    for binary in [env!("CARGO_BIN_EXE_worker-turns"), env!("CARGO_BIN_EXE_worker-upkeep")] {
        let listen = ("DALSEGNO_WORKER__LISTEN", "127.0.0.1:0");
        let mut worker = Service::worker_of(binary, folder.path(), &[listen]).await;
        worker.listening().await;
        worker.ready().await;
        workers.push(worker);
    }
    eventually("the workers show every series", async || {
        let mut metrics = String::new();
        for worker in &workers {
            metrics += &get(worker.address, "/metrics").await.unwrap().body;
        }
        missing(&metrics).is_empty().then_some(())
    })
    .await;
}

fn rules() -> Vec<Value> {
    let alerts = documents(&root().join("deploy/monitoring/alerts.yaml")).swap_remove(0);
    alerts["groups"][0]["rules"].as_array().unwrap().clone()
}

/// A condition that has to hold for hours is lost when processes or Prometheus restart.
#[test]
fn no_alert_needs_a_long_running_process() {
    for rule in rules() {
        let patience = rule["for"].as_str().unwrap_or("0m");
        let minutes: u64 = patience
            .strip_suffix('m')
            .and_then(|n| n.parse().ok())
            .unwrap_or_else(|| panic!("{rule}"));
        assert!(minutes <= 30, "{rule}");
    }
}

const LAST_CLEANUP: &str = "dalsegno_cleanup_last_success_timestamp_seconds";
const INSTALLED: &str = "dalsegno_installation_created_timestamp_seconds";

/// Evaluates the two alerts on the cleanup: no cleanup for too long, and none ever. One process publishes both gauges.
fn cleanup_alerts(metrics: &str, now: i64) -> (bool, bool) {
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing")).parse::<f64>().unwrap()
    };
    let is_late = |since: f64| since > 0.0 && now as f64 - since > 26.0 * 3600.0;
    (is_late(value(LAST_CLEANUP)), value(LAST_CLEANUP) == 0.0 && is_late(value(INSTALLED)))
}

#[tokio::test]
async fn a_missing_cleanup_raises_an_alert_even_with_daily_restarts() {
    let expressions: Vec<String> =
        rules().iter().map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect();
    for expression in [
        format!("time() - (max({LAST_CLEANUP}) > 0) > 26 * 3600"),
        format!("max({LAST_CLEANUP}) == 0 and time() - (max({INSTALLED}) > 0) > 26 * 3600"),
    ] {
        assert!(expressions.contains(&expression), "{expression} is not among {expressions:#?}");
    }

    let (database, folder) = (TestDatabase::migrated().await, tempfile::tempdir().unwrap());
    let pool = database.pool().await;
    let now = "select extract(epoch from now())::bigint";
    let now: i64 = sqlx::query_scalar(now).fetch_one(&pool).await.unwrap();
    let url = database.url();
    // The process runs no cleanup of its own during the test.
    let never = ("DALSEGNO_SCHEDULER__CLEANUP", "0 0 0 29 2 *");
    let environment = [("DATABASE_URL", url.as_str()), never];
    let starts = async |expected: (bool, bool)| {
        let service = Service::start(folder.path(), &environment).await;
        eventually("the gauges are reported", async || {
            let metrics = get(service.address, "/metrics").await.unwrap().body;
            let is_read = !metrics.contains(&format!("{INSTALLED} 0\n"));
            (is_read && cleanup_alerts(&metrics, now) == expected).then_some(())
        })
        .await;
    };
    starts((false, false)).await;
    let old = "update dalsegno.installation set created_at = now() - interval '27 hours'";
    sqlx::query(old).execute(&pool).await.unwrap();
    for _restart in 0..2 {
        starts((false, true)).await;
    }
    let ran = "insert into dalsegno.cleanup_runs (kind, job_id, lease, started_at, ended_at, outcome)
               values ('sessions', (select count(*) from dalsegno.cleanup_runs), 1, now() - $1::interval, now() - $1::interval, 'done')";
    let ran = async |since: &str| {
        sqlx::query(ran).bind(since).execute(&pool).await.unwrap();
    };
    ran("28 hours").await;
    starts((true, false)).await;
    ran("1 hour").await;
    starts((false, false)).await;
}

/// The process that publishes them may be the missing one.
#[test]
fn missing_workers_and_a_missing_scheduler_raise_alerts() {
    let alerts = text("deploy/monitoring/alerts.yaml");
    assert!(alerts.contains("max by (queue) (dalsegno_workers) == 0 or absent(dalsegno_workers)"));
    assert!(alerts.contains("or absent(dalsegno_scheduler_last_look_timestamp_seconds)"));
}
