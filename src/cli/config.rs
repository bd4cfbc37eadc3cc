//! `config check`, `config show` and `config reference`.

use clap::ArgMatches;
use serde_json::json;

use crate::config::{Config, KEYS, reference};

use super::exit::Outcome;
use super::output::{Table, print, print_as};
use super::usage::{form_of, gather};

pub(super) fn config(given: &ArgMatches) -> Outcome {
    match given.subcommand() {
        Some(("check", given)) => check(given),
        Some(("show", given)) => show(given),
        Some(("reference", _)) => print(&reference()),
        _ => Outcome::Done,
    }
}

fn check(given: &ArgMatches) -> Outcome {
    match gather(given).and_then(|layered| Config::build(&layered)) {
        Ok(_) => print("the configuration is valid\n"),
        Err(error) => {
            // A bad file is what this command looks for; bad flags are bad usage all the same.
            Outcome::failed(&error)
        }
    }
}

fn show(given: &ArgMatches) -> Outcome {
    let layered = match gather(given) {
        Ok(layered) => layered,
        Err(error) => return Outcome::usage(&error),
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
