//! The graph of imports: the files that each file needs, through re-exports, and the cycles among them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::source::Source;

/// Node → the nodes that it needs.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// All modules of the service and of its crates. A crate is a module of its name.
pub struct Modules {
    /// Modules by path: `domain::tasks`, `queue::job` of the crate `dalsegno-queue`; the root is the empty text.
    by_path: BTreeMap<String, (PathBuf, Source)>,
    /// The roots of the crates, including the service's.
    roots: BTreeSet<String>,
}

enum Target {
    Module(String),
    /// An item that this module's file defines.
    Item(String),
}

/// Limit for chains of re-exports, which are short; a longer one is a cycle.
const MAX_REEXPORTS: usize = 12;

impl Modules {
    /// Parses the files of `src`, with paths relative to it, and those of crates, as `queue/lib.rs`.
    pub fn parse<'a>(files: impl IntoIterator<Item = (&'a Path, &'a str)>) -> Self {
        let files = files.into_iter().filter(|(path, _)| !path.ends_with("main.rs"));
        let by_path: BTreeMap<_, _> = files
            .map(|(path, text)| (module_path(path), (path.to_owned(), Source::parse(text))))
            .collect();
        let roots = by_path.iter().filter(|(_, (file, _))| file.ends_with("lib.rs"));
        let roots = roots.map(|(module, _)| module.clone()).collect();
        let mut modules = Self { by_path, roots };
        modules.drop_unlisted();
        modules
    }

    /// Removes files that only unit tests include, as `#[cfg(test)] mod tests;`: no remaining module lists them.
    fn drop_unlisted(&mut self) {
        let listed: BTreeSet<String> = self
            .by_path
            .iter()
            .flat_map(|(path, (_, source))| source.children.iter().map(|it| join(path, it)))
            .chain(self.roots.iter().cloned())
            .collect();
        self.by_path.retain(|path, _| listed.contains(path));
    }

    /// Returns the files that each file needs.
    pub fn files(&self) -> Graph {
        let mut graph = Graph::new();
        for (module, (path, source)) in &self.by_path {
            let needs = graph.entry(path.display().to_string()).or_default();
            let imported = source.imports.iter().filter(|it| !it.is_public).map(|it| &it.path);
            for named in imported.chain(&source.paths) {
                if let Some(Target::Item(other)) = self.resolve(module, named, 0) {
                    let other = self.by_path[&other].0.display().to_string();
                    if other != path.display().to_string() {
                        needs.insert(other);
                    }
                }
            }
        }
        graph
    }

    /// Resolves a path in a module, if it is within the crate.
    fn resolve(&self, module: &str, path: &[String], depth: usize) -> Option<Target> {
        if depth > MAX_REEXPORTS {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.follow(self.root_of(module), rest, depth),
            "dalsegno" => self.follow("", rest, depth),
            "self" => self.follow(module, rest, depth),
            "super" => self.resolve_above(module, rest, depth),
            name => {
                if let Some(root) = name.strip_prefix("dalsegno_")
                    && self.roots.contains(root)
                {
                    return self.follow(root, rest, depth);
                }
                let source = &self.by_path.get(module)?.1;
                let child = join(module, name);
                if self.by_path.contains_key(&child) {
                    return self.follow(&child, rest, depth);
                }
                let import = source.imports.iter().find(|it| it.name == name)?;
                // `use name;` would resolve to itself.
                if import.path.first() == Some(first) {
                    return None;
                }
                match self.resolve(module, &import.path, depth + 1)? {
                    Target::Module(found) => self.follow(&found, rest, depth),
                    item => Some(item),
                }
            }
        }
    }

    /// Returns the root of the crate that contains a module.
    fn root_of<'a>(&self, module: &'a str) -> &'a str {
        let first = module.split("::").next().unwrap_or_default();
        if self.roots.contains(first) { first } else { "" }
    }

    fn resolve_above(&self, module: &str, rest: &[String], depth: usize) -> Option<Target> {
        let above = module.rsplit_once("::").map_or("", |(above, _)| above);
        match rest.split_first() {
            Some((first, rest)) if first == "super" => self.resolve_above(above, rest, depth),
            _ => self.follow(above, rest, depth),
        }
    }

    fn follow(&self, module: &str, path: &[String], depth: usize) -> Option<Target> {
        let Some((name, rest)) = path.split_first() else {
            return Some(Target::Module(module.to_owned()));
        };
        let child = join(module, name);
        if self.by_path.contains_key(&child) {
            return self.follow(&child, rest, depth);
        }
        let source = &self.by_path.get(module)?.1;
        if let Some(import) = source.imports.iter().find(|it| it.name == *name) {
            return match self.resolve(module, &import.path, depth + 1) {
                Some(Target::Module(found)) => self.follow(&found, rest, depth + 1),
                found => found,
            };
        }
        if !source.definitions.contains(name) {
            let globs = source.imports.iter().filter(|it| it.name == "*");
            for glob in globs {
                if let Some(Target::Module(found)) = self.resolve(module, &glob.path, depth + 1)
                    && let Some(Target::Item(item)) = self.follow(&found, path, depth + 1)
                    && self.by_path[&item].1.definitions.contains(name)
                {
                    return Some(Target::Item(item));
                }
            }
        }
        Some(Target::Item(module.to_owned()))
    }
}

/// Returns `domain::tasks` for `domain/tasks/mod.rs`, `queue` for `queue/lib.rs`, and an empty text for `lib.rs`.
fn module_path(file: &Path) -> String {
    let path = file.with_extension("");
    let is_folder = path.ends_with("mod") || path.ends_with("lib");
    let path = if is_folder { path.parent().unwrap_or(&path) } else { &path };
    path.display().to_string().replace('/', "::")
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// Merges the files of the graph by `group`; files without a group are left out.
pub fn grouped(graph: &Graph, group: impl Fn(&str) -> Option<String>) -> Graph {
    let mut groups = Graph::new();
    for (from, needs) in graph {
        let Some(from) = group(from) else { continue };
        let entry = groups.entry(from.clone()).or_default();
        entry.extend(needs.iter().filter_map(|to| group(to)).filter(|to| *to != from));
    }
    groups
}

/// Returns sets of at least two nodes that all reach each other, largest first.
pub fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|node| (node.as_str(), reached_from(graph, node))).collect();
    let mut taken = BTreeSet::new();
    let mut cycles = Vec::new();
    for (node, reaches) in &reached {
        if taken.contains(node) {
            continue;
        }
        let back = |other: &&&str| reached.get(**other).is_some_and(|it| it.contains(node));
        let cycle: Vec<&str> = reaches.iter().filter(back).copied().collect();
        taken.extend(cycle.iter().copied());
        if cycle.len() > 1 {
            cycles.push(cycle.into_iter().map(str::to_owned).collect::<Vec<_>>());
        }
    }
    cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    cycles
}

fn reached_from<'a>(graph: &'a Graph, node: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        for next in graph.get(node).into_iter().flatten() {
            if reached.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    reached
}

/// Lists the edges within a set of nodes, one per line, for the person who has to remove one.
pub fn edges_within(graph: &Graph, nodes: &[String]) -> String {
    let within = |to: &&String| nodes.contains(*to);
    let lines = nodes.iter().filter_map(|from| {
        let needs: Vec<_> = graph.get(from)?.iter().filter(within).map(String::as_str).collect();
        Some(format!("  {from} → {}", needs.join(", ")))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn sample(files: &[(&str, &str)]) -> Graph {
    Modules::parse(files.iter().map(|(path, text)| (Path::new(*path), *text))).files()
}

#[test]
fn a_reexported_name_leads_to_the_file_that_defines_it() {
    let graph = sample(&[
        ("lib.rs", "pub mod a; pub mod b;"),
        ("a/mod.rs", "mod inner; pub use self::inner::Thing;"),
        ("a/inner.rs", "pub struct Thing;"),
        ("b.rs", "use crate::a; fn f(_: a::Thing) {}"),
    ]);
    assert_eq!(graph["b.rs"], BTreeSet::from(["a/inner.rs".to_owned()]));
    assert!(graph["a/mod.rs"].is_empty() && graph["lib.rs"].is_empty());
}

#[test]
fn a_crate_is_a_module_of_its_name() {
    let graph = sample(&[
        ("lib.rs", "mod a; pub use dalsegno_queue as jobs;"),
        ("a.rs", "use crate::jobs::Job;"),
        ("queue/lib.rs", "mod job; mod run; pub use job::Job;"),
        ("queue/job.rs", "pub struct Job;"),
        ("queue/run.rs", "fn f(_: crate::Job) {}"),
    ]);
    let job = BTreeSet::from(["queue/job.rs".to_owned()]);
    assert_eq!((&graph["a.rs"], &graph["queue/run.rs"]), (&job, &job));
}

#[test]
fn a_cycle_is_found_through_a_third_file() {
    let graph = sample(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use super::c::C; pub struct B;"),
        ("c.rs", "pub struct C; fn f(_: crate::a::A) {}"),
        ("d.rs", "use crate::a::A;"),
    ]);
    assert_eq!(cycles(&graph), [["a.rs", "b.rs", "c.rs"]]);
}
