//! The driver: does it answer, and is it the one that is installed.
//!
//! A running agent is asked. Without one a driver host of our own loads the library, with a deadline;
//! the lock of the agent's folder keeps it from working beside another one.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::config::Config;
use crate::domain::chip::Inventory;
use crate::domain::status::StatusDocument;
use crate::driver::client::{DriverConfig, DriverHost};
use crate::ports::Hardware;
use crate::surroundings::driver_lock_dir;

use super::finding::Finding;
use super::records::record;
use super::running::{Agent, block_on};
use super::{DRIVER_HOST, DRIVER_INIT_MAX, deadline};

const WHAT: &str = "driver";

pub(super) const FILES_WHAT: &str = "installed driver";

/// Events of the driver that wait; nobody reads them here.
const NOTICES: usize = 16;

/// Where the vendor's installer puts the driver unless told otherwise.
const USUAL_PLACE: &str = "/usr/local/Ascend";

/// What the driver says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// Whether the running agent told it.
    pub(super) by_agent: bool,
    pub(super) api: String,
    /// Driver version; empty when unreadable.
    pub(super) version: String,
    pub(super) cards_failed: u32,
    /// Chips that cannot be read, one line each.
    pub(super) problems: Vec<String>,
    pub(super) missing_symbols: Vec<String>,
    /// Numbers of the chips.
    pub(super) chips: BTreeSet<u32>,
}

/// Why the driver said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unheard {
    /// It could not be asked; another finding says why.
    NotAsked(&'static str),
    /// It was asked in vain.
    Silent(String),
}

/// Asks the agent, or the driver itself when no agent runs and there is a library to load.
pub(super) fn hear(config: &Config, agent: &Agent, has_library: bool) -> Result<Heard, Unheard> {
    match agent {
        Agent::Running(status) => of_agent(status).map_err(Unheard::Silent),
        Agent::Mute(_) => Err(Unheard::NotAsked("the agent has it and does not answer")),
        Agent::Absent if !has_library => Err(Unheard::NotAsked("there is no library to load")),
        Agent::Absent => {
            let config = driver_config(config).map_err(Unheard::Silent)?;
            deadline::within(config.init_deadline + DRIVER_HOST, move || {
                of_own_host(config)
            })
            .map_err(|error| error.to_string())
            .flatten()
            .map_err(Unheard::Silent)
        }
    }
}

fn of_agent(status: &StatusDocument) -> Result<Heard, String> {
    let driver = &status.driver;
    if driver.state != "up" {
        let (state, seconds, trouble) = (&driver.state, driver.for_seconds, &driver.trouble);
        return Err(format!("the agent says {state} for {seconds} s: {trouble}"));
    }
    let present = status.chips.iter().filter(|chip| chip.present);
    Ok(Heard {
        by_agent: true,
        api: driver.api.clone(),
        version: driver.driver_version.clone(),
        cards_failed: driver.cards_failed,
        problems: Vec::new(),
        missing_symbols: driver.missing_symbols.clone(),
        chips: present.map(|chip| chip.phy).collect(),
    })
}

fn of_own_host(config: DriverConfig) -> Result<Heard, String> {
    let wait = config.init_deadline;
    let inventory = block_on(async {
        let (notices, _unread) = mpsc::channel(NOTICES);
        let host = DriverHost::start(config, notices).map_err(|error| error.to_string())?;
        let inventory = timeout(wait + DRIVER_HOST / 2, host.inventory(false)).await;
        host.close().await;
        inventory
            .map_err(|_| format!("no answer within {} s", wait.as_secs()))?
            .map_err(|error| error.to_string())
    })??;
    Ok(of_inventory(inventory))
}

fn of_inventory(inventory: Inventory) -> Heard {
    Heard {
        by_agent: false,
        api: inventory.api.to_string(),
        version: inventory.driver_version,
        cards_failed: inventory.cards_failed,
        problems: inventory.problems,
        missing_symbols: inventory.missing_symbols,
        chips: inventory.chips.iter().map(|chip| chip.phy.0).collect(),
    }
}

/// As the agent starts its own; the folder is the one whose lock they share.
fn driver_config(config: &Config) -> Result<DriverConfig, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("the path of this program is not known: {error}"))?;
    let folder = driver_lock_dir(config.state_dir.as_deref(), &config.admin_socket);
    Ok(DriverConfig {
        ld_library_path: config.ld_library_path.clone(),
        trusted_library: config.trusted_library.clone(),
        sysfs: config.sysfs_dir.clone(),
        init_deadline: config.driver_init.min(DRIVER_INIT_MAX),
        ..DriverConfig::new(program, folder)
    })
}

pub(super) fn judge(heard: &Result<Heard, Unheard>) -> Finding {
    let heard = match heard {
        Ok(heard) => heard,
        Err(Unheard::NotAsked(cause)) => {
            return Finding::warn(WHAT, format!("not asked: {cause}"), "mend that first");
        }
        Err(Unheard::Silent(cause)) => {
            return Finding::fail(
                WHAT,
                cause.clone(),
                "see `npu-smi info` on the host and the driver's messages in `dmesg`",
            );
        }
    };
    let mut found = format!(
        "version {}, interface {}, {}, told by {}",
        if heard.version.is_empty() {
            "unreadable"
        } else {
            &heard.version
        },
        heard.api,
        counted(heard.chips.len(), "chip"),
        if heard.by_agent {
            "the running agent"
        } else {
            "a driver host of doctor's own"
        }
    );
    if !heard.missing_symbols.is_empty() {
        found.push_str("; an older library, which lacks ");
        found.push_str(&heard.missing_symbols.join(", "));
    }
    if heard.chips.is_empty() {
        return Finding::fail(
            WHAT,
            found,
            "see `npu-smi info` on the host; chips may still be coming up",
        );
    }
    let mut troubles = match heard.cards_failed {
        0 => Vec::new(),
        failed => vec![format!("{} did not come up", counted(failed, "card"))],
    };
    troubles.extend(heard.problems.iter().cloned());
    if !troubles.is_empty() {
        return Finding::warn(
            WHAT,
            format!("{found}; {}", troubles.join("; ")),
            "see `npu-smi info` on the host; the other chips are served",
        );
    }
    Finding::ok(WHAT, found)
}

fn counted<N: From<u8> + PartialEq + fmt::Display + Copy>(number: N, what: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// What the vendor's installer left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Installed {
    /// The file with the version.
    version_file: PathBuf,
    version: Option<String>,
    /// Kind and mode of the installation, where its record can be read.
    kind: Option<String>,
}

pub(super) fn installed(root: &Path) -> Installed {
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    let installer = record(&below("/etc/ascend_install.info")).unwrap_or_default();
    let place = installer
        .get("Driver_Install_Path_Param")
        .map_or(USUAL_PLACE, String::as_str);
    let version_file = below(place).join("driver/version.info");
    let version = record(&version_file).and_then(|mut file| file.remove("Version"));
    let kind = installer.get("Driver_Install_Type").map(|kind| {
        let mode = installer.get("Driver_Install_Mode");
        format!("{kind}, mode {}", mode.map_or("unknown", String::as_str))
    });
    Installed {
        version_file,
        version,
        kind,
    }
}

pub(super) fn judge_files(installed: &Installed, heard: Option<&str>) -> Finding {
    let file = installed.version_file.display();
    let Some(version) = &installed.version else {
        return Finding::warn(
            FILES_WHAT,
            format!("{file} is not there or names no version"),
            "mount the whole driver folder; give --host-root when the host is mounted elsewhere",
        );
    };
    let kind = installed
        .kind
        .as_ref()
        .map(|kind| format!(", installed as {kind}"))
        .unwrap_or_default();
    let found = format!("version {version} in {file}{kind}");
    match heard.filter(|heard| !heard.is_empty() && !heard.eq_ignore_ascii_case(version)) {
        Some(heard) => Finding::warn(
            FILES_WHAT,
            format!("{found}; the loaded driver says {heard}"),
            "the driver was replaced below the loaded one: restart the node, or the agent",
        ),
        None => Finding::ok(FILES_WHAT, found),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::doctor::Verdict;

    fn heard() -> Heard {
        Heard {
            api: "v1".to_owned(),
            version: "25.2.0".to_owned(),
            chips: BTreeSet::from([0, 1]),
            ..Heard::default()
        }
    }

    fn installed_as(version: Option<&str>) -> Installed {
        Installed {
            version_file: PathBuf::from("/d/version.info"),
            version: version.map(str::to_owned),
            kind: None,
        }
    }

    #[test]
    fn an_answering_driver_is_good_also_when_its_library_is_old() {
        let mut old = heard();
        old.missing_symbols = vec!["dcmi_get_spod_info".to_owned()];
        let finding = judge(&Ok(old));
        assert_eq!(finding.verdict, Verdict::Ok);
        assert!(finding.found.contains("dcmi_get_spod_info"), "{finding:?}");
    }

    #[test]
    fn failed_cards_are_a_warning_and_no_chips_a_failure() {
        let failed = Heard {
            cards_failed: 1,
            ..heard()
        };
        let failed = judge(&Ok(failed));
        assert_eq!(failed.verdict, Verdict::Warn);
        assert!(
            failed.found.ends_with("; 1 card did not come up"),
            "{failed:?}"
        );
        let unread = Heard {
            cards_failed: 2,
            problems: vec!["chip 3 is deaf".to_owned()],
            ..heard()
        };
        let unread = judge(&Ok(unread)).found;
        assert!(
            unread.ends_with("; 2 cards did not come up; chip 3 is deaf"),
            "{unread}"
        );
        let empty = Heard {
            chips: BTreeSet::new(),
            ..heard()
        };
        assert_eq!(judge(&Ok(empty)).verdict, Verdict::Fail);
        let silent = judge(&Err(Unheard::Silent("it hangs".to_owned())));
        assert_eq!(
            (silent.verdict, silent.found.as_str()),
            (Verdict::Fail, "it hangs")
        );
        let not_asked = judge(&Err(Unheard::NotAsked("no library")));
        assert_eq!(not_asked.verdict, Verdict::Warn);
    }

    #[test]
    fn a_driver_replaced_below_the_loaded_one_is_named() {
        let installed = installed_as(Some("25.3.0"));
        let finding = judge_files(&installed, Some("25.2.0"));
        assert_eq!(finding.verdict, Verdict::Warn);
        assert!(finding.found.contains("25.3.0") && finding.found.contains("25.2.0"));
    }

    #[test]
    fn versions_are_compared_only_where_both_are_known() {
        let (rc, none) = (installed_as(Some("24.1.rc2")), installed_as(None));
        assert_eq!(judge_files(&rc, Some("24.1.RC2")).verdict, Verdict::Ok);
        assert_eq!(judge_files(&rc, Some("")).verdict, Verdict::Ok);
        assert_eq!(judge_files(&rc, None).verdict, Verdict::Ok);
        assert_eq!(judge_files(&none, Some("25.2.0")).verdict, Verdict::Warn);
    }

    #[test]
    fn the_place_of_the_driver_is_read_from_the_installers_record() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        write(
            "etc/ascend_install.info",
            "Driver_Install_Type=full\nDriver_Install_Path_Param=/opt/npu\nDriver_Install_Mode=normal\n",
        );
        write("opt/npu/driver/version.info", "Version=25.2.0\n");
        let installed = installed(root.path());
        assert_eq!(installed.version.as_deref(), Some("25.2.0"));
        assert_eq!(installed.kind.as_deref(), Some("full, mode normal"));
    }
}
