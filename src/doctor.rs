//! `doctor`: looks at everything the agent needs from its node, one thing after another, and says of
//! each what was found and what to do.
//!
//! May import everything below. Invariants: nothing is changed; every look has a deadline, because a
//! hung mount, socket or driver must not hang the doctor; the driver library is never loaded into
//! this process: a running agent is asked, else a driver host of our own. In each file the looking
//! comes first and the judging is pure. The drawback of looking from inside the agent's container:
//! what is not mounted there cannot be seen, and doctor then says so.

mod clocks;
mod deadline;
mod driver;
mod finding;
mod kubelet_side;
mod library;
mod mounts;
mod nodes;
mod running;
mod runtime;
mod state;

use std::path::PathBuf;
use std::time::Duration;

use crate::config::Config;

use deadline::{checked, late};
pub use finding::{Finding, Report, Verdict};
use mounts::Mounts;
use running::Agent;

/// Looks at files and folders take far less, unless a mount hangs.
const FILES: Duration = Duration::from_secs(5);

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
}

/// Looks at the whole node. Takes seconds; at most some minutes, when everything hangs.
#[must_use]
pub fn examine(config: &Config, scope: &Scope) -> Report {
    let mut report = Report::default();
    let socket = config.admin_socket.clone();
    let agent = deadline::within(AGENT, move || running::ask(&socket))
        .unwrap_or_else(|late| Agent::Mute(late.to_string()));
    report.findings.push(running::judge(&agent));

    let search = library::search_of(config);
    let library = deadline::within(FILES, move || library::look(&search));
    report.findings.push(match &library {
        Ok(facts) => library::judge(facts),
        Err(error) => late(library::WHAT, error),
    });
    let has_library = library.is_ok_and(|facts| facts.is_found());
    let heard = driver::hear(config, &agent, has_library);
    report.findings.push(driver::judge(&heard));
    let (root, version) = (
        scope.host_root.clone(),
        heard.as_ref().ok().map(|heard| heard.version.clone()),
    );
    report.take(checked(driver::FILES_WHAT, FILES, move || {
        vec![driver::judge_files(
            &driver::installed(&root),
            version.as_deref(),
        )]
    }));

    let mounts = deadline::within(FILES, {
        let file = scope.mountinfo.clone();
        move || Mounts::read(&file)
    })
    .unwrap_or_default();
    let (dev, mounted) = (config.dev_dir.clone(), mounts.clone());
    let chips = heard.ok().map(|heard| heard.chips);
    report.take(checked(nodes::WHAT, FILES, move || {
        let facts = nodes::look(&dev, &mounted);
        vec![
            nodes::judge(&facts, chips.as_ref()),
            nodes::judge_place(&facts),
        ]
    }));

    kubelet_side::examine(config, &agent, &mut report);

    let folder = config.state_dir.clone();
    report.take(checked(state::WHAT, FILES, {
        let folder = folder.clone();
        move || {
            vec![state::judge(
                state::look(folder.as_deref(), &mounts).as_ref(),
            )]
        }
    }));
    report.take(checked(state::STORE_WHAT, STORE, {
        let folder = folder.clone();
        move || {
            vec![state::judge_store(&state::look_into(
                folder.as_deref(),
                &agent,
            ))]
        }
    }));

    let (root, wanted) = (scope.host_root.clone(), runtime::Wanted::of(config));
    report.take(checked(runtime::WHAT, FILES, move || {
        let facts = runtime::look(&root, wanted);
        vec![runtime::judge_sockets(&facts), runtime::judge(&facts)]
    }));
    report.take(checked(clocks::WHAT, FILES, move || {
        vec![clocks::judge(&clocks::look(folder.as_deref()))]
    }));
    report
}
