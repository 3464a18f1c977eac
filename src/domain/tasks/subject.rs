//! The part of a prompt that tells a task from others in a list.

use super::Task;

impl Task {
    /// Returns the part of its prompt that tells it from others in a list.
    pub fn subject(&self) -> &str {
        subject(&self.prompt, &self.agent, &self.instance)
    }
}

/// Returns the prompt from the line on that begins with a mention of the task's agent. A post may ask several agents, each in a line of its
/// own, and then all of their tasks have the same prompt. Without such a line, returns the whole prompt.
pub(super) fn subject<'a>(prompt: &'a str, agent: &str, instance: &str) -> &'a str {
    let own = |line: &'a str| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || "-*".contains(c));
        begins_with_mention(line, agent, instance).then_some(line)
    };
    let mut lines = prompt.split_inclusive('\n');
    let mut end = 0;
    let found = lines.find_map(|line| {
        end += line.len();
        own(line).map(|own| end - own.len())
    });
    &prompt[found.unwrap_or(0)..]
}

fn begins_with_mention(line: &str, agent: &str, instance: &str) -> bool {
    let Some(rest) = line.strip_prefix('@').and_then(|line| line.strip_prefix(agent)) else {
        return false;
    };
    let own = rest.strip_prefix('_').and_then(|rest| rest.strip_prefix(instance));
    let is_end = |rest: &str| {
        rest.chars().next().is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == '-'))
    };
    own.is_some_and(is_end) || (instance == "main" && is_end(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_a_post_to_several_agents_is_named_after_its_own_line() {
        let post = "Parts 1 and 2 are due.\n\n- @writer_a Part 1: The lamp.\n@writer_b Part 2: The winter.\n@writer_b_2 Part 3.";
        assert_eq!(
            subject(post, "writer_a", "main").lines().next(),
            Some("@writer_a Part 1: The lamp.")
        );
        assert_eq!(
            subject(post, "writer_b", "main").lines().next(),
            Some("@writer_b Part 2: The winter.")
        );
        assert_eq!(subject(post, "writer_b", "2"), "@writer_b_2 Part 3.");
        for (agent, instance) in [("writer", "main"), ("writer_a", "2"), ("reviewer", "main")] {
            assert_eq!(subject(post, agent, instance), post, "{agent} {instance}");
        }
    }

    #[test]
    fn a_mention_within_a_line_names_no_task() {
        let prompt = "Ask @planner for the lamp.\nThen write.";
        assert_eq!(subject(prompt, "planner", "main"), prompt);
        assert_eq!(subject("", "planner", "main"), "");
    }
}
