//! `doctor`: looks at everything the agent needs from its node, one thing after another, and says of
//! each what was found and what to do.
//!
//! May import everything below. Invariants: nothing is changed; every look has a deadline, because a
//! hung mount, socket or driver must not hang the doctor; the driver library is never loaded into
//! this process: a running agent is asked, else a driver host of our own. In each file the looking
//! comes first and the judging is pure. The drawback of looking from inside the agent's container:
//! what is not mounted there cannot be seen, and doctor then says so.

mod cdi;
mod clocks;
mod deadline;
mod driver;
mod finding;
mod kubelet_side;
mod library;
mod logs;
mod nodes;
mod records;
mod rights;
mod running;
mod runtime;
mod state;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::Config;
use crate::footing::{FOLDER_BESIDE_SOCKETS, Mounts, is_container};
use crate::injection::DeliveryChoice;
use crate::surroundings::{self, Places};

use deadline::{checked, late};
pub use finding::{Finding, Report, Verdict};
use running::Agent;

/// Looks at files and folders take far less, unless a mount hangs.
const FILES: Duration = Duration::from_secs(5);

/// The search may ask the loader for its cache, which has 5 s.
const LIBRARY: Duration = Duration::from_secs(8);

/// A connection to the running agent and its answer have deadlines of their own below this.
const AGENT: Duration = Duration::from_secs(15);

/// Kubelet answers in milliseconds; each of its sockets is given this.
const KUBELET: Duration = Duration::from_secs(5);

/// The longest initialisation of the driver that is waited for here.
const DRIVER_INIT_MAX: Duration = Duration::from_secs(60);

/// What starting and ending a driver host takes beside the initialisation.
const DRIVER_HOST: Duration = Duration::from_secs(10);

/// Copying and checking a store of the bounded size.
const STORE: Duration = Duration::from_secs(60);

/// Where to look beside the configuration.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Where the host's file system is; `/` unless it is mounted elsewhere.
    pub host_root: PathBuf,
    /// The kernel's list of this process's mounts.
    pub mountinfo: PathBuf,
    /// What a look at the process's own rights needs.
    pub places: Places,
}

/// Looks at the whole node. Takes seconds; at most some minutes, when everything hangs.
#[must_use]
pub fn examine(config: &Config, scope: &Scope) -> Report {
    let mut report = Report::default();
    let socket = config.admin_socket.clone();
    let agent = deadline::within(AGENT, move || running::ask(&socket))
        .unwrap_or_else(|late| Agent::Mute(late.to_string()));
    report.findings.push(running::judge(&agent));
    let file = scope.mountinfo.clone();
    let mounts = deadline::within(FILES, move || read_mounts(&file)).unwrap_or_default();
    let places = scope.places.clone();
    report.take(checked(rights::WHAT, LIBRARY, move || {
        vec![rights::judge(&rights::look(&places))]
    }));
    examine_driver(config, scope, &agent, &mounts, &mut report);
    kubelet_side::examine(config, &agent, &mut report);
    examine_state(config, agent, &mounts, &mut report);
    examine_runtime(config, scope, &mounts, &mut report);
    let folder = config.state_dir.clone();
    report.take(checked(clocks::WHAT, FILES, move || {
        vec![clocks::judge(&clocks::look(folder.as_deref()))]
    }));
    report
}

/// Nothing where they cannot be read; then everything is taken as configured.
fn read_mounts(file: &Path) -> Mounts {
    surroundings::mounts_in(file)
}

fn examine_driver(
    config: &Config,
    scope: &Scope,
    agent: &Agent,
    mounts: &Mounts,
    report: &mut Report,
) {
    let search = library::search_of(config);
    let loaded = library::loaded_by(agent);
    let library = deadline::within(LIBRARY, move || library::look(&search, loaded));
    report.findings.push(match &library {
        Ok(facts) => library::judge(facts),
        Err(error) => late(library::WHAT, error),
    });
    let has_library = library.is_ok_and(|facts| facts.is_found());
    let heard = driver::hear(config, agent, has_library);
    report.findings.push(driver::judge(&heard));
    let heard = heard.ok();
    let version = heard.as_ref().map(|heard| heard.version.clone());
    let root = scope.host_root.clone();
    report.take(checked(driver::FILES_WHAT, FILES, move || {
        let installed = driver::installed(&root);
        vec![driver::judge_files(&installed, version.as_deref())]
    }));
    let (dev, mounts) = (config.dev_dir.clone(), mounts.clone());
    let chips = heard.map(|heard| heard.chips);
    report.take(checked(nodes::WHAT, FILES, move || {
        let facts = nodes::look(&dev, &mounts);
        let nodes = nodes::judge(&facts, chips.as_ref());
        vec![nodes, nodes::judge_place(&facts)]
    }));
}

fn examine_state(config: &Config, agent: Agent, mounts: &Mounts, report: &mut Report) {
    let (folder, mounts) = (config.state_dir.clone(), mounts.clone());
    let in_container = is_container(&mounts, config.in_pod);
    let beside = config.device_plugin_dir.join(FOLDER_BESIDE_SOCKETS);
    report.take(checked(state::WHAT, FILES, move || {
        let place = state::look(folder.as_deref(), &beside, &mounts, in_container);
        vec![state::judge(place.as_ref())]
    }));
    let folder = config.state_dir.clone();
    report.take(checked(state::STORE_WHAT, STORE, move || {
        let content = state::look_into(folder.as_deref(), &agent);
        vec![state::judge_store(&content)]
    }));
}

fn examine_runtime(config: &Config, scope: &Scope, mounts: &Mounts, report: &mut Report) {
    let (root, wanted) = (scope.host_root.clone(), runtime::Wanted::of(config));
    report.take(checked(runtime::WHAT, FILES, move || {
        let facts = runtime::look(&root, wanted);
        vec![runtime::judge_sockets(&facts), runtime::judge(&facts)]
    }));
    if config.delivery == DeliveryChoice::Cdi {
        let (folder, mounts) = (config.cdi_dir.clone(), mounts.clone());
        let in_container = is_container(&mounts, config.in_pod);
        report.take(checked(cdi::WHAT, FILES, move || {
            vec![cdi::judge(&cdi::look(&folder, &mounts, in_container))]
        }));
    }
    if let Some(file) = config.log_file.clone() {
        report.take(checked(logs::WHAT, FILES, move || {
            vec![logs::judge(&logs::look(&file))]
        }));
    }
    let list = config.visible_devices.as_deref();
    report.findings.push(runtime::judge_own_list(list));
}
