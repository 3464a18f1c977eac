//! The tables of a campaign file, in the order in which their rows can be written, and the tables that have no part in it.

/// The sequence that renumbers ids of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) space: &'static str,
    pub(super) sequence: &'static str,
}

const JOBS: Numbers = Numbers { space: "job", sequence: "dalsegno.job_ids" };
const LEDGER: Numbers = Numbers { space: "ledger", sequence: "dalsegno.usage_id_seq" };

/// A table whose rows belong to campaigns.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: &'static str,
    /// Columns that are not in the file: they belong to the installation.
    pub without: &'static [&'static str],
    /// The source of the rows `r`.
    from: String,
    /// Condition on the rows of campaign `$1`.
    is_exported: String,
    order: String,
    /// Condition on an imported row `r` of campaign `$2`, so that no row becomes a part of another campaign.
    is_own: String,
    /// Columns with another value after the import.
    values: Vec<(&'static str, &'static str)>,
    /// Columns that are renumbered.
    numbers: Vec<(&'static str, Numbers)>,
    /// Clause for rows that are there already.
    on_conflict: &'static str,
    /// True if rows may be skipped, because of what the installation has or does not have.
    pub(super) may_skip: bool,
    /// The columns of a second pass, which adds values to rows that are there already.
    second_pass: &'static [&'static str],
}

/// Tables without a part in a campaign file, and the reason.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("api_keys", "secrets of this installation"),
    ("audit", "the record of this installation; an export and an import add a line each"),
    ("batches", "calls of running turns; none of an exported campaign runs"),
    ("budget_shares", "budgets of agents, users and days belong to the installation"),
    ("budget_waits", "state of a queued task, which is queued again"),
    ("budgets", "budgets of agents, users and days belong to the installation"),
    ("bulk_actions", "work of this installation on tasks of any campaign"),
    ("busy_models", "state of the provider as this installation sees it"),
    ("busy_tasks", "state of a queued task, which is queued again"),
    ("cancel_requests", "queue: running jobs; none of an exported campaign runs"),
    ("cleanup_runs", "the record of this installation"),
    ("dead_jobs", "queue: dead letters; a failed task can be retried without its letter"),
    ("erased_sessions", "erased campaigns are not exported"),
    ("erasure_hosts", "erased campaigns are not exported"),
    ("erasures", "erased campaigns are not exported"),
    ("fact_embeddings", "computed again by a worker"),
    ("installation", "the identity of this installation"),
    ("job_payloads", "queue: jobs of waiting tasks are created by the import"),
    ("jobs", "queue: jobs of waiting tasks are created by the import"),
    ("lane_sweeps", "queue: state of lanes"),
    ("lanes", "queue: lanes are created with their first job"),
    ("ledger_days", "sums of the ledger, which the scheduler adds up again"),
    ("ledger_sums", "how far this installation has added up its ledger"),
    ("memory_embeddings", "computed again by a worker"),
    ("migrations", "the schema of this installation; the file has its version"),
    ("operation_keys", "idempotency keys of callers of this installation, with its answers"),
    ("paused_credentials", "credentials of this installation"),
    ("pauses", "the imported campaign is paused by the import"),
    ("rate_limit_calls", "rate limits of this installation"),
    ("rate_limit_waits", "state of a queued task, which is queued again"),
    ("rate_limits", "rate limits of this installation"),
    ("runs", "queue: runs by workers of this installation"),
    ("schedule_slots", "schedules would fire in both installations"),
    ("schedules", "schedules would fire in both installations"),
    ("search_backlog", "computed again by the import"),
    ("search_words", "computed again by a worker"),
    ("sign_ins", "secrets of this installation"),
    ("table_sizes", "the record of this installation"),
    ("transition_deltas", "queue: counters of this installation"),
    ("transition_totals", "queue: counters of this installation"),
    ("turn_tokens", "secrets of running turns; none of an exported campaign runs"),
    ("webhook_deliveries", "deliveries to subscribers of this installation"),
    ("webhook_secrets", "secrets of this installation"),
    ("webhooks", "subscribers of this installation, with their secrets"),
    ("workers", "processes of this installation"),
];

/// Lists the tables in the order of a file: a row comes after those that it refers to.
pub fn tables() -> Vec<Table> {
    vec![
        Table::new("campaigns", "dalsegno.campaigns as r", "r.id = $1", "r.id").only_own("r.id = $2"),
        Table::of_campaign("campaign_versions", "r.version"),
        Table::of_campaign("campaign_budgets", "r.campaign_id")
            .without(&["reserved_micros", "reserved_tokens"]),
        Table::of_campaign("campaign_spending", "r.shard"),
        Table::of_campaign("experiment_budgets", "r.campaign_id"),
        Table::of_campaign("campaign_users", "r.campaign_id"),
        Table::of_campaign("agent_pauses", "r.id"),
        Table::of_campaign("eval_runs", "r.id").without(&["id"]),
        Table::of_campaign("failovers", "r.agent, r.instance"),
        Table::of_campaign("flows", "r.id"),
        // A lease of another installation could be greater than those of this one, which would then be refused. The claim of a compaction
        // names a job.
        Table::of_campaign("sessions", "r.id")
            .without(&["lease"])
            .value("compaction_breaker", "r.compaction_breaker - 'claimed_by'"),
        Table::of_session("transcript_files", "x.name"),
        Table::of_session("transcript_chunks", "x.name, x.from_byte"),
        Table::of_session("session_nodes", "x.ordinal"),
        Table::of_campaign("session_summaries", "r.agent, r.instance"),
        Table::of_campaign("tasks", "r.id")
            .without(&["parent_id", "continues_id"])
            .only_own("r.flow_id is null or exists (select from dalsegno.flows as f where f.id = r.flow_id and f.campaign_id = $2)")
            // Waiting tasks arrive as cancelled in this transaction, whose end retries them.
            .value("state", "case when r.ended_at is null then 'cancelled' else r.state end")
            .value("ended_at", "coalesce(r.ended_at, now())")
            .renumbered("job_id", JOBS)
            .renumbered("first_job_id", JOBS),
        Table::task_links(),
        Table::of_task("task_labels", "x.task_id"),
        Table::of_task("task_parameters", "x.task_id"),
        Table::of_task("task_waits", "x.task_id"),
        Table::of_task("task_dependencies", "x.place").renumbered("forgiven_job", JOBS),
        Table::new(
            "idempotency_keys",
            "dalsegno.tasks as t join dalsegno.idempotency_keys as r on r.job_id = coalesce(t.first_job_id, t.job_id)",
            "t.campaign_id = $1",
            "r.key",
        )
        .renumbered("job_id", JOBS),
        Table::new(
            "file_contents",
            "dalsegno.file_contents as r",
            "r.sha256 in (select f.sha256 from (select task_id, sha256 from dalsegno.task_files union all
                                                select task_id, sha256 from dalsegno.task_attachments) as f
                            join dalsegno.tasks as t on t.id = f.task_id where t.campaign_id = $1)",
            "r.sha256",
        )
        .only_own("r.sha256 = sha256(r.content)")
        // Locked, so that the removal of its last other use leaves it.
        .on_conflict("(sha256) do update set stored_at = excluded.stored_at"),
        Table::of_task("task_attachments", "x.position"),
        Table::of_task("task_files", "x.name"),
        Table::of_session("turns", "x.number")
            .without(&["lease", "budgets", "reserved_micros", "reserved_tokens"])
            .value("lease", "0")
            .renumbered("job_id", JOBS),
        Table::of_session("partial_outputs", "x.turn"),
        // A call that a later attempt repeats is taken over by any lease.
        Table::of_session("tool_calls", "x.task_id, x.digest, x.occurrence")
            .without(&["lease"])
            .value("lease", "0"),
        Table::of_session("messages", "x.seq"),
        Table::of_session("compactions", "x.id").without(&["id"]),
        Table::of_session("manifests", "x.turn, x.call"),
        Table::of_campaign("memory_items", "r.id"),
        Table::of_campaign("memory_versions", "r.item_id, r.version")
            .only_own("exists (select from dalsegno.memory_items as i where i.id = r.item_id and i.campaign_id = $2)"),
        // A user has one fact of an attribute at a time. One that this installation already has stays.
        Table::of_campaign("facts", "r.id").on_conflict("do nothing").may_skip(),
        Table::of_campaign("fact_showings", "r.session_id, r.fact_id")
            .only("exists (select from dalsegno.facts as f where f.id = r.fact_id and f.campaign_id = r.campaign_id)")
            .only_own("exists (select from dalsegno.facts as f where f.id = r.fact_id)")
            .may_skip(),
        Table::of_campaign("fact_extractions", "r.session_id, r.to_seq"),
        Table::new(
            "context_texts",
            "dalsegno.context_texts as r",
            "r.sha256 in (select u.sha256 from dalsegno.sessions as s join dalsegno.context_text_uses as u on u.session_id = s.id \
                           where s.campaign_id = $1 and (u.source_id is null or exists ( \
                                 select from dalsegno.facts as f where f.id = u.source_id and f.campaign_id = $1)))",
            "r.sha256",
        )
        .only_own("r.sha256 = sha256(convert_to(r.content, 'UTF8'))")
        .on_conflict("(sha256) do update set kind = context_texts.kind"),
        // Without the texts of facts that were said in other campaigns: they are not in the file, so that forgetting a user here would
        // not find these texts.
        Table::of_session("context_text_uses", "x.sha256")
            .only("r.source_id is null or exists (select from dalsegno.facts as f where f.id = r.source_id and f.campaign_id = $1)")
            .only_own("r.source_id is null or exists (select from dalsegno.facts as f where f.id = r.source_id)")
            .may_skip(),
        Table::of_campaign("boards", "r.campaign_id"),
        Table::of_campaign("posts", "r.seq"),
        Table::of_campaign("post_keys", "r.key"),
        Table::of_campaign("post_trees", "r.root_post_id"),
        Table::of_campaign("post_viewers", "r.viewer, r.seq"),
        Table::of_campaign("board_archives", "r.viewer, r.sender"),
        Table::of_campaign("blackboards", "r.campaign_id"),
        Table::of_campaign("blackboard_changes", "r.version"),
        Table::of_campaign("usage", "r.id").renumbered("id", LEDGER),
        Table::of_session("usage_contexts", "x.usage_id").renumbered("usage_id", LEDGER),
        Table::of_session("reruns", "x.id")
            .without(&["job_id", "reserved_micros"])
            .renumbered("ledger_id", LEDGER),
        Table::of_campaign("feed", "r.id").without(&["id", "written_by"]),
    ]
}

impl Table {
    fn new(name: &'static str, from: &str, is_exported: &str, order: &str) -> Self {
        Self {
            name,
            without: &[],
            from: from.to_owned(),
            is_exported: is_exported.to_owned(),
            order: order.to_owned(),
            is_own: "$2::uuid is not null".to_owned(),
            values: Vec::new(),
            numbers: Vec::new(),
            on_conflict: "",
            may_skip: false,
            second_pass: &[],
        }
    }

    /// A table with a column `campaign_id`, which an import overwrites.
    fn of_campaign(name: &'static str, order: &str) -> Self {
        Self::new(name, &format!("dalsegno.{name} as r"), "r.campaign_id = $1", order)
    }

    /// A table with a column `session_id`. Its rows are read session by session, which needs no sort.
    fn of_session(name: &'static str, order: &str) -> Self {
        Self::of_parent(name, "sessions", "session_id", order)
    }

    fn of_task(name: &'static str, order: &str) -> Self {
        Self::of_parent(name, "tasks", "task_id", order)
    }

    fn of_parent(name: &'static str, parent: &str, key: &str, order: &str) -> Self {
        let from = format!(
            "(select p.id from dalsegno.{parent} as p where p.campaign_id = $1 order by p.id) as p
              cross join lateral (select x.* from dalsegno.{name} as x where x.{key} = p.id order by {order}) as r"
        );
        Self::new(name, &from, "true", "").only_own(&format!(
            "exists (select from dalsegno.{parent} as p where p.id = r.{key} and p.campaign_id = $2)"
        ))
    }

    /// The references among tasks, which may come in any order.
    fn task_links() -> Self {
        let is_exported =
            "r.campaign_id = $1 and coalesce(r.parent_id, r.continues_id) is not null";
        let links = Self::new("task_links", "dalsegno.tasks as r", is_exported, "r.id");
        Self { second_pass: &["id", "parent_id", "continues_id"], ..links }
    }

    fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    fn value(mut self, column: &'static str, value: &'static str) -> Self {
        self.values.push((column, value));
        self
    }

    fn renumbered(mut self, column: &'static str, numbers: Numbers) -> Self {
        self.numbers.push((column, numbers));
        self
    }

    /// Adds a condition on exported rows.
    fn only(mut self, condition: &str) -> Self {
        self.is_exported = format!("{} and ({condition})", self.is_exported);
        self
    }

    /// Adds a condition on imported rows.
    fn only_own(mut self, condition: &str) -> Self {
        self.is_own = format!("{} and ({condition})", self.is_own);
        self
    }

    fn on_conflict(self, on_conflict: &'static str) -> Self {
        Self { on_conflict, ..self }
    }

    fn may_skip(self) -> Self {
        Self { may_skip: true, ..self }
    }

    /// Lists the columns that have other values after an import, or no part in it.
    pub fn changed_columns(&self) -> Vec<&'static str> {
        let values = self.values.iter().map(|(column, _)| *column);
        let numbers = self.numbers.iter().map(|(column, _)| *column);
        self.without.iter().copied().chain(values).chain(numbers).collect()
    }

    /// Returns true if the columns are another table's.
    pub fn is_second_pass(&self) -> bool {
        !self.second_pass.is_empty()
    }

    /// Lists the columns in the file, of those that the table has.
    pub(super) fn columns(&self, of_table: &[String]) -> Vec<String> {
        match self.is_second_pass() {
            true => self.second_pass.iter().map(|column| (*column).to_owned()).collect(),
            false => {
                of_table.iter().filter(|it| !self.without.contains(&it.as_str())).cloned().collect()
            }
        }
    }

    /// Writes the statement that reads the rows of campaign `$1`, each as JSON.
    pub(super) fn select(&self, columns: &[String]) -> String {
        let columns = list(columns, |column| format!("r.{}", quote(column)));
        let order = match self.order.as_str() {
            "" => String::new(),
            order => format!(" order by {order}"),
        };
        format!(
            "select row_to_json(line)::text from (select {columns} from {} where {}{order}) as line",
            self.from, self.is_exported
        )
    }

    /// Writes the statement that gives new numbers to the rows in the JSON array `$1`, if they have some.
    pub(super) fn renumber(&self, columns: &[String]) -> Option<String> {
        let numbers =
            self.numbers.iter().filter(|(column, _)| columns.iter().any(|it| it == column));
        let values: Vec<String> = numbers
            .map(|(column, Numbers { space, sequence })| {
                format!("('{space}', r.{}, '{sequence}'::regclass)", quote(column))
            })
            .collect();
        (!values.is_empty()).then(|| {
            format!(
                "insert into pg_temp.imported_numbers (space, old, new)
                 select n.space, n.old, nextval(n.sequence)
                   from (select distinct v.space, v.old, v.sequence
                           from json_populate_recordset(null::dalsegno.{}, $1::json) as r
                          cross join lateral (values {}) as v (space, old, sequence)
                          where v.old is not null) as n
                  where not exists (select from pg_temp.imported_numbers as i where i.space = n.space and i.old = n.old)
                  order by n.old",
                self.name,
                values.join(", ")
            )
        })
    }

    /// Writes the statement that adds the rows in the JSON array `$1` to campaign `$2`.
    pub(super) fn write(&self, columns: &[String]) -> String {
        let Self { name, is_own, .. } = self;
        if self.is_second_pass() {
            return format!(
                "update dalsegno.tasks as t set parent_id = r.parent_id, continues_id = r.continues_id
                   from json_populate_recordset(null::dalsegno.tasks, $1::json) as r
                  where t.id = r.id and t.campaign_id = $2 and {is_own}
                    and not exists (select from dalsegno.tasks as o where o.id in (r.parent_id, r.continues_id) and o.campaign_id <> $2)"
            );
        }
        let constants = self.values.iter().map(|(column, _)| (*column).to_owned());
        let constants = constants.filter(|column| !columns.contains(column));
        let columns: Vec<String> = columns.iter().cloned().chain(constants).collect();
        let (names, values) = (
            list(&columns, |column| quote(column)),
            list(&columns, |column| self.new_value(column)),
        );
        let on_conflict = match self.on_conflict {
            "" => String::new(),
            clause => format!(" on conflict {clause}"),
        };
        format!(
            "insert into dalsegno.{name} ({names}) overriding system value
             select {values} from json_populate_recordset(null::dalsegno.{name}, $1::json) as r where {is_own}{on_conflict}"
        )
    }

    fn new_value(&self, column: &str) -> String {
        if let Some((_, value)) = self.values.iter().find(|(of, _)| *of == column) {
            return (*value).to_owned();
        }
        if let Some((_, Numbers { space, .. })) = self.numbers.iter().find(|(of, _)| *of == column)
        {
            return format!(
                "(select i.new from pg_temp.imported_numbers as i where i.space = '{space}' and i.old = r.{})",
                quote(column)
            );
        }
        match column {
            "campaign_id" => "$2".to_owned(),
            column => format!("r.{}", quote(column)),
        }
    }
}

fn list(columns: &[String], write: impl Fn(&String) -> String) -> String {
    columns.iter().map(write).collect::<Vec<_>>().join(", ")
}

/// Quotes a name, because some columns are named like keywords.
fn quote(column: &str) -> String {
    format!("\"{}\"", column.replace('"', "\"\""))
}
