//! Commands, output for people and programs, exit codes.
//!
//! Exit codes: 0 done, 1 a problem was found or the agent could not start, 2 bad usage. The drawback
//! of building flags from the configuration's table of keys is that every command knows all of them.

mod audit;
mod config;
mod demo;
mod device_plugin;
mod doctor;
mod exit;
mod output;
mod run;
mod status;
mod store;
mod time_text;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::ArgMatches;

use crate::driver::host::{self, HostOptions};

use exit::Outcome;

/// The hidden command under which the agent starts its driver host.
const DRIVER_HOST: &str = "driver-host";

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    if words.first().is_some_and(|word| word == DRIVER_HOST) {
        return match HostOptions::from_args(words.into_iter().skip(1)) {
            Ok(options) => host::run(&options),
            Err(error) => exit::code(&Outcome::usage(&error)),
        };
    }
    if let Some((asked_by, line)) = device_plugin::line(&program, &words) {
        return exit::code(&device_plugin::run(asked_by, line));
    }
    match usage::command().try_get_matches() {
        Ok(matches) => exit::code(&dispatch(&matches)),
        Err(error) => {
            // The text goes where clap puts it; nothing is left to do when even that fails.
            let _ = error.print();
            if error.use_stderr() {
                ExitCode::from(exit::USAGE)
            } else {
                ExitCode::SUCCESS
            }
        }
    }
}

fn dispatch(matches: &ArgMatches) -> Outcome {
    match matches.subcommand() {
        Some(("run", given)) => run::run(given),
        Some(("status", given)) => status::status(given),
        Some(("audit", given)) => audit::audit(given),
        Some(("store", given)) => store::store(given),
        Some(("config", given)) => config::config(given),
        Some(("doctor", given)) => doctor::doctor(given),
        Some(("demo", given)) => demo::demo(given),
        _ => Outcome::Done,
    }
}
