//! The parameters of a turn's statements as expressions of pgbench.

pub enum Step {
    /// A line that the bench adds.
    Own(&'static str),
    /// The next statement of the turn, which has to hold `words`.
    Of {
        words: &'static str,
        /// Expressions for $1, $2 and so on.
        parameters: &'static [&'static str],
        /// Prefix of the variables in which pgbench stores the result.
        keep: Option<&'static str>,
    },
}

/// Claims the head of one of the client's lanes. A worker claims for many turns in one transaction. Here the claim is a
/// part of the turn's first transaction, so that it costs no commit of its own either.
const CLAIM: &str = "\
update dalsegno.jobs as j
   set state = 'running', lease = nextval('dalsegno.leases'), worker_id = '00000000-0000-0000-0000-000000000001',
       claimed_at = clock_timestamp(), attempt = j.attempt + 1
 where j.id = (select h.id from dalsegno.jobs as h
                where h.lane_id = (select b.lane_id from bench_lanes as b where b.n = :n) and h.state = 'ready')
returning j.id, j.lease \\gset job_";

const BEGUN: &str = "jsonb_build_object('session_id', :session_id::uuid, 'number', :session_turn_count + 1, 'lease', :job_lease::bigint, \
     'task_id', :task_id::uuid, 'attempt', 1, 'job_id', :job_id::bigint, 'now', now(), 'reserved_micros', 0, 'reserved_tokens', 0, \
     'n_places', 1)";

const PROMPT: &str = r"jsonb_build_array(jsonb_build_object('place', 0, 'id', :task_id::uuid, 'role', 'user', 'text', :task_prompt::text,
     'weight', 700000, 'digest', '\x0101010101010101010101010101010101010101010101010101010101010101', 'partial', false))";

const STARTED: &str = r#"jsonb_build_array(jsonb_build_object('place', 0, 'campaign_id', :task_campaign_id::uuid, 'task_id', :task_id::uuid,
     'session_id', :session_id::uuid, 'kind', 'turn.started', 'data', '{"turn": 1, "provider": "sim", "model": "sim-1"}'::jsonb))"#;

const ENDED: &str = r#"jsonb_build_object('session_id', :session_id::uuid, 'number', :session_turn_count + 1, 'lease', :job_lease::bigint,
     'task_id', :task_id::uuid, 'campaign_id', :task_campaign_id::uuid, 'now', now(), 'state', 'done', 'flags', '[]'::jsonb,
     'is_prompt_rejected', false, 'session_state', 'idle', 'n_messages', 1, 'tokens_used', 1500, 'context_tokens', 1500,
     'expires_at', now(), 'calibration', '{"factor": 1.25, "observations": 20, "deviation": 0.01}'::jsonb,
     'checkpoint', '{"weight": 700000, "real_tokens": 1000}'::jsonb, 'moves_head', false, 'generation', :session_generation::integer,
     'task_state', 'done', 'task_result', :answer::text, 'is_unreserved', true)"#;

const ANSWER: &str = r"jsonb_build_array(jsonb_build_object('place', 0, 'id', gen_random_uuid(), 'role', 'assistant', 'text', :answer::text,
     'weight', 700000, 'digest', '\x0101010101010101010101010101010101010101010101010101010101010101', 'partial', false))";

const CALL: &str = "jsonb_build_array(jsonb_build_object('called_at', now(), 'campaign_id', :task_campaign_id::uuid, 'task_id', :task_id::uuid, \
     'session_id', :session_id::uuid, 'turn', 1, 'cost_micros', 0, 'input', 1000, 'output', 500, 'total_ms', 1, \
     'purpose', 'turn', 'outcome', 'done', 'agent', 'writer', 'provider', 'sim', 'model', 'sim-1'))";

const MANIFEST: &str = r"jsonb_build_array(jsonb_build_object('session_id', :session_id::uuid, 'turn', :session_turn_count + 1, 'call', 0,
     'estimated_tokens', 1000, 'real_tokens', 1000, 'sha256', '\x0101010101010101010101010101010101010101010101010101010101010101',
     'manifest', :manifest::jsonb))";

const DONE: &str = r#"jsonb_build_array(jsonb_build_object('place', 0, 'campaign_id', :task_campaign_id::uuid, 'task_id', :task_id::uuid,
     'session_id', :session_id::uuid, 'kind', 'turn.done', 'data', '{"turn": 1, "input_tokens": 1000, "output_tokens": 500}'::jsonb))"#;

pub const STEPS: &[Step] = &[
    Step::Own("\\set k :k + 1"),
    Step::Own("\\set n (:k % :n_lanes) * :n_clients + :client_id"),
    Step::Own("begin;"),
    Step::Own(CLAIM),
    Step::Of {
        words: "from dalsegno.tasks as t",
        parameters: &[
            ":job_id",
            "'{}'::text[]",
            "now()",
            "65536",
            "'{}'::text[]",
            "65536",
            "false",
        ],
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
        words: "n_places bigint",
        parameters: &[BEGUN, PROMPT, STARTED],
        keep: Some("begun_"),
    },
    Step::Own("commit;"),
    Step::Own("begin;"),
    Step::Of {
        words: "is_prompt_rejected boolean",
        parameters: &[ENDED, ANSWER, "'[]'", CALL, MANIFEST, DONE],
        keep: None,
    },
    Step::Of {
        words: "delete from dalsegno.jobs",
        parameters: &["array[:job_id]", "array[:job_lease]"],
        keep: None,
    },
    Step::Own("commit;"),
];
