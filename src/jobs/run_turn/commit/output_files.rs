//! The output files of a turn, as they are stored with its task.
//!
//! They are stored with every end of a turn, also of one that failed after it had used tools: the next turn of the task may refer to a file
//! that it wrote. A file that cannot be stored fails nothing.

use crate::{
    domain::task_files::{Config, NewFiles, check_name},
    jobs::run_turn::call::{grants::output_limits, report::CallReport},
    providers::{MAX_SKIPPED, OutputFiles, OutputSpace},
};

/// Checks names and lengths of the files.
pub fn of_call<'a>(called: &'a CallReport, config: &Config) -> NewFiles<'a> {
    let found = match &called.result {
        Ok(outcome) => &outcome.files,
        Err(error) => &*error.files,
    };
    check(found, config)
}

fn check<'a>(found: &'a OutputFiles, config: &Config) -> NewFiles<'a> {
    let mut new = NewFiles::default();
    let mut space = OutputSpace::new(output_limits(config));
    let mut n_more = found.n_more_skipped;
    let mut problems: Vec<(&[u8], String)> = Vec::new();
    for file in &found.files {
        let checked = check_name(&file.name).map_err(|error| error.to_string());
        let fits = space.check(file.n_bytes()).map_err(|reason| reason.to_string());
        match checked.and_then(|name| fits.map(|()| name)) {
            Ok(name) => {
                space.take(file.n_bytes());
                new.add(name, &file.content);
            }
            Err(reason) => problems.push((&file.name, reason)),
        }
    }
    problems.extend(found.skipped.iter().map(|it| (it.name.as_slice(), it.reason.to_string())));
    for (at, (name, reason)) in problems.into_iter().enumerate() {
        match at < MAX_SKIPPED {
            true => new.add_problem(name, reason),
            false => n_more += 1,
        }
    }
    if n_more > 0 {
        new.add_problem(b"", format!("{n_more} more files are not stored"));
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{OutputFile, SkipReason};

    const CONFIG: Config = Config { max_files: 3, max_file_bytes: 10, max_turn_bytes: 20 };

    fn file(name: &[u8], content: &str) -> OutputFile {
        OutputFile { name: name.to_owned(), content: content.into() }
    }

    #[test]
    fn files_that_cannot_be_stored_are_problems_with_their_reasons() {
        let mut found = OutputFiles {
            files: vec![
                file(b"a.txt", "ten bytes!"),
                file(b"../x", "x"),
                file(b"b", "elevenbytes"),
            ],
            ..OutputFiles::default()
        };
        found.skip(b"link".to_vec(), SkipReason::NotRegular { kind: "a symbolic link" });
        let new = check(&found, &CONFIG);
        assert_eq!(new.n_files(), 1);
        assert_eq!(
            new.problems().collect::<Vec<_>>(),
            [
                ("../x", "its name is not a path below the folder `out`"),
                ("b", "it has 11 bytes, more than output_files.max_file_bytes (10)"),
                ("link", "it is a symbolic link, and only regular files are kept"),
            ]
        );
    }

    #[test]
    fn very_many_problems_are_counted() {
        let files = (0..MAX_SKIPPED + 5).map(|n| file(format!("/{n:02}").as_bytes(), ""));
        let found = OutputFiles { files: files.collect(), ..OutputFiles::default() };
        let config = Config { max_files: 1_000, ..CONFIG };
        let new = check(&found, &config);
        assert_eq!(new.problems().count(), MAX_SKIPPED + 1);
        assert!(new.problems().any(|it| it == ("out", "5 more files are not stored")));
    }
}
