//! The templates of an installation.

use std::{collections::BTreeMap, fmt, fs, io, path::Path, sync::Arc};

use serde::Serialize;

use super::{Config, Error, Template, template};
use crate::domain::{
    agents::{Catalogue, Problem, nearest},
    text_file,
};

/// By name: the templates that can be started, and the others.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    usable: BTreeMap<String, Template>,
    broken: BTreeMap<String, BrokenTemplate>,
}

/// A template that cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct BrokenTemplate {
    pub name: String,
    /// It comes with Dalsegno, and names agents that this installation does not have.
    pub built_in: bool,
    pub problems: Vec<Problem>,
}

/// Everything that is wrong, in the order of files and lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

/// For an installation that has no folder of its own.
const SHIPPED: [(&str, &str); 2] = [
    ("article-series", include_str!("../../../config/workflows/article-series.md")),
    ("reviewed-text", include_str!("../../../config/workflows/reviewed-text.md")),
];

impl Templates {
    /// Reads all files; without the folder, those that come with Dalsegno. A template with problems is refused alone.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn load(config: &Config, agents: &Catalogue) -> Result<Self, Problems> {
        let files = files(&config.folder).map_err(|error| {
            let (file, fix) = (config.folder.display().to_string(), "a folder that can be read");
            Problems(vec![Problem::whole(&file, format!("cannot be read: {error}"), fix)])
        })?;
        let built_in = files.is_none();
        let mut templates = Self::default();
        for file in files.unwrap_or_else(shipped) {
            match file.parse(agents) {
                Ok(template) => _ = templates.usable.insert(template.name.clone(), template),
                Err(problems) => {
                    let broken = BrokenTemplate { name: file.name.clone(), built_in, problems };
                    templates.broken.insert(file.name, broken);
                }
            }
        }
        Ok(templates)
    }

    /// As [`Self::load`], on a thread of its own: a folder that hangs delays this caller alone, and not the end of the process.
    pub async fn load_aside(config: &Config, agents: Arc<Catalogue>) -> Result<Self, Problems> {
        let (config, folder) = (config.clone(), config.folder.display().to_string());
        let loaded = tokio::task::spawn_blocking(move || Self::load(&config, &agents)).await;
        loaded.unwrap_or_else(|error| {
            let message = format!("cannot be read: {error}");
            Err(Problems(vec![Problem::whole(&folder, message, "a folder that can be read")]))
        })
    }

    /// Those that can be started.
    pub fn all(&self) -> impl Iterator<Item = &Template> {
        self.usable.values()
    }

    pub fn broken(&self) -> impl Iterator<Item = &BrokenTemplate> {
        self.broken.values()
    }

    /// Everything that keeps templates from being started.
    pub fn problems(&self) -> Problems {
        Problems(self.broken().flat_map(|broken| broken.problems.clone()).collect())
    }

    pub fn get(&self, name: &str) -> Result<&Template, Error> {
        if let Some(broken) = self.broken.get(name) {
            let problem = broken.problems.first().map(Problem::in_one_line).unwrap_or_default();
            return Err(Error::BrokenTemplate { name: name.to_owned(), problem });
        }
        self.usable.get(name).ok_or_else(|| Error::NoTemplate {
            name: name.to_owned(),
            advice: match nearest(name, self.names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`dalsegno flow templates` lists them".to_owned(),
            },
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.usable.keys().chain(self.broken.keys()).map(String::as_str)
    }
}

impl Problems {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

impl File {
    fn parse(&self, agents: &Catalogue) -> Result<Template, Vec<Problem>> {
        match &self.content {
            Ok(content) => template::parse(&self.path, &self.name, content, agents),
            Err(error) => Err(vec![Problem::whole(&self.path, error, text_file::FIX)]),
        }
    }
}

fn shipped() -> Vec<File> {
    let file = |(name, content): (&str, &str)| File {
        path: format!("{name} (built in)"),
        name: name.to_owned(),
        content: Ok(content.to_owned()),
    };
    SHIPPED.map(file).into()
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
        content: text_file::read(path, text_file::MAX_BYTES).map_err(|error| error.to_string()),
    };
    Ok(Some(paths.iter().map(file).collect()))
}
