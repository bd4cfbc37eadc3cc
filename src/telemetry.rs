//! Logs: to standard error, for people or for programs.

use tracing_subscriber::fmt;

use crate::config::LogFormat;

/// Starts logging. A second call in one process changes nothing.
pub fn init(format: LogFormat, level: tracing::Level) {
    let builder = fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false);
    // The error says that logging runs already, which is what was wanted.
    let _ = match format {
        LogFormat::Human => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
