//! Words for the reasons of waiting jobs and the outcomes of runs, alike on the command line and in the console.

use crate::queue::admin::WaitReason;

/// Names what a job waits for.
pub fn describe_wait(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Slot => "a free slot of a worker",
        WaitReason::Pause => "the end of a pause",
        WaitReason::Lane => "the task ahead in its conversation",
        WaitReason::LaneHold => "the release of its lane",
        WaitReason::Later => "its start time",
        WaitReason::Retry => "its next attempt after an error",
        WaitReason::Snooze => "its next check of a condition, such as its agent's broken file",
        WaitReason::Provider => "a busy or unreachable provider",
        WaitReason::Batch => "the answer to its batch",
        WaitReason::Condition => "space in a budget or a rate limit",
        WaitReason::Crash => "its next attempt after a lost worker",
        WaitReason::Signal => "another task, or its flow",
        WaitReason::Person => "its release by a person",
        WaitReason::Failure => "a decision after its failure",
    }
}

/// Names what ends the waits for a reason, with the commands. `None`: the jobs go on by themselves, and nothing has to be done.
pub fn describe_wait_end(reason: WaitReason) -> Option<&'static str> {
    Some(match reason {
        WaitReason::Pause => {
            "`dalsegno campaign resume CAMPAIGN`, or `dalsegno queue resume NAME` for a queue"
        }
        WaitReason::LaneHold => {
            "`dalsegno lane ls --held` lists the lanes, `dalsegno lane release NAME` releases one"
        }
        WaitReason::Condition => {
            "`dalsegno budget ls` and `dalsegno rate-limit ls` show the limits; a higher one lets them go on"
        }
        WaitReason::Snooze => {
            "they are checked again automatically; `dalsegno job explain ID` names the cause and the time, and `dalsegno job retry ID` checks one at once"
        }
        WaitReason::Signal => {
            "the end of the other task; `dalsegno task explain ID` names it, or the paused flow"
        }
        WaitReason::Person => {
            "`dalsegno job ls --waits-for person` lists them, `dalsegno job release ID` releases one; after the pause of an agent `dalsegno agent resume NAME`"
        }
        WaitReason::Failure => {
            "`dalsegno job ls --waits-for failure` lists them, `dalsegno job retry ID` runs one again"
        }
        WaitReason::Slot
        | WaitReason::Lane
        | WaitReason::Later
        | WaitReason::Retry
        | WaitReason::Provider
        | WaitReason::Batch
        | WaitReason::Crash => return None,
    })
}
