//! Advice on installing Postgres on this kind of system.

use std::fs;

pub(super) fn how_to_install() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let command = match std::env::consts::OS {
        "macos" => "brew install postgresql@17",
        _ => for_release(&release),
    };
    format!("install Postgres ({command})")
}

fn for_release(release: &str) -> &'static str {
    let families = release
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"))
        .flat_map(|(_, value)| value.trim_matches('"').split_whitespace());
    families.into_iter().find_map(for_family).unwrap_or("https://www.postgresql.org/download")
}

fn for_family(family: &str) -> Option<&'static str> {
    Some(match family {
        "debian" | "ubuntu" => "apt-get install postgresql",
        "fedora" | "rhel" | "centos" | "amzn" => "dnf install postgresql-server",
        "alpine" => "apk add postgresql",
        "arch" => "pacman -S postgresql",
        "suse" | "opensuse" => "zypper install postgresql-server",
        "nixos" => "nix-shell -p postgresql",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_distributions_get_the_advice_of_their_family() {
        assert_eq!(
            for_release("NAME=x\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"),
            "apt-get install postgresql"
        );
        assert_eq!(
            for_release("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"),
            "dnf install postgresql-server"
        );
        assert!(for_release("").starts_with("https://"));
    }
}
