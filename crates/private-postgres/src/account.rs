//! The account that the server runs as when the service itself is root.
//!
//! Postgres refuses to run as root. For an existing cluster it is the owner of its folder; for a new one it is
//! `run_as`, else `postgres` or `nobody`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Error;

/// Accounts tried in this order when `run_as` is not set.
const USUAL_ACCOUNTS: [&str; 3] = ["postgres", "_postgres", "nobody"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

/// Chooses the server's account. `None`: the service is not root, and the server runs as the same user.
///
/// `cluster` is the data folder of an existing cluster, if there is one.
pub(super) fn choose(
    run_as: Option<&str>,
    cluster: Option<&Path>,
) -> Result<Option<Account>, Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = read_users()?;
    if let Some(owner) = cluster.and_then(|cluster| owner_of(cluster, &users)) {
        return Ok(Some(owner));
    }
    pick(run_as, &users).map(Some)
}

/// Returns true if the account may enter every folder on the way to `folder` and `folder` itself.
///
/// It looks at the permission bits only; where access lists say otherwise, the server's own error will tell.
pub(super) fn can_reach(account: &Account, folder: &Path) -> bool {
    folder.ancestors().all(|step| match fs::metadata(step) {
        Ok(found) => {
            let entry_bit = if found.uid() == account.uid {
                0o100
            } else if found.gid() == account.gid {
                0o010
            } else {
                0o001
            };
            found.mode() & entry_bit != 0
        }
        Err(_) => false,
    })
}

fn read_users() -> Result<Vec<Account>, Error> {
    let path = Path::new("/etc/passwd");
    let text = fs::read_to_string(path).map_err(Error::folder("read", path))?;
    Ok(text.lines().filter_map(parse_user).collect())
}

fn parse_user(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.starts_with('#'))?;
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(Account { name: name.to_owned(), uid, gid })
}

fn owner_of(cluster: &Path, users: &[Account]) -> Option<Account> {
    let found = fs::metadata(cluster).ok()?;
    if found.uid() == 0 {
        return None;
    }
    let known = users.iter().find(|user| user.uid == found.uid());
    Some(known.cloned().unwrap_or_else(|| Account {
        name: format!("uid {}", found.uid()),
        uid: found.uid(),
        gid: found.gid(),
    }))
}

fn pick(run_as: Option<&str>, users: &[Account]) -> Result<Account, Error> {
    let named = |name: &str| users.iter().find(|user| user.name == name && user.uid != 0);
    let found = match run_as {
        Some(name) => named(name),
        None => USUAL_ACCOUNTS.into_iter().find_map(named),
    };
    found.cloned().ok_or_else(|| Error::NoAccount {
        problem: match run_as {
            Some(name) => {
                format!("`database.embedded.run_as` names the user {name}, which is root or missing in /etc/passwd")
            }
            None => format!("/etc/passwd has none of the users {}", USUAL_ACCOUNTS.join(", ")),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(text: &str) -> Vec<Account> {
        text.lines().filter_map(parse_user).collect()
    }

    #[test]
    fn usual_accounts_are_tried_in_order() {
        let users = users(
            "# a comment:*:7:7\nroot:x:0:0::/root:/bin/sh\nnobody:x:65534:65533::/:/no\npostgres:x:101:104:,,,:/:/b",
        );
        let picked = pick(None, &users).unwrap();
        assert_eq!((picked.name.as_str(), picked.uid, picked.gid), ("postgres", 101, 104));
        assert_eq!(pick(Some("nobody"), &users).unwrap().gid, 65533);
    }

    #[test]
    fn root_and_unknown_accounts_are_refused() {
        let users = users("root:x:0:0::/root:/bin/sh");
        assert!(pick(Some("root"), &users).is_err());
        assert!(pick(Some("ghost"), &users).is_err());
        assert!(pick(None, &users).unwrap_err().to_string().contains("run_as"));
    }
}
