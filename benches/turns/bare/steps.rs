//! What the parameters of a turn's statements are in pgbench's words.

pub enum Step {
    /// A line that the bench adds.
    Own(&'static str),
    /// The next statement of the turn, which has to hold `words`.
    Of {
        words: &'static str,
        /// What stands for $1, $2 and so on.
        parameters: &'static [&'static str],
        /// Under which prefix pgbench keeps what it returns.
        keep: Option<&'static str>,
    },
}

/// Claims the head of one of the client's lanes. A worker claims for many turns in one transaction; here it is a part of
/// the turn's first one, so that it costs no commit of its own either.
const CLAIM: &str = "\
update dalsegno.jobs as j
   set state = 'running', lease = nextval('dalsegno.leases'), worker_id = '00000000-0000-0000-0000-000000000001',
       claimed_at = clock_timestamp(), attempt = j.attempt + 1
 where j.id = (select h.id from dalsegno.jobs as h
                where h.lane_id = (select b.lane_id from bench_lanes as b where b.n = :n) and h.state = 'ready')
returning j.id, j.lease \\gset job_";

const DIGEST: &str = r"'\x0101010101010101010101010101010101010101010101010101010101010101'::bytea";
const DIGESTS: &str =
    r"array['\x0101010101010101010101010101010101010101010101010101010101010101']";

pub const STEPS: &[Step] = &[
    Step::Own("\\set k :k + 1"),
    Step::Own("\\set n (:k % :n_lanes) * :n_clients + :client_id"),
    Step::Own("begin;"),
    Step::Own(CLAIM),
    Step::Of {
        words: "from dalsegno.tasks as t",
        parameters: &[":job_id", "'{}'::text[]", "now()", "65536", "'{}'::text[]", "65536"],
        keep: Some("task_"),
    },
    Step::Of {
        words: "from dalsegno.sessions",
        parameters: &[":task_campaign_id", ":task_agent", ":task_instance"],
        keep: Some("session_"),
    },
    Step::Of {
        words: "from dalsegno.messages",
        parameters: &[":session_id", "greatest(:session_last_seq - 2, 0)", "9223372036854775807"],
        keep: None,
    },
    Step::Of {
        words: "with entered as",
        parameters: &[
            ":session_id",
            ":job_lease",
            ":session_turn_count + 1",
            "1",
            "now()",
            ":task_id",
            "1",
            ":job_id",
            "0",
            "0",
            "array[:task_id]",
            "array['user']",
            "array[:task_prompt]",
            "array[700000]",
            DIGESTS,
            "array[false]",
            "array[null]",
            "array[null]",
            "array[null]",
            "array[:task_campaign_id]",
            "array[:task_id]",
            "array[:session_id]",
            "array['turn.started']",
            r#"array['{"turn": 1, "provider": "sim", "model": "sim-1"}']"#,
            "null",
            "null",
            "0",
        ],
        keep: Some("begun_"),
    },
    Step::Own("commit;"),
    Step::Own("begin;"),
    Step::Of {
        words: "with left_it as",
        parameters: &[
            ":session_id",
            ":session_turn_count + 1",
            ":job_lease",
            "now()",
            "'idle'",
            "1",
            "1500",
            "1500::bigint",
            "false",
            "null::bigint",
            r#"'{"factor": 1.25, "observations": 20, "deviation": 0.01}'::jsonb"#,
            r#"'{"weight": 700000, "real_tokens": 1000}'::jsonb"#,
            "now()",
            "null",
            "array[gen_random_uuid()]",
            "array['assistant']",
            "array[:answer]",
            "array[700000]",
            DIGESTS,
            "array[false]",
            "array[null]",
            "array[null]",
            "array[null]",
            "jsonb_build_array(jsonb_build_object('called_at', now(), 'campaign_id', :task_campaign_id::uuid, 'task_id', :task_id::uuid, \
             'session_id', :session_id::uuid, 'turn', 1, 'cost_micros', 0, 'input', 1000, 'output', 500, 'total_ms', 1, \
             'purpose', 'turn', 'outcome', 'done', 'agent', 'writer', 'provider', 'sim', 'model', 'sim-1'))",
            "'done'",
            "null",
            "'{}'",
            ":task_id",
            "'done'",
            ":answer",
            "null",
            ":task_campaign_id",
            "true",
            ":manifest",
            "0",
            DIGEST,
            "1000",
            "1000",
            "array[:task_campaign_id]",
            "array[:task_id]",
            "array[:session_id]",
            "array['turn.done']",
            r#"array['{"turn": 1, "input_tokens": 1000, "output_tokens": 500}']"#,
            "null",
            "null",
            ":session_generation",
            "null::bigint[]",
            "null::bigint",
            "null::uuid",
            "null",
            "null::bigint",
            "null::bytea",
            "false",
        ],
        keep: None,
    },
    Step::Of {
        words: "delete from dalsegno.jobs",
        parameters: &["array[:job_id]", "array[:job_lease]"],
        keep: None,
    },
    Step::Own("commit;"),
];
