//! Each line of the compatibility checklist names tests, and they exist.

use std::fs;

use super::markdown::{code_spans, root, tables};

/// What must stand in the page, one row each.
const WANTED: &[&str] = &[
    "D1", "D2", "D3", "D4", "D5", "D9", "D10", "D11", "L1", "L2", "L3", "L4", "L5", "L6", "L7",
    "A1", "A2", "A3", "A9", "W14", "W18", "W19", "W20", "W24",
];

/// Rows of the page: mark, and the tests named in the last cell.
fn rows() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(root().join("docs/compatibility.md")).expect("the page");
    tables(&page)
        .into_iter()
        .flat_map(|table| table.into_iter().skip(1))
        .filter_map(|row| {
            let mark = row.first()?.clone();
            let tests = code_spans(row.last()?)
                .into_iter()
                .map(str::to_owned)
                .collect();
            Some((mark, tests))
        })
        .collect()
}

#[test]
fn the_checklist_has_one_row_for_each_mark() {
    let marks: Vec<String> = rows().into_iter().map(|(mark, _)| mark).collect();
    for wanted in WANTED {
        let times = marks.iter().filter(|mark| mark == wanted).count();
        assert_eq!(times, 1, "rows of {wanted} in docs/compatibility.md");
    }
}

/// A test is named `path/of/file.rs::name`.
fn is_there(named: &str) -> Result<(), String> {
    let (file, name) = named
        .split_once("::")
        .ok_or_else(|| format!("{named} is not of the form file::test"))?;
    let source =
        fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let at = lines
        .iter()
        .position(|line| {
            let line = line.trim_start_matches("async ");
            line.strip_prefix("fn ")
                .and_then(|rest| rest.strip_prefix(name))
                .is_some_and(|rest| rest.starts_with('('))
        })
        .ok_or_else(|| format!("{file} has no function {name}"))?;
    // Attributes stand directly above, and a property test's inside of its macro.
    let marked = lines
        .iter()
        .take(at)
        .rev()
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
    if marked {
        Ok(())
    } else {
        Err(format!("{name} in {file} is not a test"))
    }
}

#[test]
fn every_test_that_the_checklist_names_exists() {
    let mut missing = Vec::new();
    for (mark, tests) in rows() {
        if tests.is_empty() {
            missing.push(format!("{mark}: names no test"));
        }
        missing.extend(
            tests
                .iter()
                .filter_map(|named| is_there(named).err())
                .map(|reason| format!("{mark}: {reason}")),
        );
    }
    assert!(
        missing.is_empty(),
        "docs/compatibility.md:\n{}",
        missing.join("\n")
    );
}

#[test]
fn a_name_that_is_no_test_is_found_out() {
    let file = "tests/documents/checklist.rs";
    assert_eq!(
        is_there(&format!("{file}::a_name_that_is_no_test_is_found_out")),
        Ok(())
    );
    assert!(is_there(&format!("{file}::is_there")).is_err());
    assert!(is_there(&format!("{file}::no_such_function")).is_err());
    assert!(is_there("no/such/file.rs::x").is_err());
}
