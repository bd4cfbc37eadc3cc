//! What `/proc` tells about a process.

use std::fs;
use std::time::Duration;

/// Ticks a second in `/proc`; Linux fixes it at 100 for programs.
const TICKS_PER_SECOND: u64 = 100;

/// Memory of one process, KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    pub(crate) proportional: u64,
    pub(crate) private: u64,
}

pub(crate) fn memory(pid: u32) -> Memory {
    let rollup = read(pid, "smaps_rollup");
    let field = |name: &str| {
        rollup
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .filter_map(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok())
            .sum::<u64>()
    };
    Memory {
        resident: field("Rss"),
        proportional: field("Pss"),
        private: field("Private_Clean") + field("Private_Dirty"),
    }
}

/// User and system time so far, all threads.
pub(crate) fn cpu(pid: u32) -> Duration {
    let stat = read(pid, "stat");
    // The name in parentheses may hold anything; the fields after it are numbers.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

/// The living child of a process; the agent has one, its driver host.
pub(crate) fn child_of(parent: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").expect("/proc");
    processes.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit(')').next()?.split_whitespace();
        let (state, its_parent) = (fields.next()?, fields.next()?);
        (state != "Z" && its_parent.parse() == Ok(parent)).then_some(pid)
    })
}

fn read(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).expect("a process that runs")
}
