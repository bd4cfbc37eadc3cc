//! Defaults, file, environment and flags become one validated `Config`. The only reader of the
//! environment.
//!
//! Later sources win: defaults, then `/etc/ascend/agent.toml`, then `ASCEND_AGENT_*`, then flags.
//! Every key stands in one table, from which flags, variable names, checks and `config show` are
//! made. Unknown keys are errors that name the nearest key. Nothing reloads silently.

mod keys;
mod names;
mod reference;
mod sources;
mod validated;

pub use keys::{KEYS, Key};
pub use names::NamesError;
pub use reference::reference;
pub use sources::{
    ConfigError, DEFAULT_FILE, Environment, Layered, ProcessEnvironment, Setting, Source,
};
pub use validated::{Config, LogFormat};
