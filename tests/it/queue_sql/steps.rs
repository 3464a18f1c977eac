//! The events of a random sequence, and their weights.
//!
//! Steps name jobs by numbers, taken modulo the number of jobs at that time. So a sequence still has a meaning after it
//! is shortened. A step that finds no job does nothing.

use proptest::{collection::vec, option::weighted, prelude::*};

use super::model::{GROUPS, LANES, QUEUES, Spec};

/// Chooses one of the present jobs.
pub type Pick = u8;
/// One of the processes; see [`N_PROCESSES`].
pub type Process = usize;

pub const N_PROCESSES: usize = 3;

#[derive(Debug, Clone)]
pub enum Step {
    Enqueue(Spec),
    EnqueueMany(Vec<Spec>),
    /// An application enqueues and keeps its transaction open.
    OpenEnqueue(Spec),
    /// An application cancels and keeps its transaction open.
    OpenCancel(Pick),
    FinishOpen {
        commit: bool,
    },
    /// An application adds jobs that wait for a signal.
    EnqueueWaiting(Spec),
    /// The application allows them to run: now, or at a time that a step has to bring.
    Signal {
        picks: Vec<Pick>,
        later: bool,
    },
    PutAside(Vec<Pick>),

    Register(Process),
    Renew(Process),
    /// Its heartbeats have stopped for a whole lease.
    Expire(Process),
    /// Its heartbeats have continued for a whole lease.
    Season(Process),
    Drain(Process),
    Stop(Process),
    Rescue(Process),
    UnmarkCrash(Pick),

    Claim {
        process: Process,
        n_slots: usize,
        turned: bool,
        after_group: Option<usize>,
    },
    ClaimAlone(Process),
    EndDone(Vec<(Pick, Fence)>),
    EndRetry(Pick, Fence),
    EndSnooze(Pick, Fence),
    EndHold(Pick, Fence),
    EndFail(Pick, Fence, bool),
    EndCancelled(Pick, Fence),
    GiveBack(Vec<(Pick, Fence)>),
    /// The run ends and its job waits for a signal.
    EndAside(Pick, Fence),

    /// The time of a scheduled job comes.
    Due(Pick),
    Promote,
    Sweep,
    CancelSweep,
    RollUp,

    Cancel(Pick),
    HoldJob(Pick),
    ReleaseJob(Pick),
    RetryJob(Pick),
    HoldLane(usize),
    ReleaseLane(usize),
    LanePolicy(usize, bool),
    PauseQueue(usize),
    PauseGroup(usize),
    Resume(Pick),
}

/// The lease that a write carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    Current,
    /// A lease that the job had before, or never.
    Stale,
    /// The current lease of another job.
    Foreign,
}

pub fn sequence() -> impl Strategy<Value = Vec<Step>> {
    let single = step().prop_map(|step| vec![step]);
    let fragment = prop_oneof![24 => single, 1 => (1..4_usize).prop_map(crash_loop)];
    vec(fragment, 10..80).prop_map(|fragments| fragments.concat())
}

/// Returns the steps of a worker that dies of the job it claims, several times. Single random steps hardly ever come in
/// this order.
fn crash_loop(n_crashes: usize) -> Vec<Step> {
    let claim = Step::Claim { process: 1, n_slots: 2, turned: false, after_group: None };
    let rescue =
        [Step::Register(0), Step::Season(0), Step::Register(1), Step::ClaimAlone(1), claim];
    let back = [Step::Expire(1), Step::Rescue(0), Step::Due(0), Step::Due(0), Step::Promote];
    let crash = [rescue, back].concat();
    std::iter::repeat_n(crash, n_crashes).flatten().collect()
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => enqueues(),
        26 => claims(),
        34 => ends(),
        16 => time(),
        14 => workers(),
        16 => people(),
    ]
}

fn spec() -> impl Strategy<Value = Spec> {
    let names = (weighted(0.75, 0..LANES.len()), 0..QUEUES.len(), weighted(0.3, 0..GROUPS.len()));
    let numbers = (prop_oneof![3 => Just(100_i16), 1 => Just(5)], 1..4_i16);
    let rest = (prop::bool::weighted(0.95), prop::bool::weighted(0.15), weighted(0.05, 0..2_u8));
    (names, numbers, rest).prop_map(
        |((lane, queue, group), (priority, max_attempts), (known, later, key))| Spec {
            lane,
            queue,
            group,
            priority,
            max_attempts,
            known,
            later,
            key,
        },
    )
}

fn enqueues() -> impl Strategy<Value = Step> {
    let unkeyed = || spec().prop_map(|spec| Spec { key: None, ..spec });
    prop_oneof![
        6 => spec().prop_map(Step::Enqueue),
        2 => vec(spec(), 1..6).prop_map(Step::EnqueueMany),
        1 => unkeyed().prop_map(Step::OpenEnqueue),
        1 => any::<Pick>().prop_map(Step::OpenCancel),
        2 => prop::bool::weighted(0.7).prop_map(|commit| Step::FinishOpen { commit }),
        1 => unkeyed().prop_map(Step::EnqueueWaiting),
        2 => signals(),
    ]
}

fn signals() -> impl Strategy<Value = Step> {
    let picks = || vec(any::<Pick>(), 1..4);
    prop_oneof![
        3 => (picks(), prop::bool::weighted(0.3)).prop_map(|(picks, later)| Step::Signal { picks, later }),
        2 => picks().prop_map(Step::PutAside),
    ]
}

fn claims() -> impl Strategy<Value = Step> {
    let claim = (0..N_PROCESSES, 1..6_usize, any::<bool>(), weighted(0.5, 0..GROUPS.len()));
    prop_oneof![
        6 => claim.prop_map(|(process, n_slots, turned, after_group)| Step::Claim { process, n_slots, turned, after_group }),
        1 => (0..N_PROCESSES).prop_map(Step::ClaimAlone),
    ]
}

fn fence() -> impl Strategy<Value = Fence> {
    prop_oneof![6 => Just(Fence::Current), 1 => Just(Fence::Stale), 1 => Just(Fence::Foreign)]
}

fn ends() -> impl Strategy<Value = Step> {
    let pick = any::<Pick>;
    prop_oneof![
        5 => vec((pick(), fence()), 1..5).prop_map(Step::EndDone),
        3 => (pick(), fence()).prop_map(|(pick, fence)| Step::EndRetry(pick, fence)),
        2 => (pick(), fence()).prop_map(|(pick, fence)| Step::EndSnooze(pick, fence)),
        1 => (pick(), fence()).prop_map(|(pick, fence)| Step::EndHold(pick, fence)),
        2 => (pick(), fence(), any::<bool>()).prop_map(|(pick, fence, hold)| Step::EndFail(pick, fence, hold)),
        1 => (pick(), fence()).prop_map(|(pick, fence)| Step::EndCancelled(pick, fence)),
        2 => vec((pick(), fence()), 1..4).prop_map(Step::GiveBack),
        1 => (pick(), fence()).prop_map(|(pick, fence)| Step::EndAside(pick, fence)),
    ]
}

fn time() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<Pick>().prop_map(Step::Due),
        4 => Just(Step::Promote),
        3 => Just(Step::Sweep),
        1 => Just(Step::CancelSweep),
        1 => Just(Step::RollUp),
    ]
}

fn workers() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..N_PROCESSES).prop_map(Step::Register),
        2 => (0..N_PROCESSES).prop_map(Step::Renew),
        3 => (0..N_PROCESSES).prop_map(Step::Expire),
        2 => (0..N_PROCESSES).prop_map(Step::Season),
        1 => (0..N_PROCESSES).prop_map(Step::Drain),
        1 => (0..N_PROCESSES).prop_map(Step::Stop),
        5 => (0..N_PROCESSES).prop_map(Step::Rescue),
        1 => any::<Pick>().prop_map(Step::UnmarkCrash),
    ]
}

fn people() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<Pick>().prop_map(Step::Cancel),
        2 => any::<Pick>().prop_map(Step::HoldJob),
        3 => any::<Pick>().prop_map(Step::ReleaseJob),
        3 => any::<Pick>().prop_map(Step::RetryJob),
        2 => (0..LANES.len()).prop_map(Step::HoldLane),
        3 => (0..LANES.len()).prop_map(Step::ReleaseLane),
        1 => (0..LANES.len(), any::<bool>()).prop_map(|(lane, hold)| Step::LanePolicy(lane, hold)),
        1 => (0..QUEUES.len()).prop_map(Step::PauseQueue),
        1 => (0..GROUPS.len()).prop_map(Step::PauseGroup),
        2 => any::<Pick>().prop_map(Step::Resume),
    ]
}
