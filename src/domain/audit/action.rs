//! Actions as the audit log names them: a noun, and a verb for what happened to it.

/// Defines the actions with their names, each once.
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $name:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action {
            $($(#[$doc])* $action,)*
        }

        impl Action {
            /// All actions. Those of one noun follow each other.
            pub const ALL: &[Self] = &[$(Self::$action,)*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$action => $name,)*
                }
            }
        }
    };
}

actions! {
    CampaignCreate = "campaign.create",
    /// Brief or client context were changed.
    CampaignEdit = "campaign.edit",
    CampaignPause = "campaign.pause",
    CampaignResume = "campaign.resume",
    CampaignClose = "campaign.close",
    CampaignErase = "campaign.erase",
    CampaignLimit = "campaign.limit",
    /// A campaign was written to a file.
    CampaignExport = "campaign.export",
    /// A campaign was added from a file.
    CampaignImport = "campaign.import",
    /// The user for whom a campaign works was set.
    CampaignUser = "campaign.user",
    /// A person or a program posted on the board of the campaign.
    PostAdd = "campaign.post",
    /// The budget of an agent, a user or a day was set or removed.
    BudgetSet = "budget.set",
    AgentPause = "agent.pause",
    AgentResume = "agent.resume",
    AgentReset = "agent.reset",
    AgentInterrupt = "agent.interrupt",
    BlackboardSet = "blackboard.set",
    BlackboardPatch = "blackboard.patch",
    MemoryPublish = "memory.publish",
    MemoryRevoke = "memory.revoke",
    MemoryImport = "memory.import",
    /// The results of an eval run were stored.
    EvalRecord = "eval.record",
    FactState = "fact.state",
    FactEdit = "fact.edit",
    FactRevoke = "fact.revoke",
    UserForget = "user.forget",
    BulkActionCreate = "bulk_action.create",
    FlowStart = "flow.start",
    FlowPause = "flow.pause",
    FlowResume = "flow.resume",
    FlowRetry = "flow.retry",
    FlowCancel = "flow.cancel",
    TaskCancel = "task.cancel",
    TaskRetry = "task.retry",
    TaskPriority = "task.priority",
    /// The budget of a task was changed.
    TaskLimit = "task.limit",
    /// A tool has changed something.
    ToolCall = "tool.call",
    /// A caller used a tool without permission.
    ToolDeny = "tool.deny",
    SessionReset = "session.reset",
    SessionCompact = "session.compact",
    SessionUncompact = "session.uncompact",
    SessionInterrupt = "session.interrupt",
    SessionFork = "session.fork",
    SessionRerun = "session.rerun",
    SchedulePut = "schedule.put",
    ScheduleRemove = "schedule.remove",
    ScheduleRun = "schedule.run",
    SchedulePause = "schedule.pause",
    ScheduleResume = "schedule.resume",
    CredentialResume = "credential.resume",
    CleanupRun = "cleanup.run",
    QueuePause = "queue.pause",
    QueueResume = "queue.resume",
    GroupPause = "group.pause",
    GroupResume = "group.resume",
    LaneHold = "lane.hold",
    LaneRelease = "lane.release",
    JobRetry = "job.retry",
    JobCancel = "job.cancel",
    JobHold = "job.hold",
    JobRelease = "job.release",
    KeyCreate = "key.create",
    KeyRotate = "key.rotate",
    KeyRevoke = "key.revoke",
    /// A browser exchanged a key for a cookie.
    SignInCreate = "sign_in.create",
    SignInEnd = "sign_in.end",
    WebhookAdd = "webhook.add",
    WebhookRemove = "webhook.remove",
    WebhookRotate = "webhook.rotate",
    WebhookEnable = "webhook.enable",
    WebhookDisable = "webhook.disable",
    WebhookTest = "webhook.test",
    WebhookReplay = "webhook.replay",
}

impl Action {
    /// Returns the kind of the subject: the first word of the action's name.
    pub fn subject_kind(self) -> &'static str {
        self.as_str().split('.').next().unwrap_or_default()
    }
}
