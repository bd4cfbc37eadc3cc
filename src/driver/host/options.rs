//! The host's options as an argument list, so that nothing of ours travels in the environment.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// What the agent tells its driver host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// The agent; without it the host has no reason to live.
    pub parent_pid: u32,
    /// Where the lock file lies.
    pub state_dir: PathBuf,
    /// Value of `LD_LIBRARY_PATH` to search.
    pub ld_library_path: Option<String>,
    /// Library taken without search and without the checks of owner and mode.
    pub trusted_library: Option<PathBuf>,
    /// Where NUMA facts are read.
    pub sysfs: PathBuf,
    /// How long to wait for another host's end.
    pub lock_wait: Duration,
    /// How long one chip may take to say what it is.
    pub facts_deadline: Duration,
    /// More threads than this in overrun calls make the host ask for its replacement.
    pub stuck_bound: usize,
}

/// Arguments that are not what [`HostOptions::to_args`] makes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A name that is not an option.
    #[error("{0:?} is not an option of driver-host, which the agent starts itself")]
    Unknown(OsString),
    /// An option without a value, or with one that cannot be read.
    #[error("option {0} has no value that can be read")]
    Value(&'static str),
    /// An option that must be there.
    #[error("option {0} is missing; driver-host is started by the agent itself")]
    Missing(&'static str),
}

const PARENT_PID: &str = "--parent-pid";
const STATE_DIR: &str = "--state-dir";
const LD_LIBRARY_PATH: &str = "--ld-library-path";
const TRUSTED_LIBRARY: &str = "--trusted-library";
const SYSFS: &str = "--sysfs";
const LOCK_WAIT: &str = "--lock-wait-ms";
const FACTS_DEADLINE: &str = "--facts-deadline-ms";
const STUCK_BOUND: &str = "--stuck-bound";

const NAMES: [&str; 8] = [
    PARENT_PID,
    STATE_DIR,
    LD_LIBRARY_PATH,
    TRUSTED_LIBRARY,
    SYSFS,
    LOCK_WAIT,
    FACTS_DEADLINE,
    STUCK_BOUND,
];

impl HostOptions {
    /// The arguments after the subcommand's name.
    #[must_use]
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        let mut push = |name: &str, value: OsString| args.extend([OsString::from(name), value]);
        push(PARENT_PID, self.parent_pid.to_string().into());
        push(STATE_DIR, self.state_dir.clone().into());
        if let Some(path) = &self.ld_library_path {
            push(LD_LIBRARY_PATH, path.into());
        }
        if let Some(path) = &self.trusted_library {
            push(TRUSTED_LIBRARY, path.into());
        }
        push(SYSFS, self.sysfs.clone().into());
        push(LOCK_WAIT, self.lock_wait.as_millis().to_string().into());
        push(
            FACTS_DEADLINE,
            self.facts_deadline.as_millis().to_string().into(),
        );
        push(STUCK_BOUND, self.stuck_bound.to_string().into());
        args
    }

    /// Reads what [`Self::to_args`] made.
    ///
    /// # Errors
    /// Names the argument that is unknown, unreadable or missing.
    pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, OptionsError> {
        let mut given: Vec<(&'static str, OsString)> = Vec::new();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let name = NAMES.into_iter().find(|name| *name == arg);
            let name = name.ok_or(OptionsError::Unknown(arg))?;
            given.push((name, args.next().ok_or(OptionsError::Value(name))?));
        }
        let value = |wanted: &str| {
            given
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| value.as_os_str())
        };
        let required = |wanted: &'static str| value(wanted).ok_or(OptionsError::Missing(wanted));
        let millis = |wanted| number(wanted, required(wanted)?).map(Duration::from_millis);
        Ok(Self {
            parent_pid: number(PARENT_PID, required(PARENT_PID)?)?,
            state_dir: required(STATE_DIR)?.into(),
            ld_library_path: value(LD_LIBRARY_PATH).map(|text| text.to_string_lossy().into_owned()),
            trusted_library: value(TRUSTED_LIBRARY).map(PathBuf::from),
            sysfs: required(SYSFS)?.into(),
            lock_wait: millis(LOCK_WAIT)?,
            facts_deadline: millis(FACTS_DEADLINE)?,
            stuck_bound: number(STUCK_BOUND, required(STUCK_BOUND)?)?,
        })
    }
}

fn number<T: std::str::FromStr>(name: &'static str, value: &OsStr) -> Result<T, OptionsError> {
    let text = value.to_str().ok_or(OptionsError::Value(name))?;
    text.parse().map_err(|_| OptionsError::Value(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> HostOptions {
        HostOptions {
            parent_pid: 17,
            state_dir: "/var/lib/x".into(),
            ld_library_path: Some("/a:/b".to_owned()),
            trusted_library: Some("/t/libdcmi.so".into()),
            sysfs: "/sys".into(),
            lock_wait: Duration::from_secs(9),
            facts_deadline: Duration::from_millis(1500),
            stuck_bound: 8,
        }
    }

    #[test]
    fn options_survive_the_argument_list() {
        let mut options = options();
        assert_eq!(
            HostOptions::from_args(options.to_args()),
            Ok(options.clone())
        );
        (options.ld_library_path, options.trusted_library) = (None, None);
        assert_eq!(HostOptions::from_args(options.to_args()), Ok(options));
    }

    #[test]
    fn unknown_unreadable_and_missing_arguments_are_named() {
        let from = |args: &[&str]| HostOptions::from_args(args.iter().map(OsString::from));
        assert_eq!(from(&["--x"]), Err(OptionsError::Unknown("--x".into())));
        assert_eq!(from(&[PARENT_PID]), Err(OptionsError::Value(PARENT_PID)));
        assert_eq!(
            from(&[PARENT_PID, "x"]),
            Err(OptionsError::Value(PARENT_PID))
        );
        assert_eq!(from(&[]), Err(OptionsError::Missing(PARENT_PID)));
    }
}
