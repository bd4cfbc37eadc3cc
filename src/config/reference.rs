//! The configuration reference as Markdown, made from the table of keys alone, so that it cannot say
//! anything else than `config show` and `--help` do.

use std::fmt::Write as _;

use super::keys::{KEYS, Key};
use super::sources::DEFAULT_FILE;

/// The whole reference, as `docs/configuration.md` holds it.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(HEAD);
    for key in KEYS {
        line(
            &mut page,
            &format!("| `{}` | {} | {} |", key.name, default_cell(key), key.doc),
        );
    }
    page.push_str(NAMES_HEAD);
    for key in KEYS {
        line(
            &mut page,
            &format!(
                "| `{}` | `{}` | `{}` |",
                key.name,
                key.variable(),
                key.flag()
            ),
        );
    }
    page.push_str(OTHERS);
    line(&mut page, "```toml");
    line(&mut page, &format!("# {DEFAULT_FILE}"));
    for key in KEYS {
        page.push('\n');
        for words in wrapped(key.doc) {
            line(&mut page, &format!("# {words}"));
        }
        line(&mut page, &format!("#{} = {}", key.name, toml_value(key)));
    }
    line(&mut page, "```");
    page
}

const HEAD: &str = "\
# Configuration reference

<!-- Made by `make docs` from src/config/keys.rs. What is changed here by hand is lost. -->

A setting comes from one of four places; the later one wins:

1. the default;
2. the file `/etc/ascend/agent.toml`, or the one named by `--config`;
3. a variable of the environment;
4. a flag.

A key or a variable `ASCEND_AGENT_...` that does not exist is an error, and the text names the nearest
one that does. A value out of range is an error that names the value, where it came from and what is
allowed; `run` then ends with exit code 2. Nothing is read again while the agent runs:
restart it after a change.

The file must belong to root (or to the user the agent runs as), nobody else may be able to write it,
and it has at most 1 MiB. `ascend-agent config check` checks it without starting anything;
`ascend-agent config show` prints every value and where it came from.

## Keys

| key | default | meaning, unit and range |
| --- | --- | --- |
";

const NAMES_HEAD: &str = "
## Names

| key | variable | flag |
| --- | --- | --- |
";

const OTHERS: &str = "
Three variables belong to others and are read as they are: `LD_LIBRARY_PATH` names the folders in which
the driver library is looked for, before the loader's cache; unset or empty means `lib64`, `lib64/driver`
and `lib64/common` below `/usr/local/Ascend/driver`, each when it is there;
`ASCEND_DOCKER_RUNTIME`, exactly `True`, is how Ascend Docker Runtime
marks the agent's own container; `ASCEND_VISIBLE_DEVICES` tells that this container was given a part of
the chips, which the agent says at its start.

## Example file

Every key with its default. Remove the `#` before a key to set it.

";

/// Keeps the example readable in a terminal of 80 columns.
const EXAMPLE_COLUMNS: usize = 76;

fn line(page: &mut String, text: &str) {
    // Writing into a String does not fail.
    let _ = writeln!(page, "{text}");
}

fn default_cell(key: &Key) -> String {
    if key.default.is_empty() {
        "unset".to_owned()
    } else {
        format!("`{}`", key.default)
    }
}

/// Numbers and truth values as such, everything else as a text.
fn toml_value(key: &Key) -> String {
    if key.default.parse::<u64>().is_ok() || matches!(key.default, "true" | "false") {
        key.default.to_owned()
    } else {
        toml::Value::String(key.default.to_owned()).to_string()
    }
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(last) if last.len() + 1 + word.len() <= EXAMPLE_COLUMNS => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_names_the_file_that_is_read() {
        assert!(HEAD.contains(DEFAULT_FILE));
    }

    #[test]
    fn long_texts_are_cut_between_words() {
        let text = "word ".repeat(40);
        let lines = wrapped(&text);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= EXAMPLE_COLUMNS));
        assert_eq!(lines.join(" "), text.trim_end());
    }
}
