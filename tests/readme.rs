//! The README says what the code does.

use ascend_agent::config::KEYS;

const README: &str = include_str!("../README.md");

#[test]
fn every_configuration_key_stands_in_the_readme_with_its_default_and_meaning() {
    for key in KEYS {
        let default = match key.default {
            "" => "unset".to_owned(),
            default => format!("`{default}`"),
        };
        let row = format!("| `{}` | {default} | {} |", key.name, key.doc);
        assert!(
            README.contains(&row),
            "missing or outdated in README.md:\n{row}"
        );
    }
}
