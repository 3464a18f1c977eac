//! Writes an error with its causes in one line. Log formats that take an error as a value print only its first sentence.

use std::error::Error;

/// Returns the error and its causes as one line, outermost first.
pub fn causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Many errors repeat their cause in their own text.
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{says}")]
    struct CauseWriter {
        says: &'static str,
        #[source]
        because: Option<Box<CauseWriter>>,
    }

    #[test]
    fn each_cause_is_listed_once() {
        let root = CauseWriter { says: "the disk is full", because: None };
        let middle =
            CauseWriter { says: "cannot write: the disk is full", because: Some(Box::new(root)) };
        let outer =
            CauseWriter { says: "the task was not stored", because: Some(Box::new(middle)) };
        assert_eq!(causes(&outer), "the task was not stored: cannot write: the disk is full");
    }
}
