//! Alerts and the dashboard ask for metrics that exist.

use std::collections::BTreeSet;

use serde_json::Value;

use super::yaml::{documents, root, text};

/// Every name of a metric in the sources.
fn told() -> BTreeSet<String> {
    let (mut told, mut folders) = (BTreeSet::new(), vec![root().join("src")]);
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
fn alerts_and_dashboard_ask_for_metrics_that_exist() {
    let told = told();
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

/// The commands between backticks, with something in place of an id.
fn commands(text: &str) -> Vec<Vec<String>> {
    let quoted = text.split('`').skip(1).step_by(2);
    let ours = quoted.filter_map(|quoted| quoted.strip_prefix("dalsegno "));
    let words =
        |command: &str| command.split(' ').map(|word| word.replace("ID", "11111111")).collect();
    ours.map(words).collect()
}

/// The command line is read up to `--help`, so nothing is done.
#[tokio::test]
async fn alerts_name_commands_that_exist() {
    let folder = tempfile::tempdir().unwrap();
    let commands = commands(&text("deploy/monitoring/alerts.yaml"));
    assert!(commands.len() > 5, "{commands:?}");
    for command in commands {
        let mut child = crate::service::dalsegno(folder.path());
        let said = child.args(&command).arg("--help").output().await.unwrap();
        assert!(said.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said.stderr));
    }
}

#[test]
fn a_missing_cleanup_is_an_alert() {
    let alerts = text("deploy/monitoring/alerts.yaml");
    assert!(alerts.contains("max(dalsegno_purge_last_success_timestamp_seconds) > 26 * 3600"));
}
