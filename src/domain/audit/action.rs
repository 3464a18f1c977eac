//! What can be done, as the audit log names it: the noun, and what happened to it.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    CampaignCreate,
    CampaignPause,
    CampaignResume,
    CampaignClose,
    CampaignErase,
    CampaignLimit,
    BulkActionCreate,
    /// Somebody spoke on the board of the campaign.
    PostAdd,
    TaskCancel,
    TaskRetry,
    SessionReset,
    SessionCompact,
    SessionUncompact,
    SessionInterrupt,
    SchedulePut,
    ScheduleRemove,
    ScheduleRun,
    LoginResume,
    SchedulePause,
    ScheduleResume,
    CleanupRun,
    QueuePause,
    QueueResume,
    GroupPause,
    GroupResume,
    LaneHold,
    LaneRelease,
    JobRetry,
    JobCancel,
    JobHold,
    JobRelease,
    KeyCreate,
    KeyRotate,
    KeyRevoke,
    WebhookAdd,
    WebhookRemove,
    WebhookRotate,
    WebhookEnable,
    WebhookDisable,
    WebhookTest,
    WebhookReplay,
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CampaignCreate => "campaign.create",
            Self::CampaignPause => "campaign.pause",
            Self::CampaignResume => "campaign.resume",
            Self::CampaignClose => "campaign.close",
            Self::CampaignErase => "campaign.erase",
            Self::CampaignLimit => "campaign.limit",
            Self::PostAdd => "campaign.post",
            Self::BulkActionCreate => "bulk_action.create",
            Self::TaskCancel => "task.cancel",
            Self::TaskRetry => "task.retry",
            Self::SessionReset => "session.reset",
            Self::SessionCompact => "session.compact",
            Self::SessionUncompact => "session.uncompact",
            Self::SessionInterrupt => "session.interrupt",
            Self::SchedulePut => "schedule.put",
            Self::ScheduleRemove => "schedule.remove",
            Self::ScheduleRun => "schedule.run",
            Self::LoginResume => "login.resume",
            Self::SchedulePause => "schedule.pause",
            Self::ScheduleResume => "schedule.resume",
            Self::CleanupRun => "cleanup.run",
            Self::QueuePause => "queue.pause",
            Self::QueueResume => "queue.resume",
            Self::GroupPause => "group.pause",
            Self::GroupResume => "group.resume",
            Self::LaneHold => "lane.hold",
            Self::LaneRelease => "lane.release",
            Self::JobRetry => "job.retry",
            Self::JobCancel => "job.cancel",
            Self::JobHold => "job.hold",
            Self::JobRelease => "job.release",
            Self::KeyCreate => "key.create",
            Self::KeyRotate => "key.rotate",
            Self::KeyRevoke => "key.revoke",
            Self::WebhookAdd => "webhook.add",
            Self::WebhookRemove => "webhook.remove",
            Self::WebhookRotate => "webhook.rotate",
            Self::WebhookEnable => "webhook.enable",
            Self::WebhookDisable => "webhook.disable",
            Self::WebhookTest => "webhook.test",
            Self::WebhookReplay => "webhook.replay",
        }
    }

    /// What it is done to: the first word.
    pub fn subject_kind(self) -> &'static str {
        self.as_str().split('.').next().unwrap_or_default()
    }

    pub fn of_status(status: crate::domain::campaigns::Status) -> Self {
        use crate::domain::campaigns::Status;
        match status {
            Status::Active => Self::CampaignResume,
            Status::Paused => Self::CampaignPause,
            Status::Closed => Self::CampaignClose,
        }
    }
}
