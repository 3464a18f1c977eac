//! The templates of an installation.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Config, Error, StepOutline, Template, template};
use crate::domain::{
    agents::Catalogue,
    files::{self, File, Problem, SourceFile, SourceKind, list_problems, nearest},
};

/// Templates by name: those that can be started, and the broken ones.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    usable: BTreeMap<String, Template>,
    broken: BTreeMap<String, BrokenTemplate>,
    sources: Vec<SourceFile>,
}

/// A template that cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BrokenTemplate {
    pub name: String,
    /// It comes with Dalsegno, and names agents that this installation does not have.
    pub built_in: bool,
    pub problems: Vec<Problem>,
    /// Its steps, as far as the file names them with their agents.
    #[serde(default)]
    pub steps: Vec<StepOutline>,
}

/// The problems of all templates, in the order of files and lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

/// Templates for an installation without a folder of its own.
const SHIPPED: [(&str, &str); 2] = [
    ("article-series", include_str!("../../../config/flows/article-series.md")),
    ("reviewed-text", include_str!("../../../config/flows/reviewed-text.md")),
];

impl Templates {
    /// Reads all files; without the folder, those that come with Dalsegno. A template with problems is refused alone.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn load(config: &Config, agents: &Catalogue) -> Result<Self, Problems> {
        let files = files::read_folder(&config.folder, files::markdown);
        let files = files.map_err(|problem| Problems(vec![problem]))?;
        let built_in = files.is_none();
        let mut templates = Self::default();
        for file in files
            .unwrap_or_else(|| SHIPPED.map(|(name, content)| File::built_in(name, content)).into())
        {
            match template::parse(&file, agents) {
                Ok(template) => {
                    templates.sources.push(SourceFile::of(SourceKind::Flow, &file, &[]));
                    templates.usable.insert(template.name.clone(), template);
                }
                Err(problems) => {
                    templates.sources.push(SourceFile::of(SourceKind::Flow, &file, &problems));
                    let (name, steps) = (file.name.clone(), template::outline(&file));
                    let broken = BrokenTemplate { name, built_in, problems, steps };
                    templates.broken.insert(file.name, broken);
                }
            }
        }
        Ok(templates)
    }

    /// Does the same as [`Self::load`] on a thread of its own. A folder that hangs delays this caller alone, and not the end of the
    /// process.
    pub async fn load_in_thread(config: &Config, agents: Arc<Catalogue>) -> Result<Self, Problems> {
        let (config, folder) = (config.clone(), config.folder.clone());
        let loaded = tokio::task::spawn_blocking(move || Self::load(&config, &agents)).await;
        loaded.unwrap_or_else(|error| Err(Problems(vec![files::unreadable_folder(&folder, error)])))
    }

    /// Lists the templates that can be started.
    pub fn all(&self) -> impl Iterator<Item = &Template> {
        self.usable.values()
    }

    pub fn broken(&self) -> impl Iterator<Item = &BrokenTemplate> {
        self.broken.values()
    }

    /// Lists all files of templates, also the broken ones.
    pub fn sources(&self) -> &[SourceFile] {
        &self.sources
    }

    /// Lists the problems of all broken templates.
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

/// Checks that each name is that of a template that can be started.
pub fn check_names(templates: &Templates, names: &[String]) -> Result<(), Error> {
    names.iter().try_for_each(|name| templates.get(name).map(drop))
}

impl Problems {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list_problems(f, "the templates of flows", &self.0)
    }
}
