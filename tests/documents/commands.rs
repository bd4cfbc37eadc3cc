//! The README names every command of the program.

use std::process::Command;

use super::markdown::{code_spans, pages, tables};

/// The commands that the usage text lists below these words.
fn commands_below(words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_ascend-agent"))
        .args(words)
        .arg("--help")
        .output()
        .expect("the program");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_stands_in_the_table_of_the_readme() {
    let pages = pages();
    let readme = pages
        .get(std::path::Path::new("README.md"))
        .expect("the page");
    let named: Vec<String> = tables(readme)
        .iter()
        .flatten()
        .filter_map(|row| row.first())
        .flat_map(|cell| code_spans(cell))
        .map(|span| span.trim_start_matches("ascend-agent ").to_owned())
        .collect();
    let commands = commands_below(&[]);
    assert!(commands.iter().any(|name| name == "run"), "{commands:?}");
    for command in commands {
        let below = commands_below(&[&command]);
        let wanted = if below.is_empty() {
            vec![command]
        } else {
            below
                .iter()
                .map(|name| format!("{command} {name}"))
                .collect()
        };
        for wanted in wanted {
            let found = named
                .iter()
                .any(|named| *named == wanted || named.starts_with(&format!("{wanted} ")));
            assert!(found, "no row for `{wanted}` in README.md among {named:?}");
        }
    }
}
