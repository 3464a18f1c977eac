//! Operations: one definition of each action of people and programs, for all interfaces.
//!
//! ```text
//! HTTP route ──┐ reads the input                 ┌─▶ Operation::run ─▶ output, or a refusal
//! CLI command ─┤ (path, query, body, flags) ─────┤
//! OpenAPI ─────┘ from SPEC and the input's type  └─▶ Change: begin ─▶ change ─▶ audit line ─▶ commit
//! ```
//!
//! An operation is a struct with its input as fields, a [`Spec`] and a function. An [`EventStream`] yields events
//! instead of one output. [`ALL`] lists all of them. The routes, their scopes, the API document and its query
//! parameters are derived from that list; `cli` calls the same structs on a database or over HTTP.
//!
//! Operations do not depend on a transport: adapters derive statuses, headers and exit codes from [`Spec`] and
//! [`Refusal`].

mod add_many_tasks;
mod add_task;
mod admission;
mod agents;
mod audit;
mod blackboard;
mod budgets;
mod bulk_actions;
mod call;
mod campaign_users;
mod campaign_versions;
mod campaigns;
mod child_tasks;
mod cleanups;
mod compactions;
mod context_diffs;
mod context_previews;
mod contexts;
mod costs;
mod credentials;
mod deliveries;
mod download;
mod estimates;
mod evals;
mod event_stream;
mod fact_uses;
mod facts;
mod fidelity;
mod fields;
mod files;
mod flow_estimates;
mod flows;
mod forks;
mod ids;
mod installation;
mod intake;
mod jobs;
mod keyed_calls;
mod keys;
mod lanes;
mod limits;
mod listing;
mod memory;
mod memory_changes;
mod operation;
mod overview;
mod posts;
mod producer;
mod provider_transcripts;
mod queues;
mod rate_limits;
mod reach;
mod refusal;
mod reruns;
mod schedules;
mod session_control;
mod sessions;
mod sign_ins;
mod spec;
mod streams;
mod task_files;
mod tasks;
mod text_search;
mod transaction;
mod turns;
mod waits;
mod webhooks;
mod workers;

pub use self::{
    add_many_tasks::{AddManyTasks, ManyAddedTasks},
    add_task::{AddTask, AddedTask},
    admission::{Admission, QueueReservation},
    agents::{
        AgentPauses, AgentStatuses, Agents, InterruptAgent, InterruptedTasks, ListAgentPauses,
        ListAgentStatuses, ListAgents, PauseAgent, PauseAgentEverywhere, ResetAgent, ResetAgents,
        ResumeAgent, ResumeAgentEverywhere,
    },
    audit::ListAudit,
    blackboard::{ListBlackboardChanges, PatchBlackboard, SetBlackboard, ShowBlackboard},
    budgets::{
        ChangeBudget, ChangeTaskBudget, ListBudgets, SetBudget, SetBudgetOutput, StoredOwner,
        find_budgets, rank_budgets,
    },
    bulk_actions::{CreateBulkAction, ListBulkActions, PreviewBulkAction, ShowBulkAction},
    call::Call,
    campaign_users::{PutCampaignUser, ShowCampaignUser, UserOfCampaign},
    campaign_versions::{
        CampaignDiff, CompareCampaignVersions, EditCampaign, ListCampaignVersions,
        ShowCampaignVersion,
    },
    campaigns::{
        CloseCampaign, CreateCampaign, EraseCampaign, ListCampaigns, ListErasures, PauseCampaign,
        ResumeCampaign, ShowCampaign, ShowErasure,
    },
    child_tasks::{Continuation, HandOut, HandedOut},
    cleanups::{ListCleanupRuns, PreviewCleanup, RunCleanup},
    compactions::CompareCompaction,
    context_diffs::{
        CompareContexts, ComparedContext, ContextDiff, PartChange, PartDiff, WordChange,
        WordChangeKind, diff_words,
    },
    context_previews::{PreviewAgentContext, PreviewTaskContext},
    contexts::{
        ContextState, ProviderRequest, SentContext, ShowContext, ShowLedgerContext, VerifiedCall,
        VerifyContexts,
    },
    costs::{ListCalls, ReportCosts},
    credentials::{ListCredentials, ResumeCredential},
    deliveries::{ListDeliveries, ReplayDelivery, ShowDelivery, TestWebhook},
    download::{Download, DownloadedFile},
    estimates::{EstimateSession, EstimateTask},
    evals::{EvalAnswers, ListEvalRuns, RecordEvalRun, ShowEvalRun},
    event_stream::{EventStream, Events, StreamEvent},
    fact_uses::{FactUse, FactUses, ListFactUses},
    facts::{
        EditFact, ForgetUser, ListExtractions, ListFacts, RevokeFact, SearchFacts, ShowFact,
        StateFact,
    },
    fidelity::{ListCheckedTurns, ReportFidelity},
    fields::{Fields, FormFile, ItemsText, parse_id},
    files::{
        FILE_VERSION, Files, ListFiles, ListPromptVersions, PromptText, PromptVersions, ShowFile,
        ShowPromptVersion, SourceText,
    },
    flow_estimates::{EstimateFlow, FlowEstimate, StepEstimate},
    flows::{
        AllTemplates, CancelFlow, ListFlowTemplates, ListFlows, PauseFlow, ResumeFlow, RetryFlow,
        ShowFlow, StartFlow,
    },
    forks::ForkSession,
    ids::{FindId, FoundId, Noun},
    installation::{Findings, InstallationView, RunDoctor, ShowInstallation},
    intake::Intake,
    jobs::{
        AwaitedModel, CancelJob, ExplainJob, HoldJob, JobState, ListJobs, ListedJob, ReleaseJob,
        RetryJob, ShowJob,
    },
    keyed_calls::{BAD_KEY, KEY_TAKEN, KeyedOutput, NO_KEY},
    keys::{CreateKey, KeyWithSecret, ListKeys, RevokeKey, RotateKey},
    lanes::{HoldLane, LaneName, ListLanes, ReleaseLane, ShowLane},
    limits::LIMITS,
    listing::{Listing, MAX_LIMIT, page_limit},
    memory::{ExportMemory, FindMemory, ListMemory, ListMemoryVersions, SearchMemory, ShowMemory},
    memory_changes::{ImportMemory, ImportedItem, PublishMemory, RevokeMemory},
    operation::{
        Answer, Change, ChangeOutput, ChangeResult, Entry, FileAnswer, JsonOutput, Operation, Run,
        StreamAnswer, TypeSchema, download, entry, stream,
    },
    overview::{Overview, ShowOverview},
    posts::{AddPost, ListPosts, PostOrder, ShowBoardArchive},
    provider_transcripts::{ProviderTranscript, ProviderTranscriptState, ShowProviderTranscript},
    queues::{
        ListQueues, ListWaits, PauseGroup, PauseQueue, ResumeGroup, ResumeQueue, ShowQueue,
        WaitCounts,
    },
    rate_limits::{ListRateLimits, UsedRateLimits},
    reach::Reach,
    refusal::{FieldError, Refusal, kind_of_status, status},
    reruns::{ListReruns, RerunTurn, TurnReruns},
    schedules::{
        ListSchedules, ManualRun, PauseSchedule, PutSchedule, RemoveSchedule, ResumeSchedule,
        RunSchedule, ScheduleDetail, ShowSchedule,
    },
    session_control::{
        AcceptedCompaction, CompactSession, CompactionAnswer, InterruptSession, ResetSession,
        ShowCompaction, UncompactSession,
    },
    sessions::{
        Archives, ExplainSession, ListArchives, ListSessions, ReadArchive, ReadTranscript,
        SessionView, ShowSession, ViewSession,
    },
    sign_ins::{EndSignIn, ListSignIns},
    spec::{Command, MAX_BULK_BYTES, Method, Spec, Success},
    streams::{BEGIN, END, FollowFeed, FollowTask},
    task_files::{DownloadTaskFile, ListTaskFiles, TaskFiles},
    tasks::{CancelTask, ChangeTaskPriority, ExplainTask, ListTasks, RetryTask, ShowTask},
    text_search::SearchTexts,
    transaction::{
        LONGEST_SCAN, Limits, OpenTransaction, Scan, SeveralTransactions, begin, begin_alongside,
        begin_read, begin_scan, begin_several,
    },
    turns::{ListTurns, ShowTurn},
    waits::{TOO_MANY_WAITING, TOO_MANY_WAITING_PER_CLIENT, WaitLimit, Waits},
    webhooks::{
        AddWebhook, DisableWebhook, EnableWebhook, ListWebhooks, RemoveWebhook, ReplayWebhook,
        RotateWebhook, ShowWebhook, ShowWebhookMessage, WebhookMessage, WebhookWithSecret,
    },
    workers::{ListWorkers, ShowWorkerActivity, WorkerActivity},
};

/// All operations.
pub const ALL: &[Entry] = &[
    entry::<ListCampaigns>(),
    entry::<ShowCampaign>(),
    entry::<CreateCampaign>(),
    entry::<EditCampaign>(),
    entry::<ListCampaignVersions>(),
    entry::<ShowCampaignVersion>(),
    entry::<CompareCampaignVersions>(),
    entry::<PauseCampaign>(),
    entry::<ResumeCampaign>(),
    entry::<CloseCampaign>(),
    entry::<ChangeBudget>(),
    entry::<ListBudgets>(),
    entry::<SetBudget>(),
    entry::<EraseCampaign>(),
    entry::<ShowErasure>(),
    entry::<ListErasures>(),
    entry::<ShowCampaignUser>(),
    entry::<PutCampaignUser>(),
    entry::<FindId>(),
    entry::<ShowOverview>(),
    entry::<RunDoctor>(),
    entry::<ShowInstallation>(),
    entry::<ListQueues>(),
    entry::<ShowQueue>(),
    entry::<ListWaits>(),
    entry::<PauseQueue>(),
    entry::<ResumeQueue>(),
    entry::<PauseGroup>(),
    entry::<ResumeGroup>(),
    entry::<ListSchedules>(),
    entry::<ShowSchedule>(),
    entry::<PutSchedule>(),
    entry::<RemoveSchedule>(),
    entry::<RunSchedule>(),
    entry::<PauseSchedule>(),
    entry::<ResumeSchedule>(),
    entry::<ListLanes>(),
    entry::<ShowLane>(),
    entry::<HoldLane>(),
    entry::<ReleaseLane>(),
    entry::<ListWorkers>(),
    entry::<ShowWorkerActivity>(),
    entry::<ListRateLimits>(),
    entry::<ListCredentials>(),
    entry::<ResumeCredential>(),
    entry::<ListAudit>(),
    entry::<ListCleanupRuns>(),
    entry::<PreviewCleanup>(),
    entry::<RunCleanup>(),
    entry::<ListJobs>(),
    entry::<ShowJob>(),
    entry::<ExplainJob>(),
    entry::<RetryJob>(),
    entry::<CancelJob>(),
    entry::<HoldJob>(),
    entry::<ReleaseJob>(),
    entry::<CreateBulkAction>(),
    entry::<PreviewBulkAction>(),
    entry::<ListBulkActions>(),
    entry::<ShowBulkAction>(),
    entry::<ListKeys>(),
    entry::<CreateKey>(),
    entry::<RotateKey>(),
    entry::<RevokeKey>(),
    entry::<ListSignIns>(),
    entry::<EndSignIn>(),
    entry::<ListWebhooks>(),
    entry::<ShowWebhookMessage>(),
    entry::<ShowWebhook>(),
    entry::<AddWebhook>(),
    entry::<RemoveWebhook>(),
    entry::<RotateWebhook>(),
    entry::<EnableWebhook>(),
    entry::<DisableWebhook>(),
    entry::<ReplayWebhook>(),
    entry::<TestWebhook>(),
    entry::<ListDeliveries>(),
    entry::<ShowDelivery>(),
    entry::<ReplayDelivery>(),
    entry::<ListSessions>(),
    entry::<ShowSession>(),
    entry::<ExplainSession>(),
    entry::<ReadTranscript>(),
    entry::<ViewSession>(),
    entry::<ListArchives>(),
    entry::<ReadArchive>(),
    entry::<RecordEvalRun>(),
    entry::<ListEvalRuns>(),
    entry::<ShowEvalRun>(),
    entry::<ReportCosts>(),
    entry::<ListCalls>(),
    entry::<ListFiles>(),
    entry::<ShowFile>(),
    entry::<ListPromptVersions>(),
    entry::<ShowPromptVersion>(),
    entry::<ReportFidelity>(),
    entry::<ListCheckedTurns>(),
    entry::<ListTurns>(),
    entry::<ShowTurn>(),
    entry::<RerunTurn>(),
    entry::<ListReruns>(),
    entry::<ShowContext>(),
    entry::<ShowLedgerContext>(),
    entry::<ShowProviderTranscript>(),
    entry::<VerifyContexts>(),
    entry::<CompareContexts>(),
    entry::<PreviewTaskContext>(),
    entry::<PreviewAgentContext>(),
    entry::<EstimateTask>(),
    entry::<EstimateSession>(),
    entry::<ResetSession>(),
    entry::<CompactSession>(),
    entry::<ShowCompaction>(),
    entry::<UncompactSession>(),
    entry::<InterruptSession>(),
    entry::<CompareCompaction>(),
    entry::<ForkSession>(),
    entry::<ListAgents>(),
    entry::<ListAgentPauses>(),
    entry::<ListAgentStatuses>(),
    entry::<ResetAgents>(),
    entry::<ResetAgent>(),
    entry::<InterruptAgent>(),
    entry::<PauseAgent>(),
    entry::<PauseAgentEverywhere>(),
    entry::<ResumeAgent>(),
    entry::<ResumeAgentEverywhere>(),
    entry::<ListTasks>(),
    entry::<AddTask>(),
    entry::<AddManyTasks>(),
    entry::<ShowTask>(),
    entry::<ListTaskFiles>(),
    download::<DownloadTaskFile>(),
    stream::<FollowTask>(),
    entry::<HandOut>(),
    entry::<CancelTask>(),
    entry::<RetryTask>(),
    entry::<ChangeTaskPriority>(),
    entry::<ChangeTaskBudget>(),
    entry::<ExplainTask>(),
    entry::<ShowBlackboard>(),
    entry::<SetBlackboard>(),
    entry::<PatchBlackboard>(),
    entry::<ListBlackboardChanges>(),
    entry::<ListPosts>(),
    entry::<ShowBoardArchive>(),
    entry::<AddPost>(),
    entry::<SearchTexts>(),
    entry::<ListMemory>(),
    entry::<SearchMemory>(),
    entry::<ExportMemory>(),
    entry::<FindMemory>(),
    entry::<ShowMemory>(),
    entry::<ListMemoryVersions>(),
    entry::<PublishMemory>(),
    entry::<ImportMemory>(),
    entry::<RevokeMemory>(),
    entry::<ListExtractions>(),
    entry::<ListFacts>(),
    entry::<SearchFacts>(),
    entry::<ShowFact>(),
    entry::<ListFactUses>(),
    entry::<StateFact>(),
    entry::<EditFact>(),
    entry::<RevokeFact>(),
    entry::<ForgetUser>(),
    entry::<ListFlowTemplates>(),
    entry::<ListFlows>(),
    entry::<ShowFlow>(),
    entry::<EstimateFlow>(),
    entry::<StartFlow>(),
    entry::<PauseFlow>(),
    entry::<ResumeFlow>(),
    entry::<RetryFlow>(),
    entry::<CancelFlow>(),
    stream::<FollowFeed>(),
];

/// Returns the operation of a route.
pub fn find(method: &str, path: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.spec.method.as_str() == method && entry.spec.path == path)
}

/// Returns the default reason of a change.
fn by_request() -> String {
    "by a request".to_owned()
}
