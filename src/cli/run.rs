//! `run`.

use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;

use crate::agent;
use crate::clock::SystemClock;
use crate::config::{Config, Layered, LogFormat};
use crate::health_http::{Endpoint, Tls, TlsError};
use crate::telemetry::{self, LineForm, LogFileSettings};

use super::exit::Outcome;
use super::usage::gather;

/// The agent waits far more than it computes; two threads keep kubelet's answers free of the owner's
/// commits.
const WORKERS: usize = 2;

/// Blocking work is the store's opening and reading, a few at once.
const BLOCKING_THREADS: usize = 8;

const STACK_BYTES: usize = 1 << 20;

/// How long the end waits for blocking work after the drain, which has a bound of its own.
const LAST_THREADS: Duration = Duration::from_secs(1);

pub(super) fn run(given: &ArgMatches) -> Outcome {
    let built = gather(given).and_then(|layered| Ok((Config::build(&layered)?, layered)));
    match built {
        Ok((config, layered)) => start(agent::settle(config), &layered, &[]),
        Err(error) => Outcome::usage(&error),
    }
}

/// Runs the agent; `notes` are what a person should know about how it was started.
pub(super) fn start(config: Config, layered: &Layered, notes: &[String]) -> Outcome {
    let tls = match health_tls(&config) {
        Ok(tls) => tls,
        Err(error) => return Outcome::usage(&error),
    };
    let addresses = config.health_addresses.clone();
    let health = (!addresses.is_empty()).then_some(Endpoint { addresses, tls });
    let form = match config.log_format {
        LogFormat::Human => LineForm::Human,
        LogFormat::Json => LineForm::Json,
    };
    let clock = match SystemClock::open() {
        Ok(clock) => Arc::new(clock),
        Err(error) => return Outcome::Failed(format!("the clocks cannot be read: {error}")),
    };
    let file = config.log_file.clone().map(|path| LogFileSettings {
        path,
        max_age: config.log_max_age,
        max_backups: config.log_max_backups,
    });
    let _logs = match telemetry::init(form, config.log_level, file, clock) {
        Ok(logs) => logs,
        Err(error) => return Outcome::Failed(format!("no threads can be had: {error}")),
    };
    tracing::info!(
        settings = layered.made(),
        "configuration; every other key has its default"
    );
    if let Some(file) = &config.names_file {
        tracing::info!(file = %file.display(), "custom names were read");
    }
    for note in notes {
        tracing::warn!("{note}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_stack_size(STACK_BYTES)
        .thread_name("agent")
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Outcome::Failed(format!("no threads can be had: {error}")),
    };
    let ended = runtime.block_on(agent::run(config, health));
    // A read or write that hangs in the kernel must not keep an ended agent from ending. What has to be
    // durable is so by now.
    runtime.shutdown_timeout(LAST_THREADS);
    match ended {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::failed(&error),
    }
}

/// Certificate and key of the health server, where they are set. What nothing is served with is not
/// looked at, as by the vendor's plugin.
pub(super) fn health_tls(config: &Config) -> Result<Option<Tls>, TlsError> {
    let served = !config.health_addresses.is_empty();
    let files = config.health_tls.as_ref();
    files
        .filter(|_| served)
        .map(|(certificate, key)| Tls::load(certificate, key))
        .transpose()
}
