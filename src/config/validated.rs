//! The typed configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::ids::ResourceName;
use crate::injection::{CdiKind, DeliveryChoice, InstallType};
use crate::offering::{CustomNames, Mode, Offering, SHARES_MAX};

use super::keys::KEYS;
use super::names::read_names;
use super::sources::{ConfigError, Layered, Setting, Source};

/// Form of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Human,
    /// For programs, one object a line.
    Json,
}

/// One run's configuration. Fields are those of the table of keys, in its units.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key or a fact of its own"
)]
pub struct Config {
    /// `None` runs without durable state.
    pub state_dir: Option<PathBuf>,
    /// Admin socket.
    pub admin_socket: PathBuf,
    /// Kubelet's device plugin folder.
    pub device_plugin_dir: PathBuf,
    /// Kubelet's pod-resources socket.
    pub pod_resources_socket: PathBuf,
    /// Device nodes as the agent sees them; no slash at the end.
    pub dev_dir: String,
    /// Device nodes as the runtime sees them; no slash at the end.
    pub host_dev_dir: String,
    /// The kernel's system information.
    pub sysfs_dir: PathBuf,
    /// Resource names and ids: domain, mode, custom names.
    pub offering: Offering,
    /// The file that custom names were read from.
    pub names_file: Option<PathBuf>,
    /// Library exempt from the safety checks.
    pub trusted_library: Option<PathBuf>,
    /// Delivery.
    pub delivery: DeliveryChoice,
    /// Driver files for containers.
    pub driver_mounts: bool,
    /// List of driver files.
    pub install_type: InstallType,
    /// Folder of CDI specs.
    pub cdi_dir: PathBuf,
    /// Kind of CDI names.
    pub cdi_kind: CdiKind,
    /// A5 topology file.
    pub hccl_topo_file: Option<String>,
    /// Whether each die of an A3 card stands for itself.
    pub single_die_mode: bool,
    /// Variables of other device plugins.
    pub compat_env: bool,
    /// All-cards wait.
    pub device_wait: Duration,
    /// Health sampling period.
    pub health_poll: Duration,
    /// Hold-down.
    pub hold_down: Duration,
    /// Owner proof.
    pub owner_proof: Duration,
    /// Kubelet records period.
    pub records_poll: Duration,
    /// Per-chip call deadline.
    pub driver_call: Duration,
    /// Initialisation deadline.
    pub driver_init: Duration,
    /// Grace while the driver is silent.
    pub driver_grace: Duration,
    /// Where health is served: the first of these that can be had. None serves none.
    pub health_addresses: Vec<SocketAddr>,
    /// Certificate and key of the health server.
    pub health_tls: Option<(PathBuf, PathBuf)>,
    /// Log form.
    pub log_format: LogFormat,
    /// Log level.
    pub log_level: tracing::Level,
    /// Log file beside standard error.
    pub log_file: Option<PathBuf>,
    /// How long rotated log files are kept.
    pub log_max_age: Duration,
    /// How many rotated log files are kept.
    pub log_max_backups: usize,
    /// `LD_LIBRARY_PATH` of this process.
    pub ld_library_path: Option<String>,
    /// Whether Ascend Docker Runtime marked our container.
    pub docker_runtime: bool,
    /// `ASCEND_VISIBLE_DEVICES` of our own container.
    pub visible_devices: Option<String>,
    /// Whether Kubernetes set its own variables.
    pub in_pod: bool,
    /// Whether nobody chose another state folder.
    pub state_dir_unset: bool,
    /// Whether nobody chose another admin socket.
    pub admin_socket_unset: bool,
}

impl Config {
    /// Validates every key.
    ///
    /// # Errors
    /// Names the first bad key with its value, where it came from and what is allowed.
    pub fn build(layered: &Layered) -> Result<Self, ConfigError> {
        let read = Reader { layered };
        let seconds = |key, min, max| read.number(key, min, max).map(Duration::from_secs);
        let millis = |key, min, max| read.number(key, min, max).map(Duration::from_millis);
        let (offering, names_file) = read.offering()?;
        Ok(Self {
            state_dir: match read.setting("state_dir").value.as_str() {
                "none" => None,
                _ => Some(read.absolute("state_dir")?),
            },
            admin_socket: read.socket("admin_socket")?,
            device_plugin_dir: read.absolute("device_plugin_dir")?,
            pod_resources_socket: read.socket("pod_resources_socket")?,
            dev_dir: read.folder("dev_dir")?,
            host_dev_dir: read.folder("host_dev_dir")?,
            sysfs_dir: read.absolute("sysfs_dir")?,
            offering,
            names_file,
            trusted_library: read.optional("trusted_library", Reader::absolute)?,
            delivery: read.choice(
                "delivery",
                &[
                    ("auto", DeliveryChoice::Auto),
                    ("docker-runtime", DeliveryChoice::DockerRuntime),
                    ("devicespec", DeliveryChoice::DeviceSpec),
                    ("cdi", DeliveryChoice::Cdi),
                ],
            )?,
            driver_mounts: read.choice("driver_mounts", &[("true", true), ("false", false)])?,
            install_type: read.choice(
                "install_type",
                &[
                    ("center", InstallType::Center),
                    ("a200", InstallType::A200),
                    ("a200isoc", InstallType::A200ISoc),
                    ("a500", InstallType::A500),
                    ("a200ia2", InstallType::A200IA2),
                    ("a500a2", InstallType::A500A2),
                ],
            )?,
            cdi_dir: read.absolute("cdi_dir")?,
            cdi_kind: read.kind("cdi_kind")?,
            hccl_topo_file: read.optional("hccl_topo_file", Reader::folder)?,
            single_die_mode: read.choice("single_die_mode", &[("true", true), ("false", false)])?,
            compat_env: read.choice("compat_env", &[("true", true), ("false", false)])?,
            device_wait: seconds("device_wait_seconds", 0, 3600)?,
            health_poll: millis("health_poll_ms", 100, 60_000)?,
            hold_down: seconds("hold_down_seconds", 0, 86_400)?,
            owner_proof: seconds("owner_proof_seconds", 1, 86_400)?,
            records_poll: seconds("records_poll_seconds", 5, 3600)?,
            driver_call: millis("driver_call_ms", 50, 30_000)?,
            driver_init: seconds("driver_init_seconds", 1, 600)?,
            driver_grace: seconds("driver_grace_seconds", 0, 600)?,
            health_addresses: read.addresses("health_address")?,
            health_tls: read.pair("health_tls_cert", "health_tls_key")?,
            log_format: read.choice(
                "log_format",
                &[("human", LogFormat::Human), ("json", LogFormat::Json)],
            )?,
            log_level: read.choice(
                "log_level",
                &[
                    ("error", tracing::Level::ERROR),
                    ("warn", tracing::Level::WARN),
                    ("info", tracing::Level::INFO),
                    ("debug", tracing::Level::DEBUG),
                    ("trace", tracing::Level::TRACE),
                ],
            )?,
            log_file: read.optional("log_file", Reader::file)?,
            log_max_age: read
                .number("log_max_age_days", 1, 700)
                .map(|days| Duration::from_secs(days * 86_400))?,
            log_max_backups: read
                .number("log_max_backups", 1, 180)
                .map(|count| usize::try_from(count).unwrap_or(usize::MAX))?,
            ld_library_path: layered.ld_library_path.clone(),
            docker_runtime: layered.docker_runtime,
            visible_devices: layered.visible_devices.clone(),
            in_pod: layered.in_pod,
            state_dir_unset: read.is_default("state_dir"),
            admin_socket_unset: read.is_default("admin_socket"),
        })
    }
}

/// A unix socket address holds 108 bytes with the final NUL.
const SOCKET_PATH_MAX_BYTES: usize = 107;

struct Reader<'a> {
    layered: &'a Layered,
}

impl Reader<'_> {
    fn setting(&self, key: &'static str) -> Setting {
        debug_assert!(
            KEYS.iter().any(|known| known.name == key),
            "{key} is not in the table"
        );
        self.layered.setting(key)
    }

    fn is_default(&self, key: &'static str) -> bool {
        self.setting(key).source == Source::Default
    }

    fn refuse(&self, key: &'static str, expected: impl Into<String>) -> ConfigError {
        let Setting { value, source } = self.setting(key);
        let value = value.chars().take(256).collect();
        ConfigError::Value {
            key,
            value,
            origin: source,
            expected: expected.into(),
        }
    }

    fn number(&self, key: &'static str, min: u64, max: u64) -> Result<u64, ConfigError> {
        let parsed = self.setting(key).value.trim().parse::<u64>().ok();
        parsed
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.refuse(key, format!("a whole number from {min} to {max}")))
    }

    fn absolute(&self, key: &'static str) -> Result<PathBuf, ConfigError> {
        let path = PathBuf::from(self.setting(key).value);
        if path.is_absolute() {
            Ok(path)
        } else {
            Err(self.refuse(key, "an absolute path, beginning with /"))
        }
    }

    fn socket(&self, key: &'static str) -> Result<PathBuf, ConfigError> {
        let path = self.absolute(key)?;
        if path.as_os_str().len() > SOCKET_PATH_MAX_BYTES {
            let limit = format!("at most {SOCKET_PATH_MAX_BYTES} bytes, the limit of unix sockets");
            return Err(self.refuse(key, limit));
        }
        Ok(path)
    }

    /// None when unset. All addresses are tried in both versions of IP.
    fn addresses(&self, key: &'static str) -> Result<Vec<SocketAddr>, ConfigError> {
        let text = self.setting(key).value;
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let parsed: Option<Vec<SocketAddr>> = match text.strip_prefix(':') {
            Some(port) => port.parse().ok().map(|port| {
                let all: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
                all.map(|address| SocketAddr::new(address, port)).to_vec()
            }),
            None => text.parse().ok().map(|address| vec![address]),
        };
        parsed
            .filter(|addresses| addresses.iter().all(|address| address.port() > 0))
            .ok_or_else(|| self.refuse(key, "IP:PORT or :PORT, with a port from 1 to 65535"))
    }

    /// Two paths that need each other.
    fn pair(
        &self,
        first: &'static str,
        second: &'static str,
    ) -> Result<Option<(PathBuf, PathBuf)>, ConfigError> {
        let one = self.optional(first, Self::file)?;
        match (one, self.optional(second, Self::file)?) {
            (None, None) => Ok(None),
            (Some(one), Some(two)) => Ok(Some((one, two))),
            (Some(_), None) => Err(self.refuse(first, format!("needs {second} beside it"))),
            (None, Some(_)) => Err(self.refuse(second, format!("needs {first} beside it"))),
        }
    }

    fn file(&self, key: &'static str) -> Result<PathBuf, ConfigError> {
        let path = self.absolute(key)?;
        if self.setting(key).value.ends_with('/') || path.file_name().is_none() {
            return Err(self.refuse(key, "the path of a file, without / at the end"));
        }
        Ok(path)
    }

    fn folder(&self, key: &'static str) -> Result<String, ConfigError> {
        self.absolute(key)?;
        Ok(self.setting(key).value.trim_end_matches('/').to_owned())
    }

    fn domain(&self, key: &'static str) -> Result<String, ConfigError> {
        let domain = self.setting(key).value;
        match ResourceName::new(format!("{domain}/x")) {
            Ok(_) => Ok(domain),
            Err(cause) => Err(self.refuse(key, cause.to_string())),
        }
    }

    /// What is offered, and the file with custom names that was read for it.
    fn offering(&self) -> Result<(Offering, Option<PathBuf>), ConfigError> {
        let domain = self.domain("resource_domain")?;
        let truth = &[("true", true), ("false", false)];
        let shares = self.number("share_count", 1, u64::from(SHARES_MAX))?;
        let mode = Mode {
            share_count: u16::try_from(shares).unwrap_or(SHARES_MAX),
            mixed_insert: self.choice("mixed_insert", truth)?,
            fusion_director: self.choice("fusion_director", truth)?,
        };
        let (names, file) = self.names("names_file", &domain)?;
        Ok((Offering::new(domain, mode, names)?, file))
    }

    /// Only the default path may name a file that is absent: a slip in another would offer other
    /// resources.
    fn names(
        &self,
        key: &'static str,
        domain: &str,
    ) -> Result<(CustomNames, Option<PathBuf>), ConfigError> {
        let Some(path) = self.optional(key, Self::absolute)? else {
            return Ok((CustomNames::default(), None));
        };
        match read_names(&path, domain)? {
            Some(names) => Ok((names, Some(path))),
            None if KEYS
                .iter()
                .any(|known| known.name == key && Path::new(known.default) == path) =>
            {
                Ok((CustomNames::default(), None))
            }
            None => Err(self.refuse(
                key,
                "the file does not exist; correct the path, or leave it empty for no custom names",
            )),
        }
    }

    fn kind(&self, key: &'static str) -> Result<CdiKind, ConfigError> {
        CdiKind::parse(&self.setting(key).value)
            .map_err(|cause| self.refuse(key, cause.to_string()))
    }

    fn optional<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&Self, &'static str) -> Result<T, ConfigError>,
    ) -> Result<Option<T>, ConfigError> {
        if self.setting(key).value.is_empty() {
            Ok(None)
        } else {
            parse(self, key).map(Some)
        }
    }

    fn choice<T: Copy>(&self, key: &'static str, allowed: &[(&str, T)]) -> Result<T, ConfigError> {
        let value = self.setting(key).value;
        allowed
            .iter()
            .find(|(name, _)| *name == value)
            .map(|(_, choice)| *choice)
            .ok_or_else(|| {
                let names: Vec<&str> = allowed.iter().map(|(name, _)| *name).collect();
                self.refuse(key, format!("one of {}", names.join(", ")))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sources::{Environment, GivenSetting};
    use super::*;

    struct Nothing;

    impl Environment for Nothing {
        fn variables(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
            Vec::new()
        }
    }

    fn build(flags: &[(&'static str, &str)]) -> Result<Config, ConfigError> {
        let flags: Vec<_> = flags
            .iter()
            .map(|(key, value)| GivenSetting::of_key(key, (*value).to_owned()))
            .collect();
        Config::build(&Layered::gather(None, &Nothing, &flags).expect("gathered"))
    }

    #[test]
    fn the_defaults_are_valid() {
        let config = build(&[]).expect("valid");
        assert_eq!(config.state_dir, Some(PathBuf::from("/var/lib/ascend")));
        assert_eq!(config.hold_down, Duration::from_secs(60));
    }

    #[test]
    fn a_bad_value_is_named_with_its_source_and_what_is_allowed() {
        for (key, value, part) in [
            ("health_poll_ms", "5", "from 100 to 60000"),
            ("health_poll_ms", "fast", "from 100 to 60000"),
            ("state_dir", "relative", "absolute path"),
            ("delivery", "device", "one of auto"),
            ("install_type", "a300", "a200isoc"),
            ("cdi_kind", "npu", "vendor/class"),
            ("cdi_kind", "ascend.com/npu", "own components"),
            ("driver_mounts", "yes", "one of true, false"),
            ("resource_domain", "Huawei.com", "DNS subdomain"),
            (
                "admin_socket",
                &format!("/{}", "x".repeat(120)),
                "107 bytes",
            ),
        ] {
            let text = build(&[(key, value)]).expect_err("refused").to_string();
            let flag = format!("--{}", key.replace('_', "-"));
            assert!(
                text.contains(key) && text.contains(part) && text.contains(&flag),
                "{text}"
            );
        }
    }

    #[test]
    fn health_is_served_on_one_address_or_on_all_with_both_files_or_none() {
        let config = build(&[("health_address", ":11251")]).expect("valid");
        let texts: Vec<String> = config
            .health_addresses
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, ["[::]:11251", "0.0.0.0:11251"]);
        let config = build(&[("health_address", "127.0.0.1:80")]).expect("valid");
        assert_eq!(config.health_addresses.len(), 1);
        assert!(build(&[]).expect("valid").health_addresses.is_empty());
        for (key, value, part) in [
            ("health_address", "11251", "IP:PORT"),
            ("health_address", ":0", "IP:PORT"),
            ("health_address", "localhost:80", "IP:PORT"),
            ("health_tls_cert", "/c", "needs health_tls_key"),
            ("health_tls_key", "/k", "needs health_tls_cert"),
            ("log_file", "/var/log/", "the path of a file"),
            ("log_max_backups", "181", "1 to 180"),
        ] {
            let text = build(&[(key, value)]).expect_err("refused").to_string();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_path_that_somebody_chose_is_chosen_even_where_it_is_the_default() {
        let config = build(&[("state_dir", "/var/lib/ascend")]).expect("valid");
        assert!(!config.state_dir_unset && config.admin_socket_unset);
        let config = build(&[("admin_socket", "/run/ascend/agent.sock")]).expect("valid");
        assert!(config.state_dir_unset && !config.admin_socket_unset);
    }

    #[test]
    fn a_names_file_that_was_named_must_be_there() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("names.json");
        let value = path.to_str().expect("plain");
        let text = build(&[("names_file", value)])
            .expect_err("refused")
            .to_string();
        for part in ["names_file", value, "--names-file", "does not exist"] {
            assert!(text.contains(part), "{text}");
        }
        std::fs::write(&path, "[]").expect("written");
        let config = build(&[("names_file", value)]).expect("valid");
        assert_eq!(config.names_file, Some(path));
        let config = build(&[("names_file", "")]).expect("valid");
        assert_eq!(config.names_file, None);
    }

    #[test]
    fn none_means_no_state_folder_and_slashes_at_the_end_go() {
        let config = build(&[("state_dir", "none"), ("dev_dir", "/host/dev/")]).expect("valid");
        assert_eq!(config.state_dir, None);
        assert_eq!(config.dev_dir, "/host/dev");
    }
}
