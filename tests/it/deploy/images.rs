//! Contents of the container images.

use super::yaml::{root, text};
use crate::providers::claude::cli::VERSION;

#[test]
fn the_image_has_the_tested_version_of_the_cli() {
    assert!(text("Dockerfile").contains(&format!("ARG CLAUDE_VERSION={VERSION}\n")));
}

#[test]
fn the_image_is_built_with_the_declared_version_of_rust() {
    let manifest = text("Cargo.toml");
    let line = manifest.lines().find(|line| line.starts_with("rust-version = ")).unwrap();
    let version = line.split('"').nth(1).unwrap();
    assert!(text("Dockerfile").contains(&format!("ARG RUST_VERSION={version}\n")));
}

#[test]
fn the_image_is_built_with_the_dist_profile() {
    let manifest = text("Cargo.toml");
    let (_, dist) = manifest.split_once("\n[profile.dist]\n").unwrap();
    assert!(dist.split("\n[").next().unwrap().contains("\nlto = \"thin\"\n"), "{dist}");
    for build in ["Dockerfile", "scripts/image-steps"] {
        let build = text(build);
        assert!(build.contains(" --profile dist "), "{build}");
        assert!(build.contains("target/dist/") && !build.contains("target/release"), "{build}");
    }
}

/// Cargo requires all targets and crates of the manifest, including those that are not built.
#[test]
fn the_build_context_has_every_target_and_crate() {
    let ignore = text(".dockerignore");
    let kept: Vec<&str> = ignore.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let manifest = text("Cargo.toml");
    let paths = manifest.split("path = \"").skip(1).filter_map(|rest| rest.split('"').next());
    for path in paths.filter(|path| *path != ".") {
        assert!(
            kept.iter().any(|kept| path.starts_with(kept)),
            "{path} is ignored by the build context"
        );
    }
    for kept in kept {
        assert!(root().join(kept).exists(), "{kept} is missing");
    }
}
