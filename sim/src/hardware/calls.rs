//! Who calls what how often, who is attached, and which calls are held right now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Hardware;

#[derive(Debug, Default)]
pub(crate) struct Calls {
    counts: BTreeMap<String, u64>,
    attached: BTreeMap<i32, Attached>,
    held: BTreeMap<u64, Held>,
    next_held: u64,
}

#[derive(Debug, Default)]
struct Attached {
    connections: u32,
    calls: u64,
}

#[derive(Debug)]
struct Held {
    symbol: String,
    pid: i32,
}

/// The answer to `calls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallReport {
    /// Calls by symbol since the start or the last reset.
    pub(crate) symbols: BTreeMap<String, u64>,
    /// Processes with an open connection.
    pub(crate) processes: Vec<AttachedReport>,
    /// Calls that wait because of a hang or a latency rule.
    pub(crate) held: Vec<HeldReport>,
}

/// An attached process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttachedReport {
    /// Process id.
    pub(crate) pid: i32,
    /// Open connections.
    pub(crate) connections: u32,
    /// Calls made.
    pub(crate) calls: u64,
    /// It subscribes to fault events.
    pub(crate) subscribed: bool,
}

/// A held call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldReport {
    /// Exported name.
    pub(crate) symbol: String,
    /// Calling process.
    pub(crate) pid: i32,
}

impl Calls {
    /// A driver connection of the process opened.
    pub(crate) fn attach(&mut self, pid: i32) {
        self.attached.entry(pid).or_default().connections += 1;
    }

    /// A driver connection closed; true when it was the last of its process.
    pub(crate) fn detach(&mut self, pid: i32) -> bool {
        let Some(attached) = self.attached.get_mut(&pid) else {
            return true;
        };
        attached.connections = attached.connections.saturating_sub(1);
        let last = attached.connections == 0;
        if last {
            self.attached.remove(&pid);
        }
        last
    }

    /// Counts one call.
    pub(crate) fn count(&mut self, pid: i32, symbol: &str) {
        match self.counts.get_mut(symbol) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(symbol.to_owned(), 1);
            }
        }
        if let Some(attached) = self.attached.get_mut(&pid) {
            attached.calls += 1;
        }
    }

    /// Notes that a call waits; the number returned ends it.
    pub(crate) fn begin_hold(&mut self, pid: i32, symbol: &str) -> u64 {
        self.next_held += 1;
        self.held.insert(
            self.next_held,
            Held {
                symbol: symbol.to_owned(),
                pid,
            },
        );
        self.next_held
    }

    /// Notes that a call waits no longer.
    pub(crate) fn end_hold(&mut self, held: u64) {
        self.held.remove(&held);
    }

    pub(super) fn reset(&mut self) {
        self.counts.clear();
    }
}

impl Hardware {
    pub(super) fn call_report(&self) -> CallReport {
        let processes = self
            .calls
            .attached
            .iter()
            .map(|(pid, attached)| AttachedReport {
                pid: *pid,
                connections: attached.connections,
                calls: attached.calls,
                subscribed: self.events.is_subscribed(*pid),
            });
        let held = self.calls.held.values().map(|held| HeldReport {
            symbol: held.symbol.clone(),
            pid: held.pid,
        });
        CallReport {
            symbols: self.calls.counts.clone(),
            processes: processes.collect(),
            held: held.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_attached_until_its_last_connection_closes() {
        let mut calls = Calls::default();
        calls.attach(5);
        calls.attach(5);
        calls.count(5, "dcmi_init");
        assert!(!calls.detach(5));
        assert!(calls.detach(5));
        assert!(calls.attached.is_empty());
        assert_eq!(calls.counts["dcmi_init"], 1);
    }
}
