//! The table of keys.

/// What the variables of all keys begin with.
pub(super) const VARIABLE_PREFIX: &str = "ASCEND_AGENT_";

/// One configuration key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Name in the file; the variable is `ASCEND_AGENT_` and the name in capitals, the flag `--` and
    /// the name with dashes.
    pub name: &'static str,
    /// Default, as one would write it; empty means unset.
    pub default: &'static str,
    /// What it does, with unit and range.
    pub doc: &'static str,
}

impl Key {
    /// Name of its variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.name.to_ascii_uppercase())
    }

    /// Its flag, with the dashes.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }
}

const fn key(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    Key { name, default, doc }
}

/// Every key.
pub const KEYS: &[Key] = &[
    key(
        "state_dir",
        "/var/lib/ascend",
        "folder of the durable state, on the host (0700); \"none\" runs without one and promises \
         nothing across restarts",
    ),
    key(
        "admin_socket",
        "/run/ascend/agent.sock",
        "unix socket for status and audit (0600)",
    ),
    key(
        "device_plugin_dir",
        "/var/lib/kubelet/device-plugins",
        "kubelet's folder of device plugin sockets",
    ),
    key(
        "pod_resources_socket",
        "/var/lib/kubelet/pod-resources/kubelet.sock",
        "kubelet's pod-resources socket",
    ),
    key(
        "dev_dir",
        "/dev",
        "folder of the device nodes as the agent sees it",
    ),
    key(
        "host_dev_dir",
        "/dev",
        "the same folder as the container runtime sees it",
    ),
    key(
        "sysfs_dir",
        "/sys",
        "the kernel's system information as the agent sees it, read for NUMA nodes",
    ),
    key(
        "resource_domain",
        "huawei.com",
        "domain of the resource names",
    ),
    key(
        "share_count",
        "1",
        "containers that may share one 310P or 310B chip in time, 1 to 100; 1 offers whole chips",
    ),
    key(
        "mixed_insert",
        "false",
        "offer 310P cards of different kinds as Ascend310P-V, Ascend310P-VPro and Ascend310P-IPro; for \
         nodes with Atlas 300V, 300V Pro and 300I Pro cards only",
    ),
    key(
        "fusion_director",
        "false",
        "offer 310 chips as davinci-mini, the name FusionDirector expects",
    ),
    key(
        "names_file",
        "/usr/local/deviceNameCustomization.json",
        "file with custom names of resources and ids, the vendor's format; empty is none, and only at the \
         default path may it be absent",
    ),
    key(
        "trusted_library",
        "",
        "path of a driver library that is loaded without the owner and mode checks; for tests and \
         the simulator only",
    ),
    key(
        "delivery",
        "auto",
        "how chips reach a container: auto, docker-runtime (variables), devicespec (device nodes) or \
         cdi (names that the runtime looks up); auto is docker-runtime when ASCEND_DOCKER_RUNTIME is \
         True, except on Atlas 200I SoC A1 and in mixed insert, else devicespec",
    ),
    key(
        "driver_mounts",
        "false",
        "with devicespec or cdi, also mount the driver's files that exist on the host, read-only",
    ),
    key(
        "install_type",
        "center",
        "which list of driver files driver_mounts takes: center, a200, a200isoc, a500, a200ia2 or \
         a500a2",
    ),
    key(
        "cdi_dir",
        "/var/run/cdi",
        "with cdi, the host's folder of generated CDI specs",
    ),
    key(
        "cdi_kind",
        "huawei.com/npu",
        "with cdi, vendor and class of the names; not ascend.com/npu, which the vendor's own \
         components write",
    ),
    key(
        "hccl_topo_file",
        "",
        "A5 only: value of HCCL_TOPO_FILE_PATH; unset means the file that the driver ships for the \
         node's super-pod type, that of an eight-chip server where the type is unknown",
    ),
    key(
        "compat_env",
        "false",
        "also set NPU_DEVICE_ID, the chip numbers as other device plugins name them",
    ),
    key(
        "single_die_mode",
        "false",
        "A3 only: false has the driver treat both dies of a card as one, healthy together and mounted \
         together; true treats each die for itself",
    ),
    key(
        "device_wait_seconds",
        "60",
        "how long the start waits until every card the driver counts has come up, 0 to 3600; then \
         it goes on with those there and keeps looking",
    ),
    key(
        "health_poll_ms",
        "1000",
        "pause between two health samples, 100 to 60000 milliseconds",
    ),
    key(
        "hold_down_seconds",
        "60",
        "quiet time before a recovered chip is offered again, 0 to 86400 seconds",
    ),
    key(
        "owner_proof_seconds",
        "30",
        "how long kubelet's records must lack a holder before its chip counts as free, 1 to 86400 \
         seconds",
    ),
    key(
        "records_poll_seconds",
        "10",
        "pause between two looks at kubelet's records, 5 to 3600 seconds",
    ),
    key(
        "driver_call_ms",
        "500",
        "deadline of one health call per chip, 50 to 30000 milliseconds; a chip that overruns it three \
         times in a row is unhealthy until it answers",
    ),
    key(
        "driver_init_seconds",
        "120",
        "deadline of the driver's initialisation and enumeration, 1 to 600 seconds",
    ),
    key(
        "driver_grace_seconds",
        "10",
        "how long chips keep their last health while the process that holds the driver is away or \
         silent, 0 to 600 seconds",
    ),
    key(
        "health_address",
        "",
        "address of the HTTP health server, IP:PORT or :PORT for all addresses; answers / and /healthz \
         (a restart would help or not) and /readyz (all is well or not); unset serves none",
    ),
    key(
        "health_tls_cert",
        "",
        "certificate of the health server (PEM); needs health_tls_key",
    ),
    key(
        "health_tls_key",
        "",
        "key of the health server (PEM); needs health_tls_cert",
    ),
    key("log_format", "human", "human or json; logs go to stderr"),
    key("log_level", "info", "error, warn, info, debug or trace"),
    key(
        "log_file",
        "",
        "also log to this file; rotated at 20 MiB, lines for people cut at 1024 characters; started \
         as device-plugin, the vendor's file",
    ),
    key(
        "log_max_age_days",
        "7",
        "days that rotated log files are kept, 1 to 700",
    ),
    key(
        "log_max_backups",
        "30",
        "rotated log files that are kept, 1 to 180",
    ),
];
