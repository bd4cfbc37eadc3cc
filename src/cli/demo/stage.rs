//! A node in a temporary folder: simulated hardware, the real kubelet device manager, and the agent.
//!
//! Used by the demo and, included by path, by the integration tests: both show the same programs
//! under the same conditions. Everything ends and disappears when the stage is dropped.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::kubelet::Kubelet;

/// How long the simulator may take until it serves.
const SIM_READY: Duration = Duration::from_secs(10);

/// The programs on the stage.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// The agent.
    pub(crate) agent: PathBuf,
    /// The simulator.
    pub(crate) sim: PathBuf,
    /// The simulated driver library.
    pub(crate) library: PathBuf,
    /// The program around kubelet's device manager.
    pub(crate) kubelet: PathBuf,
}

impl Programs {
    /// Simulator and library are built into the same folder as the agent.
    ///
    /// # Errors
    /// Names the first program that is not there and how to build it.
    pub(crate) fn beside(agent: &Path, kubelet: &Path) -> Result<Self, StageError> {
        let folder = agent.parent().unwrap_or(Path::new("."));
        let newest = |candidates: [PathBuf; 2]| {
            let age = |path: &PathBuf| fs::metadata(path).and_then(|meta| meta.modified()).ok();
            candidates
                .into_iter()
                .filter(|path| age(path).is_some())
                .max_by_key(age)
        };
        let library = newest([folder.join("libdcmi.so"), folder.join("deps/libdcmi.so")])
            .unwrap_or_else(|| folder.join("libdcmi.so"));
        let programs = Self {
            agent: agent.to_owned(),
            sim: folder.join("ascend-sim"),
            library,
            kubelet: kubelet.to_owned(),
        };
        for path in [
            &programs.agent,
            &programs.sim,
            &programs.library,
            &programs.kubelet,
        ] {
            if !path.is_file() {
                return Err(StageError::Missing { path: path.clone() });
            }
        }
        Ok(programs)
    }
}

/// Why the stage could not be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    /// A program is not built.
    #[error("{path} is not there; `make demo` and `make test` build everything first")]
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// The system refuses something.
    #[error("{what}")]
    System {
        /// What was tried.
        what: String,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// A program did not do what it should.
    #[error("{0}")]
    Program(String),
}

/// The node.
#[derive(Debug)]
pub(crate) struct Stage {
    programs: Programs,
    dir: PathBuf,
    sim: Option<Child>,
    agent: Option<Child>,
    kubelet: Option<Kubelet>,
    keep: bool,
}

impl Stage {
    /// Makes the folders and starts the simulated hardware.
    ///
    /// # Errors
    /// When a program or a folder cannot be had.
    pub(crate) fn set(programs: Programs, profile: &str) -> Result<Self, StageError> {
        let dir = fresh_dir()?;
        let mut stage = Self {
            programs,
            dir,
            sim: None,
            agent: None,
            kubelet: None,
            keep: false,
        };
        for name in ["dp", "dev"] {
            let path = stage.path(name);
            fs::create_dir(&path).map_err(system(&format!("{} cannot be made", path.display())))?;
        }
        stage.start_sim(profile)?;
        Ok(stage)
    }

    /// A path in the node's folder: `dp` (device plugin sockets), `dev`, `state`, `pr.sock`, `admin.sock`,
    /// `sim.sock`, `agent.log`, `kubelet.log`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Leaves the folder behind.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }

    fn start_sim(&mut self, profile: &str) -> Result<(), StageError> {
        let log = self.log("sim.log")?;
        let mut child = Command::new(&self.programs.sim)
            .args(["run", "--profile", profile, "--socket"])
            .arg(self.path("sim.sock"))
            .arg("--dev-dir")
            .arg(self.path("dev"))
            .arg("--state")
            .arg(self.path("sim.json"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(system("the simulator cannot be started"))?;
        let output = child.stdout.take();
        self.sim = Some(child);
        let (told, ready) = std::sync::mpsc::channel();
        let reader = std::thread::Builder::new()
            .name("sim".to_owned())
            .spawn(move || {
                for line in BufReader::new(output?).lines() {
                    if line.ok()?.starts_with("ready") {
                        // The stage may have given up waiting.
                        told.send(()).ok();
                    }
                }
                Some(())
            });
        reader.map_err(system("no thread can be had"))?;
        ready.recv_timeout(SIM_READY).map_err(|_| {
            StageError::Program(format!("the simulator did not serve within {SIM_READY:?}"))
        })
    }

    /// Speaks to the simulator: `ascend-sim ctl WORDS`.
    ///
    /// # Errors
    /// When it refuses; the text is its own.
    pub(crate) fn sim(&self, words: &[&str]) -> Result<String, StageError> {
        let output = Command::new(&self.programs.sim)
            .args(["ctl", "--socket"])
            .arg(self.path("sim.sock"))
            .args(words)
            .output()
            .map_err(system("the simulator cannot be asked"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(StageError::Program(format!(
                "ascend-sim ctl {}: {text}",
                words.join(" ")
            )))
        }
    }

    /// Starts kubelet's device manager in a process of its own.
    ///
    /// # Errors
    /// When it does not come up.
    pub(crate) fn start_kubelet(&mut self) -> Result<&Kubelet, StageError> {
        self.kubelet = None;
        let log = self.log("kubelet.log")?;
        let kubelet = Kubelet::start(&self.programs.kubelet, log)?;
        Ok(self.kubelet.insert(kubelet))
    }

    /// Kubelet.
    ///
    /// # Errors
    /// When it was not started.
    pub(crate) fn kubelet(&self) -> Result<&Kubelet, StageError> {
        self.kubelet
            .as_ref()
            .ok_or(StageError::Program("kubelet was not started".to_owned()))
    }

    /// Kills kubelet with SIGKILL.
    pub(crate) fn kill_kubelet(&mut self) {
        self.kubelet = None;
    }

    /// Starts the agent with `extra` flags; the paths of this node are given already.
    ///
    /// # Errors
    /// When the system refuses the process.
    pub(crate) fn start_agent(&mut self, extra: &[&str]) -> Result<u32, StageError> {
        self.kill_agent();
        let log = self.log("agent.log")?;
        let child = Command::new(&self.programs.agent)
            .arg("run")
            .args(self.flags())
            .args(extra)
            .env("ASCEND_SIM_SOCKET", self.path("sim.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(system("the agent cannot be started"))?;
        let pid = child.id();
        self.agent = Some(child);
        Ok(pid)
    }

    fn flags(&self) -> Vec<OsString> {
        let mut flags: Vec<OsString> = Vec::new();
        for (flag, name) in [
            ("--state-dir", "state"),
            ("--admin-socket", "admin.sock"),
            ("--device-plugin-dir", "dp"),
            ("--pod-resources-socket", "pr.sock"),
            ("--dev-dir", "dev"),
            ("--host-dev-dir", "dev"),
        ] {
            flags.push(flag.into());
            flags.push(self.path(name).into());
        }
        flags.push("--trusted-library".into());
        flags.push(self.programs.library.clone().into());
        flags
    }

    /// Runs a command of the agent's program against this node, for example `status -o json`.
    ///
    /// # Errors
    /// When the system refuses the process.
    pub(crate) fn command(&self, words: &[&str]) -> Result<Output, StageError> {
        Command::new(&self.programs.agent)
            .args(words)
            .args(self.flags())
            .output()
            .map_err(system("the agent's program cannot be started"))
    }

    /// Kills the agent with SIGKILL and reaps it.
    pub(crate) fn kill_agent(&mut self) {
        end(self.agent.take());
    }

    /// Sends the agent a signal.
    ///
    /// # Errors
    /// When no agent runs.
    pub(crate) fn signal_agent(&self, signal: Signal) -> Result<(), StageError> {
        let pid = self
            .agent
            .as_ref()
            .and_then(|child| i32::try_from(child.id()).ok())
            .and_then(Pid::from_raw)
            .ok_or(StageError::Program("no agent runs".to_owned()))?;
        kill_process(pid, signal)
            .map_err(|error| system("the agent cannot be signalled")(error.into()))
    }

    /// Ends the agent with SIGTERM and waits for it.
    ///
    /// # Errors
    /// When no agent runs.
    pub(crate) fn stop_agent(&mut self) -> Result<ExitStatus, StageError> {
        self.signal_agent(Signal::TERM)?;
        let mut child = self
            .agent
            .take()
            .ok_or(StageError::Program("no agent runs".to_owned()))?;
        child
            .wait()
            .map_err(system("the agent cannot be waited for"))
    }

    /// How the agent ended by itself; `None` while it runs or when none was started.
    pub(crate) fn agent_ended(&mut self) -> Option<ExitStatus> {
        self.agent
            .as_mut()
            .and_then(|child| child.try_wait().ok())
            .flatten()
    }

    /// The text of a log file, for messages.
    pub(crate) fn log_text(&self, name: &str) -> String {
        fs::read(self.path(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    fn log(&self, name: &str) -> Result<File, StageError> {
        File::options()
            .create(true)
            .append(true)
            .open(self.path(name))
            .map_err(system(&format!("{name} cannot be written")))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        end(self.agent.take());
        self.kubelet = None;
        end(self.sim.take());
        if !self.keep {
            // Left-overs in the temporary folder hurt nobody.
            fs::remove_dir_all(&self.dir).ok();
        }
    }
}

fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        // A process that ended by itself cannot be killed, and is reaped all the same.
        child.kill().ok();
        child.wait().ok();
    }
}

/// Socket paths are short, so the folder's path must be too.
fn fresh_dir() -> Result<PathBuf, StageError> {
    let base = std::env::temp_dir();
    for number in 0..10_000_u32 {
        let dir = base.join(format!("asc-{}-{number}", std::process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(system(&format!("{} cannot be made", dir.display()))(error));
            }
        }
    }
    Err(StageError::Program(format!(
        "no free folder name under {}",
        base.display()
    )))
}

pub(super) fn system(what: &str) -> impl FnOnce(io::Error) -> StageError {
    let what = what.to_owned();
    move |source| StageError::System { what, source }
}
