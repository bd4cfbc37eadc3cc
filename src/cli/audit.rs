//! `audit allocations`: who held which chip, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use clap::ArgMatches;
use serde::Serialize;

use crate::admin::{AdminClient, AskError};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::domain::allocation::{Allocation, Origin, Owner};
use crate::domain::history::{HistoryEvent, HistoryRecord};
use crate::domain::ids::AllocationId;
use crate::ports::{Clock, HISTORY_PAGE_MAX, HistoryQuery, JournalError};
use crate::store::open_copy;

use super::exit::Outcome;
use super::output::{Form, Table, print_as};
use super::status::block_on;
use super::time_text;
use super::usage::{config_of, form_of};

/// Pages read for one question; the history itself is bounded below this.
const PAGES_MAX: usize = 10_000;

pub(super) fn audit(given: &ArgMatches) -> Outcome {
    match given.subcommand() {
        Some(("allocations", given)) => allocations(given),
        _ => Outcome::Done,
    }
}

fn allocations(given: &ArgMatches) -> Outcome {
    let config = match config_of(given) {
        Ok(config) => config,
        Err(error) => return Outcome::usage(&error),
    };
    let question = match Question::of(given) {
        Ok(question) => question,
        Err(outcome) => return outcome,
    };
    let mut history = History::default();
    if let Err(outcome) = read_history(&config, &mut history) {
        return outcome;
    }
    let silence = question.silence(&history);
    let rows: Vec<Tenure> = history
        .tenures
        .finish()
        .into_iter()
        .filter(|tenure| question.takes(tenure))
        .collect();
    let form = form_of(given);
    let printed = print_as(form, &rows, &table(&rows));
    if rows.is_empty() && form == Form::Table {
        // The answer is with the user; this line only explains it.
        let _ = writeln!(io::stderr(), "{silence}");
    }
    printed
}

/// What is asked for.
#[derive(Clone, Debug)]
struct Question {
    window: Window,
    chip: Option<u32>,
    pod: Option<PodName>,
}

impl Question {
    fn of(given: &ArgMatches) -> Result<Self, Outcome> {
        let pod = given.get_one::<String>("pod");
        Ok(Self {
            window: Window::of(given)?,
            chip: given.get_one::<u32>("chip").copied(),
            pod: pod
                .map(|text| PodName::parse(text))
                .transpose()
                .map_err(Outcome::Usage)?,
        })
    }

    fn takes(&self, tenure: &Tenure) -> bool {
        self.window.touches(tenure)
            && self.chip.is_none_or(|chip| tenure.phy == chip)
            && self.pod.as_ref().is_none_or(|pod| pod.has(tenure))
    }

    /// Why nothing was found.
    fn silence(&self, history: &History) -> String {
        if let Some(chip) = self.chip.filter(|chip| !history.numbers.contains(chip)) {
            return format!("no chip {chip} is known");
        }
        match &history.begins {
            Some(begins) => {
                format!("no allocation in this time; the history begins at {begins}")
            }
            None => "no allocation in this time; the history is empty".to_owned(),
        }
    }
}

/// A pod as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PodName {
    namespace: Option<String>,
    name: String,
}

impl PodName {
    fn parse(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || namespace == Some("") {
            return Err(format!(
                "--pod {text:?} names no pod; write NAME or NAMESPACE/NAME"
            ));
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }

    fn has(&self, tenure: &Tenure) -> bool {
        let namespace = self.namespace.as_ref();
        tenure.pod == self.name && namespace.is_none_or(|wanted| tenure.namespace == *wanted)
    }
}

/// The history as far as it is kept.
#[derive(Debug, Default)]
struct History {
    tenures: Tenures,
    /// Time of its oldest record.
    begins: Option<String>,
    /// Numbers of the chips in it, and of those that are known now.
    numbers: BTreeSet<u32>,
}

impl History {
    fn take(&mut self, records: &[HistoryRecord]) {
        if let (None, Some(first)) = (&self.begins, records.first()) {
            self.begins = Some(first.at.utc_text());
        }
        for record in records {
            self.numbers.extend(number_in(&record.event));
            self.tenures.take(record);
        }
    }
}

/// The number of the chip that an event tells of.
fn number_in(event: &HistoryEvent) -> Option<u32> {
    match event {
        HistoryEvent::Granted { allocation }
        | HistoryEvent::Adopted { allocation }
        | HistoryEvent::Released { allocation, .. } => Some(allocation.phy.0),
        HistoryEvent::ChipAppeared { phy, .. }
        | HistoryEvent::ChipVanished { phy, .. }
        | HistoryEvent::ChipHealth { phy, .. }
        // The number before is that of an earlier event.
        | HistoryEvent::ChipMoved { to: phy, .. } => Some(phy.0),
        HistoryEvent::AgentStarted { .. }
        | HistoryEvent::AgentStopped
        | HistoryEvent::GrantRepeated { .. }
        | HistoryEvent::Confirmed { .. }
        | HistoryEvent::Refused { .. }
        | HistoryEvent::StoreRebuilt { .. } => None,
    }
}

/// One holding of one chip, from its grant to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Tenure {
    chip: String,
    phy: u32,
    die: String,
    resource: String,
    namespace: String,
    pod: String,
    pod_uid: String,
    container: String,
    from: String,
    until: String,
    ended_by: String,
    origin: String,
    confirmed: bool,
    #[serde(skip)]
    from_ns: i64,
    #[serde(skip)]
    until_ns: Option<i64>,
}

impl Tenure {
    fn new(record: &Allocation) -> Self {
        let mut tenure = Self {
            chip: record.plugin_device_id.to_string(),
            phy: record.phy.0,
            die: record.die.to_string(),
            resource: record.resource.to_string(),
            namespace: String::new(),
            pod: String::new(),
            pod_uid: String::new(),
            container: String::new(),
            from: record.granted.utc_text(),
            until: String::new(),
            ended_by: String::new(),
            origin: match record.origin {
                Origin::Granted => "granted",
                Origin::Adopted => "adopted",
            }
            .to_owned(),
            confirmed: record.confirmed,
            from_ns: record.granted.utc_ns,
            until_ns: None,
        };
        tenure.take_owner(&record.owner);
        tenure
    }

    fn take_owner(&mut self, owner: &Owner) {
        self.namespace = owner.namespace.clone().unwrap_or_default();
        self.pod = owner.pod.clone().unwrap_or_default();
        self.pod_uid = owner.pod_uid.clone().unwrap_or_default();
        self.container = owner.container.clone().unwrap_or_default();
    }
}

/// Folds the history into holdings, in the order of their grants, then of the chips' numbers.
#[derive(Debug, Default)]
struct Tenures {
    open: BTreeMap<AllocationId, usize>,
    all: Vec<Tenure>,
}

impl Tenures {
    fn take(&mut self, record: &HistoryRecord) {
        match &record.event {
            HistoryEvent::Granted { allocation } | HistoryEvent::Adopted { allocation } => {
                self.begin(allocation);
            }
            HistoryEvent::Confirmed {
                allocation, owner, ..
            } => {
                let known = self.open.get(allocation).copied();
                if let Some(tenure) = known.and_then(|place| self.all.get_mut(place)) {
                    tenure.confirmed = true;
                    tenure.take_owner(owner);
                }
            }
            HistoryEvent::Released { allocation, cause } => {
                // The grant itself may have left the history by age.
                let place = match self.open.remove(&allocation.id) {
                    Some(place) => place,
                    None => self.begin(allocation),
                };
                self.open.remove(&allocation.id);
                if let Some(tenure) = self.all.get_mut(place) {
                    tenure.until = record.at.utc_text();
                    tenure.until_ns = Some(record.at.utc_ns);
                    tenure.ended_by = cause.to_string();
                }
            }
            HistoryEvent::AgentStarted { .. }
            | HistoryEvent::AgentStopped
            | HistoryEvent::GrantRepeated { .. }
            | HistoryEvent::Refused { .. }
            | HistoryEvent::ChipAppeared { .. }
            | HistoryEvent::ChipMoved { .. }
            | HistoryEvent::ChipVanished { .. }
            | HistoryEvent::ChipHealth { .. }
            | HistoryEvent::StoreRebuilt { .. } => {}
        }
    }

    fn begin(&mut self, record: &Allocation) -> usize {
        let place = self.all.len();
        self.all.push(Tenure::new(record));
        self.open.insert(record.id, place);
        place
    }

    fn finish(mut self) -> Vec<Tenure> {
        self.all.sort_by_key(|tenure| (tenure.from_ns, tenure.phy));
        self.all
    }
}

/// The time asked about. A holding is shown when any part of it lies inside.
#[derive(Clone, Copy, Debug)]
struct Window {
    since_ns: Option<i64>,
    until_ns: Option<i64>,
}

impl Window {
    fn of(given: &ArgMatches) -> Result<Self, Outcome> {
        let clock = SystemClock::open()
            .map_err(|error| Outcome::Failed(format!("the clock cannot be read: {error}")))?;
        let now = clock.now().utc_ns;
        let read = |name: &str| match given.get_one::<String>(name) {
            None => Ok(None),
            Some(text) => time_text::parse(text, now)
                .map(Some)
                .map_err(|error| Outcome::usage(&error)),
        };
        let (since_ns, until_ns) = (read("since")?, read("until")?);
        if let (Some(since), Some(until)) = (since_ns, until_ns)
            && since >= until
        {
            let text = |name: &str| given.get_one::<String>(name).cloned().unwrap_or_default();
            return Err(Outcome::Usage(format!(
                "--since {} is not before --until {}: no time lies between; exchange or correct them",
                text("since"),
                text("until")
            )));
        }
        Ok(Self { since_ns, until_ns })
    }

    fn touches(&self, tenure: &Tenure) -> bool {
        let ends_after = self
            .since_ns
            .is_none_or(|since| tenure.until_ns.is_none_or(|until| until >= since));
        let begins_before = self.until_ns.is_none_or(|until| tenure.from_ns < until);
        ends_after && begins_before
    }
}

/// Asks the running agent; without one reads a copy of the store.
fn read_history(config: &Config, history: &mut History) -> Result<(), Outcome> {
    let asked = block_on(async {
        let client = AdminClient::connect(&config.admin_socket).await?;
        let mut query = first_page();
        for _ in 0..PAGES_MAX {
            let (records, more) = client.history(query).await?;
            history.take(&records);
            match records.last() {
                Some(last) if more => query.after = Some(last.sequence),
                _ => break,
            }
        }
        let status = client.status().await?;
        let known = status.chips.iter().map(|chip| chip.phy);
        history.numbers.extend(known);
        Ok(())
    });
    match asked? {
        Ok(()) => Ok(()),
        Err(AskError::NoAgent { .. }) => read_copy(config, history),
        Err(error) => Err(Outcome::failed(&error)),
    }
}

fn read_copy(config: &Config, history: &mut History) -> Result<(), Outcome> {
    let Some(directory) = &config.state_dir else {
        return Err(Outcome::Failed(
            "no agent answers, and state_dir is \"none\": there is no history".to_owned(),
        ));
    };
    let copy = open_copy(directory).map_err(|error| Outcome::failed(&error))?;
    let known = &copy.state().chips;
    history
        .numbers
        .extend(known.iter().map(|record| record.chip.phy.0));
    let failed = |error: JournalError| Outcome::failed(&error);
    let mut query = first_page();
    for _ in 0..PAGES_MAX {
        let records = copy.history(query).map_err(failed)?;
        history.take(&records);
        match records.last() {
            Some(last) if records.len() >= HISTORY_PAGE_MAX => query.after = Some(last.sequence),
            _ => break,
        }
    }
    Ok(())
}

fn first_page() -> HistoryQuery {
    HistoryQuery {
        limit: HISTORY_PAGE_MAX,
        ..HistoryQuery::default()
    }
}

fn table(rows: &[Tenure]) -> Table {
    let mut table = Table::new(&[
        "ID",
        "NAMESPACE",
        "POD",
        "CONTAINER",
        "FROM",
        "UNTIL",
        "ENDED BY",
        "CONFIRMED",
        "DIE",
        "POD UID",
    ]);
    for tenure in rows {
        table.row(vec![
            tenure.chip.clone(),
            tenure.namespace.clone(),
            tenure.pod.clone(),
            tenure.container.clone(),
            tenure.from.clone(),
            if tenure.until.is_empty() {
                "held".to_owned()
            } else {
                tenure.until.clone()
            },
            tenure.ended_by.clone(),
            if tenure.confirmed { "yes" } else { "no" }.to_owned(),
            tenure.die.clone(),
            tenure.pod_uid.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_a_name_or_a_namespace_and_a_name() {
        let named = |namespace: Option<&str>, name: &str| PodName {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        assert_eq!(PodName::parse("a"), Ok(named(None, "a")));
        assert_eq!(PodName::parse("ns/a"), Ok(named(Some("ns"), "a")));
        for text in ["", "/", "demo/", "/x", "a/b/c", "a//b"] {
            let refused = PodName::parse(text).expect_err("refused");
            assert!(refused.contains("NAMESPACE/NAME"), "{refused}");
        }
    }
}
