//! The command line: run the hardware, talk to it, list profiles.

mod report;

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::daemon::{self, DaemonError, Places};
use crate::profile::{BUILT_IN, Profile, ProfileError};
use crate::wire::{Control, ControlReply, FrameError, LineReader, MAX_REPLY_BYTES, write_line};

const CONTROL_TIMEOUT: Duration = Duration::from_secs(10);

/// Simulated Ascend hardware of one node
#[derive(Debug, Parser)]
#[command(name = "ascend-sim", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Be the hardware until a signal or `ctl shutdown`; prints `ready SOCKET` once it serves
    Run {
        /// A built-in profile's name or the path of a TOML file
        #[arg(long)]
        profile: String,
        /// Socket to serve; give the same path to libdcmi.so in `ASCEND_SIM_SOCKET`
        #[arg(long, env = "ASCEND_SIM_SOCKET")]
        socket: PathBuf,
        /// Directory for the stand-ins of device nodes
        #[arg(long)]
        dev_dir: PathBuf,
        /// File that keeps the state over a restart of this program
        #[arg(long)]
        state: Option<PathBuf>,
        /// File that holds the id of the present simulated boot
        #[arg(long)]
        boot_id: Option<PathBuf>,
        /// File that holds the record of vNPUs in the form of the vendor's /etc/vnpu.cfg
        #[arg(long)]
        vnpu_cfg: Option<PathBuf>,
        /// Directory to lay out like /sys, with the NUMA facts of the chips
        #[arg(long)]
        sysfs_dir: Option<PathBuf>,
    },
    /// Change the hardware, inject faults, or ask for the truth
    Ctl {
        /// Socket of the hardware
        #[arg(long, env = "ASCEND_SIM_SOCKET")]
        socket: PathBuf,
        #[command(subcommand)]
        request: Control,
    },
    /// List the built-in profiles, or print one to copy and edit
    Profiles {
        /// Name of the profile to print
        name: Option<String>,
    },
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("no hardware answers at {path:?}; start it with `ascend-sim run`")]
    Unreachable { path: PathBuf, source: io::Error },
    #[error("the hardware does not answer as expected")]
    Talk(#[from] FrameError),
    #[error("refused: {0}")]
    Refused(String),
    #[error("no built-in profile is called {0}; `ascend-sim profiles` lists them")]
    NoProfile(String),
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
}

/// Runs the command of this process. Exit code 1 means it failed, 2 that it was misspelt.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing is left to be done when even this cannot be printed.
            let _printed: io::Result<()> = error.print();
            return if error.use_stderr() {
                ExitCode::from(2)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match execute(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = daemon::describe(&error);
            let _printed: io::Result<()> = writeln!(io::stderr(), "ascend-sim: {text}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Run {
            profile,
            socket,
            dev_dir,
            state,
            boot_id,
            vnpu_cfg,
            sysfs_dir,
        } => {
            let profile = Profile::load(&profile)?;
            let places = Places {
                socket,
                dev_dir,
                state,
                boot_id,
                vnpu_cfg,
                sysfs: sysfs_dir,
            };
            Ok(daemon::run(profile, &places)?)
        }
        Command::Ctl { socket, request } => control(&socket, &request),
        Command::Profiles { name } => print_profiles(name),
    }
}

fn control(socket: &Path, request: &Control) -> Result<(), CommandError> {
    let stream = UnixStream::connect(socket).map_err(|source| CommandError::Unreachable {
        path: socket.to_path_buf(),
        source,
    })?;
    stream.set_read_timeout(Some(CONTROL_TIMEOUT))?;
    stream.set_write_timeout(Some(CONTROL_TIMEOUT))?;
    write_line(&stream, request)?;
    let line = LineReader::new(&stream, MAX_REPLY_BYTES).next_line()?;
    let reply: ControlReply = serde_json::from_slice(&line).map_err(FrameError::Json)?;
    if !reply.ok {
        return Err(CommandError::Refused(reply.error.unwrap_or_default()));
    }
    let data = reply.data.unwrap_or_default();
    let text = if let Control::Status { json: false } = request {
        report::status(data).map_err(FrameError::Json)?
    } else if let Control::Calls { json: false, .. } = request {
        report::calls(data).map_err(FrameError::Json)?
    } else if data.is_null() {
        return Ok(());
    } else {
        format!("{data}\n")
    };
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

fn print_profiles(name: Option<String>) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match name {
        None => {
            for (name, _) in BUILT_IN {
                writeln!(out, "{name}")?;
            }
        }
        Some(name) => match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => out.write_all(text.as_bytes())?,
            None => return Err(CommandError::NoProfile(name)),
        },
    }
    Ok(())
}
