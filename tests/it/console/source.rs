//! The operations that the source of the console runs, and the routes that it serves.

use std::{collections::BTreeSet, fs, path::Path};

use dalsegno::operations;

/// The text of each file of the console, without its unit tests.
fn sources() -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                all.push(text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned());
            }
        }
    }
    all
}

/// The operations that forms of the console run by their id.
pub fn of_forms() -> BTreeSet<String> {
    let name = |rest: &str| snake_case(rest.split('>').next().unwrap());
    let of =
        |text: &String| -> Vec<String> { text.split("Action::of::<").skip(1).map(name).collect() };
    sources().iter().flat_map(of).collect()
}

/// The operations that pages build in order to run them. An operation that no page ran would be dead code, which the compiler refuses.
pub fn of_pages() -> BTreeSet<&'static str> {
    let sources = sources();
    let ids = operations::ALL.iter().map(|entry| entry.spec.id);
    ids.filter(|id| sources.iter().any(|text| builds(text, &camel_case(id)))).collect()
}

/// Returns true if a text builds a value of the type: `Name {`, not as a part of another name.
fn builds(text: &str, name: &str) -> bool {
    text.match_indices(&format!("{name} {{")).any(|(at, _)| {
        let before = &text[..at];
        let is_other = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        !is_other
            && !["struct ", "enum ", "impl ", "for ", "let "].iter().any(|it| before.ends_with(it))
    })
}

/// The routes of the console's pages, texts and files.
pub fn get_routes() -> Vec<&'static str> {
    let source = include_str!("../../../src/console/mod.rs");
    let routes = source.split(".route(").skip(1).filter_map(|rest| {
        let (path, handlers) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        handlers.trim_start_matches([',', ' ', '\n']).starts_with("get(").then_some(path)
    });
    routes.collect()
}

/// Returns the route that serves a path, with or without a query: the one with the fewest names in it.
pub fn route_of(target: &str) -> Option<&'static str> {
    let path: Vec<_> = target.split(['?', '#']).next().unwrap_or_default().split('/').collect();
    let fits = |route: &&str| {
        let parts: Vec<_> = route.split('/').collect();
        let equal = |(part, given): (&&str, &&str)| part.starts_with('{') || part == given;
        parts.len() == path.len() && parts.iter().zip(&path).all(equal)
    };
    get_routes().into_iter().filter(fits).min_by_key(|route| route.matches('{').count())
}

pub fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

fn camel_case(id: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    id.split('_').map(word).collect()
}

#[test]
fn a_path_belongs_to_the_route_with_the_fewest_names() {
    assert_eq!(route_of("/tasks/new?agent=planner"), Some("/tasks/new"));
    assert_eq!(route_of("/tasks/7"), Some("/tasks/{id}"));
    // A route over several lines, and one that takes forms only.
    assert_eq!(route_of("/campaigns/7/tasks/new"), Some("/campaigns/{id}/tasks/new"));
    assert_eq!(
        (route_of("/do/cancel_task"), route_of("/tasks/7/files")),
        (None, Some("/tasks/{id}/{text}"))
    );
}

#[test]
fn a_value_is_told_from_a_declaration_and_from_a_part_of_a_name() {
    assert!(builds("page.caller.run(ListTasks { id })", "ListTasks"));
    for text in ["struct ListTasks {", "run(WatchListTasks {", "ListTasks::SPEC", "use ListTasks;"]
    {
        assert!(!builds(text, "ListTasks"), "{text}");
    }
    assert_eq!(
        (snake_case("ListTasks"), camel_case("list_tasks")),
        ("list_tasks".into(), "ListTasks".into())
    );
}
