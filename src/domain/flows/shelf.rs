//! The templates of an installation.

use std::{collections::BTreeMap, fmt, fs, io, path::Path};

use serde::Serialize;

use super::{Config, Error, Template, template};
use crate::domain::agents::{Catalogue, Problem, nearest};

/// By name.
#[derive(Debug, Clone, Default)]
pub struct Templates(BTreeMap<String, Template>);

/// Everything that is wrong, in the order of files and lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

/// For an installation that has no folder of its own.
const SHIPPED: [(&str, &str); 2] = [
    ("article-series", include_str!("../../../config/workflows/article-series.md")),
    ("reviewed-text", include_str!("../../../config/workflows/reviewed-text.md")),
];

impl Templates {
    /// Reads all files, and reports all problems of all of them together. Without the folder, those that come with Dalsegno,
    /// as far as there are agents for them.
    pub fn load(config: &Config, agents: &Catalogue) -> Result<Self, Problems> {
        let unreadable = |error: io::Error| {
            let (file, fix) = (config.folder.display().to_string(), "a folder that can be read");
            Problems(vec![Problem::whole(&file, format!("cannot be read: {error}"), fix)])
        };
        let Some(files) = files(&config.folder).map_err(unreadable)? else {
            let shipped = SHIPPED.iter().filter_map(|(name, content)| {
                template::parse(&format!("{name} (built in)"), name, content, agents).ok()
            });
            return Ok(Self(shipped.map(|it| (it.name.clone(), it)).collect()));
        };
        let (mut templates, mut problems) = (BTreeMap::new(), Vec::new());
        for File { path, name, content } in files {
            let parsed = match &content {
                Ok(content) => template::parse(&path, &name, content, agents),
                Err(error) => {
                    let fix = "a readable file of UTF-8 text";
                    Err(vec![Problem::whole(&path, format!("cannot be read: {error}"), fix)])
                }
            };
            match parsed {
                Ok(template) => _ = templates.insert(template.name.clone(), template),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() { Ok(Self(templates)) } else { Err(Problems(problems)) }
    }

    pub fn all(&self) -> impl Iterator<Item = &Template> {
        self.0.values()
    }

    pub fn get(&self, name: &str) -> Result<&Template, Error> {
        self.0.get(name).ok_or_else(|| Error::NoTemplate {
            name: name.to_owned(),
            advice: match nearest(name, self.0.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`dalsegno flow templates` lists them".to_owned(),
            },
        })
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_problems = self.0.len();
        let s = if n_problems == 1 { "" } else { "s" };
        write!(f, "the templates of flows have {n_problems} problem{s}")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n\n{problem}"))
    }
}

struct File {
    path: String,
    name: String,
    content: Result<String, String>,
}

/// `None`: there is no such folder.
fn files(folder: &Path) -> io::Result<Option<Vec<File>>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let paths: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let file = |path: &std::path::PathBuf| File {
        path: path.display().to_string(),
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        content: fs::read_to_string(path).map_err(|error| error.to_string()),
    };
    Ok(Some(paths.iter().map(file).collect()))
}
