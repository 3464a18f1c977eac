//! Pages and actions by the words with which people look for them. All synonyms are here.

/// A page, or the place where an action is done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) name: &'static str,
    pub(super) target: &'static str,
    /// Further words that lead to it.
    words: &'static str,
}

/// Words of a search that name nothing.
const FILLERS: &[&str] = &[
    "a", "all", "an", "and", "by", "do", "for", "from", "how", "i", "in", "it", "its", "me", "my",
    "of", "on", "or", "show", "the", "this", "to", "with",
];

/// Actions, with the pages where they are done.
const ACTIONS: &[Destination] = &[
    at("Add a task", "/tasks/new", "new prompt create enqueue"),
    at("Create a campaign", "/campaigns#name", "new add"),
    at("Pause or resume an agent", "/catalogue", "stop hold block disable everywhere instance"),
    at("Pause or resume a campaign", "/campaigns", "stop hold block freeze"),
    at("Pause or resume a queue", "/work", "stop hold block workers everything maintenance"),
    at("Pause or resume a schedule", "/schedules", "stop disable cron"),
    at("Pause or resume a flow", "/flows?state=running", "stop hold"),
    at("Close a campaign", "/campaigns", "end finish archive"),
    at("Erase a campaign", "/campaigns", "delete remove forget gdpr privacy receipt"),
    at("Stop a running task", "/tasks?state=running", "cancel interrupt kill abort end turn"),
    at("Cancel waiting tasks", "/tasks?state=queued", "stop remove delete queued"),
    at("Cancel many tasks", "/work/bulk?action=cancel", "stop bulk mass several filter campaign"),
    at("Retry failed tasks", "/tasks?state=failed", "again repeat rerun restart dead letters"),
    at(
        "Retry many tasks",
        "/work/bulk?action=retry",
        "again repeat bulk mass several failed since except campaign",
    ),
    at("Change the priority of a task", "/tasks?state=queued", "urgent first order sooner later"),
    at(
        "Set or change a budget",
        "/cost/budgets",
        "raise lower limit money tokens spending cap hard soft campaign agent user day",
    ),
    at("Hold or release a lane", "/work/lanes", "stop pause resume conversation block"),
    at("Hold or release a job", "/work/jobs", "stop pause resume cancel block"),
    at(
        "Run a job now",
        "/work/jobs?state=scheduled",
        "task start earlier early waiting scheduled put off postponed delayed later retry",
    ),
    at("Replay webhook deliveries", "/webhooks", "failed retry again send resend give up"),
    at("Add a webhook", "/webhooks", "new receiver subscriber notify callback url"),
    at("Estimate the cost of a task", "/tasks/new", "price before forecast"),
    at(
        "Compare versions of a prompt",
        "/catalogue",
        "agent history diff changed difference earlier system",
    ),
    at("Compact, fork or reset a conversation", "/sessions", "session context summary undo copy"),
    at("Rerun a turn", "/sessions", "again repeat experiment model call compare"),
    at("Start a flow", "/flows/start", "template inputs new run steps"),
    at("Retry a flow from a step", "/flows?state=failed", "again repeat"),
    at("Add a schedule", "/schedules#schedule-name", "new cron recurring repeat weekly nightly"),
    at("Run a schedule now", "/schedules", "fire trigger cron"),
    at("Run the cleanup", "/cleanup#confirm-run", "delete expired old sessions now"),
    at("Preview the cleanup", "/cleanup?preview=next", "dry expired what would go"),
    at("Forget a user", "/users", "facts gdpr privacy delete remove person"),
    at("State or edit a fact about a user", "/users", "add person memory change revoke"),
    at("Write on the board", "/campaigns", "post message mention campaign"),
    at("Edit brief and client context", "/campaigns", "campaign version change text"),
    at("Publish or revoke memory", "/campaigns", "edict record journal item import export"),
    at("Create an API key", "/keys#name", "new access secret scope token add"),
    at("Revoke or rotate an API key", "/keys", "access secret delete remove renew token"),
    at("Sign a browser out", "/sign-ins", "sign-ins session end logout"),
    at("Resume a credential", "/work#credentials", "limit account used paused claude"),
    at("Download the costs", "/cost", "csv export report file spreadsheet"),
];

/// Pages by words.
pub(super) const PAGES: &[Destination] = &[
    at("Overview", "/", "home start needs attention failed held running cost problems today"),
    at("Search", "/search", "texts prompts results posts memory transcripts messages words find"),
    at("Tasks", "/tasks", "list prompts results"),
    at("Failed tasks", "/tasks?state=failed", "errors broken"),
    at("Waiting tasks", "/tasks?state=queued", "queued why stuck blocked"),
    at("Running tasks", "/tasks?state=running", "now active"),
    at("Sessions", "/sessions", "conversations transcripts context turns chats history"),
    at("Campaigns", "/campaigns", "board budget brief memory"),
    at("Flows", "/flows", "steps template critical path graph"),
    at("Cost", "/cost", "money spending spent price report expensive most yesterday tokens usage"),
    at("Calls", "/cost/calls", "ledger expensive costliest requests most"),
    at("Budgets", "/cost/budgets", "limits money spent reserved left"),
    at("Evals", "/cost/evals", "variants pass rate compare prompts answers experiments tests"),
    at(
        "Agents",
        "/catalogue",
        "skills nodes flow templates files problems prompts system catalogue models roles",
    ),
    at("Work", "/work", "queues now waits why reason workers slots leases"),
    at("Rate limits", "/work#rate-limits", "requests tokens per minute throttle quota concurrent"),
    at("Workers", "/work", "slots leases processes hosts activity"),
    at("Jobs", "/work/jobs", "queue list"),
    at("Held jobs", "/work/jobs?state=held", "paused stopped"),
    at("Dead letters", "/work/jobs?state=dead", "failed jobs gave up"),
    at("Lanes", "/work/lanes", "held conversation order serial"),
    at("Bulk actions", "/work/bulk", "retry cancel many mass preview several"),
    at("Schedules", "/schedules", "cron recurring week next run calendar nightly"),
    at("Users", "/users", "facts people customers persons"),
    at("Webhooks", "/webhooks", "deliveries receivers secret notify callback"),
    at("Cleanup", "/cleanup", "nightly expired sessions retention data deletion history"),
    at("Erasures", "/erasures", "receipts gdpr delete campaign data privacy"),
    at("API keys", "/keys", "access scopes tokens secrets"),
    at("Sign-ins", "/sign-ins", "browsers signed cookies access"),
    at("Audit log", "/audit", "changes access history who did actions"),
    at("Doctor", "/doctor", "health problems checks warnings diagnose status"),
    at(
        "Installation",
        "/installation",
        "version settings config migrations sizes growth database disk tables health",
    ),
];

const fn at(name: &'static str, target: &'static str, words: &'static str) -> Destination {
    Destination { name, target, words }
}

/// Returns the words of a search that name something, in lower case and without the `s` of a plural.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let words = text.to_lowercase();
    let words = words.split(|c: char| c.is_whitespace() || ",;:?!".contains(c));
    let words = words.filter(|word| !word.is_empty() && !FILLERS.contains(word));
    words.map(|word| singular(word).to_owned()).collect()
}

fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(one) if one.len() >= 3 && !one.ends_with(['s', 'u', 'i']) => one,
        _ => word,
    }
}

/// Lists the places that have all words, those that have them in their name first.
pub(super) fn matching(words: &[String]) -> Vec<&'static Destination> {
    with(words, words.len())
}

/// Lists the places that have the most of the words.
pub(super) fn nearest(words: &[String]) -> Vec<&'static Destination> {
    match ACTIONS.iter().chain(PAGES).map(|place| place.n_words(words)).max() {
        Some(most) if most > 0 => with(words, most),
        _ => Vec::new(),
    }
}

fn with(words: &[String], n_words: usize) -> Vec<&'static Destination> {
    let all = ACTIONS.iter().chain(PAGES);
    let mut found: Vec<_> = all.filter(|place| place.n_words(words) == n_words).collect();
    found.sort_by_key(|place| place.rank(words));
    found
}

impl Destination {
    fn n_words(&self, words: &[String]) -> usize {
        let has = |word: &&String| has_word(self.name, word) || has_word(self.words, word);
        words.iter().filter(has).count()
    }

    /// Names that have more of the words come first, then shorter names.
    fn rank(&self, words: &[String]) -> (usize, usize) {
        let n_named = words.iter().filter(|word| has_word(self.name, word)).count();
        (words.len() - n_named, self.name.len())
    }
}

/// Returns true if a word of the text begins with the given one.
fn has_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    text.split([' ', ',']).any(|own| own.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> &'static str {
        matching(&words_of(text)).first().map_or("", |place| place.target)
    }

    #[test]
    fn words_of_actions_lead_to_where_they_are_done() {
        for (text, target) in [
            ("pause an agent", "/catalogue"),
            ("pause campaign", "/campaigns"),
            ("pause the queue", "/work"),
            ("rate limits", "/work#rate-limits"),
            ("rate limit", "/work#rate-limits"),
            ("throttle", "/work#rate-limits"),
            ("budgets", "/cost/budgets"),
            ("raise the limit", "/cost/budgets"),
            ("bulk", "/work/bulk"),
            ("lanes", "/work/lanes"),
            ("users", "/users"),
            ("search", "/search"),
            ("api keys", "/keys"),
            ("revoke key", "/keys"),
            ("doctor", "/doctor"),
            ("health", "/doctor"),
            ("cleanup", "/cleanup"),
            ("data", "/cleanup"),
            ("access", "/keys"),
            ("prompt versions", "/catalogue"),
            ("compare prompts", "/catalogue"),
            ("stop a running task", "/tasks?state=running"),
            ("settings", "/installation"),
            ("resume agent", "/catalogue"),
            ("dead letters", "/work/jobs?state=dead"),
            ("run now", "/work/jobs?state=scheduled"),
            ("run task now", "/work/jobs?state=scheduled"),
            ("run schedule now", "/schedules"),
        ] {
            assert_eq!(first(text), target, "{text}");
        }
        assert_eq!(first("harbour"), "");
    }

    #[test]
    fn without_an_entry_for_all_words_the_nearest_are_offered() {
        let words = words_of("who changed the settings of the nightly thing");
        assert!(matching(&words).is_empty());
        let near: Vec<_> = nearest(&words).iter().map(|entry| entry.target).collect();
        assert!(near.contains(&"/audit"), "{near:?}");
        assert!(nearest(&words_of("harbour quay")).is_empty());
    }

    #[test]
    fn each_place_is_named_once() {
        let mut names: Vec<_> = ACTIONS.iter().chain(PAGES).map(|entry| entry.name).collect();
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }
}
