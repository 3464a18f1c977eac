//! Problems of a configuration, written for its author.

use std::fmt;

use serde::Serialize;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The key, dotted: `http.listen`.
    pub key: String,
    /// Origin of the value: a file, a variable, a flag, the built-in defaults.
    pub origin: String,
    /// Description of the problem.
    pub message: String,
    /// Valid value to write instead.
    pub fix: String,
}

/// All problems, in the order of the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn sorted(mut self) -> Self {
        self.0.sort_by(|a, b| a.key.cmp(&b.key));
        self
    }

    pub fn push(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.key, self.message)?;
        writeln!(f, "  from:  {}", self.origin)?;
        write!(f, "  write: {}", self.fix)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_problems = self.0.len();
        write!(f, "the configuration has {n_problems} problem")?;
        if n_problems != 1 {
            write!(f, "s")?;
        }
        for problem in &self.0 {
            write!(f, "\n\n{problem}")?;
        }
        Ok(())
    }
}
