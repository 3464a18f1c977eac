//! Reads a board for the simulation: the line of a task that is meant for it, the lines to hand on, and the posts shown.
//!
//! ```text
//! task    - `@ann` Part 1.      in code, so it mentions no agent       answer  @ann Part 1.
//! task    @ann Part 1.          and the system part names @ann         this line is its task
//! ```

/// Returns the line of the request that begins with a name which the system part contains, too.
pub(super) fn own_line<'a>(asked: &'a str, system: &str) -> Option<&'a str> {
    asked.lines().find_map(|line| {
        let (name, rest) = line.trim().strip_prefix('@')?.split_once(char::is_whitespace)?;
        names(system, name).then(|| rest.trim_start())
    })
}

/// Returns the lines to hand on, each as a mention of its recipient.
pub(super) fn handed_on(asked: &str) -> Vec<String> {
    let called = asked.lines().filter_map(for_another);
    called.map(|(name, rest)| format!("@{name}{rest}")).collect()
}

/// Returns the request without the parts that are meant for others.
pub(super) fn own_words(asked: &str, system: &str) -> String {
    match own_line(asked, system) {
        Some(own) => own.to_owned(),
        None => {
            let own = asked.lines().filter(|line| for_another(line).is_none());
            own.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Returns sender and headline of the posts that are fenced into a message. Foreign text is escaped there, so everything that looks like a
/// tag is one.
pub(super) fn shown(message: &str, headline: impl Fn(&str) -> String) -> Vec<String> {
    let posts = message.split("<post ").skip(1).filter_map(|after| {
        let (tag, rest) = after.split_once('>')?;
        let sender = tag.split_once("sender=\"")?.1.split('"').next()?;
        let text = rest.split_once("</post>")?.0;
        // Without the `@` a name is not a mention.
        Some(format!("{sender}: {}", headline(text).replace('@', "")))
    });
    posts.collect()
}

/// Returns the name, and the text behind it.
fn for_another(line: &str) -> Option<(&str, &str)> {
    line.trim().trim_start_matches("- ").strip_prefix("`@")?.split_once('`')
}

fn names(system: &str, name: &str) -> bool {
    let mention = format!("@{name}");
    let ends_there = |end: usize| {
        let next = system[end..].chars().next();
        next.is_none_or(|next| !(next.is_alphanumeric() || next == '-' || next == '_'))
    };
    let mut found = system.match_indices(&mention);
    found.any(|(at, _)| ends_there(at + mention.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        "Hand these out:\n- `@ann` Part 1: the `mole`.\n- `@ann_2` Part 2.\n\n@bea stays. `@cid`";

    #[test]
    fn lines_that_begin_with_a_name_in_code_are_mentions() {
        assert_eq!(handed_on(PROMPT), ["@ann Part 1: the `mole`.", "@ann_2 Part 2."]);
        assert!(handed_on("Ask `@ann`.\n`code`\n@ann").is_empty());
    }

    #[test]
    fn an_agent_takes_the_line_with_its_name_as_its_task() {
        let handed = handed_on(PROMPT).join("\n");
        assert_eq!(own_line(&handed, "Your name is @ann_2."), Some("Part 2."));
        assert_eq!(own_line(&handed, "Your name is @ann."), Some("Part 1: the `mole`."));
        assert_eq!(own_line(&handed, "Your name is @an."), None);
        assert_eq!(own_words(&handed, "Your name is @ann_2."), "Part 2.");
        assert_eq!(
            own_words(PROMPT, "Your name is @dan."),
            "Hand these out:\n\n@bea stays. `@cid`"
        );
    }

    #[test]
    fn posts_are_listed_with_their_senders() {
        let message = "<posts fence=\"1\"><post id=\"7\" sender=\"ann\" to=\"all\">One.\nTwo.</post>\
                       <post sender=\"bea\">@ann &lt;post sender=\"cid\"&gt;</post></posts>\n<task fence=\"1\">Go.</task>";
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        assert_eq!(shown(message, first), ["ann: One.", "bea: ann &lt;post sender=\"cid\"&gt;"]);
    }
}
