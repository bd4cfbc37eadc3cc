//! Starts the simulated hardware for a test and ends it with the test.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A simulated node in a private directory.
pub(crate) struct Sim {
    daemon: Child,
    dir: tempfile::TempDir,
}

impl Sim {
    /// Starts the hardware; `profile` is a built-in name or a path. Returns once it serves.
    pub(crate) fn start(profile: &str) -> Self {
        // Short, because a socket path holds about a hundred bytes.
        let dir = tempfile::Builder::new()
            .prefix("sim")
            .tempdir()
            .expect("a temporary directory");
        let mut daemon = Command::new(artefact("ascend-sim"))
            .args(["run", "--profile", profile])
            .arg("--socket")
            .arg(dir.path().join("sim.sock"))
            .arg("--dev-dir")
            .arg(dir.path().join("dev"))
            .arg("--boot-id")
            .arg(dir.path().join("boot_id"))
            .arg("--sysfs-dir")
            .arg(dir.path().join("sys"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ascend-sim starts");
        let mut ready = String::new();
        let output = daemon.stdout.take().expect("a piped standard output");
        BufReader::new(output)
            .read_line(&mut ready)
            .expect("a line from ascend-sim");
        assert!(ready.starts_with("ready "), "ascend-sim said {ready:?}");
        Self { daemon, dir }
    }

    /// Starts the hardware from a built-in profile with some text replaced.
    pub(crate) fn start_changed(profile: &str, changes: &[(&str, &str)]) -> Self {
        let printed = Command::new(artefact("ascend-sim"))
            .args(["profiles", profile])
            .output()
            .expect("ascend-sim prints a profile");
        let mut text = String::from_utf8(printed.stdout).expect("a profile in UTF-8");
        for (from, to) in changes {
            assert!(text.contains(from), "{from:?} is not in profile {profile}");
            text = text.replace(from, to);
        }
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        fs::write(file.path(), text).expect("a written profile");
        Self::start(file.path().to_str().expect("a path in UTF-8"))
    }

    /// Sends a control request, such as `["health", "3", "2"]`.
    pub(crate) fn ctl(&self, request: &[&str]) -> String {
        let done = Command::new(artefact("ascend-sim"))
            .arg("ctl")
            .arg("--socket")
            .arg(self.socket())
            .args(request)
            .output()
            .expect("ascend-sim ctl runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ctl {request:?}: {said}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// The hardware's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("sim.sock")
    }

    /// What stands in for `/sys`.
    pub(crate) fn sysfs(&self) -> PathBuf {
        self.dir.path().join("sys")
    }

    /// Variables by which the driver library finds this hardware.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![("ASCEND_SIM_SOCKET".into(), self.socket().into())]
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // It may have ended by itself; what matters is that nothing is left behind.
        let _killed = self.daemon.kill();
        let _reaped = self.daemon.wait();
    }
}

/// The simulated driver library.
pub(crate) fn library() -> PathBuf {
    artefact("libdcmi.so")
}

/// The same library as an old driver has it, without the newer functions.
pub(crate) fn old_library() -> PathBuf {
    artefact("libdcmi_old.so")
}

/// Names of the built-in profiles.
pub(crate) fn profiles() -> Vec<String> {
    let printed = Command::new(artefact("ascend-sim"))
        .arg("profiles")
        .output()
        .expect("ascend-sim prints its profiles");
    let text = String::from_utf8(printed.stdout).expect("names in UTF-8");
    text.lines().map(str::to_owned).collect()
}

fn artefact(name: &str) -> PathBuf {
    let agent = Path::new(env!("CARGO_BIN_EXE_ascend-agent"));
    let path = agent.with_file_name(name);
    assert!(
        path.exists(),
        "{} is not built; run `make test`",
        path.display()
    );
    path
}

// Each test file uses some of these; naming all keeps the compiler from calling the rest dead.
const _: fn() = || {
    let _ = (Sim::start, Sim::start_changed, Sim::ctl, library);
    let _ = (old_library, profiles);
    let _ = (Sim::socket, Sim::sysfs, Sim::environment);
};
