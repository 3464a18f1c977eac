//! The server binaries: found on the machine, or else downloaded.

mod advice;
#[cfg(feature = "fetch-postgres")]
mod fetch;
mod search;

use std::path::{Path, PathBuf};

use super::SUPPORTED_MAJORS;
use super::command::Runner;
use super::home::Home;
use super::{Config, Error};

/// A folder with `postgres` and `initdb` that the server's account can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    pub folder: PathBuf,
    pub major: u32,
}

impl Binaries {
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Finds binaries as [`find`] does, but without a download.
pub(super) async fn find_offline(
    config: &Config,
    home: &Home,
    runner: &Runner,
) -> Result<Binaries, Error> {
    let offline = Config { fetch: false, ..config.clone() };
    find(&offline, home, runner).await
}

/// Finds binaries that fit the cluster, or the newest for a new one.
pub(super) async fn find(config: &Config, home: &Home, runner: &Runner) -> Result<Binaries, Error> {
    let cluster = home.cluster_major()?;
    if let Some(folder) = &config.bin_dir {
        let found = inspect(folder, runner)
            .await
            .map_err(|reason| Error::BadBinDir { path: folder.clone(), reason })?;
        return fit(vec![found], cluster, home)?.ok_or_else(|| Error::BadBinDir {
            path: folder.clone(),
            reason: "its version is not one of 14 to 18".to_owned(),
        });
    }
    let (found, rejected) = on_this_machine(home, runner).await;
    let fitting = fit(found, cluster, home);
    if let Ok(Some(binaries)) = fitting {
        return Ok(binaries);
    }
    match (fetch(config, home, runner, cluster).await, fitting) {
        (Ok(binaries), _) => Ok(binaries),
        (Err(_), Err(other_major)) => Err(other_major),
        (Err(not_fetched), Ok(_)) => Err(Error::NoServerBinaries {
            rejected,
            not_fetched,
            install: advice::how_to_install(),
        }),
    }
}

/// Returns the folder of downloaded binaries. It is beside the home, so that an account that reaches the home reaches them, too.
fn fetched_into(home: &Home) -> PathBuf {
    let parent = home.root().parent().unwrap_or(home.root());
    parent.join("postgres-binaries")
}

async fn on_this_machine(home: &Home, runner: &Runner) -> (Vec<Binaries>, Vec<String>) {
    let mut folders = search::on_path(&runner.ambient.path);
    folders.extend(search::by_pg_config(runner).await);
    folders.extend(search::usual_folders(Path::new("/")));
    folders.extend(search::list_downloaded(&fetched_into(home)));
    search::drop_repeated(&mut folders);
    let (mut found, mut rejected) = (Vec::new(), Vec::new());
    for folder in folders {
        match inspect(&folder, runner).await {
            Ok(binaries) => found.push(binaries),
            Err(reason) => rejected.push(format!("{}: {reason}", folder.display())),
        }
    }
    (found, rejected)
}

/// Asks the server binary for its version, as the account that is going to run it.
async fn inspect(folder: &Path, runner: &Runner) -> Result<Binaries, String> {
    if !folder.join("initdb").exists() {
        return Err("has no initdb".to_owned());
    }
    let answer = runner.ask(&folder.join("postgres"), "--version").await;
    let answer = answer.map_err(|error| format!("postgres --version fails: {error}"))?;
    let major = parse_major(&answer).ok_or_else(|| format!("unknown version {answer:?}"))?;
    Ok(Binaries { folder: folder.to_path_buf(), major })
}

/// Parses answers such as `postgres (PostgreSQL) 15.14 (Debian 15.14-1)` and `… 18beta1`.
fn parse_major(answer: &str) -> Option<u32> {
    let version = answer.split_once("(PostgreSQL)")?.1.trim_start();
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn fit(found: Vec<Binaries>, cluster: Option<u32>, home: &Home) -> Result<Option<Binaries>, Error> {
    let Some(cluster) = cluster else {
        let supported =
            found.into_iter().filter(|binaries| SUPPORTED_MAJORS.contains(&binaries.major));
        // Takes the first of several equals: the search goes from the nearest to the farthest.
        return Ok(supported.reduce(|best, next| if next.major > best.major { next } else { best }));
    };
    let offered = describe(&found);
    match found.into_iter().find(|binaries| binaries.major == cluster) {
        Some(binaries) => Ok(Some(binaries)),
        None => Err(Error::OtherMajor { folder: home.root().to_path_buf(), cluster, offered }),
    }
}

fn describe(found: &[Binaries]) -> String {
    let mut majors: Vec<u32> = found.iter().map(|binaries| binaries.major).collect();
    majors.sort_unstable();
    majors.dedup();
    match majors.as_slice() {
        [] => "no Postgres server was found".to_owned(),
        some => {
            format!("Postgres {}", some.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(feature = "fetch-postgres")]
async fn fetch(
    config: &Config,
    home: &Home,
    runner: &Runner,
    cluster: Option<u32>,
) -> Result<Binaries, String> {
    if !config.fetch {
        return Err("downloading them is switched off (`fetch`)".to_owned());
    }
    let major = cluster.unwrap_or(*SUPPORTED_MAJORS.end());
    let folder = fetch::fetch(major, &fetched_into(home)).await?;
    inspect(&folder, runner).await
}

#[cfg(not(feature = "fetch-postgres"))]
async fn fetch(config: &Config, _: &Home, _: &Runner, _: Option<u32>) -> Result<Binaries, String> {
    Err(match config.fetch {
        true => "this build cannot download them (cargo feature `fetch-postgres`)",
        false => "downloading them is switched off (`fetch`)",
    }
    .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binaries(folder: &str, major: u32) -> Binaries {
        Binaries { folder: folder.into(), major }
    }

    #[test]
    fn version_outputs_are_parsed() {
        assert_eq!(parse_major("postgres (PostgreSQL) 15.14 (Debian 15.14-1)"), Some(15));
        assert_eq!(parse_major("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(parse_major("mysqld 9"), None);
    }

    #[test]
    fn the_newest_supported_version_serves_a_new_cluster_and_the_matching_one_an_old() {
        let home = Home::at("/x".into());
        let found = vec![
            binaries("a", 13),
            binaries("b", 15),
            binaries("c", 17),
            binaries("d", 17),
            binaries("e", 19),
        ];
        assert_eq!(fit(found.clone(), None, &home).unwrap(), Some(binaries("c", 17)));
        assert_eq!(fit(found.clone(), Some(15), &home).unwrap(), Some(binaries("b", 15)));
        let error = fit(found, Some(16), &home).unwrap_err().to_string();
        assert!(
            error.contains("Postgres 16")
                && error.contains("13, 15, 17, 19")
                && error.contains("/x"),
            "{error}"
        );
    }
}
