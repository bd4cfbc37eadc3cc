//! The agent in the place of the vendor's device plugin: its names, its flags.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::agent;
use crate::config::{
    Config, Effect, Kind, Layered, ProcessEnvironment, VENDOR_FLAGS, VendorFlag, VendorRequest,
    check_environment, nearest,
};

use super::exit::Outcome;
use super::output::print;
use super::{run, usage};

/// The command, and the first of the names.
const COMMAND: &str = "device-plugin";

/// File names under which the vendor's plugin is started.
const NAMES: [&str; 2] = [COMMAND, "ascend-device-plugin"];

/// How the program was asked to take the plugin's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedBy {
    /// By the plugin's own name, from a manifest that was made for it. Words after its flags are
    /// passed over as the plugin does; a first word is a mistyped command of ours.
    Name,
    /// By our command, from a person: such a word is a mistake, and starting an agent would be the
    /// wrong answer to it.
    Command,
}

/// The vendor's flags when the program was started in the plugin's place. Commands of ours stay
/// reachable under its names: the vendor's plugin takes no words, so nobody's manifest has them.
pub(super) fn line<'a>(
    program: &OsStr,
    words: &'a [OsString],
) -> Option<(AskedBy, &'a [OsString])> {
    if let Some((first, rest)) = words.split_first()
        && first == COMMAND
    {
        return Some((AskedBy::Command, rest));
    }
    let name = Path::new(program).file_name()?;
    let is_ours = |word: &OsString| {
        let command = usage::command();
        command_names(&command).into_iter().any(|name| name == word)
    };
    let vendors = NAMES.iter().any(|known| *known == name) && !words.first().is_some_and(is_ours);
    vendors.then_some((AskedBy::Name, words))
}

pub(super) fn run(asked_by: AskedBy, words: &[OsString]) -> Outcome {
    let line = match VendorRequest::read(words.iter().cloned()) {
        Ok(VendorRequest::Help) => return print(&help()),
        Ok(VendorRequest::Version) => {
            return print(concat!(
                "ascend-agent version: ",
                env!("CARGO_PKG_VERSION"),
                "\n"
            ));
        }
        Ok(VendorRequest::Run(line)) => line,
        Err(error) => return Outcome::usage(&error),
    };
    if let Some(word) = &line.stray {
        let is_first = words.first().is_some_and(|first| first == word.as_str());
        match asked_by {
            AskedBy::Command => {
                return Outcome::Usage(format!(
                    "device-plugin takes flags only, and {word:?} is none; `ascend-agent device-plugin \
                     -h` lists them, `ascend-agent --help` the commands"
                ));
            }
            AskedBy::Name if is_first => return Outcome::Usage(no_command(word)),
            AskedBy::Name => {}
        }
    }
    let mut notes = match check_environment(&ProcessEnvironment) {
        Ok(notes) => notes,
        Err(error) => return Outcome::usage(&error),
    };
    notes.extend(line.notes);
    let layered = Layered::gather(None, &ProcessEnvironment, &line.settings).map(|mut layered| {
        layered.set_default("log_file", &line.default_log_file);
        layered
    });
    match layered.and_then(|layered| Ok((Config::build(&layered)?, layered))) {
        Ok((config, layered)) => run::start(agent::settle(config), &layered, &notes),
        Err(error) => Outcome::usage(&error),
    }
}

/// The commands of ours, as the parser knows them.
fn command_names(command: &clap::Command) -> Vec<&str> {
    let names = command.get_subcommands().map(clap::Command::get_name);
    names.chain(["help"]).collect()
}

fn no_command(word: &str) -> String {
    let command = usage::command();
    let meant = nearest(word, command_names(&command).into_iter())
        .map(|name| format!("did you mean {name}? "))
        .unwrap_or_default();
    format!(
        "{word:?} is neither a flag nor a command; {meant}`help` lists the commands, `-h` the flags of \
         the device plugin"
    )
}

fn help() -> String {
    let mut text = String::from(
        "Usage: device-plugin [-name=value ...]\n\n\
         The flags of the vendor's device plugin, as a Go program takes them. Keys of our own stand in \
         `ascend-agent\nconfig show`; file and variables apply below these flags.\n\n",
    );
    for flag in VENDOR_FLAGS {
        text.push_str(&entry(flag));
    }
    text
}

fn entry(flag: &VendorFlag) -> String {
    let value = match flag.kind {
        Kind::Bool => "",
        Kind::Int { .. } | Kind::Text => "=VALUE",
    };
    let (name, doc) = (flag.name, flag.doc);
    if matches!(flag.effect, Effect::Prints) {
        return format!("  -{name}{value}\n        {doc}\n");
    }
    format!(
        "  -{name}{value}\n        {doc} ({}; default {})\n        here: {}\n",
        flag.allowed(),
        flag.default_text(),
        flag.here()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(program: &str, words: &[&str]) -> Option<Vec<String>> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let (_, line) = line(OsStr::new(program), &words)?;
        Some(
            line.iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        )
    }

    #[test]
    fn names_and_command_of_the_plugin_take_its_flags() {
        for program in ["device-plugin", "/usr/local/bin/ascend-device-plugin"] {
            assert_eq!(
                taken(program, &["-fdFlag"]),
                Some(vec!["-fdFlag".to_owned()])
            );
            assert_eq!(taken(program, &[]), Some(Vec::new()));
            assert_eq!(taken(program, &["status"]), None);
            assert_eq!(taken(program, &["help"]), None);
            assert_eq!(
                taken(program, &["no-command"]),
                Some(vec!["no-command".to_owned()])
            );
        }
        assert_eq!(
            taken("ascend-agent", &["device-plugin", "-h"]),
            Some(vec!["-h".to_owned()])
        );
        assert_eq!(taken("ascend-agent", &["-fdFlag"]), None);
        assert_eq!(taken("ascend-agent", &["run"]), None);
    }

    #[test]
    fn a_first_word_that_is_no_command_of_ours_is_refused_with_the_nearest_one() {
        for (word, meant) in [
            ("statsu", "did you mean status?"),
            ("docter", "did you mean doctor?"),
            ("quux", "is neither a flag nor a command; `help`"),
        ] {
            let Outcome::Usage(told) = run(AskedBy::Name, &[OsString::from(word)]) else {
                panic!("{word} is not refused");
            };
            assert!(told.contains(meant), "{told}");
        }
    }

    #[test]
    fn help_holds_every_flag() {
        let text = help();
        for flag in VENDOR_FLAGS {
            assert!(text.contains(&format!("  -{}", flag.name)), "{}", flag.name);
        }
    }
}
