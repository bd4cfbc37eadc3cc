//! Logs: to standard error, for people or for programs. A reader that stalls or went away costs lines and
//! nothing else: no task ever waits for standard error or fails with it.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt;

/// Lines that wait for standard error; further ones are counted and dropped.
const LINES_WAITING: usize = 1024;

/// How long the end of the program waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

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
pub struct Logs(Lines);

#[derive(Clone, Debug)]
struct Lines {
    queue: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Line {
    Text(Vec<u8>),
    Last(SyncSender<()>),
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.queue.try_send(Line::Text(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        let (written, last) = sync_channel(1);
        if self.0.queue.try_send(Line::Last(written)).is_ok() {
            // A reader that stalls loses the rest.
            let _ = last.recv_timeout(LAST_LINES);
        }
    }
}

/// Starts logging. A second call in one process changes nothing.
///
/// # Errors
/// When no thread can be had.
pub fn init(form: LineForm, level: tracing::Level) -> io::Result<Logs> {
    let (queue, waiting) = sync_channel(LINES_WAITING);
    let lines = Lines {
        queue,
        lost: Arc::default(),
    };
    let lost = Arc::clone(&lines.lost);
    std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || pass_on(&waiting, &lost, io::stderr()))?;
    let writer = lines.clone();
    let builder = fmt()
        .with_max_level(level)
        .with_writer(move || writer.clone())
        .with_target(false);
    // The error says that logging runs already, which is what was wanted.
    let _ = match form {
        LineForm::Human => builder.try_init(),
        LineForm::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(Logs(lines))
}

fn pass_on(lines: &Receiver<Line>, lost: &AtomicU64, mut to: impl Write) {
    for line in lines {
        // Nobody can be told that nobody reads.
        drop(match line {
            Line::Text(text) => to.write_all(&text),
            Line::Last(written) => {
                let _ = written.try_send(());
                Ok(())
            }
        });
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            drop(writeln!(
                to,
                "{lost} log lines were lost: standard error was not read"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_stalls_delays_nobody_and_the_lost_lines_are_counted() {
        let (queue, waiting) = sync_channel(1);
        let lost = Arc::default();
        let mut lines = Lines {
            queue,
            lost: Arc::clone(&lost),
        };
        for _ in 0..3 {
            assert_eq!(lines.write(b"line\n").unwrap(), 5);
        }
        drop(lines);
        let mut read = Vec::new();
        pass_on(&waiting, &lost, &mut read);
        assert_eq!(
            String::from_utf8(read).unwrap(),
            "line\n2 log lines were lost: standard error was not read\n"
        );
    }
}
