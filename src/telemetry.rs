//! Logs: to standard error, for people or for programs.

use tracing_subscriber::fmt;

/// Form of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineForm {
    /// For people.
    Human,
    /// For programs, one object a line.
    Json,
}

/// Starts logging. A second call in one process changes nothing.
pub fn init(form: LineForm, level: tracing::Level) {
    let builder = fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false);
    // The error says that logging runs already, which is what was wanted.
    let _ = match form {
        LineForm::Human => builder.try_init(),
        LineForm::Json => builder.json().flatten_event(true).try_init(),
    };
}
