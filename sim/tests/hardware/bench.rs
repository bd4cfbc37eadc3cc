//! Hardware and driver users for the tests.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
const PROGRAM: &str = env!("CARGO_BIN_EXE_ascend-sim");

/// A running daemon in a directory of its own.
pub(crate) struct Hardware {
    dir: TempDir,
    profile: String,
    daemon: Child,
}

impl Hardware {
    pub(crate) fn start(profile: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("sim").tempdir().unwrap();
        let daemon = start_daemon(dir.path(), profile);
        Self {
            dir,
            profile: profile.to_owned(),
            daemon,
        }
    }

    /// A machine whose profile is an edited copy of a built-in one.
    pub(crate) fn start_edited(profile: &str, edit: impl Fn(String) -> String) -> Self {
        let dir = tempfile::Builder::new().prefix("sim").tempdir().unwrap();
        let printed = Command::new(PROGRAM)
            .args(["profiles", profile])
            .output()
            .unwrap();
        let text = edit(String::from_utf8(printed.stdout).unwrap());
        let path = dir.path().join("profile.toml");
        fs::write(&path, text).unwrap();
        let profile = path.to_str().unwrap().to_owned();
        let daemon = start_daemon(dir.path(), &profile);
        Self {
            dir,
            profile,
            daemon,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("s")
    }

    /// A control request that must be carried out; the data of the answer.
    pub(crate) fn control(&self, request: &Value) -> Value {
        let reply = self.try_control(request);
        assert_eq!(reply["ok"], true, "{request} was answered by {reply}");
        reply["data"].clone()
    }

    pub(crate) fn try_control(&self, request: &Value) -> Value {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        writeln!(&stream, "{request}").unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn ctl(&self, args: &[&str]) -> Output {
        Command::new(PROGRAM)
            .args(["ctl", "--socket"])
            .arg(self.socket())
            .args(args)
            .output()
            .unwrap()
    }

    pub(crate) fn status(&self) -> Value {
        self.control(&json!({"op": "status"}))
    }

    pub(crate) fn calls(&self) -> Value {
        self.control(&json!({"op": "calls"}))
    }

    /// Every device node, those of chips and those all share.
    pub(crate) fn all_nodes(&self) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path("dev")).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                let inside = fs::read_dir(entry.path()).unwrap();
                let inner = |inner: fs::DirEntry| inner.file_name().into_string().unwrap();
                names.extend(inside.map(|entry| format!("{name}/{}", inner(entry.unwrap()))));
            } else if name != ".ascend-sim" {
                names.push(name);
            }
        }
        names.sort();
        names
    }

    pub(crate) fn nodes(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path("dev"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("davinci") || name.starts_with("vdavinci"))
            .collect();
        names.sort();
        names
    }

    /// Ends the daemon without a chance to clean up, and starts it again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Starts the daemon again after it was killed.
    pub(crate) fn restart(&mut self) {
        self.daemon = start_daemon(self.dir.path(), &self.profile);
    }

    pub(crate) fn kill(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.daemon.id()
    }

    pub(crate) fn wait_for_end(&mut self) -> bool {
        eventually(|| self.daemon.try_wait().unwrap().is_some());
        self.daemon.wait().unwrap().success()
    }
}

impl Drop for Hardware {
    fn drop(&mut self) {
        // It may have ended already.
        let _killed: std::io::Result<()> = self.daemon.kill();
        let _waited: std::io::Result<std::process::ExitStatus> = self.daemon.wait();
    }
}

pub(crate) fn daemon_command(dir: &Path, profile: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg("--profile").arg(profile);
    for (flag, name) in [
        ("--socket", "s"),
        ("--dev-dir", "dev"),
        ("--state", "state"),
        ("--boot-id", "boot_id"),
        ("--vnpu-cfg", "vnpu.cfg"),
        ("--sysfs-dir", "sys"),
    ] {
        command.arg(flag).arg(dir.join(name));
    }
    command.stdout(Stdio::piped());
    command
}

fn start_daemon(dir: &Path, profile: &str) -> Child {
    let mut daemon = daemon_command(dir, profile).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(daemon.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line.trim(), format!("ready {}", dir.join("s").display()));
    daemon
}

/// A process that uses the library.
pub(crate) struct Probe {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    events: Receiver<String>,
    background: Receiver<String>,
}

impl Probe {
    pub(crate) fn start(hardware: &Hardware) -> Self {
        Self::start_on(&hardware.socket())
    }

    /// A probe that initialised the first generation.
    pub(crate) fn ready(hardware: &Hardware) -> Self {
        let mut probe = Self::start(hardware);
        assert_eq!(probe.ask("init"), "0");
        probe
    }

    pub(crate) fn start_on(socket: &Path) -> Self {
        Self::start_with(socket, &library("libdcmi.so"))
    }

    /// A probe with the library of an old driver.
    pub(crate) fn start_old(hardware: &Hardware) -> Self {
        Self::start_with(&hardware.socket(), &library("libdcmi_old.so"))
    }

    fn start_with(socket: &Path, library: &Path) -> Self {
        let mut process = Command::new(compiled_probe())
            .arg(library)
            .env("ASCEND_SIM_SOCKET", socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (to_answers, answers) = mpsc::sync_channel(65_536);
        let (to_events, events) = mpsc::sync_channel(65_536);
        let (to_background, background) = mpsc::sync_channel(1024);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let sent = match line.split_once(' ') {
                    Some(("event", event)) => to_events.send(event.to_owned()),
                    Some(("bg", answer)) => to_background.send(answer.to_owned()),
                    _ => to_answers.send(line),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        Self {
            process,
            input,
            answers,
            events,
            background,
        }
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        self.answers.recv_timeout(DEADLINE).unwrap()
    }

    /// Starts a command on a thread of its own.
    pub(crate) fn begin(&mut self, command: &str) {
        writeln!(self.input, "bg {command}").unwrap();
    }

    /// The answer of a command begun before.
    pub(crate) fn finish(&self) -> String {
        self.background.recv_timeout(DEADLINE).unwrap()
    }

    pub(crate) fn finished(&self) -> bool {
        self.background.try_recv().is_ok()
    }

    /// The next event: type, event id, device, severity, assertion, name.
    pub(crate) fn event(&self) -> String {
        self.events.recv_timeout(DEADLINE).unwrap()
    }

    pub(crate) fn has_event(&self) -> bool {
        self.events.try_recv().is_ok()
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // It may have ended already.
        let _killed: std::io::Result<()> = self.process.kill();
        let _waited: std::io::Result<std::process::ExitStatus> = self.process.wait();
    }
}

/// Waits until the condition holds.
#[expect(clippy::disallowed_methods, reason = "a deadline needs the clock")]
pub(crate) fn eventually(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(
            Instant::now() < end,
            "the condition did not come true in time"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// How long the action took.
#[expect(clippy::disallowed_methods, reason = "measuring needs the clock")]
pub(crate) fn timed(action: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    action();
    begun.elapsed()
}

/// Cargo leaves libraries beside the program or in `deps`, depending on the command.
fn library(name: &str) -> PathBuf {
    let beside = Path::new(PROGRAM).parent().unwrap();
    [beside.join(name), beside.join("deps").join(name)]
        .into_iter()
        .filter(|path| path.exists())
        .max_by_key(|path| path.metadata().unwrap().modified().unwrap())
        .expect("the libraries are built together with the program")
}

fn compiled_probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("probe");
        let compiled = Command::new("gcc")
            .args([
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-O1",
                "-pthread",
                "-I",
            ])
            .arg(package.join("include"))
            .arg(package.join("tests/hardware/probe.c"))
            .arg(package.join("tests/hardware/probe_vdevice.c"))
            .arg("-o")
            .arg(&output)
            .arg("-ldl")
            .output()
            .expect("gcc compiles the test program; install a C compiler");
        assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        output
    })
}
