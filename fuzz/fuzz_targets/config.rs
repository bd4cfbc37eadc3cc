//! The text of the configuration file. Whatever it holds, the answer is a valid configuration or an
//! error that fits on a screen.

#![no_main]

use std::ffi::OsString;
use std::fs;
use std::sync::LazyLock;

use ascend_agent::config::{Config, Environment, Layered};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a temporary folder"));

struct Nothing;

impl Environment for Nothing {
    fn variables(&self) -> Vec<(OsString, OsString)> {
        Vec::new()
    }
}

fuzz_target!(|text: &[u8]| {
    let path = FOLDER.path().join("agent.toml");
    fs::write(&path, text).expect("a temporary file");
    let Ok(layered) = Layered::gather(Some(&path), &Nothing, &[]) else {
        return;
    };
    if let Ok(config) = Config::build(&layered) {
        assert!(config.admin_socket.is_absolute());
        assert!(config.state_dir.is_none_or(|folder| folder.is_absolute()));
    }
});
