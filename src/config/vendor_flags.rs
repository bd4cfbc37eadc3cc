//! The flags of the vendor's device plugin, present and past, and what each does here.

use super::go_flags::{Kind, Named};

/// What a flag does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Sets this key.
    Key(&'static str),
    /// Decides together with others; the text says how.
    Shared(&'static str),
    /// Is checked and then changes nothing; the text is the consequence of a value other than the
    /// default.
    None(&'static str),
    /// No release of the vendor's takes it any more; the text is what replaced it.
    Removed(&'static str),
    /// Prints and ends.
    Prints,
}

/// One flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorFlag {
    /// Name without dashes.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The vendor's default, in the form of a parsed value.
    pub default: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What it does here.
    pub effect: Effect,
}

impl Named for VendorFlag {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> Kind {
        self.kind
    }
}

impl VendorFlag {
    /// What may be given, for usage texts.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Bool => "true or false".to_owned(),
            Kind::Int { min, max } if max == i64::MAX => format!("at least {min}"),
            Kind::Int { min, max } => format!("{min} to {max}"),
            Kind::Text => "text".to_owned(),
        }
    }

    /// The default as people read it.
    #[must_use]
    pub fn default_text(&self) -> &'static str {
        if self.default.is_empty() {
            "unset"
        } else {
            self.default
        }
    }

    /// What it does here, as a sentence part.
    #[must_use]
    pub fn here(&self) -> String {
        match self.effect {
            Effect::Key(key) => format!("sets {key}"),
            Effect::Shared(text) => text.to_owned(),
            Effect::None(text) => format!("no effect yet: {text}"),
            Effect::Removed(text) => format!("accepted, no effect: {text}"),
            Effect::Prints => "prints name and version".to_owned(),
        }
    }
}

const fn flag(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
    effect: Effect,
) -> VendorFlag {
    VendorFlag {
        name,
        kind,
        default,
        doc,
        effect,
    }
}

const fn int(min: i64, max: i64) -> Kind {
    Kind::Int { min, max }
}

/// Where the vendor's plugin logs by default.
pub(super) const LOG_FILE: &str = "/var/log/mindx-dl/devicePlugin/devicePlugin.log";

/// The same in edge mode.
pub(super) const EDGE_LOG_FILE: &str = "/var/alog/AtlasEdge_log/devicePlugin.log";

/// Every flag, sorted by name without regard to capitals.
pub const VENDOR_FLAGS: &[VendorFlag] = &[
    flag(
        "autoStowing",
        Kind::Bool,
        "true",
        "let a recovered chip be offered again by itself",
        Effect::None("recovered chips are offered again after hold_down_seconds, always"),
    ),
    flag(
        "cacheExpirePeriod",
        int(0, 60),
        "0",
        "seconds until cached pods expire",
        Effect::Removed("no pods are cached"),
    ),
    flag(
        "checkCachedPods",
        Kind::Bool,
        "true",
        "compare cached pods with the API server",
        Effect::None(
            "no pods are cached; kubelet's own records are compared every records_poll_seconds",
        ),
    ),
    flag(
        "dealWatchHandler",
        Kind::Bool,
        "false",
        "list pods anew after a failed watch",
        Effect::None("no pods are watched"),
    ),
    flag(
        "deviceResetTimeout",
        int(10, 600),
        "600",
        "seconds the start waits for all cards",
        Effect::Key("device_wait_seconds"),
    ),
    flag(
        "edgeLogFile",
        Kind::Text,
        EDGE_LOG_FILE,
        "log file under FusionDirector",
        Effect::Shared("sets log_file with -fdFlag"),
    ),
    flag(
        "enable-healthz",
        Kind::Bool,
        "false",
        "serve health over HTTP",
        Effect::Shared("sets health_address, with -healthz-address"),
    ),
    flag(
        "enableSlowNode",
        Kind::Bool,
        "false",
        "give jobs the settings of slow node detection",
        Effect::None("containers get no PERF_DUMP variables"),
    ),
    flag(
        "fdFlag",
        Kind::Bool,
        "false",
        "FusionDirector edge mode",
        Effect::Key("fusion_director"),
    ),
    flag(
        "getPodFromKubelet",
        Kind::Bool,
        "false",
        "read pods from kubelet instead of the API server",
        Effect::None(
            "pods are known from kubelet's pod-resources socket and its checkpoint, always",
        ),
    ),
    flag(
        "healthz-address",
        int(1025, 65_535),
        "11251",
        "port of the health server, on all addresses",
        Effect::Shared("sets health_address, with -enable-healthz"),
    ),
    flag(
        "hotReset",
        int(-1, 2),
        "-1",
        "reset idle faulty chips: -1 never, 0 and 2 when idle",
        Effect::None("no chip is reset; a faulty one stays unhealthy until it recovers"),
    ),
    flag(
        "kubeConfig",
        Kind::Text,
        "",
        "file with access to the API server",
        Effect::Removed("no API server is used"),
    ),
    flag(
        "linkdownTimeout",
        int(1, 30),
        "30",
        "seconds until a network fault counts",
        Effect::None(
            "no link state changes a chip's health; the vendor's plugin ignores this flag as well",
        ),
    ),
    flag(
        "listWatchPeriod",
        int(3, 1800),
        "5",
        "seconds between two looks at the chips",
        Effect::None(
            "chips are looked at every health_poll_ms (1 s unless set), and fault events count at once",
        ),
    ),
    flag(
        "logFile",
        Kind::Text,
        LOG_FILE,
        "log file",
        Effect::Shared("sets log_file without -fdFlag"),
    ),
    flag(
        "logLevel",
        int(-1, 3),
        "0",
        "-1 debug, 0 info, 1 warning, 2 error, 3 critical",
        Effect::Shared("sets log_level; critical is error"),
    ),
    flag(
        "maxAge",
        int(7, 700),
        "7",
        "days that rotated log files are kept",
        Effect::Key("log_max_age_days"),
    ),
    flag(
        "maxBackups",
        int(1, 180),
        "30",
        "rotated log files that are kept",
        Effect::Key("log_max_backups"),
    ),
    flag(
        "mode",
        Kind::Text,
        "",
        "chip family: ascend310, ascend310P or ascend910",
        Effect::Removed("the family of each chip is detected"),
    ),
    flag(
        "presetVirtualDevice",
        Kind::Bool,
        "true",
        "false cuts virtual devices on demand; needs -volcanoType and -shareDevCount=1",
        Effect::None("chips are offered whole under their usual resource names, npu-core is not"),
    ),
    flag(
        "shareDevCount",
        int(1, 100),
        "1",
        "how many containers share a chip",
        Effect::Key("share_count"),
    ),
    flag(
        "softShareDevConfigDir",
        Kind::Text,
        "",
        "folder of soft slicing; needs -volcanoType and -shareDevCount=100",
        Effect::None(
            "no quotas are set, so chips are offered whole and -shareDevCount is not followed",
        ),
    ),
    flag(
        "thirdPartyScanDelay",
        int(0, i64::MAX),
        "300",
        "seconds until a reset by others is looked for",
        Effect::None("chips that come back are found by health_poll_ms"),
    ),
    flag(
        "tls-cert-file",
        Kind::Text,
        "",
        "certificate of the health server (PEM); needs -tls-private-key-file",
        Effect::Key("health_tls_cert"),
    ),
    flag(
        "tls-private-key-file",
        Kind::Text,
        "",
        "key of the health server (PEM); needs -tls-cert-file",
        Effect::Key("health_tls_key"),
    ),
    flag(
        "use310PMixedInsert",
        Kind::Bool,
        "false",
        "one resource per 310P product; excludes -volcanoType and sharing",
        Effect::Key("mixed_insert"),
    ),
    flag(
        "useAscendDocker",
        Kind::Bool,
        "true",
        "give chips through Ascend Docker Runtime",
        Effect::Removed("ASCEND_DOCKER_RUNTIME and the key delivery decide"),
    ),
    flag(
        "useLargeModel",
        Kind::Bool,
        "false",
        "a recovery mode of one release",
        Effect::Removed("it left the vendor's plugin without successor"),
    ),
    flag(
        "useSingleDieMode",
        Kind::Bool,
        "false",
        "A3: dies work alone",
        Effect::Key("single_die_mode"),
    ),
    flag(
        "version",
        Kind::Bool,
        "false",
        "print name and version",
        Effect::Prints,
    ),
    flag(
        "volcanoType",
        Kind::Bool,
        "false",
        "let Volcano choose the chips",
        Effect::None(
            "chips are chosen by kubelet, not by Volcano; Volcano's annotations are neither read nor written",
        ),
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_sorted_and_stand_once() {
        let names: Vec<String> = VENDOR_FLAGS
            .iter()
            .map(|flag| flag.name.to_lowercase())
            .collect();
        let sorted: BTreeSet<String> = names.iter().cloned().collect();
        assert!(sorted.iter().eq(&names), "{names:?}");
    }
}
