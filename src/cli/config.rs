//! `config check`, `config show` and `config reference`.

use std::ffi::OsString;

use clap::ArgMatches;
use serde_json::json;

use crate::config::{
    Config, ConfigError, KEYS, Layered, ProcessEnvironment, VendorEnvironmentError, VendorLine,
    VendorLineError, VendorRequest, check_environment, reference,
};

use super::exit::Outcome;
use super::output::{Table, print, print_as};
use super::run;
use super::usage::{VENDOR_LINE, form_of, gather, gather_with};

pub(super) fn config(given: &ArgMatches) -> Outcome {
    match given.subcommand() {
        Some(("check", given)) => check(given),
        Some(("show", given)) => show(given),
        Some(("reference", _)) => print(&reference()),
        _ => Outcome::Done,
    }
}

fn check(given: &ArgMatches) -> Outcome {
    let (layered, notes) = match gathered(given) {
        Ok(gathered) => gathered,
        Err(Trouble::Line(error)) => return Outcome::usage(&error),
        Err(Trouble::Environment(error)) => return Outcome::failed(&error),
        Err(Trouble::Config(error)) => return Outcome::failed(&error),
    };
    // A bad file is what this command looks for; bad flags are bad usage all the same.
    let config = match Config::build(&layered) {
        Ok(config) => config,
        Err(error) => return Outcome::failed(&error),
    };
    match run::health_tls(&config) {
        Ok(_) => {
            let notes = notes.iter().map(|note| format!("note: {note}\n"));
            print(&format!(
                "the configuration is valid\n{}",
                notes.collect::<String>()
            ))
        }
        Err(error) => Outcome::failed(&error),
    }
}

enum Trouble {
    Line(VendorLineError),
    Environment(VendorEnvironmentError),
    Config(ConfigError),
}

/// The layers, with the command line of the device plugin after `--` as one of them, and what a person
/// should know about that line.
fn gathered(given: &ArgMatches) -> Result<(Layered, Vec<String>), Trouble> {
    let Some(words) = given.get_many::<OsString>(VENDOR_LINE) else {
        let layered = gather(given).map_err(Trouble::Config)?;
        return Ok((layered, Vec::new()));
    };
    let line = match VendorRequest::read(words.cloned()).map_err(Trouble::Line)? {
        VendorRequest::Run(line) => line,
        VendorRequest::Help | VendorRequest::Version => VendorLine::default(),
    };
    let mut notes = check_environment(&ProcessEnvironment).map_err(Trouble::Environment)?;
    notes.extend(line.notes);
    let mut layered = gather_with(given, line.settings).map_err(Trouble::Config)?;
    layered.set_default("log_file", &line.default_log_file);
    Ok((layered, notes))
}

fn show(given: &ArgMatches) -> Outcome {
    let layered = match gathered(given) {
        Ok((layered, _)) => layered,
        Err(Trouble::Line(error)) => return Outcome::usage(&error),
        Err(Trouble::Environment(error)) => return Outcome::usage(&error),
        Err(Trouble::Config(error)) => return Outcome::usage(&error),
    };
    let mut table = Table::new(&["KEY", "VALUE", "SOURCE", "MEANING"]);
    let mut document = serde_json::Map::new();
    for key in KEYS {
        let setting = layered.setting(key.name);
        let source = setting.source.to_string();
        document.insert(
            key.name.to_owned(),
            json!({ "value": setting.value, "source": source, "default": key.default, "doc": key.doc }),
        );
        table.row(vec![
            key.name.to_owned(),
            setting.value,
            source,
            key.doc.to_owned(),
        ]);
    }
    let printed = print_as(form_of(given), &document, &table);
    match Config::build(&layered) {
        Ok(_) => printed,
        Err(error) => Outcome::failed(&error),
    }
}
