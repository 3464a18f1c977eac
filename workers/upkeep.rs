//! `worker-upkeep`: runs short jobs, and the schedule.

fn main() -> std::process::ExitCode {
    dalsegno::cli::worker_main(dalsegno::worker::Pool::Upkeep)
}
