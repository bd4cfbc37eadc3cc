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
    form: LineForm,
    stderr: Lines,
    file: Option<Lines>,
}

impl Write for Outputs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.stderr.send(line);
        if let Some(file) = &self.file {
            match self.form {
                LineForm::Human => file.send(&capped(line)),
                // A part of an object is no object, and programs stop at it.
                LineForm::Json => file.send(line),
            }
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
    let outputs = Outputs { form, stderr, file };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_of_the_file_is_cut_for_people_and_whole_for_programs() {
        let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(2000));
        for (form, whole) in [(LineForm::Human, false), (LineForm::Json, true)] {
            let (stderr, _unread) = queue();
            let (file, waiting) = queue();
            let mut outputs = Outputs {
                form,
                stderr,
                file: Some(file),
            };
            outputs.write_all(line.as_bytes()).unwrap();
            drop(outputs);
            let mut read = Stream(Vec::new());
            waiting.pass_on(&mut read);
            assert_eq!(read.0 == line.as_bytes(), whole, "{form:?}");
        }
    }
}
