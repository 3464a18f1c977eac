//! The mapping of the feed's event kinds to those of a role's feed.

#[test]
fn every_feed_kind_is_listed_in_the_documents() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(root.join("src/domain/feed/mod.rs")).unwrap();
    let map = std::fs::read_to_string(root.join("docs/how-to/control-agents.md")).unwrap();
    let kinds: Vec<&str> =
        source.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(kinds.len() > 20, "{kinds:?}");
    let known = dalsegno::domain::feed::KINDS;
    let unlisted: Vec<_> = kinds.iter().filter(|kind| !known.contains(kind)).collect();
    assert!(unlisted.is_empty(), "not in feed::KINDS: {unlisted:?}");
    let missing: Vec<_> = known.iter().filter(|kind| !map.contains(&format!("`{kind}`"))).collect();
    assert!(missing.is_empty(), "not in docs/how-to/control-agents.md: {missing:?}");
}
