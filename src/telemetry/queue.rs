//! The bounded way of log lines to a slow writer. No task ever waits for one or fails with it.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that wait for a writer; further ones are counted and dropped.
const LINES_WAITING: usize = 1024;

/// Longer lines are cut where this is asked for.
const LINE_MAX_CHARS: usize = 1024;

/// How long the end of the program waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The line with at most 1024 characters and one line end.
pub(super) fn capped(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(LINE_MAX_CHARS) {
        Some((end, _)) if end + 1 < text.len() => {
            let mut cut = text.get(..end).unwrap_or_default().as_bytes().to_vec();
            cut.push(b'\n');
            cut
        }
        _ => line.to_vec(),
    }
}

/// The sending end.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    queue: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Waiting {
    lines: Receiver<Line>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Line {
    Text(Vec<u8>),
    Last(SyncSender<()>),
}

/// Where lines end up. Nobody can be told that a line could not be written, so nothing comes back.
pub(super) trait Sink {
    fn line(&mut self, text: &[u8]);
    /// So many lines did not fit into the queue.
    fn lost(&mut self, count: u64);
}

pub(super) fn queue() -> (Lines, Waiting) {
    queue_of(LINES_WAITING)
}

fn queue_of(bound: usize) -> (Lines, Waiting) {
    let (queue, lines) = sync_channel(bound);
    let lost = Arc::<AtomicU64>::default();
    let waiting = Waiting {
        lines,
        lost: Arc::clone(&lost),
    };
    (Lines { queue, lost }, waiting)
}

impl Lines {
    /// Never waits.
    pub(super) fn send(&self, line: &[u8]) {
        if self.queue.try_send(Line::Text(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits a moment for what was sent so far.
    pub(super) fn finish(&self) {
        let (written, last) = sync_channel(1);
        if self.queue.try_send(Line::Last(written)).is_ok() {
            // A writer that stalls loses the rest.
            let _ = last.recv_timeout(LAST_LINES);
        }
    }
}

impl Waiting {
    /// Passes lines on until every sender is gone.
    pub(super) fn pass_on(&self, sink: &mut impl Sink) {
        for line in &self.lines {
            match line {
                Line::Text(text) => sink.line(&text),
                Line::Last(written) => {
                    // The end of the program may have given up waiting.
                    let _ = written.try_send(());
                }
            }
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                sink.lost(lost);
            }
        }
    }
}

/// A stream of the process, standard error as a rule.
#[derive(Debug)]
pub(super) struct Stream<W>(pub(super) W);

impl<W: Write> Sink for Stream<W> {
    fn line(&mut self, text: &[u8]) {
        drop(self.0.write_all(text));
    }

    fn lost(&mut self, count: u64) {
        let told: io::Result<()> = writeln!(
            self.0,
            "{count} log lines were lost: standard error was not read"
        );
        drop(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_stalls_delays_nobody_and_the_lost_lines_are_counted() {
        let (lines, waiting) = queue_of(1);
        for _ in 0..3 {
            lines.send(b"line\n");
        }
        drop(lines);
        let mut read = Stream(Vec::new());
        waiting.pass_on(&mut read);
        assert_eq!(
            String::from_utf8(read.0).unwrap(),
            "line\n2 log lines were lost: standard error was not read\n"
        );
    }

    #[test]
    fn a_long_line_is_cut_and_ends_like_the_others() {
        assert_eq!(capped(b"short\n"), b"short\n");
        let exact = format!("{}\n", "x".repeat(LINE_MAX_CHARS));
        assert_eq!(capped(exact.as_bytes()), exact.as_bytes());
        let long = format!("{}\n", "x".repeat(5000));
        assert_eq!(capped(long.as_bytes()).len(), LINE_MAX_CHARS + 1);
        let wide = format!("{}\n", "\u{e9}".repeat(LINE_MAX_CHARS + 1));
        let cut = capped(wide.as_bytes());
        assert_eq!(
            String::from_utf8(cut).unwrap().chars().count(),
            LINE_MAX_CHARS + 1
        );
    }
}
