//! Configuration: layers, problems, secrets.

use dalsegno::{
    config::{self, Config},
    settings::{Environment, Flags, Problem, Problems},
};

const URL: &str = "postgres://app:hunter2@db.example:5432/app";

fn load(environment: &Environment, file: &str, set: &[(&str, &str)]) -> Result<Config, Problems> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dalsegno.toml");
    std::fs::write(&path, file).unwrap();
    let set = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::load(environment, &Flags { file: Some(path), set })
}

fn problems(file: &str) -> Vec<Problem> {
    load(&Environment::default(), file, &[]).unwrap_err().0
}

#[test]
fn defaults_alone_are_a_valid_configuration() {
    let config = Config::load(&Environment::default(), &Flags::default()).unwrap();
    assert!(config.database.url.is_none());
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:7770");
}

#[test]
fn each_layer_overrides_the_one_before() {
    let environment = Environment::from([
        ("DALSEGNO_DATABASE__MAX_CONNECTIONS", "31"),
        ("DALSEGNO_SHUTDOWN__STOP_TIMEOUT_SECS", "32"),
    ]);
    let file = "[database]\nmax_connections = 21\n[http]\nrequest_timeout_secs = 22\n\
                [shutdown]\nstop_timeout_secs = 23";
    let set = [("shutdown.stop_timeout_secs", "43")];
    let config = load(&environment, file, &set).unwrap();
    assert_eq!(config.http.request_timeout_secs, 22);
    assert_eq!(config.database.max_connections, 31);
    assert_eq!(config.shutdown.stop_timeout_secs, 43);
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf_8_is_reported() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let broken = OsStr::from_bytes(b"127.0.0.1\xff");
    let named = |name: &'static [u8]| {
        let environment = Environment::from([(OsStr::from_bytes(name), broken)]);
        Config::load(&environment, &Flags::default()).map_err(|problems| problems.0)
    };
    for name in ["DALSEGNO_HTTP__LISTEN", "DALSEGNO_CONFIG", "DATABASE_URL", "PGHOST"] {
        let found = named(name.as_bytes()).unwrap_err();
        assert_eq!((found.len(), &*found[0].key), (1, name), "{found:?}");
        assert!(found[0].message.contains("UTF-8"), "{found:?}");
    }
    let found = named(b"DALSEGNO_HTTP__L\xefSTEN").unwrap_err();
    assert!(found[0].key.starts_with("DALSEGNO_HTTP__L"), "{found:?}");
    // Other variables are ignored.
    named(b"LESSOPEN").unwrap();
}

#[test]
fn trusted_proxies_are_addresses_and_networks() {
    let found = problems("[http]\ntrusted_proxies = \"10.0.0.5, fd00::/8, 10.0.0.0/33, proxy\"");
    let messages: Vec<&str> = found.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(messages[0].contains("`10.0.0.0/33`") && messages[1].contains("`proxy`"), "{found:?}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let found = problems(
        "[http]\nlisten_on = \"127.0.0.1:1\"\nrequest_timeout_secs = 3\n\
         [log]\nformat = \"yaml\"\n[database]\nacquire_timeout_secs = 9",
    );
    let keys: Vec<&str> = found.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["database.acquire_timeout_secs", "http.listen_on", "log.format"]);
    assert!(found[0].message.contains("http.request_timeout_secs = 3"));
    assert!(found[1].fix.contains("http.listen"), "{:?}", found[1]);
    assert!(found[2].message.contains("expected one of `auto`, `pretty`, `json`"));
    assert!(found.iter().all(|problem| problem.origin.ends_with("dalsegno.toml")));
}

/// Problems of values do not wait for others: a list item, both parts of a timetable, a name.
#[test]
fn invalid_values_of_all_sections_are_reported_at_once() {
    let found = problems(
        "[scheduler]\ncleanup = \"often\"\ntime_zone = \"Mars\"\n[memory]\nlanguage = \"klingon\"\n\
         [prices]\nmodels = [{ provider = \"sim\" }]",
    );
    let keys: Vec<&str> = found.iter().map(|problem| problem.key.as_str()).collect();
    let expected =
        ["memory.language", "prices.models[0]", "scheduler.cleanup", "scheduler.time_zone"];
    assert_eq!(keys, expected, "{found:?}");
    assert!(found[1].origin.ends_with("dalsegno.toml"), "{:?}", found[1]);
}

#[test]
fn a_provider_without_a_model_of_its_own_is_refused() {
    for (provider, model) in [("ollama", "qwen3:8b"), ("claude", "sonnet")] {
        let found = problems(&format!("[agents]\nprovider = \"{provider}\""));
        assert_eq!((found.len(), found[0].key.as_str()), (1, "agents.model"), "{found:?}");
        let message =
            format!("`sim-1` is a model of the simulation, but agents.provider is {provider}");
        assert_eq!(found[0].message, message);
        assert_eq!(found[0].fix, format!("agents.model = \"{model}\""));
        let both = format!("[agents]\nprovider = \"{provider}\"\nmodel = \"{model}\"");
        load(&Environment::default(), &both, &[]).unwrap();
    }
}

#[test]
fn only_the_default_folders_of_files_may_be_missing() {
    let keys = ["agents.folder", "agents.nodes_folder", "agents.skills_folder", "flows.folder"];
    let missing = keys.map(|key| (key, "no/such/folder"));
    let found = load(&Environment::default(), "", &missing).unwrap_err().0;
    let reported: Vec<&str> = found.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(reported, keys);
    assert!(
        found.iter().all(|problem| problem.message == "the folder does not exist: no/such/folder"
            && problem.origin == "the flag --set"),
        "{found:?}"
    );
    let folder = tempfile::tempdir().unwrap();
    let there = keys.map(|key| (key, folder.path().to_str().unwrap()));
    load(&Environment::default(), "", &there).unwrap();
}

#[test]
fn a_problem_of_two_keys_is_reported_on_the_one_that_was_set() {
    let found = problems("[http]\nrequest_timeout_secs = 3");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].key, "http.request_timeout_secs");
    assert!(found[0].origin.ends_with("dalsegno.toml"), "{:?}", found[0]);
    let found = problems("[http]\nrequest_timeout_secs = 0");
    assert!(found.len() == 1 && found[0].message.contains("from 1 to"), "{found:?}");
}

#[test]
fn retention_of_session_data_is_at_least_a_day() {
    let keys = ["keep_closed_days", "keep_feed_days", "keep_summary_days"];
    let file = keys.map(|key| format!("{key} = 0")).join("\n");
    let found = problems(&format!("[sessions]\n{file}"));
    let found: Vec<_> = found.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(found, keys.map(|key| format!("sessions.{key}")));
}

#[test]
fn a_pooler_and_its_direct_address_require_an_external_server() {
    let keys = |file: &str| -> Vec<String> {
        problems(file).into_iter().map(|problem| problem.key).collect()
    };
    assert_eq!(keys("[database]\npooler = \"transaction\""), ["database.pooler"]);
    let past_none = format!("[database]\nurl = \"{URL}\"\ndirect_url = \"{URL}\"");
    assert_eq!(keys(&past_none), ["database.direct_url"]);
    let unknown = format!("[database]\nurl = \"{URL}\"\npooler = \"session\"");
    assert_eq!(keys(&unknown), ["database.pooler"]);
    let no_address =
        format!("[database]\nurl = \"{URL}\"\npooler = \"transaction\"\ndirect_url = \"x\"");
    assert_eq!(keys(&no_address), ["database.direct_url"]);
    let file =
        format!("[database]\nurl = \"{URL}\"\npooler = \"transaction\"\ndirect_url = \"{URL}\"");
    load(&Environment::default(), &file, &[]).unwrap();
}

#[test]
fn allowed_hosts_are_host_names_and_not_urls() {
    let found = problems("[http]\nallowed_hosts = \"dalsegno, http://dalsegno.internal:7770, \"");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].key, "http.allowed_hosts");
    assert!(found[0].message.contains("`http://dalsegno.internal:7770`"), "{:?}", found[0]);
    assert!(found[0].fix.contains("names alone"), "{:?}", found[0]);
}

#[test]
fn seconds_are_from_one_to_a_year() {
    let keys = [
        "database.acquire_timeout_secs",
        "database.connect_timeout_secs",
        "database.embedded.start_timeout_secs",
        "database.embedded.stop_timeout_secs",
        "http.request_timeout_secs",
        "shutdown.drain_timeout_secs",
        "shutdown.stop_timeout_secs",
    ];
    let huge = keys.map(|key| (key, "9223372036854775807"));
    let found = load(&Environment::default(), "", &huge).unwrap_err().0;
    let found: Vec<&str> = found.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(found, keys);
}

#[test]
fn sections_of_the_wrong_type_are_reported_as_such() {
    for (file, key, words) in [
        ("http = 5", "http", "is a section"),
        ("[[log]]\nformat = \"json\"", "log", "is a section"),
        ("[database]\nurl = { host = \"x\" }", "database.url.host", "is inside a setting"),
        ("[nonsense]", "nonsense", "unknown setting"),
        ("[database.nonsense]", "database.nonsense", "unknown setting"),
    ] {
        let found = problems(file);
        assert_eq!((found.len(), found[0].key.as_str()), (1, key), "{found:?}");
        assert!(found[0].message.contains(words), "{found:?}");
    }
    let found = problems("[database]\nurl = 5");
    assert!(found[0].fix.contains("in quotes"), "{found:?}");
    load(&Environment::default(), "[http]\n[database.embedded]", &[]).unwrap();
}

#[test]
fn variables_of_an_orchestrator_and_empty_ones_are_not_settings() {
    let environment = Environment::from([
        ("DALSEGNO_PORT", "tcp://10.0.0.1:7770"),
        ("DALSEGNO_SERVICE_HOST", "10.0.0.1"),
        ("DALSEGNO_TEST_POSTGRES", "/usr/lib/postgresql/14/bin"),
        ("DALSEGNO_DATABASE__URL", ""),
        ("DATABASE_URL", URL),
    ]);
    let config = Config::load(&environment, &Flags::default()).unwrap();
    assert!(config.database.url.is_some(), "an empty variable overrode the value");
}

#[test]
fn a_key_with_too_few_underscores_is_a_problem() {
    let environment = Environment::from([
        ("DALSEGNO_HTTP_LISTEN", "127.0.0.1:1"),
        ("DALSEGNO_DATABASE_URL_FILE", "/run/secrets/url"),
    ]);
    let found = Config::load(&environment, &Flags::default()).unwrap_err().0;
    let fixes: Vec<&str> = found.iter().map(|problem| problem.fix.as_str()).collect();
    assert_eq!(fixes, ["DALSEGNO_DATABASE__URL_FILE", "DALSEGNO_HTTP__LISTEN"]);
}

#[test]
fn wrong_types_in_one_section_do_not_hide_each_other() {
    let found = problems("[database]\nmax_connections = \"many\"\nacquire_timeout_secs = -1");
    let keys: Vec<&str> = found.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["database.acquire_timeout_secs", "database.max_connections"]);
}

#[test]
fn unknown_variables_and_flags_are_reported_too() {
    let environment = Environment::from([("DALSEGNO_HTTP__LISTN", "127.0.0.1:1")]);
    let found = load(&environment, "", &[("nonsense.at_all", "1")]).unwrap_err().0;
    assert_eq!(found[0].origin, "the environment variable DALSEGNO_HTTP__LISTN");
    assert!(found[0].fix.starts_with("http.listen"));
    assert_eq!(found[1].origin, "the flag --set");
    assert!(found[1].fix.contains("dalsegno config template"));
}

#[test]
fn a_variable_can_hold_a_list() {
    let list = "[{ provider = \"sim\", model = \"sim-1\", input = 1, output = 2 }]";
    let environment = Environment::from([("DALSEGNO_PRICES__MODELS", list)]);
    let config = load(&environment, "", &[("claude.pass_variables", "[\"HTTPS_PROXY\"]")]).unwrap();
    assert!(config.prices.of("sim", "sim-1").is_some());
    assert_eq!(config.claude.pass_variables, ["HTTPS_PROXY"]);
    let wrong = load(&Environment::default(), "", &[("claude.pass_variables", "HTTPS_PROXY")]);
    let problems = wrong.unwrap_err().0;
    assert_eq!((problems.len(), problems[0].key.as_str()), (1, "claude.pass_variables"));
}

#[test]
fn a_value_can_be_read_from_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("url");
    std::fs::write(&secret, format!("{URL}\n")).unwrap();
    let environment =
        Environment::from([("DALSEGNO_DATABASE__URL_FILE", secret.to_str().unwrap())]);
    let flags = Flags::default();
    let config = Config::load(&environment, &flags).unwrap();
    assert!(config.database.url.is_some());
    let printed = config::print(&environment, &flags).unwrap();
    let url = printed.iter().find(|value| value.key == "database.url").unwrap();
    assert!(url.origin.contains("DALSEGNO_DATABASE__URL_FILE"), "{}", url.origin);
}

#[test]
fn a_missing_value_file_or_one_beside_the_value_is_a_problem() {
    let found = problems("[database]\nurl_file = \"/does/not/exist\"");
    assert_eq!(found[0].key, "database.url_file");
    let found = problems(&format!("[database]\nurl = \"{URL}\"\nurl_file = \"/x\""));
    assert!(found[0].message.contains("given twice"));
}

#[test]
fn database_url_and_the_pg_variables_name_the_server() {
    for variable in [("DATABASE_URL", URL), ("PGHOST", "db"), ("PGDATABASE", "app")] {
        let config = Config::load(&Environment::from([variable]), &Flags::default()).unwrap();
        assert!(config.database.url.is_some(), "{variable:?}");
    }
    // Only the role is set: still the private server.
    let environment = Environment::from([("PGUSER", "app")]);
    assert!(Config::load(&environment, &Flags::default()).unwrap().database.url.is_none());
}

#[test]
fn secrets_are_never_printed() {
    let environment = Environment::from([("DATABASE_URL", URL)]);
    let config = Config::load(&environment, &Flags::default()).unwrap();
    let printed = config::print(&environment, &Flags::default()).unwrap();
    let shown = format!("{config:?} {}", serde_json::to_string(&printed).unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
    let hidden = printed.iter().filter(|value| value.value == "(secret, not shown)");
    let hidden: Vec<&str> = hidden.map(|value| value.key.as_str()).collect();
    // Addresses are hidden even where passwords in them are refused, because people put them there.
    let (addresses, hidden): (Vec<&str>, Vec<&str>) =
        hidden.into_iter().partition(|key| key.ends_with(".base_url"));
    assert!(addresses.contains(&"ollama.base_url"), "{addresses:?}");
    assert_eq!(hidden, ["database.url"], "every other key of the template is public");
    let wrong = Environment::from([("DATABASE_URL", "mysql://app:hunter2@db/app")]);
    let problems = Config::load(&wrong, &Flags::default()).unwrap_err();
    assert_eq!(problems.0[0].key, "database.url");
    assert!(!problems.to_string().contains("hunter2"));
}

#[test]
fn a_missing_file_is_named_with_the_next_step() {
    let flags = Flags { file: Some("/no/where/dalsegno.toml".into()), ..Flags::default() };
    let found = Config::load(&Environment::default(), &flags).unwrap_err().0;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].message, "the file does not exist: /no/where/dalsegno.toml");
    for words in ["dalsegno config template > /no/where/dalsegno.toml", "DALSEGNO_CONFIG"] {
        assert!(found[0].fix.contains(words), "{:?}", found[0]);
    }
}

#[test]
fn a_number_of_the_wrong_type_is_told_in_words() {
    let found = problems("[agents]\nmax_rounds = \"many\"\nfallback_after = 1.5");
    let messages: Vec<&str> = found.iter().map(|problem| problem.message.as_str()).collect();
    assert!(messages[0].ends_with("from -2147483648 to 2147483647"), "{messages:?}");
    assert!(messages[1].ends_with("expected a whole number from 0 to 4294967295"), "{messages:?}");
}

#[test]
fn a_file_that_is_not_toml_is_one_problem_without_its_text() {
    let found = problems("[database]\nurl = \"postgres://app:hunter2@db/app");
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("line 2, column"), "{:?}", found[0]);
    assert!(found[0].message.contains("expected"), "{:?}", found[0]);
    assert!(!found[0].message.contains("hunter2"), "{:?}", found[0]);
}

#[test]
fn ignored_parameters_of_the_address_are_named_without_their_values() {
    let url = |url| {
        let environment = Environment::from([("DATABASE_URL", url)]);
        Config::load(&environment, &Flags::default()).map(drop).map_err(|found| found.to_string())
    };
    let found = url("postgres://db/app?pasword=hunter2&sslmode=disable&hunter2%40").unwrap_err();
    assert!(found.contains("`pasword`") && found.contains("2 problems"), "{found}");
    assert!(!found.contains("hunter2"), "{found}");
    url("postgres://db/app?sslmode=disable&options[search_path]=x&application_name=y").unwrap();
}

#[test]
fn the_template_is_a_configuration_and_changes_nothing() {
    let config = load(&Environment::default(), config::TEMPLATE, &[]).unwrap();
    let defaults = Config::load(&Environment::default(), &Flags::default()).unwrap();
    // The origins of the settings differ.
    let values = |config| format!("{:?}", Config { file: None, settings: Vec::new(), ..config });
    assert_eq!(values(config), values(defaults));
}

#[test]
fn each_endpoint_is_a_section_with_the_defaults_of_the_template() {
    let text = "[providers.local]\nbase_url = \"http://10.0.0.5:8000/v1\"\n\
                models = [{ name = \"m\", window_tokens = 4096 }]\n[providers.other]\nwindow_tokens = 8192";
    let variables = [("DALSEGNO_PROVIDERS__OTHER__DIALECT", "vllm")];
    let config = load(&Environment::from(variables), text, &[("providers.far.ttl_days", "3")]);
    let config = config.unwrap();
    let names: Vec<_> = config.endpoints.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["far", "local", "other"]);
    let [far, local, other] = config.endpoints.as_slice() else { panic!("{names:?}") };
    assert_eq!((local.window_tokens(), other.window_tokens()), (32_768, 8192));
    assert_eq!(local.window_tokens_of("m"), Some(4096));
    assert_ne!(local.dialect, other.dialect);
    assert_eq!((far.ttl_days, config.sessions.ttl_days["far"]), (3, 3));
    assert_eq!(config.sessions.ttl_days["local"], 7);
    let known: Vec<_> = config.agents.known_providers.iter().map(|it| it.as_str()).collect();
    assert_eq!(known, ["claude", "ollama", "sim", "far", "local", "other"]);
    let printed = config.settings.iter().find(|it| it.key == "providers.local.window_tokens");
    assert!(printed.unwrap().is_default);
}

#[test]
fn problems_of_an_endpoint_name_its_section() {
    let found = problems(
        "[agents]\nprovider = \"lokal\"\n[providers.local]\nbase_url = \"nowhere\"\nwindow = 1\n\
         [providers.claude]\n[providers.NAME]\nttl_days = 3",
    );
    let keys: Vec<&str> = found.iter().map(|problem| problem.key.as_str()).collect();
    let expected = [
        "agents.provider",
        "providers.NAME.ttl_days",
        "providers.claude.kind",
        "providers.local.base_url",
        "providers.local.window",
    ];
    assert_eq!(keys, expected, "{found:?}");
    assert!(found[0].fix.contains("claude, ollama, sim"), "{:?}", found[0]);
    assert!(found[2].message.contains("reserved"), "{:?}", found[2]);
    assert!(found[4].fix.contains("providers.local."), "{:?}", found[4]);
}
