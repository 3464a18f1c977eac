//! Settings of the deployments: all of them exist, and related ones agree.

use std::collections::BTreeSet;

use dalsegno::config::Config;
use serde_json::Value;

use super::yaml::{documents, files, root, text};
use crate::app::defaults;

/// Returns all settings of the template, such as `http.listen`.
fn known() -> BTreeSet<String> {
    let (mut known, mut section) = (BTreeSet::new(), String::new());
    for line in text("config/default.toml").lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            known.insert(format!("{section}.{key}"));
        }
    }
    known
}

/// Returns the settings of a text's variables: `DALSEGNO_HTTP__LISTEN` is `http.listen`.
fn settings(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let after = text.split("DALSEGNO_").skip(1);
    after
        .map(|rest| rest.split(|c| !is_part(c)).next().unwrap())
        .filter(|name| name.contains("__"))
        .map(|name| name.replace("__", ".").to_lowercase())
        .collect()
}

fn seconds(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.len() - 1);
    number.parse::<u64>().unwrap() * if unit == "m" { 60 } else { 1 }
}

/// Returns a setting of a deployment, or its default in the template.
fn setting(name: &str, environment: &str) -> u64 {
    let variable = format!("DALSEGNO_SHUTDOWN__{}", name.to_uppercase());
    let own = environment.split(&variable).nth(1).map(|rest| {
        let digits = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.split(|c: char| !c.is_ascii_digit()).next().unwrap().to_owned()
    });
    let template = text("config/default.toml");
    let line = template.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
    own.unwrap_or_else(|| line.split(" = ").nth(1).unwrap().to_owned()).parse().unwrap()
}

#[test]
fn every_setting_of_the_deployments_exists() {
    let known = known();
    assert!(known.contains("http.listen") && known.len() > 100, "{}", known.len());
    let mut paths = files("deploy");
    paths.extend(["Dockerfile", "compose.yaml"].map(|path| root().join(path)));
    let mut n_settings = 0;
    for path in paths {
        for setting in settings(&std::fs::read_to_string(&path).unwrap()) {
            n_settings += 1;
            let named = known.contains(&setting)
                || setting.strip_suffix("_file").is_some_and(|key| known.contains(key));
            assert!(named, "{}: there is no {setting}", path.display());
        }
    }
    assert!(n_settings > 20, "{n_settings}");
}

/// Each waiting request, open page and connection to the database takes a file descriptor.
#[test]
fn services_may_open_as_many_files_as_their_limits_allow() {
    let Config { http, database, .. } = defaults();
    let n_open = http.max_waiting + http.max_page_streams + database.max_connections as usize;
    let unit = text("deploy/debian/dalsegno.service");
    let of_unit = unit.lines().find_map(|line| line.strip_prefix("LimitNOFILE=")).unwrap();
    let compose = &documents(&root().join("compose.yaml"))[0];
    let of_service = compose["services"]["service"]["ulimits"]["nofile"].as_u64().unwrap();
    for n_files in [of_unit.parse().unwrap(), of_service] {
        // The rest is for short requests, files and child processes.
        assert!(n_files > 2 * n_open as u64, "{n_files} files for {n_open}");
    }
}

#[test]
fn the_stop_timeout_of_each_deployment_exceeds_the_drain() {
    let compose = &documents(&root().join("compose.yaml"))[0];
    for name in ["service", "worker"] {
        let service = &compose["services"][name];
        let grace = seconds(service["stop_grace_period"].as_str().unwrap());
        let environment = service["environment"].to_string();
        let needs = setting("drain_timeout_secs", &environment)
            + setting("stop_timeout_secs", &environment);
        assert!(grace > needs, "{name}: {grace} s for {needs} s");
    }
    for path in files("deploy/kubernetes/base") {
        for document in documents(&path).iter().filter(|one| one["kind"] == "Deployment") {
            let pod = &document["spec"]["template"]["spec"];
            let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
            let environment = own_environment(pod);
            let needs = setting("drain_timeout_secs", &environment)
                + setting("stop_timeout_secs", &environment);
            assert!(grace > needs, "{}: {grace} s for {needs} s", document["metadata"]["name"]);
        }
    }
}

/// Without settings, the image would look for folders in its working directory, and fall back to the built-in files.
#[test]
fn every_file_folder_is_set_in_the_images_and_mounted_by_compose() {
    let mut folders: Vec<(String, String)> = Vec::new();
    let mut section = String::new();
    for line in text("config/default.toml").lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, value)) = line.split_once(" = ")
            && key.ends_with("folder")
            && let Some(folder) = value.trim_matches('"').strip_prefix("config/")
        {
            folders.push((format!("{section}__{key}").to_uppercase(), folder.to_owned()));
        }
    }
    assert_eq!(folders.len(), 4, "{folders:?}");
    let (dockerfile, compose) = (text("Dockerfile"), &documents(&root().join("compose.yaml"))[0]);
    for (key, folder) in folders {
        let set = format!("DALSEGNO_{key}=/etc/dalsegno/{folder} ");
        assert_eq!(dockerfile.matches(&set).count(), 2, "{set}");
        for service in ["service", "worker"] {
            let volumes = compose["services"][service]["volumes"].as_array().unwrap();
            let mount = format!("./config/{folder}:/etc/dalsegno/{folder}:ro");
            assert!(volumes.iter().any(|volume| volume == mount.as_str()), "{service}: {mount}");
        }
        assert!(root().join("config").join(&folder).is_dir(), "{folder}");
    }
}

fn own_environment(pod: &Value) -> String {
    pod["containers"][0]["env"].to_string()
}
