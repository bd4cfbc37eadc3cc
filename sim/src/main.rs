//! The `ascend-sim` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    dcmi::cli::run()
}
