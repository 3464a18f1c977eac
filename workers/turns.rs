//! `worker-turns`: runs turns, which take minutes; few slots, slow drain.

fn main() -> std::process::ExitCode {
    dalsegno::cli::worker_main(dalsegno::jobs::Pool::Turns)
}
