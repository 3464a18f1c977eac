//! `worker-upkeep`: runs short jobs, and the schedule.

fn main() -> std::process::ExitCode {
    dalsegno::cli::worker_main(dalsegno::jobs::Pool::Upkeep)
}
