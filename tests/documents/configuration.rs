//! The configuration reference is what the program prints, and its ranges are those of the checks.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use ascend_agent::config::{Config, Environment, KEYS, Key, Layered};

use super::markdown::{code_blocks, root};

struct Nothing;

impl Environment for Nothing {
    fn variables(&self) -> Vec<(OsString, OsString)> {
        Vec::new()
    }
}

/// The settings with a file of this text.
fn layered_of(text: &str) -> Layered {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent.toml");
    fs::write(&file, text).expect("written");
    Layered::gather(Some(&file), &Nothing, &[]).expect("readable")
}

fn printed() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ascend-agent"))
        .args(["config", "reference"])
        .output()
        .expect("the program");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_configuration_reference_is_what_the_program_prints() {
    let page = fs::read_to_string(root().join("docs/configuration.md")).expect("the page");
    let printed = printed();
    let (line, differing) = page
        .lines()
        .zip(printed.lines())
        .enumerate()
        .find(|(_, (page, printed))| page != printed)
        .map_or(
            (page.lines().count().min(printed.lines().count()), ""),
            |(at, (_, line))| (at, line),
        );
    assert!(
        page == printed,
        "docs/configuration.md is outdated from line {} on: run `make docs` and commit the file.\n\
         The program prints there: {differing}",
        line + 1
    );
}

#[test]
fn every_key_stands_in_the_reference_with_its_default_meaning_variable_and_flag() {
    let page = printed();
    for key in KEYS {
        let default = match key.default {
            "" => "unset".to_owned(),
            default => format!("`{default}`"),
        };
        let dashed = key.name.replace('_', "-");
        let capitals = key.name.to_uppercase();
        for row in [
            format!("| `{}` | {default} | {} |", key.name, key.doc),
            format!(
                "| `{}` | `ASCEND_AGENT_{capitals}` | `--{dashed}` |",
                key.name
            ),
        ] {
            assert!(page.contains(&row), "missing:\n{row}");
        }
    }
}

/// The numbers of "A to B" in the text of a key.
fn range_of(key: &Key) -> Option<(u64, u64)> {
    let words: Vec<&str> = key
        .doc
        .split_whitespace()
        .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()))
        .collect();
    words.windows(3).find_map(|three| match three {
        [first, "to", last] => Some((first.parse().ok()?, last.parse().ok()?)),
        _ => None,
    })
}

#[test]
fn every_number_says_its_range_and_the_range_is_the_one_that_is_enforced() {
    let numbers: Vec<&Key> = KEYS
        .iter()
        .filter(|key| key.default.parse::<u64>().is_ok())
        .collect();
    assert!(!numbers.is_empty());
    for key in numbers {
        let (least, most) = range_of(key)
            .unwrap_or_else(|| panic!("the text of {} lacks \"A to B\": {}", key.name, key.doc));
        for outside in [least.checked_sub(1), most.checked_add(1)]
            .into_iter()
            .flatten()
        {
            let layered = layered_of(&format!("{} = {outside}\n", key.name));
            let refusal = Config::build(&layered).expect_err(key.name).to_string();
            assert!(
                refusal.contains(&format!("from {least} to {most}")),
                "{}: the reference says {least} to {most}, the check says: {refusal}",
                key.name
            );
        }
    }
}

#[test]
fn the_example_file_with_every_key_set_is_valid_and_equals_the_defaults() {
    let page = printed();
    let blocks = code_blocks(&page);
    let example = blocks.first().expect("an example file");
    let set: String = example
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    assert_eq!(set.matches(" = ").count(), KEYS.len(), "{set}");
    let from_file = layered_of(&set);
    let from_nothing = Layered::gather(None, &Nothing, &[]).expect("gathered");
    let written = Config::build(&from_file).expect("valid");
    assert!(!written.state_dir_unset && !written.admin_socket_unset);
    // What nobody chose may move, what is written may not: the one difference.
    let as_written = Config {
        state_dir_unset: false,
        admin_socket_unset: false,
        ..Config::build(&from_nothing).expect("valid")
    };
    assert_eq!(written, as_written);
}
