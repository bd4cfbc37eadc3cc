//! What the agent costs on a node: release builds of the agent and its driver host on simulated
//! hardware, under the real kubelet device manager.
//!
//! Prints one Markdown section per subject on standard output and its progress on standard error.
//! `benches/measure.sh` runs it and puts the sections into `docs/measurements.md`. Needs the programs
//! of `cargo build --release --workspace` and the harness that `ASCEND_TEST_KUBELET_HARNESS` names.
//! Everything is measured from outside: as a client of the agent's sockets, from kubelet's answers,
//! from `/proc` and from the time stamps of the agent's log.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run must fail")]

mod allocate;
mod figures;
mod footprint;
mod health;
#[path = "../../src/cli/demo/kubelet.rs"]
mod kubelet;
mod kubelet_restart;
mod lists;
mod machine;
mod node;
#[expect(dead_code, reason = "shared with the demo, which uses the rest")]
#[path = "../../src/cli/demo/stage.rs"]
mod stage;
mod start;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use figures::{Figure, section};
use stage::Programs;

/// Clients of the agent's sockets.
#[expect(
    clippy::pedantic,
    clippy::clone_on_ref_ptr,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
mod api {
    pub(crate) mod deviceplugin {
        include!(concat!(env!("OUT_DIR"), "/deviceplugin_v1beta1/v1beta1.rs"));
    }
    pub(crate) mod podresources {
        include!(concat!(env!("OUT_DIR"), "/podresources_v1/v1.rs"));
    }
}

/// Path of the program around kubelet's device manager.
const HARNESS: &str = "ASCEND_TEST_KUBELET_HARNESS";

/// Set by `benches/measure.sh`: what cannot run is an error then.
const MEASURE: &str = "ASCEND_TEST_MEASURE";

type Subject<'a> = &'a dyn Fn() -> Vec<Figure>;

/// Words on the command line choose sections; without any, all are measured.
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` starts this program without the flag, and measures nothing.
    if !words.iter().any(|word| word == "--bench") {
        return ExitCode::SUCCESS;
    }
    match programs() {
        Ok(programs) => {
            measure(&programs, &words);
            ExitCode::SUCCESS
        }
        Err(missing) => {
            progress(&format!("the node is not measured: {missing}"));
            if std::env::var_os(MEASURE).is_some() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            }
        }
    }
}

fn programs() -> Result<Programs, String> {
    let harness = std::env::var_os(HARNESS).map(PathBuf::from).ok_or(format!(
        "{HARNESS} names no kubelet; get one with: export {HARNESS}=$(tests/kubelet/build.sh)"
    ))?;
    Programs::beside(Path::new(env!("CARGO_BIN_EXE_ascend-agent")), &harness)
        .map_err(|error| format!("{error}; build first with: cargo build --release --workspace"))
}

fn measure(programs: &Programs, words: &[String]) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let subjects: [(&str, &str, Subject<'_>); 6] = [
        ("grants", "Grants", &|| {
            allocate::measure(programs, &runtime)
        }),
        ("start", "Start with 100,000 history records", &|| {
            start::measure(programs, &runtime)
        }),
        ("kubelet", "Kubelet restarts", &|| {
            kubelet_restart::measure(programs)
        }),
        ("health", "Health and the driver", &|| {
            health::measure(programs)
        }),
        ("lists", "Many devices", &|| {
            lists::measure(programs, &runtime)
        }),
        ("footprint", "Footprint with 16 chips", &|| {
            footprint::measure(programs, &runtime)
        }),
    ];
    let chosen: Vec<&String> = words
        .iter()
        .filter(|word| !word.starts_with("--"))
        .collect();
    for (name, title, subject) in subjects {
        if chosen.is_empty() || chosen.iter().any(|word| *word == name) {
            progress(&format!("measuring: {title}"));
            print(&section(title, &subject()));
        }
    }
}

fn print(text: &str) {
    io::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| io::stdout().flush())
        .expect("standard output");
}

fn progress(text: &str) {
    // Who closed standard error does not want to know.
    let _written = writeln!(io::stderr(), "{text}");
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
fn now() -> Instant {
    Instant::now()
}
