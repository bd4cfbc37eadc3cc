//! Speaking to the program around kubelet's device manager: one JSON object a line, each way.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::stage::{StageError, system};

/// Longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(60);

type Waiting = Arc<Mutex<BTreeMap<u64, Sender<Value>>>>;

/// The running program. Dropped, it is killed as kubelet would be by SIGKILL.
#[derive(Debug)]
pub(crate) struct Kubelet {
    child: Child,
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    next: AtomicU64,
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Pending {
    op: String,
    answer: Receiver<Value>,
}

impl Kubelet {
    pub(super) fn start(program: &Path, log: File) -> Result<Self, StageError> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(system("kubelet's device manager cannot be started"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(StageError::Program(
                "kubelet has no standard streams".to_owned(),
            ));
        };
        let waiting = Waiting::default();
        let known = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("kubelet".to_owned())
            .spawn(move || deliver(output, &known))
            .map_err(system("no thread can be had"))?;
        Ok(Self {
            child,
            input: Mutex::new(input),
            waiting,
            next: AtomicU64::new(1),
        })
    }

    /// Sends a request without waiting for its answer.
    ///
    /// # Errors
    /// When the program is gone.
    pub(crate) fn begin(&self, op: &str, mut request: Value) -> Result<Pending, StageError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(fields) = request.as_object_mut() {
            fields.insert("id".to_owned(), json!(id));
            fields.insert("op".to_owned(), json!(op));
        }
        let (sender, answer) = channel();
        lock(&self.waiting).insert(id, sender);
        let mut line = request.to_string();
        line.push('\n');
        self.input
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(line.as_bytes())
            .map_err(system("kubelet cannot be asked"))?;
        Ok(Pending {
            op: op.to_owned(),
            answer,
        })
    }

    /// Sends a request and waits.
    ///
    /// # Errors
    /// When the program is gone, silent or refuses.
    pub(crate) fn call(&self, op: &str, request: Value) -> Result<Value, StageError> {
        self.begin(op, request)?.wait()
    }
}

impl Pending {
    /// Waits for the answer.
    ///
    /// # Errors
    /// When the program is gone, silent or refuses.
    pub(crate) fn wait(self) -> Result<Value, StageError> {
        let Self { op, answer } = self;
        let answer = answer.recv_timeout(ANSWER).map_err(|_| {
            StageError::Program(format!("kubelet gave no answer to {op} within {ANSWER:?}"))
        })?;
        match answer.get("ok").and_then(Value::as_bool) {
            Some(true) => Ok(answer),
            _ => Err(StageError::Program(format!(
                "kubelet refuses {op}: {answer}"
            ))),
        }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        // A process that ended by itself cannot be killed, and is reaped all the same.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn deliver(output: ChildStdout, waiting: &Waiting) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        let Ok(answer) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let id = answer.get("id").and_then(Value::as_u64);
        let asker = id.and_then(|id| lock(waiting).remove(&id));
        if let Some(asker) = asker {
            // The asker may have given up.
            asker.send(answer).ok();
        }
    }
    // Whoever still waits learns at once that nothing comes.
    lock(waiting).clear();
}

fn lock(waiting: &Waiting) -> std::sync::MutexGuard<'_, BTreeMap<u64, Sender<Value>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
