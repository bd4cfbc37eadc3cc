//! Defaults, file, environment and flags become one validated `Config`. The only reader of the
//! environment.
//!
//! Later sources win: defaults, then `/etc/ascend/agent.toml`, then `ASCEND_AGENT_*`, then flags.
//! Every key stands in one table, from which flags, variable names, checks and `config show` are
//! made. Unknown keys are errors that name the nearest key. Nothing reloads silently.
//!
//! The command line of the vendor's device plugin is one more source of flags, with a table of its own.

mod go_flags;
mod keys;
mod names;
mod nearest;
mod reference;
mod sources;
mod validated;
mod vendor_environment;
mod vendor_flags;
mod vendor_line;
mod vendor_rules;

pub use go_flags::{GoFlagError, Kind};
pub use keys::{KEYS, Key};
pub use names::NamesError;
pub use nearest::nearest;
pub use reference::reference;
pub use sources::{
    ConfigError, DEFAULT_FILE, Environment, GivenSetting, Layered, ProcessEnvironment, Setting,
    Source,
};
pub use validated::{Config, LogFormat};
pub use vendor_environment::{VendorEnvironmentError, check_environment};
pub use vendor_flags::{Effect, VENDOR_FLAGS, VendorFlag};
pub use vendor_line::{VendorLine, VendorLineError, VendorRequest};
