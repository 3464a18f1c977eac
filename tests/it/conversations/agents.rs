//! Agents and skills: read, checked, read again.

use std::path::Path;

use dalsegno::domain::{
    agents::{Catalogue, Config, Library, Problem, Provider, Think},
    sessions::resolve::Mode,
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
        Catalogue::load(&self.config()).unwrap_err().0
    }
}

fn agent(extra: &str) -> String {
    format!("---\nname: curator\ndescription: Keeps things\n{extra}---\nYou keep things.\n")
}

#[test]
fn what_comes_with_the_service_is_sound_in_both_places() {
    let built_in = Catalogue::load(&shipped()).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
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
fn every_key_is_read() {
    let folder = Folder::new();
    let all = "provider: ollama\nmodel: qwen3:8b\nfallback_provider: claude\nfallback_model: sonnet\nsummariser: small\n\
               window_tokens: 16384\nreserve_tokens: 2048\nprepare_percent: 70\napply_percent: 80\nrotate_at_tokens: 120000\n\
               ttl_days: 3\nlead: true\nsession: fresh\ntools: Read, Grep\nskills: [tone]\ntemperature: 0.5\ntop_p: 1\nseed: 7\n\
               think: off\ntask_budget: 0.25\ntask_budget_tokens: 5000\n";
    folder.write("agents/curator.md", &agent(all));
    let catalogue = Catalogue::load(&folder.config()).unwrap();
    let agent = catalogue.agent("curator").unwrap();
    assert_eq!(
        (agent.provider, agent.model.as_deref()),
        (Some(Provider::Ollama), Some("qwen3:8b"))
    );
    let fallback = agent.fallback.as_ref().unwrap();
    assert_eq!((fallback.provider, fallback.model.as_deref()), (Provider::Claude, Some("sonnet")));
    assert_eq!((agent.window_tokens, agent.rotate_at_tokens), (Some(16384), Some(120_000)));
    assert_eq!(
        (agent.prepare_percent, agent.apply_percent, agent.ttl_days),
        (Some(70), Some(80), Some(3))
    );
    assert_eq!((agent.lead, agent.session), (true, Mode::Fresh));
    assert_eq!(agent.tools, ["Read", "Grep"]);
    assert_eq!((agent.options.temperature, agent.options.top_p), (Some(0.5), Some(1.0)));
    assert_eq!((agent.options.seed, agent.options.think), (Some(7), Some(Think::Off)));
    assert_eq!((agent.budget.micros, agent.budget.tokens), (Some(250_000), Some(5000)));
    assert_eq!(agent.prompt, "You keep things.");
}

#[test]
fn three_errors_in_one_file_are_reported_at_once_with_their_lines() {
    let folder = Folder::new();
    folder.write("agents/curator.md", &agent("modle: qwen3:8b\nprovider: olama\nttl_days: soon\n"));
    let problems = folder.problems();
    let found: Vec<_> =
        problems.iter().map(|p| (p.line.unwrap(), p.key.as_deref().unwrap())).collect();
    assert_eq!(found, [(4, "modle"), (5, "provider"), (6, "ttl_days")]);
    assert_eq!(problems[0].fix, "model (did you mean that one?)");
    assert_eq!(problems[1].fix, "provider: ollama (did you mean that one?)");
    assert_eq!(problems[2].message, "is \"soon\"");
    assert!(problems.iter().all(|problem| problem.file.ends_with("agents/curator.md")));
    let said = Catalogue::load(&folder.config()).unwrap_err().to_string();
    assert!(said.starts_with("the files of agents and skills have 3 problems"), "{said}");
    assert!(said.contains("curator.md:4: modle: there is no such key"), "{said}");
}

#[test]
fn problems_of_all_files_come_together() {
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
    assert!(has("curator.md", "tone (did you mean that one?)"), "{problems:#?}");
    assert!(has("writer.md", "is `wroter`, but the file says `writer`"), "{problems:#?}");
    assert!(has("writer.md", "is missing"), "{problems:#?}");
    assert!(has("writer.md", "is empty"), "{problems:#?}");
    assert!(has("zebra.md", "`curator` is the lead already"), "{problems:#?}");
    assert_eq!(problems.len(), 6, "{problems:#?}");
}

#[test]
fn values_out_of_range_and_against_each_other_are_found() {
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
    assert!(folder.problems()[0].message.contains("holds no agent"));
}

#[test]
fn changed_files_are_read_again_and_broken_ones_are_not_used() {
    let folder = Folder::new();
    folder.write("agents/curator.md", &agent(""));
    let library = Library::open(&folder.config()).unwrap();
    let first = library.current().agent("curator").unwrap().prompt_hash.clone();
    assert_eq!(library.problems(), None);

    folder.write("agents/curator.md", &agent("modle: x\n"));
    assert_eq!(library.current().agent("curator").unwrap().prompt_hash, first);
    assert_eq!(library.problems().unwrap().0.len(), 1);

    folder.write("agents/curator.md", &agent("").replace("keep things", "keep everything"));
    assert_ne!(library.current().agent("curator").unwrap().prompt_hash, first);
    assert_eq!(library.problems(), None);
    folder.write("agents/second.md", &agent("").replace("curator", "second"));
    assert!(library.current().agent("second").is_ok());
}
