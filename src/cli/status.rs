//! `status`.

use clap::ArgMatches;

use crate::admin::{AdminClient, AskError};
use crate::domain::status::{DeviceStatus, StatusDocument};

use super::exit::Outcome;
use super::output::{Form, Table, print, print_as};
use super::usage::{config_of, form_of};

pub(super) fn status(given: &ArgMatches) -> Outcome {
    let config = match config_of(given) {
        Ok(config) => config,
        Err(error) => return Outcome::usage(&error),
    };
    let document = block_on(async {
        AdminClient::connect(&config.admin_socket)
            .await?
            .status()
            .await
    });
    let document = match document {
        Ok(Ok(document)) => document,
        Ok(Err(error)) => return Outcome::failed(&error),
        Err(outcome) => return outcome,
    };
    let printed = match form_of(given) {
        Form::Table => print(&text(&document)),
        form @ (Form::Json | Form::Csv) => print_as(form, &document, &chips(&document)),
    };
    printed.found_if(!document.ready)
}

/// Runs a question to a running agent to its end.
pub(super) fn block_on<T>(
    question: impl Future<Output = Result<T, AskError>>,
) -> Result<Result<T, AskError>, Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => Ok(runtime.block_on(question)),
        Err(error) => Err(Outcome::Failed(format!(
            "no event loop can be had: {error}"
        ))),
    }
}

fn text(document: &StatusDocument) -> String {
    let driver = &document.driver;
    let mut text = format!(
        "agent    {} at {}, {}\n",
        document.version,
        document.at,
        if document.ready { "ready" } else { "NOT READY" }
    );
    let lacks = driver.missing_symbols.join(" ");
    text.push_str(&format_line(
        "driver",
        &driver.state,
        &[
            ("version", &driver.driver_version),
            ("api", &driver.api),
            ("library", &driver.library),
            ("lacks", &lacks),
        ],
    ));
    let commit = document.store.last_commit.to_string();
    text.push_str(&format_line(
        "store",
        &document.store.state,
        &[
            ("path", &document.store.path),
            ("last commit", &commit),
            ("trouble", &document.store.trouble),
        ],
    ));
    for (resource, status) in &document.kubelet {
        let generation = status.generation.to_string();
        let version = status.delivered_version.to_string();
        text.push_str(&format_line(
            "kubelet",
            if status.registered {
                "registered"
            } else {
                "not registered"
            },
            &[
                ("resource", resource),
                ("generation", &generation),
                ("list", &version),
            ],
        ));
    }
    for line in &document.shortcomings {
        text.push_str("!        ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&chips(document).text());
    text
}

fn format_line(name: &str, state: &str, facts: &[(&str, &str)]) -> String {
    let mut line = format!("{name:<8} {state}");
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        for part in [", ", name, " ", value] {
            line.push_str(part);
        }
    }
    line.push('\n');
    line
}

fn chips(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        "CHIP", "ID", "NAME", "DIE", "HEALTH", "HELD BY", "STATE", "WHY",
    ]);
    for chip in &document.chips {
        let unoffered = DeviceStatus {
            plugin_device_id: chip.plugin_device_id.clone(),
            resource: chip.resource.clone(),
            healthy: chip.healthy,
            reason: chip.reason.clone(),
            holder: chip.holder.clone(),
            state: "free".to_owned(),
        };
        let none = chip.devices.is_empty().then_some(&unoffered);
        for device in chip.devices.iter().chain(none) {
            table.row(vec![
                chip.phy.to_string(),
                device.plugin_device_id.clone(),
                chip.name.clone(),
                chip.die.clone(),
                if device.healthy {
                    "healthy"
                } else {
                    "unhealthy"
                }
                .to_owned(),
                device.holder.clone(),
                device.state.clone(),
                device.reason.clone(),
            ]);
        }
    }
    table
}
