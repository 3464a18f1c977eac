//! Alarms of the scheduler: one job of tokio-cron-scheduler per schedule, at its next moment.
//!
//! The library is given moments instead of timetables, because it keeps the UTC offset that a time zone had when a job
//! was added. It works in whole seconds of the machine's clock. So it starts a job up to [`LEAD`] early, and the job
//! waits for the exact moment.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

use crate::clock::Clock;

/// Time by which the library may start a job early. It drops the fractions of a second of the delay and of its clock.
const LEAD: Duration = Duration::from_secs(2);
/// Drift between the clocks above which an alarm is set again.
const TOLERANCE: Duration = Duration::from_millis(200);
/// Timeout of a call of the library. It answers within milliseconds, or never, when one of its tasks has ended.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("tokio-cron-scheduler failed")]
    Library(#[from] JobSchedulerError),
    #[error("tokio-cron-scheduler did not answer within {ANSWER_LIMIT:?}")]
    NoAnswer,
}

/// The alarms of a process. Each wakes the scheduler once.
pub(super) struct Alarms {
    library: JobScheduler,
    wake: Arc<Notify>,
    by_schedule: BTreeMap<String, Alarm>,
}

struct Alarm {
    moment: DateTime<Utc>,
    due: AlarmTime,
    job: Option<Uuid>,
    has_rung: Arc<AtomicBool>,
}

/// A moment of the database's clock, converted to two other clocks.
#[derive(Clone, Copy)]
struct AlarmTime {
    /// The same moment by the library's clock.
    machine: DateTime<Utc>,
    monotonic: Instant,
}

impl Alarms {
    pub(super) async fn start(wake: Arc<Notify>) -> Result<Self, Error> {
        let library = wait_for_answer(JobScheduler::new()).await?;
        wait_for_answer(library.start()).await?;
        Ok(Self { library, wake, by_schedule: BTreeMap::new() })
    }

    /// Sets an alarm for each of these moments, and removes all others.
    pub(super) async fn set(
        &mut self,
        moments: &BTreeMap<String, DateTime<Utc>>,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let is_stale = |(name, alarm): &(&String, &Alarm)| {
            moments.get(*name).is_none_or(|moment| !alarm.is_set_for(*moment, clock))
        };
        let stale: Vec<String> =
            self.by_schedule.iter().filter(is_stale).map(|(name, _)| name.clone()).collect();
        for name in stale {
            self.remove(&name).await?;
        }
        for (name, moment) in moments {
            if !self.by_schedule.contains_key(name) {
                let alarm = self.add(*moment, clock).await?;
                self.by_schedule.insert(name.clone(), alarm);
            }
        }
        Ok(())
    }

    pub(super) async fn end(mut self) -> Result<(), Error> {
        wait_for_answer(self.library.shutdown()).await
    }

    async fn add(&self, moment: DateTime<Utc>, clock: &dyn Clock) -> Result<Alarm, Error> {
        let (delay, due) = (delay(moment, clock), AlarmTime::of(moment, clock));
        let (wake, has_rung) = (Arc::clone(&self.wake), Arc::new(AtomicBool::new(false)));
        let rings = ring(due.monotonic, wake, Arc::clone(&has_rung));
        let job = if delay > LEAD {
            // Runs once, but the library requires a function that can be called again.
            let mut rings = Some(rings);
            let job = Job::new_one_shot_async(delay, move |_, _| {
                let rings = rings.take();
                Box::pin(async move {
                    if let Some(rings) = rings {
                        rings.await;
                    }
                })
            })?;
            Some(wait_for_answer(self.library.add(job)).await?)
        } else {
            tokio::spawn(rings);
            None
        };
        Ok(Alarm { moment, due, job, has_rung })
    }

    async fn remove(&mut self, name: &str) -> Result<(), Error> {
        match self.by_schedule.remove(name).and_then(|alarm| alarm.job) {
            // An alarm that has rung is removed, too: only the answer shows that the library still works.
            Some(job) => wait_for_answer(self.library.remove(&job)).await,
            None => Ok(()),
        }
    }
}

impl Alarm {
    fn is_set_for(&self, moment: DateTime<Utc>, clock: &dyn Clock) -> bool {
        let has_rung = self.has_rung.load(Ordering::Relaxed);
        self.moment == moment && self.due.is_near(AlarmTime::of(moment, clock)) && !has_rung
    }
}

impl AlarmTime {
    fn of(moment: DateTime<Utc>, clock: &dyn Clock) -> Self {
        let machine = clock.machine_now() + (moment - clock.now());
        Self { machine, monotonic: Instant::now() + delay(moment, clock) }
    }

    fn is_near(self, other: Self) -> bool {
        let monotonic = self.monotonic.max(other.monotonic) - self.monotonic.min(other.monotonic);
        let machine = (self.machine - other.machine).abs().to_std().unwrap_or_default();
        monotonic.max(machine) <= TOLERANCE
    }
}

/// Wakes the scheduler at `moment`, or after [`LEAD`] at the latest. After a suspension of the machine the job starts
/// late, and the monotonic clock does not show it.
async fn ring(moment: Instant, wake: Arc<Notify>, has_rung: Arc<AtomicBool>) {
    sleep_until(moment.min(Instant::now() + LEAD)).await;
    has_rung.store(true, Ordering::Relaxed);
    wake.notify_one();
}

fn delay(moment: DateTime<Utc>, clock: &dyn Clock) -> Duration {
    (moment - clock.now()).to_std().unwrap_or_default()
}

async fn wait_for_answer<T>(
    answer: impl Future<Output = Result<T, JobSchedulerError>>,
) -> Result<T, Error> {
    Ok(timeout(ANSWER_LIMIT, answer).await.map_err(|_elapsed| Error::NoAnswer)??)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::clock::{ManualClock, SystemClock};

    const SOON: Duration = Duration::from_secs(60);

    impl Alarms {
        async fn set_all(&mut self, moments: &[(&str, DateTime<Utc>)], clock: &dyn Clock) {
            let moments = moments.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect();
            self.set(&moments, clock).await.unwrap();
        }

        fn job(&self, name: &str) -> Uuid {
            self.by_schedule[name].job.unwrap()
        }

        /// Returns the time at which the library starts the job.
        async fn starts(&mut self, job: Uuid) -> Option<DateTime<Utc>> {
            self.library.next_tick_for_job(job).await.unwrap()
        }
    }

    #[tokio::test]
    async fn an_alarm_wakes_at_its_moment_and_not_before() {
        let wake = Arc::new(Notify::new());
        let mut alarms = Alarms::start(Arc::clone(&wake)).await.unwrap();
        // The first is set in the library; the second is nearer than `LEAD`.
        for millis in [2_700, 600] {
            let moment = SystemClock.now() + TimeDelta::milliseconds(millis);
            alarms.set_all(&[("news", moment)], &SystemClock).await;
            timeout(SOON, wake.notified()).await.unwrap();
            assert!(SystemClock.now() >= moment, "{millis} ms");
        }
        alarms.end().await.unwrap();
    }

    #[tokio::test]
    async fn the_clock_library_has_one_alarm_per_schedule_at_its_next_moment() {
        let mut alarms = Alarms::start(Arc::default()).await.unwrap();
        let now = SystemClock.now();
        let (early, late) = (now + TimeDelta::hours(1), now + TimeDelta::hours(30));
        alarms.set_all(&[("news", early), ("report", late)], &SystemClock).await;
        let (news, report) = (alarms.job("news"), alarms.job("report"));
        for (job, moment) in [(news, early), (report, late)] {
            let starts = alarms.starts(job).await.unwrap();
            assert!(starts <= moment, "{starts} is after {moment}");
            assert!(moment - starts <= TimeDelta::from_std(LEAD).unwrap(), "{starts}, {moment}");
        }
        alarms.set_all(&[("news", early)], &SystemClock).await;
        assert_eq!(alarms.job("news"), news, "unchanged alarms stay");
        assert_eq!(alarms.starts(report).await, None);
        alarms.set_all(&[("news", late)], &SystemClock).await;
        assert_eq!(alarms.starts(news).await, None);
        let moved = alarms.job("news");
        assert!(alarms.starts(moved).await.unwrap() > early);
        alarms.end().await.unwrap();
    }

    #[tokio::test]
    async fn a_clock_change_moves_the_alarms() {
        let mut alarms = Alarms::start(Arc::default()).await.unwrap();
        let clock = ManualClock::at(SystemClock.now());
        let moment = clock.now() + TimeDelta::hours(10);
        alarms.set_all(&[("news", moment)], &clock).await;
        let before = alarms.job("news");
        let before = alarms.starts(before).await.unwrap();
        clock.advance(TimeDelta::hours(4));
        alarms.set_all(&[("news", moment)], &clock).await;
        let after = alarms.job("news");
        let after = alarms.starts(after).await.unwrap();
        assert!(before - after > TimeDelta::hours(3), "{before}, {after}");
        alarms.end().await.unwrap();
    }
}
