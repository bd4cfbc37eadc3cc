//! `doctor`.

use std::path::PathBuf;

use clap::ArgMatches;

use crate::agent;
use crate::doctor::{Report, Scope, Verdict, examine};

use super::exit::Outcome;
use super::output::{Form, Table, print, print_as};
use super::usage::{config_of, form_of};

pub(super) fn doctor(given: &ArgMatches) -> Outcome {
    let config = match config_of(given) {
        Ok(config) => config,
        Err(error) => return Outcome::usage(&error),
    };
    let path = |name: &str, usual: &str| {
        let given = given.get_one::<PathBuf>(name);
        given.cloned().unwrap_or_else(|| PathBuf::from(usual))
    };
    let scope = Scope {
        host_root: path("host-root", "/"),
        mountinfo: path("mountinfo", "/proc/self/mountinfo"),
        places: agent::places(&config),
    };
    let report = examine(&config, &scope);
    let printed = match form_of(given) {
        Form::Table => print(&text(&report)),
        form @ (Form::Json | Form::Csv) => print_as(form, &report, &table(&report)),
    };
    printed.found_if(report.worst() == Verdict::Fail)
}

/// One line each: verdict, what, found, and what to do behind an arrow.
fn text(report: &Report) -> String {
    let widest = report.findings.iter().map(|finding| finding.what.len());
    let width = widest.max().unwrap_or(0);
    let mut text = String::new();
    for finding in &report.findings {
        let verdict = finding.verdict.text();
        let line = format!("{verdict:<4}  {:<width$}  {}", finding.what, finding.found);
        text.push_str(&line.replace('\n', " "));
        if !finding.remedy.is_empty() {
            text.push_str("  -> ");
            text.push_str(&finding.remedy);
        }
        text.push('\n');
    }
    text
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(&["VERDICT", "WHAT", "FOUND", "REMEDY"]);
    for finding in &report.findings {
        table.row(vec![
            finding.verdict.text().to_owned(),
            finding.what.to_owned(),
            finding.found.clone(),
            finding.remedy.clone(),
        ]);
    }
    table
}
