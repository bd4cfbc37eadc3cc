//! `store check` and `store backup`.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use serde_json::json;

use crate::admin::{AdminClient, AskError};
use crate::config::Config;
use crate::store::{AgentCopy, CheckReport, OpenError, check, open_copy};

use super::exit::Outcome;
use super::output::{Table, print, print_as};
use super::status::block_on;
use super::usage::{config_of, form_of};

pub(super) fn store(given: &ArgMatches) -> Outcome {
    match given.subcommand() {
        Some(("check", given)) => with_config(given, check_store),
        Some(("backup", given)) => with_config(given, backup_store),
        _ => Outcome::Done,
    }
}

fn with_config(given: &ArgMatches, work: impl Fn(&ArgMatches, &Config) -> Outcome) -> Outcome {
    match config_of(given) {
        Ok(config) => work(given, &config),
        Err(error) => Outcome::usage(&error),
    }
}

fn state_dir(config: &Config) -> Result<&Path, Outcome> {
    config
        .state_dir
        .as_deref()
        .ok_or_else(|| Outcome::Usage("state_dir is \"none\": there is no store".to_owned()))
}

fn check_store(given: &ArgMatches, config: &Config) -> Outcome {
    let directory = match state_dir(config) {
        Ok(directory) => directory,
        Err(outcome) => return outcome,
    };
    let report = match check(directory) {
        Ok(report) => report,
        Err(OpenError::InUse { .. }) => match check_running(config, directory) {
            Ok(report) => report,
            Err(outcome) => return outcome,
        },
        Err(error) => return Outcome::failed(&error),
    };
    print_as(form_of(given), &document(&report), &table(&report)).found_if(!report.is_clean())
}

/// The agent that has the store open writes a copy of it, and the copy is checked.
fn check_running(config: &Config, directory: &Path) -> Result<CheckReport, Outcome> {
    let copy = AgentCopy::beside(directory).map_err(|error| Outcome::failed(&error))?;
    let to = copy.file();
    block_on(async {
        AdminClient::connect(&config.admin_socket)
            .await?
            .backup(&to)
            .await
    })?
    .map_err(|error| Outcome::failed(&error))?;
    copy.check().map_err(|error| Outcome::failed(&error))
}

fn document(report: &CheckReport) -> serde_json::Value {
    json!({
        "file": report.file,
        "bytes": report.bytes,
        "clean": report.is_clean(),
        "damage": report.damage,
        "schema": report.schema,
        "allocations": report.allocations,
        "chips": report.chips,
        "history": report.history,
        "damaged_history": report.damaged_history.iter()
            .map(|(sequence, cause)| json!({ "sequence": sequence, "cause": cause }))
            .collect::<Vec<_>>(),
        "outbox": report.outbox,
        "last_sequence": report.last_sequence,
    })
}

fn table(report: &CheckReport) -> Table {
    let mut table = Table::new(&["WHAT", "FOUND"]);
    let mut row = |what: &str, found: String| table.row(vec![what.to_owned(), found]);
    row("file", report.file.display().to_string());
    row("size in bytes", report.bytes.to_string());
    row(
        "verdict",
        if report.is_clean() {
            "clean"
        } else {
            "DAMAGED"
        }
        .to_owned(),
    );
    if let Some(damage) = &report.damage {
        row("damage", damage.clone());
    }
    row(
        "schema",
        report
            .schema
            .map_or_else(String::new, |schema| schema.to_string()),
    );
    row("allocations", report.allocations.to_string());
    row("chips", report.chips.to_string());
    row("history records", report.history.to_string());
    for (sequence, cause) in &report.damaged_history {
        row("damaged record", format!("{sequence}: {cause}"));
    }
    let last = report
        .last_sequence
        .map_or_else(String::new, |sequence| sequence.to_string());
    row("last commit", last);
    table
}

/// The running agent copies its own store; without one the file is read through a copy.
fn backup_store(given: &ArgMatches, config: &Config) -> Outcome {
    let Some(to) = given.get_one::<PathBuf>("to") else {
        return Outcome::Usage("name the copy to write".to_owned());
    };
    let to = match std::path::absolute(to) {
        Ok(to) => to,
        Err(error) => return Outcome::Usage(format!("{}: {error}", to.display())),
    };
    let asked = block_on(async {
        AdminClient::connect(&config.admin_socket)
            .await?
            .backup(&to)
            .await
    });
    let size = match asked {
        Err(outcome) => return outcome,
        Ok(Ok(size)) => size,
        Ok(Err(AskError::NoAgent { .. })) => {
            let directory = match state_dir(config) {
                Ok(directory) => directory,
                Err(outcome) => return outcome,
            };
            let copy = match open_copy(directory) {
                Ok(copy) => copy,
                Err(error) => return Outcome::failed(&error),
            };
            match copy.backup(&to) {
                Ok(size) => size,
                Err(error) => return Outcome::failed(&error),
            }
        }
        Ok(Err(error)) => return Outcome::failed(&error),
    };
    print(&format!("{} written, {size} bytes\n", to.display()))
}
