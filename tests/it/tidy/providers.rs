//! Providers are named in their own modules only: other code asks for their abilities.

use super::{lines, sources};

/// Files outside of `src/providers/` that may name a provider, and why.
const PROVIDER_NAMES: &[(&str, &str)] = &[
    ("src/cli/agent/mod.rs", "repeats why the CLI refuses a permission mode as root"),
    ("src/cli/demo/providers/", "the demo on all providers has a scripted server for each"),
    ("src/cli/demo/settings.rs", "the demo runs on the simulation"),
    ("src/cli/doctor.rs", "starts the guard of the CLI's processes"),
    ("src/cli/mod.rs", "intercepts the guard of the CLI's processes"),
    ("src/config/mod.rs", "has a section for each built-in provider"),
    ("src/doctor/", "checks programs and servers of each provider"),
    ("src/domain/agents/formats.rs", "examples in the reference of agent files"),
    ("src/jobs/folder_removals.rs", "the error of a folder of the CLI that cannot be removed"),
    ("src/jobs/make_embeddings.rs", "embeddings come from Ollama"),
    ("src/jobs/mod.rs", "re-exports the guard of the CLI's processes"),
    ("src/jobs/run_turn/call/grants.rs", "tells that the disk of the CLI's folder is full"),
    ("src/jobs/services.rs", "builds Claude with the secrets of the environment"),
    ("src/tools/question_embeddings.rs", "embeddings come from Ollama"),
    ("src/tools/settings.rs", "embeddings come from Ollama"),
];

/// Words that name a provider in code.
const NAMES: [&str; 10] = [
    "anthropic::",
    "claude::",
    "ollama::",
    "openai::",
    "sim::",
    "\"anthropic\"",
    "\"claude\"",
    "\"ollama\"",
    "\"openai\"",
    "\"sim\"",
];

#[test]
fn providers_are_named_only_in_their_own_modules() {
    let mut unused: Vec<&str> = PROVIDER_NAMES.iter().map(|(path, _)| *path).collect();
    for (path, text) in sources("rs") {
        let path = path.display().to_string();
        if path.starts_with("src/providers/") {
            continue;
        }
        let code: String = text
            .lines()
            .take(lines(&text))
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let is_word = |at: usize| {
            !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
        };
        let Some(name) =
            NAMES.iter().find(|name| code.match_indices(*name).any(|(at, _)| is_word(at)))
        else {
            continue;
        };
        let allowed = PROVIDER_NAMES.iter().find(|(known, _)| path.starts_with(known));
        let Some((known, _)) = allowed else { panic!("{path} names a provider: {name}") };
        unused.retain(|path| path != known);
    }
    assert!(unused.is_empty(), "these files name no provider any more: {unused:?}");
}
