//! `dalsegno`: the one command.

fn main() -> std::process::ExitCode {
    dalsegno::cli::main()
}
