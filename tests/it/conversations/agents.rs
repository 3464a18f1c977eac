//! Agents and skills: loading, checking and reloading.

use dalsegno::domain::{
    agents::SessionMode as Mode,
    agents::{
        Agent, Catalogue, ChainEntry, Config, Library, PermissionMode, Problem, Provider, Think,
    },
    blackboard::Path,
    flows,
};

use super::{files, shipped};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(folder.0.path().join("agents")).unwrap();
        std::fs::create_dir_all(folder.0.path().join("skills/tone")).unwrap();
        folder.write(
            "skills/tone/SKILL.md",
            "---\nname: tone\ndescription: How we sound\n---\nWarm.",
        );
        folder
    }

    fn write(&self, path: &str, content: &str) {
        std::fs::write(self.0.path().join(path), content).unwrap();
    }

    fn config(&self) -> Config {
        files(self.0.path().join("agents"), self.0.path().join("skills"))
    }

    fn problems(&self) -> Vec<Problem> {
        match Catalogue::load(&self.config()) {
            Ok(catalogue) => catalogue.problems().0,
            Err(problems) => problems.0,
        }
    }
}

fn agent(extra: &str) -> String {
    format!("---\nname: curator\ndescription: Keeps things\n{extra}---\nYou keep things.\n")
}

#[test]
fn the_built_in_files_are_valid_in_both_places() {
    let built_in = Catalogue::load(&shipped()).unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let config = files(root.join("agents"), root.join("skills"));
    let on_disk = Catalogue::load(&config).unwrap();
    let hashes = |catalogue: &Catalogue| {
        catalogue.agents().map(|a| (a.name.clone(), a.prompt_hash.clone())).collect::<Vec<_>>()
    };
    assert_eq!(hashes(&built_in), hashes(&on_disk));
    assert_eq!(built_in.lead().unwrap().name, "planner");
    let writer = built_in.agent("copywriter").unwrap();
    assert_eq!(built_in.skills_of(writer)[0].name, "editorial-style");
    assert!(writer.prompt.starts_with("You are a copywriter."));
}

#[test]
fn every_key_of_an_agent_file_is_read() {
    let folder = Folder::new();
    let all = "model: [ollama/qwen3:8b, claude/sonnet]\nsummariser: small\n\
               window_tokens: 16384\nreserve_tokens: 2048\nprepare_percent: 70\napply_percent: 80\nrotate_at_tokens: 120000\n\
               ttl_days: 3\nlead: true\nsession: fresh\ntools: Read, Grep\nskills: [tone]\ntemperature: 0.5\ntop_p: 1\nseed: 7\n\
               think: off\ntask_budget: 0.25\ntask_budget_tokens: 5000\n";
    folder.write("agents/curator.md", &agent(all));
    let catalogue = Catalogue::load(&folder.config()).unwrap();
    let agent = catalogue.agent("curator").unwrap();
    assert_eq!(models(agent), ["ollama/qwen3:8b", "claude/sonnet"]);
    assert_eq!((agent.window_tokens, agent.rotate_at_tokens), (Some(16384), Some(120_000)));
    assert_eq!(
        (agent.prepare_percent, agent.apply_percent, agent.ttl_days),
        (Some(70), Some(80), Some(3))
    );
    assert_eq!((agent.lead, agent.session), (true, Mode::Fresh));
    assert_eq!(agent.grants.tools, ["Read", "Grep"]);
    assert_eq!((agent.options.temperature, agent.options.top_p), (Some(0.5), Some(1.0)));
    assert_eq!((agent.options.seed, agent.options.think), (Some(7), Some(Think::Off)));
    assert_eq!((agent.budget.micros, agent.budget.tokens), (Some(250_000), Some(5000)));
    assert_eq!(agent.prompt, "You keep things.");
}

fn models(agent: &Agent) -> Vec<String> {
    let name = |entry: &ChainEntry| {
        let provider = entry.provider.as_ref().map_or("-", Provider::as_str);
        format!("{provider}/{}", entry.model.as_deref().unwrap_or("-"))
    };
    agent.chain.iter().map(name).collect()
}

#[test]
fn a_chain_is_a_list_of_models_with_conditions() {
    let folder = Folder::new();
    let read = |keys: &str| {
        folder.write("agents/curator.md", &agent(keys));
        let catalogue = Catalogue::load(&folder.config()).unwrap();
        Agent::clone(catalogue.agent("curator").unwrap())
    };
    let with_conditions = read(
        "model:\n  - model: claude/sonnet\n    errors: 1\n    limit_secs: 30\n    max_charge: 0.5\n    latency_secs: 2.5\n  - ollama/hf.co/a/b:Q4\n  - sim\n",
    );
    assert_eq!(models(&with_conditions), ["claude/sonnet", "ollama/hf.co/a/b:Q4", "sim/-"]);
    let first = &with_conditions.chain[0];
    assert_eq!((first.errors, first.limit_secs), (Some(1), Some(30)));
    assert_eq!((first.max_charge_micros, first.latency_secs), (Some(500_000), Some(2.5)));
    assert_eq!(with_conditions.chain[1].limit_secs, None);
    // Files that were written before there were lists.
    let old =
        "provider: ollama\nmodel: qwen3:8b\nfallback_provider: claude\nfallback_model: sonnet\n";
    assert_eq!(models(&read(old)), ["ollama/qwen3:8b", "claude/sonnet"]);
    assert_eq!(models(&read("")), ["-/-"]);
}

#[test]
fn wrong_entries_of_a_chain_are_reported_with_their_lines() {
    let folder = Folder::new();
    let problems = |keys: &str| {
        folder.write("agents/curator.md", &agent(keys));
        let problems = folder.problems();
        problems
            .into_iter()
            .map(|it| format!("{}: {}", it.line.unwrap(), it.message))
            .collect::<Vec<_>>()
    };
    let found = problems(
        "model:\n  - claud/sonnet\n  - ollama/\n  - 7\n  - { model: sim, limit: 3 }\n  - errors: 2\n",
    );
    let expected = [
        "`claud/sonnet`, which begins with no provider",
        "without a model behind",
        "has the item 7",
        "unknown key",
        "is missing",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((found, expected), line) in found.iter().zip(expected).zip(5..) {
        assert!(found.starts_with(&format!("{line}: ")) && found.contains(expected), "{found}");
    }
    for key in ["provider: sim", "fallback_provider: sim", "fallback_model: x"] {
        let found = problems(&format!("model: [sim]\n{key}\n"));
        assert!(found[0].starts_with("5: is set beside a list"), "{found:?}");
    }
    let lone = problems("model: [{ model: sim, errors: 2 }]\n");
    assert!(lone.len() == 1 && lone[0].contains("no model to move on to"), "{lone:?}");
    let twice = problems("model: [sim, ollama/x, sim]\n");
    assert!(twice.len() == 1 && twice[0].contains("twice"), "{twice:?}");
    assert_eq!(problems("model: []\n").len(), 1);
}

#[test]
fn grants_are_parsed_in_claude_codes_own_format() {
    let folder = Folder::new();
    let all = "tools: Read, Bash(git log:*, git diff:*), mcp__board__post\ndisallowedTools: [\"Bash(rm:*)\"]\n\
               permissionMode: acceptEdits\nmaxTurns: 12\nworkspace: true\nblackboard: { read: [/plan, /notes~1x], write: /plan/parts }\n\
               mcpServers:\n  board:\n    type: http\n    url: https://board.example/mcp\n    headers: { Authorization: \"Bearer ${BOARD_TOKEN}\" }\n";
    folder.write("agents/curator.md", &agent(all));
    let grants =
        Catalogue::load(&folder.config()).unwrap().agent("curator").unwrap().grants.clone();
    assert_eq!(grants.tools, ["Read", "Bash(git log:*, git diff:*)", "mcp__board__post"]);
    assert_eq!(grants.disallowed_tools, ["Bash(rm:*)"]);
    assert_eq!(grants.permission_mode, PermissionMode::AcceptEdits);
    assert_eq!((grants.max_turns, grants.workspace), (Some(12), true));
    let paths = |paths: &[Path]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(paths(&grants.blackboard.read), ["/plan", "/notes~1x"]);
    assert_eq!(paths(&grants.blackboard.write), ["/plan/parts"]);
    let token = |name: &str| (name == "BOARD_TOKEN").then(|| "secret".to_owned());
    let servers = grants.mcp_servers.resolve(token).unwrap();
    assert_eq!(servers["board"]["headers"]["Authorization"], "Bearer secret");
    assert!(grants.mcp_servers.resolve(|_| None).unwrap_err().to_string().contains("BOARD_TOKEN"));

    // A list of servers, as in Claude Code, or a file.
    let list = "mcpServers:\n  - board: { command: board-server, args: [\"--stdio\"] }\n";
    folder.write("agents/curator.md", &agent(list));
    let names = |catalogue: &Catalogue| {
        let grants = &catalogue.agent("curator").unwrap().grants;
        grants.mcp_servers.names().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&Catalogue::load(&folder.config()).unwrap()), ["board"]);
    folder.write("servers.json", r#"{"mcpServers":{"sums":{"command":"sums"}}}"#);
    folder.write("agents/curator.md", &agent("mcpServers: ../servers.json\n"));
    let library = Library::open(&folder.config()).unwrap();
    assert_eq!(names(&library.current()), ["sums"]);
    folder.write("servers.json", r#"{"mcpServers":{"products":{"command":"sums"}}}"#);
    assert_eq!(
        names(&library.current()),
        ["products"],
        "a change of a referenced file is detected"
    );
    folder.write("servers.json", "{");
    assert!(library.current().agent("curator").is_err());
    assert!(
        library
            .current()
            .problems()
            .to_string()
            .contains("servers.json is not valid JSON in line 1")
    );
    folder.write("servers.json", r#"{"mcpServers":{"sums":{"command":"sums"}}}"#);
    assert_eq!(names(&library.current()), ["sums"], "its repair is detected, too");
}

#[test]
fn all_problems_of_grants_are_reported_together_with_fixes() {
    let folder = Folder::new();
    let wrong = "tools: \"Bash(ls, *\"\ndisallowedTools: mcp__*\npermissionMode: acceptedits\nmaxTurns: 0\nworkspace: maybe\n\
                 blackboard: { read: [plan, //], erase: / }\n\
                 mcpServers:\n  \"my board\": { url: \"https://x\", env: { N: 1 } }\n  b: { command: b, env: { K: \"${ANTHROPIC_API_KEY}\" } }\n";
    folder.write("agents/curator.md", &agent(wrong));
    let problems = folder.problems();
    let has = |line: usize, key: &str, words: &str| {
        problems.iter().any(|p| {
            p.line == Some(line)
                && p.key.as_deref() == Some(key)
                && (p.message.contains(words) || p.fix.contains(words))
        })
    };
    for (line, key, words) in [
        (4, "tools", "`Bash(ls, *` is not closed"),
        (5, "disallowedTools", "matches everything"),
        (6, "permissionMode", "acceptEdits (the closest match)"),
        (7, "maxTurns", "1 to 1000"),
        (8, "workspace", "true or false"),
        (9, "blackboard", "has \"plan\" below `read`, which is not a valid path"),
        (9, "blackboard", "has \"//\" below `read`"),
        (9, "blackboard", "grants `erase`"),
        (10, "mcpServers", "has a name that rules for tools cannot contain"),
        (10, "mcpServers", "type: http and its url:"),
        (10, "mcpServers", "an env that is not a map of texts"),
        (10, "mcpServers", "uses the variable ANTHROPIC_API_KEY, which files may not use"),
    ] {
        assert!(has(line, key, words), "{line} {key} {words}: {problems:#?}");
    }
    assert_eq!(problems.len(), 12, "{problems:#?}");
    folder.write("agents/curator.md", &agent("mcpServers: [board]\n"));
    assert!(folder.problems()[0].message.contains("by name alone"), "{:?}", folder.problems());
    folder.write("agents/curator.md", &agent("mcpServers: none.json\n"));
    assert!(folder.problems()[0].message.contains("none.json cannot be read"));
}

#[test]
fn three_errors_in_one_file_are_reported_at_once_with_their_lines() {
    let folder = Folder::new();
    folder.write("agents/curator.md", &agent("modle: qwen3:8b\nprovider: olama\nttl_days: soon\n"));
    let problems = folder.problems();
    let found: Vec<_> =
        problems.iter().map(|p| (p.line.unwrap(), p.key.as_deref().unwrap())).collect();
    assert_eq!(found, [(4, "modle"), (5, "provider"), (6, "ttl_days")]);
    assert_eq!(problems[0].fix, "model (the closest match)");
    assert_eq!(problems[1].fix, "provider: ollama (the closest match)");
    assert_eq!(problems[2].message, "is \"soon\"");
    assert!(problems.iter().all(|problem| problem.file.ends_with("agents/curator.md")));
    let said = Catalogue::load(&folder.config()).unwrap().problems().to_string();
    assert!(said.starts_with("the files of agents, skills and nodes have 3 problems"), "{said}");
    assert!(said.contains("curator.md:4: modle: unknown key"), "{said}");
}

#[test]
fn problems_of_all_files_are_reported_together() {
    let folder = Folder::new();
    folder.write("agents/curator.md", &agent("skills: [tonne]\nlead: true\n"));
    folder.write("agents/writer.md", "---\nname: wroter\nlead: true\n---\n\n");
    folder.write(
        "agents/zebra.md",
        "---\nname: zebra\ndescription: Second lead\nlead: true\n---\nStripes.",
    );
    folder.write("skills/tone/SKILL.md", "no front matter");
    let problems = folder.problems();
    let has = |file: &str, words: &str| {
        problems
            .iter()
            .any(|p| p.file.contains(file) && (p.message.contains(words) || p.fix.contains(words)))
    };
    assert!(has("tone/SKILL.md", "does not begin with front matter"), "{problems:#?}");
    assert!(has("curator.md", "tone (the closest match)"), "{problems:#?}");
    assert!(has("writer.md", "is `wroter`, but the file says `writer`"), "{problems:#?}");
    assert!(has("writer.md", "is missing"), "{problems:#?}");
    assert!(has("writer.md", "is empty"), "{problems:#?}");
    // The only lead without other problems stays the lead.
    assert!(has("curator.md", "`zebra` is the lead already"), "{problems:#?}");
    assert!(has("writer.md", "`zebra` is the lead already"), "{problems:#?}");
    assert_eq!(problems.len(), 7, "{problems:#?}");
}

#[test]
fn values_out_of_range_or_in_conflict_are_reported() {
    let folder = Folder::new();
    let wrong = "window_tokens: 100\nprepare_percent: 90\napply_percent: 80\ntemperature: 3\nfallback_model: x\nthink: hihg\n";
    folder.write("agents/curator.md", &agent(wrong));
    let problems = folder.problems();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_deref().unwrap()).collect();
    let expected = ["window_tokens", "prepare_percent", "temperature", "fallback_model", "think"];
    assert_eq!(keys, expected, "{problems:#?}");
}

#[test]
fn broken_yaml_is_one_problem_with_its_line() {
    let folder = Folder::new();
    folder.write(
        "agents/curator.md",
        "---\nname: curator\ndescription: Use it: for this\n---\nText.",
    );
    let problems = folder.problems();
    assert_eq!((problems.len(), problems[0].line), (1, Some(3)), "{problems:#?}");
    assert!(problems[0].fix.contains("in quotes"));
    folder.write("agents/curator.md", "---\nname: curator\nname: curator\n---\nText.");
    assert!(folder.problems()[0].message.contains("duplicated key"));
    std::fs::remove_file(folder.0.path().join("agents/curator.md")).unwrap();
    assert!(folder.problems()[0].message.contains("contains no agent"));
}

#[test]
fn changed_files_are_reloaded_and_a_broken_one_disables_only_its_agent() {
    let folder = Folder::new();
    folder.write("agents/curator.md", &agent("lead: true\n"));
    folder.write("agents/second.md", &agent("").replace("curator", "second"));
    let library = Library::open(&folder.config()).unwrap();
    let (first, before) = (library.current(), "You keep things.");
    assert!(library.current().problems().is_empty());
    let lead = |catalogue: &Catalogue| catalogue.prompt_hash(catalogue.lead().unwrap(), "main");

    folder.write("agents/second.md", &agent("modle: x\n").replace("curator", "second"));
    let broken = library.current();
    let refused = broken.agent("second").unwrap_err().to_string();
    for words in ["agent `second` is refused", "second.md:4: modle", "dalsegno agent check"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert_eq!(broken.agent("curator").unwrap().prompt, before);
    assert_eq!(library.current().problems().0.len(), 1);
    // A running turn keeps its agent, and a file saved in two steps rebuilds no session of the lead.
    assert_eq!(broken.agent_of_running_turn("second").unwrap().prompt, before);
    assert_eq!(lead(&broken), lead(&first));

    folder.write(
        "agents/second.md",
        &agent("").replace("curator", "second").replace("keep", "keep all"),
    );
    assert!(library.current().agent("second").unwrap().prompt.contains("keep all"));
    assert!(library.current().problems().is_empty());
    folder.write("agents/third.md", &agent("").replace("curator", "third"));
    assert!(library.current().agent("third").is_ok());

    // Without its folder, the service keeps the agents that it has read.
    for name in ["curator", "second", "third"] {
        std::fs::remove_file(folder.0.path().join(format!("agents/{name}.md"))).unwrap();
    }
    assert_eq!(library.current().agents().count(), 3);
    assert!(library.current().problems().to_string().contains("contains no agent"));
}

#[test]
fn a_broken_file_refuses_only_the_tasks_that_need_it() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.0.path().join("nodes")).unwrap();
    folder.write("nodes/bad.md", "no front matter");
    folder.write("nodes/good.md", "---\nname: good\ndescription: Fine\n---\nDo it.\n");
    folder.write("agents/curator.md", &agent(""));
    folder.write("agents/curator_2.md", &agent("modle: x\n").replace("curator", "curator_2"));
    folder.write("agents/toned.md", &agent("skills: [tone]\n").replace("curator", "toned"));
    folder.write("skills/tone/SKILL.md", "no front matter");
    let config = Config { nodes_folder: folder.0.path().join("nodes"), ..folder.config() };
    let catalogue = Catalogue::load(&config).unwrap();
    assert_eq!(catalogue.agents().map(|agent| &*agent.name).collect::<Vec<_>>(), ["curator"]);
    assert_eq!(catalogue.broken_agents().collect::<Vec<_>>(), ["curator_2", "toned"]);
    let skill = catalogue.agent("toned").unwrap_err().to_string();
    assert!(
        skill.contains("toned.md:4: skills: the file of the skill `tone` has problems"),
        "{skill}"
    );
    // Its name does not become instance 2 of another agent, whose instance is written in the unambiguous form.
    let copy = catalogue.resolve_addressee("curator_2", "main").unwrap_err().to_string();
    assert!(copy.contains("agent `curator_2` is refused"), "{copy}");
    assert_eq!(catalogue.format_name("curator", "2"), "curator/2");
    assert_eq!(catalogue.resolve_addressee("curator/2", "main").unwrap().instance, "2");
    assert!(catalogue.node("good").is_ok());
    assert!(catalogue.node("bad").unwrap_err().to_string().contains("node `bad` is refused"));
    assert!(catalogue.check_name("toned").is_ok() && catalogue.check_name("tonde").is_err());
}

/// A file is in the place of the folder: falling back to the built-in agents would be wrong.
#[test]
fn an_unreadable_agent_folder_differs_from_a_missing_one() {
    let folder = Folder::new();
    let config =
        files(folder.0.path().join("skills/tone/SKILL.md"), folder.0.path().join("skills"));
    let said = Catalogue::load(&config).unwrap_err().to_string();
    assert!(said.contains("cannot be read"), "{said}");
}

fn named(names: &[&str]) -> Catalogue {
    let folder = Folder::new();
    for name in names {
        let file = agent("").replace("name: curator", &format!("name: {name}"));
        folder.write(&format!("agents/{name}.md"), &file);
    }
    Catalogue::load(&folder.config()).unwrap()
}

#[test]
fn a_name_with_a_number_is_an_instance_unless_a_file_has_that_name() {
    let catalogue = named(&["curator", "curator_3", "art_2"]);
    let means = |written: &str, instance: &str| {
        let addressed =
            catalogue.resolve_addressee(written, instance).map_err(|error| error.to_string())?;
        Ok::<_, String>((addressed.agent.name.clone(), addressed.instance.to_owned()))
    };
    let of = |agent: &str, instance: &str| Ok((agent.to_owned(), instance.to_owned()));
    assert_eq!(means("curator", "main"), of("curator", "main"));
    assert_eq!(means("curator_2", "main"), of("curator", "2"));
    assert_eq!(means("curator_2", "2"), of("curator", "2"));
    assert_eq!(means("curator", "2"), of("curator", "2"));
    assert_eq!(means("curator_3", "main"), of("curator_3", "main"));
    assert_eq!(means("curator_3_4", "main"), of("curator_3", "4"));
    assert_eq!(means("curator/3", "main"), of("curator", "3"));
    assert_eq!(means("curator/eu", "main"), of("curator", "eu"));
    assert_eq!(means("art_2", "eu"), of("art_2", "eu"));
    assert!(means("curator_2", "5").unwrap_err().contains("give only one of them"));
    assert!(means("curator/", "main").unwrap_err().contains("curator/2"));
    for unknown in ["curator_02", "curator_two", "curater_2", "art", ""] {
        assert!(means(unknown, "main").unwrap_err().contains(&format!("`{unknown}`")), "{unknown}");
    }
}

proptest::proptest! {
    /// With any files, a written name is read back as the same instance, and two instances are never written alike.
    #[test]
    fn an_agent_file_round_trips(
        files in proptest::collection::btree_set("[ab](_[1-3])?(_[1-3])?", 1..6),
        instances in proptest::collection::btree_set("main|[1-9]|[1-3]_[1-3]|0[1-2]|[ab]", 1..6),
    ) {
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        let catalogue = named(&names);
        let mut seen = std::collections::BTreeSet::new();
        for (agent, instance) in names.iter().flat_map(|a| instances.iter().map(move |i| (*a, i.as_str()))) {
            let written = catalogue.format_name(agent, instance);
            let addressed = catalogue.resolve_addressee(&written, "main").unwrap();
            proptest::prop_assert_eq!((addressed.agent.name.as_str(), addressed.instance), (agent, instance));
            proptest::prop_assert!(seen.insert(written));
        }
    }
}

#[test]
fn a_built_in_agent_hidden_by_an_own_folder_is_named() {
    let folder = Folder::new();
    folder.write("agents/curator.md", &agent(""));
    let catalogue = Catalogue::load(&folder.config()).unwrap();
    let words = catalogue.agent("planner").unwrap_err().to_string();
    assert!(words.contains("it is built in, but the folder of agents"), "{words}");
    assert!(words.ends_with("known agents are curator"), "{words}");
    let words = catalogue.agent("painter").unwrap_err().to_string();
    assert!(!words.contains("is built in"), "{words}");
}

/// Reading a FIFO would block until it has a writer, and reading a device might never end.
#[test]
fn only_regular_files_up_to_a_megabyte_are_read() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new();
    let at = |path: &str| folder.0.path().join(path);
    for path in ["nodes", "flows", "skills/fifo", "skills/long"] {
        std::fs::create_dir_all(at(path)).unwrap();
    }
    folder.write("agents/curator.md", &agent(""));
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    let files = |name: &str| {
        let skill = format!("skills/{name}/SKILL.md");
        ["agents", "nodes", "flows"]
            .map(|kind| format!("{kind}/{name}.md"))
            .into_iter()
            .chain([skill])
    };
    for file in files("fifo") {
        rustix::fs::mknodat(rustix::fs::CWD, at(&file), kind, mode, 0).unwrap();
    }
    for file in files("long") {
        folder.write(&file, &"x".repeat(1_000_001));
    }
    symlink("/dev/null", at("agents/device.md")).unwrap();
    let config = Config { nodes_folder: at("nodes"), ..folder.config() };
    let flows = flows::Config { folder: at("flows") };
    let (tell, hear) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let catalogue = Catalogue::load(&config).unwrap();
        let templates = flows::Templates::load(&flows, &catalogue).unwrap();
        tell.send((catalogue.problems().0, templates.problems().0, catalogue)).unwrap();
    });
    let read = hear.recv_timeout(crate::app::SOON);
    let (mut problems, of_templates, catalogue) = read.expect("a hanging file blocks its reader");
    problems.extend(of_templates);
    let message = |file: &str| {
        let path = at(file).display().to_string();
        let of_file: Vec<_> = problems.iter().filter(|problem| problem.file == path).collect();
        assert_eq!(of_file.len(), 1, "{file}: {problems:?}");
        of_file[0].message.clone()
    };
    for file in files("fifo").chain(["agents/device.md".to_owned()]) {
        assert_eq!(message(&file), "cannot be read: it is not a regular file", "{file}");
    }
    for file in files("long") {
        assert_eq!(message(&file), "is too long: at most 1000000 bytes are allowed", "{file}");
    }
    assert!(catalogue.agent("curator").is_ok());
}

#[cfg(unix)]
#[test]
fn no_required_reading_of_a_node_leaves_the_node_folder() {
    let folder = Folder::new();
    folder.write("agents/curator.md", &agent(""));
    let nodes = folder.0.path().join("nodes");
    std::fs::create_dir_all(nodes.join("texts")).unwrap();
    folder.write("secret.txt", "The secret.");
    folder.write("nodes/texts/style.txt", "Short sentences.");
    let link = |to: &std::path::Path, from: &str| {
        std::os::unix::fs::symlink(to, nodes.join(from)).unwrap();
    };
    link(&folder.0.path().join("secret.txt"), "link.txt");
    link(folder.0.path(), "up");
    link(std::path::Path::new("texts/style.txt"), "inner.txt");
    let config = Config { nodes_folder: nodes.clone(), ..folder.config() };
    let load = |reading: &str| {
        let node =
            format!("---\nname: draft\ndescription: d\nreadings: [\"{reading}\"]\n---\nWrite.\n");
        folder.write("nodes/draft.md", &node);
        Catalogue::load(&config)
    };
    let absolute = folder.0.path().join("secret.txt").display().to_string();
    for reading in
        ["../secret.txt", "texts/../../secret.txt", "link.txt", "up/secret.txt", &absolute]
    {
        let loaded = load(reading).unwrap();
        assert!(loaded.node("draft").is_err(), "{reading}");
        let problems = loaded.problems().0;
        assert!(problems[0].message.contains("leads out of"), "{reading}: {problems:?}");
        assert_eq!(problems[0].key.as_deref(), Some("readings"));
    }
    for reading in ["texts/style.txt", "inner.txt", "texts/../texts/style.txt"] {
        let node = load(reading).unwrap().node("draft").unwrap().entry.clone();
        assert!(node.contains("Short sentences."), "{reading}: {node}");
    }
}
