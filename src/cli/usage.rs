//! The command line: commands by hand, one flag per configuration key from the table of keys.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::agent;
use crate::config::{Config, ConfigError, GivenSetting, KEYS, Layered, ProcessEnvironment};

use super::output::Form;

/// The words after `--`.
pub(super) const VENDOR_LINE: &str = "device-plugin-line";

pub(super) fn command() -> Command {
    let run = Command::new("run").about("Run the agent on this node");
    let status = Command::new("status").about("Show what the running agent knows");
    // Its flags are those of a Go program; `main` takes them before this parser would.
    let device_plugin = Command::new("device-plugin")
        .about("Run with the flags of the vendor's device plugin; -h lists them");
    Command::new("ascend-agent")
        .about("Node agent for Huawei Ascend NPUs on Kubernetes")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(layered(run, false))
        .subcommand(device_plugin)
        .subcommand(layered(status, true))
        .subcommand(audit())
        .subcommand(store())
        .subcommand(config())
        .subcommand(layered(doctor(), true))
        .subcommand(demo())
}

fn audit() -> Command {
    let allocations = Command::new("allocations")
        .about("Show who held which chip and when, from the durable history")
        .arg(moment("since", "Only what happened at or after this time"))
        .arg(moment("until", "Only what happened before this time"))
        .arg(
            Arg::new("chip")
                .long("chip")
                .value_name("N")
                .value_parser(value_parser!(u32))
                .help("Only the chip with this number (the N of /dev/davinciN)"),
        )
        .arg(
            Arg::new("pod")
                .long("pod")
                .value_name("[NAMESPACE/]NAME")
                .help("Only this pod"),
        );
    Command::new("audit")
        .about("Question the history")
        .subcommand_required(true)
        .subcommand(layered(allocations, true))
}

fn store() -> Command {
    let check = Command::new("check").about("Check a copy of the store for damage");
    let backup = Command::new("backup")
        .about("Write a consistent copy of the store")
        .arg(
            Arg::new("to")
                .required(true)
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The copy; it must not exist yet"),
        );
    Command::new("store")
        .about("Look after the store")
        .subcommand_required(true)
        .subcommand(layered(check, true))
        .subcommand(layered(backup, false))
}

fn config() -> Command {
    Command::new("config")
        .about("Check or show the configuration")
        .subcommand_required(true)
        .subcommand(layered(
            vendor_line(
                Command::new("check").about("Check the configuration and name the first error"),
            ),
            false,
        ))
        .subcommand(layered(
            vendor_line(
                Command::new("show").about("Show every key, its value, its source and its meaning"),
            ),
            true,
        ))
        .subcommand(Command::new("reference").about(
            "Print docs/configuration.md: every key, its names, its default and its meaning",
        ))
}

fn doctor() -> Command {
    Command::new("doctor")
        .about("Look at everything the agent needs from this node, and say what to do")
        .arg(
            Arg::new("host-root")
                .long("host-root")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help("Where the host's file system is mounted [default: /]"),
        )
        .arg(
            Arg::new("mountinfo")
                .long("mountinfo")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .hide(true)
                .help("The kernel's list of mounts [default: /proc/self/mountinfo]"),
        )
}

fn demo() -> Command {
    Command::new("demo")
        .about(
            "Show the agent at work on simulated hardware, under the real kubelet device manager",
        )
        .arg(
            Arg::new("kubelet-harness")
                .long("kubelet-harness")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .env("ASCEND_TEST_KUBELET_HARNESS")
                .required(true)
                .help("The program around kubelet's device manager; `make demo` builds it"),
        )
        .arg(
            Arg::new("verbose")
                .long("verbose")
                .action(ArgAction::SetTrue)
                .help("Keep the logs of all processes and say where they are"),
        )
}

/// Adds the configuration's flags, and `-o` where there is something to print.
fn layered(command: Command, prints: bool) -> Command {
    let command = command.arg(
        Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Configuration file, instead of /etc/ascend/agent.toml"),
    );
    let command = KEYS.iter().fold(command, |command, key| {
        let default = if key.default.is_empty() {
            "unset"
        } else {
            key.default
        };
        command.arg(
            Arg::new(key.name)
                .long(key.name.replace('_', "-"))
                .value_name("VALUE")
                .help(format!("{} [default: {default}]", key.doc))
                .help_heading("Configuration"),
        )
    });
    if !prints {
        return command;
    }
    command.arg(
        Arg::new("output")
            .short('o')
            .long("output")
            .value_name("FORM")
            .value_parser(value_parser!(Form))
            .default_value("table")
            .help("Form of the output"),
    )
}

/// Lets a command look at a command line of the vendor's device plugin.
fn vendor_line(command: Command) -> Command {
    command.arg(
        Arg::new(VENDOR_LINE)
            .last(true)
            .num_args(0..)
            .value_name("DEVICE-PLUGIN-FLAGS")
            .value_parser(value_parser!(OsString))
            .help("As if started as device-plugin with these flags"),
    )
}

fn moment(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("TIME").help(format!(
        "{help}: 2h (ago), 2026-11-29T10:00Z, 2026-11-29T10:00+08:00 or 2026-11-29"
    ))
}

/// The configuration of a command.
pub(super) fn gather(given: &ArgMatches) -> Result<Layered, ConfigError> {
    gather_with(given, Vec::new())
}

/// The same with flags of another program, over which our own flags win.
pub(super) fn gather_with(
    given: &ArgMatches,
    foreign: Vec<GivenSetting>,
) -> Result<Layered, ConfigError> {
    let file = given.get_one::<PathBuf>("config");
    let own = KEYS.iter().filter_map(|key| {
        given
            .get_one::<String>(key.name)
            .map(|value| GivenSetting::of_key(key.name, value.clone()))
    });
    let flags: Vec<GivenSetting> = foreign.into_iter().chain(own).collect();
    Layered::gather(file.map(PathBuf::as_path), &ProcessEnvironment, &flags)
}

pub(super) fn config_of(given: &ArgMatches) -> Result<Config, ConfigError> {
    Config::build(&gather(given)?).map(agent::settle)
}

pub(super) fn form_of(given: &ArgMatches) -> Form {
    given
        .get_one::<Form>("output")
        .copied()
        .unwrap_or(Form::Table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_key_is_a_flag_of_run() {
        let words = [
            "ascend-agent",
            "run",
            "--state-dir",
            "/x",
            "--health-poll-ms",
            "200",
        ];
        let matches = command().try_get_matches_from(words).expect("valid");
        let (_, given) = matches.subcommand().expect("run");
        assert_eq!(
            gather(given).expect("gathered").setting("state_dir").value,
            "/x"
        );
    }

    #[test]
    fn settings_that_were_made_are_told_with_their_source() {
        let words = ["ascend-agent", "run", "--hold-down-seconds=5"];
        let matches = command().try_get_matches_from(words).expect("valid");
        let (_, given) = matches.subcommand().expect("run");
        let told = gather(given).expect("gathered").made();
        assert_eq!(told, "hold_down_seconds = 5 (--hold-down-seconds)");
    }

    #[test]
    fn an_unknown_flag_is_bad_usage() {
        let error = command()
            .try_get_matches_from(["ascend-agent", "run", "--state-dri", "/x"])
            .expect_err("unknown");
        assert!(error.to_string().contains("--state-dir"), "{error}");
    }
}
