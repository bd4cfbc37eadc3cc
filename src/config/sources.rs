//! Gathering the settings of one run from their sources.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::offering::ModeError;

use super::keys::{KEYS, Key, VARIABLE_PREFIX};
use super::names::NamesError;
use super::nearest::nearest;

/// File read when none is named; it may be absent.
pub const DEFAULT_FILE: &str = "/etc/ascend/agent.toml";

const OTHERS_WRITE: u32 = 0o022;

/// A larger file is not a configuration.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// The environment, so that tests need none.
pub trait Environment {
    /// Every variable.
    fn variables(&self) -> Vec<(OsString, OsString)>;
}

/// The process's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variables(&self) -> Vec<(OsString, OsString)> {
        std::env::vars_os().collect()
    }
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Built in.
    Default,
    /// The file.
    File(PathBuf),
    /// A variable.
    Variable(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One setting as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Text.
    pub value: String,
    /// Origin.
    pub source: Source,
}

/// A setting of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenSetting {
    /// Key of the table.
    pub key: &'static str,
    /// Text.
    pub value: String,
    /// The flag as people know it, for messages.
    pub flag: String,
}

impl GivenSetting {
    /// A flag named like its key.
    #[must_use]
    pub fn of_key(key: &'static str, value: String) -> Self {
        Self {
            key,
            value,
            flag: format!("--{}", key.replace('_', "-")),
        }
    }
}

/// All settings, one per key, and the variables that belong to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layered {
    settings: BTreeMap<&'static str, Setting>,
    /// The loader's search path, which the driver library is looked up in.
    pub ld_library_path: Option<String>,
    /// True when Ascend Docker Runtime marked our own container.
    pub docker_runtime: bool,
    /// `ASCEND_VISIBLE_DEVICES` of our own container, whoever set it.
    pub visible_devices: Option<String>,
    /// True when Kubernetes set its own variables, as it does in every container.
    pub in_pod: bool,
}

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration file {path}: cannot be read; name an existing file with --config")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// Somebody else could write the file, and have a library of his own loaded by it.
    #[error(
        "configuration file {path} belongs to uid {owner} and has mode {mode:04o}; it must belong to \
         root or the agent's user and be writable by nobody else: chown it and run `chmod go-w`"
    )]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is too large.
    #[error("configuration file {path} has {bytes} bytes; at most {FILE_MAX_BYTES} are read")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The file is not TOML.
    #[error("configuration file {path} is not valid TOML: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Place and reason.
        message: String,
    },
    /// A key that does not exist.
    #[error("{origin}: unknown key {key:?}{hint}")]
    UnknownKey {
        /// The key as written.
        key: String,
        /// File or variable.
        origin: String,
        /// The nearest key, as a sentence part.
        hint: String,
    },
    /// A value that is not text, a number or a truth value.
    #[error("{origin}: {key} must be a text, a number, true or false")]
    Kind {
        /// The key.
        key: String,
        /// File or variable.
        origin: String,
    },
    /// A variable that is not UTF-8.
    #[error("variable {name} is not valid UTF-8; set it to plain text")]
    Encoding {
        /// Its name.
        name: String,
    },
    /// The file with custom names.
    #[error(transparent)]
    Names(#[from] NamesError),
    /// Settings that exclude each other.
    #[error(transparent)]
    Mode(#[from] ModeError),
    /// A value out of range or malformed.
    #[error("{key} = {value:?} (from {origin}): {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// Where it came from.
        origin: Source,
        /// What is allowed.
        expected: String,
    },
}

impl Layered {
    /// Reads every source. `file` is the one named by flag; without it the default file is read when
    /// it exists. Of flags for one key the last one counts.
    ///
    /// # Errors
    /// Names the source, the key and the remedy.
    pub fn gather(
        file: Option<&Path>,
        environment: &impl Environment,
        flags: &[GivenSetting],
    ) -> Result<Self, ConfigError> {
        let mut layered = Self {
            settings: KEYS
                .iter()
                .map(|key| {
                    let value = key.default.to_owned();
                    (
                        key.name,
                        Setting {
                            value,
                            source: Source::Default,
                        },
                    )
                })
                .collect(),
            ld_library_path: None,
            docker_runtime: false,
            visible_devices: None,
            in_pod: false,
        };
        layered.read_file(file)?;
        layered.read_environment(environment)?;
        for given in flags {
            layered.settings.insert(
                given.key,
                Setting {
                    value: given.value.clone(),
                    source: Source::Flag(given.flag.clone()),
                },
            );
        }
        Ok(layered)
    }

    /// Gives a key another default, for a program that is started in another's place.
    pub fn set_default(&mut self, key: &'static str, value: &str) {
        if let Some(setting) = self.settings.get_mut(key)
            && setting.source == Source::Default
        {
            value.clone_into(&mut setting.value);
        }
    }

    /// The setting of a key of the table.
    #[must_use]
    pub fn setting(&self, key: &'static str) -> Setting {
        self.settings.get(key).cloned().unwrap_or(Setting {
            value: String::new(),
            source: Source::Default,
        })
    }

    /// Every setting that somebody made, with its source, for people: `share_count = 4 (--share-count)`.
    #[must_use]
    pub fn made(&self) -> String {
        let made: Vec<String> = KEYS
            .iter()
            .filter_map(|key| self.settings.get_key_value(key.name))
            .filter(|(_, setting)| setting.source != Source::Default)
            .map(|(name, setting)| format!("{name} = {} ({})", setting.value, setting.source))
            .collect();
        if made.is_empty() {
            "none".to_owned()
        } else {
            made.join("; ")
        }
    }

    fn read_file(&mut self, named: Option<&Path>) -> Result<(), ConfigError> {
        let path = named.unwrap_or(Path::new(DEFAULT_FILE));
        let unreadable = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        match fs::metadata(path) {
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
                return Ok(());
            }
            Err(error) => return Err(unreadable(error)),
            Ok(meta) if meta.mode() & OTHERS_WRITE != 0 || !is_trusted(meta.uid()) => {
                return Err(ConfigError::Unsafe {
                    path: path.to_owned(),
                    owner: meta.uid(),
                    mode: meta.mode() & 0o7777,
                });
            }
            Ok(meta) if meta.len() > FILE_MAX_BYTES => {
                return Err(ConfigError::TooLarge {
                    path: path.to_owned(),
                    bytes: meta.len(),
                });
            }
            // Opening a pipe would wait for a writer, without a word and for ever.
            Ok(meta) if !meta.is_file() => {
                return Err(unreadable(io::Error::other("it is not a plain file")));
            }
            Ok(_) => {}
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let table: toml::Table =
            text.parse()
                .map_err(|error: toml::de::Error| ConfigError::Syntax {
                    path: path.to_owned(),
                    message: error.to_string(),
                })?;
        let origin = path.display().to_string();
        for (written, value) in table {
            let key = known_key(&written, &origin)?;
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(truth) => truth.to_string(),
                toml::Value::Float(_)
                | toml::Value::Datetime(_)
                | toml::Value::Array(_)
                | toml::Value::Table(_) => {
                    return Err(ConfigError::Kind {
                        key: written,
                        origin,
                    });
                }
            };
            self.settings.insert(
                key.name,
                Setting {
                    value,
                    source: Source::File(path.to_owned()),
                },
            );
        }
        Ok(())
    }

    fn read_environment(&mut self, environment: &impl Environment) -> Result<(), ConfigError> {
        for (name, value) in environment.variables() {
            let Some(name) = name.to_str() else { continue };
            let text = || {
                value
                    .to_str()
                    .map(str::to_owned)
                    .ok_or(ConfigError::Encoding { name: name.into() })
            };
            match name {
                "LD_LIBRARY_PATH" => self.ld_library_path = Some(text()?),
                "ASCEND_DOCKER_RUNTIME" => self.docker_runtime = text()? == "True",
                "ASCEND_VISIBLE_DEVICES" => {
                    self.visible_devices = Some(value.to_string_lossy().into_owned());
                }
                "KUBERNETES_SERVICE_HOST" => self.in_pod = true,
                _ => {
                    let Some(written) = name.strip_prefix(VARIABLE_PREFIX) else {
                        continue;
                    };
                    if is_service_link(written) {
                        continue;
                    }
                    let key =
                        known_key(&written.to_ascii_lowercase(), &format!("variable {name}"))?;
                    let source = Source::Variable(name.to_owned());
                    self.settings.insert(
                        key.name,
                        Setting {
                            value: text()?,
                            source,
                        },
                    );
                }
            }
        }
        Ok(())
    }
}

/// Kubernetes sets such variables in every pod of a namespace that has a Service of our name.
fn is_service_link(name: &str) -> bool {
    name == "SERVICE_HOST"
        || name == "PORT"
        || name.starts_with("SERVICE_PORT")
        || name.starts_with("PORT_")
}

/// Root, or the user this process acts as, to whom its own folder under `/proc` belongs.
fn is_trusted(owner: u32) -> bool {
    owner == 0 || fs::metadata("/proc/self").is_ok_and(|own| own.uid() == owner)
}

fn known_key(written: &str, origin: &str) -> Result<&'static Key, ConfigError> {
    KEYS.iter()
        .find(|key| key.name == written)
        .ok_or_else(|| ConfigError::UnknownKey {
            key: written.chars().take(64).collect(),
            origin: origin.to_owned(),
            hint: nearest(written, KEYS.iter().map(|key| key.name))
                .map_or_else(String::new, |name| format!("; did you mean {name:?}?")),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(&'static [(&'static str, &'static str)]);

    impl Environment for Fixed {
        fn variables(&self) -> Vec<(OsString, OsString)> {
            self.0
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        }
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("temp file");
        fs::write(file.path(), text).expect("write");
        file
    }

    #[test]
    fn flags_win_over_variables_over_file_over_defaults() {
        let file = file("state_dir = \"/file\"\nlog_level = \"warn\"\nhealth_poll_ms = 250\n");
        let variables = Fixed(&[
            ("ASCEND_AGENT_STATE_DIR", "/variable"),
            ("ASCEND_AGENT_LOG_LEVEL", "debug"),
            ("HOME", "/root"),
        ]);
        let flags = [GivenSetting::of_key("state_dir", "/flag".to_owned())];
        let layered = Layered::gather(Some(file.path()), &variables, &flags).expect("valid");
        assert_eq!(layered.setting("state_dir").value, "/flag");
        assert_eq!(layered.setting("log_level").value, "debug");
        assert_eq!(layered.setting("health_poll_ms").value, "250");
        assert_eq!(layered.setting("dev_dir").source, Source::Default);
    }

    #[test]
    fn an_unknown_key_names_the_nearest_one() {
        let file = file("state_dri = \"/x\"\n");
        let error = Layered::gather(Some(file.path()), &Fixed(&[]), &[]).expect_err("unknown");
        assert!(
            error.to_string().contains("did you mean \"state_dir\"?"),
            "{error}"
        );
        let error = Layered::gather(None, &Fixed(&[("ASCEND_AGENT_LOGLEVEL", "x")]), &[])
            .expect_err("unknown");
        assert!(error.to_string().contains("log_level"), "{error}");
        let error = Layered::gather(None, &Fixed(&[("ASCEND_AGENT_HOLDDOWN", "4")]), &[])
            .expect_err("unknown");
        assert!(error.to_string().contains("hold_down_seconds"), "{error}");
    }

    #[test]
    fn a_named_file_must_exist_and_be_toml() {
        let missing = Path::new("/nonexistent/agent.toml");
        assert!(matches!(
            Layered::gather(Some(missing), &Fixed(&[]), &[]),
            Err(ConfigError::Read { .. })
        ));
        let file = file("state_dir = [");
        assert!(matches!(
            Layered::gather(Some(file.path()), &Fixed(&[]), &[]),
            Err(ConfigError::Syntax { .. })
        ));
    }

    #[test]
    fn variables_of_a_service_named_like_the_agent_are_no_settings() {
        let links = Fixed(&[
            ("ASCEND_AGENT_SERVICE_HOST", "10.0.0.1"),
            ("ASCEND_AGENT_SERVICE_PORT_METRICS", "8082"),
            ("ASCEND_AGENT_PORT", "tcp://10.0.0.1:8082"),
            ("ASCEND_AGENT_PORT_8082_TCP_ADDR", "10.0.0.1"),
        ]);
        assert!(Layered::gather(None, &links, &[]).is_ok());
    }

    #[test]
    fn a_file_that_others_may_write_is_refused() {
        let file = file("state_dir = \"/x\"\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs::set_permissions(file.path(), mode).expect("chmod");
        let error = Layered::gather(Some(file.path()), &Fixed(&[]), &[]).expect_err("refused");
        assert!(error.to_string().contains("mode 0666"), "{error}");
    }

    #[test]
    fn a_list_is_not_a_value() {
        let file = file("state_dir = [\"/a\"]");
        assert!(matches!(
            Layered::gather(Some(file.path()), &Fixed(&[]), &[]),
            Err(ConfigError::Kind { .. })
        ));
    }
}
