//! References between the Kubernetes manifests, which break when a name is changed in one place. Needs neither a
//! cluster nor kustomize.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::yaml::{documents, root};

const OVERLAYS: [&str; 3] = ["dev", "prod", "keda"];

/// Contents of an overlay with its bases.
#[derive(Default)]
struct RenderedOverlay {
    objects: Vec<Value>,
    config_maps: BTreeSet<String>,
    settings: Vec<String>,
    secrets: BTreeMap<String, BTreeSet<String>>,
    replicas: Vec<String>,
    images: Vec<String>,
}

impl RenderedOverlay {
    fn of(folder: &Path) -> Self {
        let mut rendered = Self::default();
        rendered.read(folder);
        rendered
    }

    fn read(&mut self, folder: &Path) {
        let kustomization = &documents(&folder.join("kustomization.yaml"))[0];
        let all = |key: &str| kustomization[key].as_array().cloned().unwrap_or_default();
        let mut named = BTreeSet::from([folder.join("kustomization.yaml")]);
        for resource in all("resources") {
            let path = folder.join(resource.as_str().unwrap());
            assert!(path.exists(), "{} is missing", path.display());
            match path.is_dir() {
                true => self.read(&path),
                false => {
                    self.objects.extend(documents(&path));
                    named.insert(path);
                }
            }
        }
        let found: BTreeSet<PathBuf> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect();
        assert_eq!(named, found, "every file belongs to a kustomization");
        let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
        self.config_maps.extend(all("configMapGenerator").iter().map(name));
        for map in all("configMapGenerator") {
            let literals = map["literals"].as_array().unwrap().iter();
            self.settings.extend(literals.map(|pair| pair.as_str().unwrap().to_owned()));
        }
        for secret in all("secretGenerator") {
            let literals = secret["literals"].as_array().unwrap().iter();
            let keys =
                literals.map(|pair| pair.as_str().unwrap().split('=').next().unwrap().to_owned());
            self.secrets.insert(name(&secret), keys.collect());
        }
        self.replicas.extend(all("replicas").iter().map(name));
        self.images.extend(all("images").iter().map(name));
    }

    fn kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    fn deployment(&self, name: &str) -> &Value {
        let mut all = self.kind("Deployment");
        all.find(|one| one["metadata"]["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    }
}

fn is_part(selector: &Value, labels: &Value) -> bool {
    selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value)
}

fn pod(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]
}

fn overlays() -> impl Iterator<Item = (&'static str, RenderedOverlay)> {
    OVERLAYS.into_iter().map(|name| {
        (name, RenderedOverlay::of(&root().join("deploy/kubernetes/overlays").join(name)))
    })
}

#[test]
fn selectors_match_their_pods_and_ports_their_containers() {
    for (overlay, rendered) in overlays() {
        let pods: Vec<&Value> = rendered.kind("Deployment").map(pod).collect();
        assert!(pods.len() >= 2, "{overlay}");
        for deployment in rendered.kind("Deployment") {
            let selector = &deployment["spec"]["selector"]["matchLabels"];
            assert!(
                is_part(selector, &pod(deployment)["metadata"]["labels"]),
                "{overlay}: {selector}"
            );
        }
        let one_pod = |selector: &Value| {
            let mut found = pods.iter().filter(|pod| is_part(selector, &pod["metadata"]["labels"]));
            let first =
                found.next().unwrap_or_else(|| panic!("{overlay}: no pod matches {selector}"));
            assert!(found.next().is_none(), "{overlay}: several pods match {selector}");
            *first
        };
        for service in rendered.kind("Service") {
            let target = &service["spec"]["ports"][0]["targetPort"];
            let container = &one_pod(&service["spec"]["selector"])["spec"]["containers"][0];
            assert_eq!(&container["ports"][0]["name"], target, "{overlay}");
        }
        for budget in rendered.kind("PodDisruptionBudget") {
            one_pod(&budget["spec"]["selector"]["matchLabels"]);
        }
        for policy in rendered.kind("NetworkPolicy") {
            let pod = one_pod(&policy["spec"]["podSelector"]["matchLabels"]);
            let port = &policy["spec"]["ingress"][0]["ports"][0]["port"];
            assert_eq!(&pod["spec"]["containers"][0]["ports"][0]["name"], port);
        }
    }
}

#[test]
fn config_maps_secrets_and_service_accounts_of_pods_exist() {
    for (overlay, rendered) in overlays() {
        let accounts: Vec<&str> = rendered
            .kind("ServiceAccount")
            .map(|one| one["metadata"]["name"].as_str().unwrap())
            .collect();
        for name in ["dalsegno", "dalsegno-worker"] {
            let spec = &pod(rendered.deployment(name))["spec"];
            assert!(accounts.contains(&spec["serviceAccountName"].as_str().unwrap()), "{overlay}");
            let container = &spec["containers"][0];
            let map = container["envFrom"][0]["configMapRef"]["name"].as_str().unwrap();
            assert!(rendered.config_maps.contains(map), "{overlay}: there is no config map {map}");
            let mounts: Vec<&Value> = container["volumeMounts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| &one["name"])
                .collect();
            let volumes: Vec<&Value> =
                spec["volumes"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
            assert_eq!(mounts, volumes, "{overlay}: {name}");
            for key in wanted_keys(spec) {
                let has = |keys: &BTreeSet<String>| keys.contains(&key);
                // Overlays without a generator describe the secret's contents in text.
                assert!(rendered.secrets.get("dalsegno").is_none_or(has), "{overlay}: no {key}");
            }
        }
        for name in rendered.replicas.iter().chain(&rendered.images) {
            rendered.deployment(name);
        }
    }
}

#[test]
fn pods_run_with_restricted_permissions() {
    for (overlay, rendered) in overlays() {
        for name in ["dalsegno", "dalsegno-worker"] {
            let spec = &pod(rendered.deployment(name))["spec"];
            let container = &spec["containers"][0]["securityContext"];
            let confined = [
                (&spec["securityContext"]["runAsNonRoot"], true),
                (&spec["automountServiceAccountToken"], false),
                (&container["readOnlyRootFilesystem"], true),
                (&container["allowPrivilegeEscalation"], false),
            ];
            for (value, wanted) in confined {
                assert_eq!(value, &Value::Bool(wanted), "{overlay}: {name}");
            }
            assert_eq!(container["capabilities"]["drop"], serde_json::json!(["ALL"]));
            for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
                let port = &spec["containers"][0][probe]["httpGet"]["port"];
                assert_eq!(port, &spec["containers"][0]["ports"][0]["name"], "{overlay}: {probe}");
            }
        }
    }
}

#[test]
fn a_job_migrates_where_services_do_not() {
    for (overlay, rendered) in overlays() {
        let none = "DALSEGNO_DATABASE__MIGRATE_ON_START=false".to_owned();
        let jobs: Vec<&Value> = rendered.kind("Job").collect();
        assert_eq!(jobs.len(), usize::from(rendered.settings.contains(&none)), "{overlay}");
        assert_eq!(jobs.is_empty(), overlay == "dev");
        for job in jobs {
            let spec = &pod(job)["spec"];
            let container = &spec["containers"][0];
            assert_eq!(container["args"], serde_json::json!(["migrate", "up"]));
            // The connection settings are set there, too.
            assert_eq!(container["envFrom"][0]["configMapRef"]["name"], "dalsegno");
            assert!(rendered.images.contains(&container["image"].as_str().unwrap().to_owned()));
            assert_eq!(container["env"][0]["valueFrom"]["secretKeyRef"]["key"], "DATABASE_URL");
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        }
    }
}

#[test]
fn the_scaler_targets_an_existing_deployment_through_an_existing_view() {
    let (_, rendered) = overlays().last().unwrap();
    let scaler = rendered.kind("ScaledObject").next().unwrap();
    rendered.deployment(scaler["spec"]["scaleTargetRef"]["name"].as_str().unwrap());
    let query = scaler["spec"]["triggers"][0]["metadata"]["query"].as_str().unwrap();
    assert!(query.contains("dalsegno.queue_load"), "{query}");
    let authentication = rendered.kind("TriggerAuthentication").next().unwrap();
    let named = &scaler["spec"]["triggers"][0]["authenticationRef"]["name"];
    assert_eq!(&authentication["metadata"]["name"], named);
}

fn wanted_keys(spec: &Value) -> Vec<String> {
    let variables = spec["containers"][0]["env"].as_array().unwrap().iter();
    let of_variables = variables.filter_map(|one| one["valueFrom"]["secretKeyRef"]["key"].as_str());
    let volumes = spec["volumes"].as_array().unwrap().iter();
    let of_volumes = volumes
        .filter_map(|one| one["secret"]["items"].as_array())
        .flatten()
        .filter_map(|item| item["key"].as_str());
    of_variables.chain(of_volumes).map(str::to_owned).collect()
}
