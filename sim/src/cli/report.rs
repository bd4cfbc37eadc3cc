//! Reports as text for people.

use std::fmt::Write;

use serde_json::Value;

use crate::hardware::{CallReport, STATUS_SERVING, Status};

/// `status` as a table.
pub(super) fn status(data: Value) -> Result<String, serde_json::Error> {
    let status: Status = serde_json::from_value(data)?;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _written = render_status(&mut text, &status);
    Ok(text)
}

/// `calls` as two lists.
pub(super) fn calls(data: Value) -> Result<String, serde_json::Error> {
    let report: CallReport = serde_json::from_value(data)?;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _written = render_calls(&mut text, &report);
    Ok(text)
}

fn render_status(text: &mut String, status: &Status) -> std::fmt::Result {
    writeln!(
        text,
        "profile {}  boot {} (number {}){}",
        status.profile,
        status.boot,
        status.boots,
        if status.upgrading { "  UPGRADING" } else { "" }
    )?;
    writeln!(
        text,
        "PHY  LOGIC  CARD   DEV  HEALTH  HOLDERS  STATE      SERIAL           CODES"
    )?;
    let number = |id: Option<u32>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    for chip in &status.chips {
        let state = match () {
            () if chip.removed => "removed",
            () if chip.hidden => "hidden",
            () if chip.lost => "lost",
            () if chip.unbound => "unbound",
            () if chip.stopped => "stopped",
            () if chip.boot_status != STATUS_SERVING => "starting",
            () if chip.init_fails => "init-fails",
            () => "present",
        };
        writeln!(
            text,
            "{:<4} {:<6} {:<6} {:<4} {:<7} {:<8} {:<10} {:<16} {}",
            number(chip.phy),
            number(chip.logic),
            chip.card,
            chip.device,
            if chip.health == u32::MAX {
                "absent".to_owned()
            } else {
                chip.health.to_string()
            },
            chip.processes,
            state,
            chip.serial,
            chip.codes.join(",")
        )?;
    }
    for chip in &status.chips {
        for vdevice in &chip.vdevices {
            writeln!(
                text,
                "vNPU {} on phy {}: {}{}{}",
                vdevice.id,
                number(chip.phy),
                vdevice.template,
                if vdevice.in_use { ", in use" } else { "" },
                if vdevice.stuck { ", stuck" } else { "" },
            )?;
        }
    }
    for rule in &status.rules {
        writeln!(text, "rule: {rule}")?;
    }
    writeln!(
        text,
        "events: {} kept, {} lost",
        status.events.len(),
        status.events_dropped
    )
}

fn render_calls(text: &mut String, report: &CallReport) -> std::fmt::Result {
    for (symbol, count) in &report.symbols {
        writeln!(text, "{count:>10}  {symbol}")?;
    }
    for process in &report.processes {
        writeln!(
            text,
            "process {}: {} connections, {} calls{}",
            process.pid,
            process.connections,
            process.calls,
            if process.subscribed {
                ", subscribed"
            } else {
                ""
            }
        )?;
    }
    for held in &report.held {
        writeln!(text, "held: {} of process {}", held.symbol, held.pid)?;
    }
    Ok(())
}
