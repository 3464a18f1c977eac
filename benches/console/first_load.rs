//! Bytes of the first load of each page: the page with all files that it needs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{browser::Browser, fixture::Fixture, pages::PageKind};

pub async fn measure(ground: &Fixture, page: &PageKind) -> anyhow::Result<Value> {
    let mut browser = Browser::open(ground.address).await?;
    let Some(path) = page.paths.first() else { anyhow::bail!("{} has no address", page.name) };
    let response = browser.get(path).await?;
    let mut files = BTreeMap::new();
    let mut wanted = references(&response.body, "/assets/", "");
    while let Some(file) = wanted.pop() {
        if files.contains_key(&file) {
            continue;
        }
        let loaded = browser.get(&file).await?;
        // Modules name each other relative to their folder.
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text = browser.get_plain(&file).await?.body;
        wanted.extend(references(&text, "./", folder));
        files.insert(file, loaded.bytes);
    }
    let of_files: usize = files.values().sum();
    Ok(json!({
        "scenario": "first_load", "page": page.name, "page_bytes": response.bytes, "files": files.len(), "file_bytes": of_files,
        "bytes": response.bytes + of_files,
    }))
}

/// Finds quoted addresses that begin so, without their fragments. `folder` takes the place of the dot of `./`.
fn references(text: &str, begin: &str, folder: &str) -> Vec<String> {
    let quoted = format!("\"{begin}");
    let quoted = text.match_indices(&quoted).map(|(at, _)| &text[at + 1..]);
    let ends = |rest: &&str| rest.find(['"', '#']).is_some();
    quoted
        .filter(ends)
        .filter_map(|rest| rest.split(['"', '#']).next())
        .map(|found| match found.strip_prefix('.') {
            Some(rest) => format!("{folder}{rest}"),
            None => found.to_owned(),
        })
        .collect()
}
