//! Logs: to standard error, for people or for programs, and to a file where one is asked for. A reader
//! that stalls, a full disk or a folder that went away costs lines and nothing else: no task ever waits
//! for a log or fails with it.

mod log_file;
mod old_files;
mod queue;

use std::io::{self, Write};
use std::sync::Arc;

use tracing_subscriber::fmt;

use crate::ports::Clock;

use self::log_file::LogFile;
pub use self::log_file::LogFileSettings;
use self::queue::{Lines, Stream, capped, queue};

/// Form of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineForm {
    /// For people.
    Human,
    /// For programs, one object a line.
    Json,
}

/// Dropped at the end of the program, it waits a moment for the last lines.
#[derive(Debug)]
pub struct Logs(Outputs);

#[derive(Clone, Debug)]
struct Outputs {
    stderr: Lines,
    file: Option<Lines>,
}

impl Write for Outputs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.stderr.send(line);
        if let Some(file) = &self.file {
            file.send(&capped(line));
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.0.stderr.finish();
        if let Some(file) = &self.0.file {
            file.finish();
        }
    }
}

/// Starts logging. A second call in one process changes nothing.
///
/// # Errors
/// When no thread can be had.
pub fn init(
    form: LineForm,
    level: tracing::Level,
    file: Option<LogFileSettings>,
    clock: Arc<dyn Clock>,
) -> io::Result<Logs> {
    let (stderr, waiting) = queue();
    std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || waiting.pass_on(&mut Stream(io::stderr())))?;
    let file = match file {
        None => None,
        Some(settings) => {
            let (lines, waiting) = queue();
            std::thread::Builder::new()
                .name("log-file".to_owned())
                .spawn(move || waiting.pass_on(&mut LogFile::new(settings, clock)))?;
            Some(lines)
        }
    };
    let outputs = Outputs { stderr, file };
    let writer = outputs.clone();
    let builder = fmt()
        .with_max_level(level)
        .with_writer(move || writer.clone())
        .with_target(false);
    // The error says that logging runs already, which is what was wanted.
    let _ = match form {
        LineForm::Human => builder.try_init(),
        LineForm::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(Logs(outputs))
}
