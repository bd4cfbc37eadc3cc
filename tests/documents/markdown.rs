//! The little of Markdown that the checks need.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page of the project, by its path from the root.
pub(crate) fn pages() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a plain name");
            let path = folder.join(&name);
            let kind = entry.file_type().expect("its kind");
            if kind.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "md") {
                let text = fs::read_to_string(entry.path()).expect("text");
                found.insert(path, text);
            }
        }
    }
    assert!(found.contains_key(Path::new("README.md")));
    found
}

/// The lines outside of fenced code, and the fenced blocks.
fn split(text: &str) -> (Vec<&str>, Vec<String>) {
    let mut prose = Vec::new();
    let mut blocks: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
            if inside {
                blocks.push(String::new());
            }
        } else if !inside {
            prose.push(line);
        } else if let Some(block) = blocks.last_mut() {
            block.push_str(line);
            block.push('\n');
        }
    }
    assert!(!inside, "a fenced block is never closed");
    (prose, blocks)
}

pub(crate) fn prose(text: &str) -> Vec<&str> {
    split(text).0
}

pub(crate) fn code_blocks(text: &str) -> Vec<String> {
    split(text).1
}

/// Level and text of every heading.
pub(crate) fn headings(text: &str) -> Vec<(usize, &str)> {
    prose(text)
        .into_iter()
        .filter_map(|line| {
            let level = line.chars().take_while(|letter| *letter == '#').count();
            let title = line.get(level..)?.strip_prefix(' ')?;
            (level > 0).then_some((level, title.trim()))
        })
        .collect()
}

/// Every table as its rows of cells, heading first and without the line of dashes.
pub(crate) fn tables(text: &str) -> Vec<Vec<Vec<String>>> {
    let mut found: Vec<Vec<Vec<String>>> = Vec::new();
    let mut inside = false;
    for line in prose(text) {
        let is_row = line.starts_with('|');
        if is_row && !inside {
            found.push(Vec::new());
        }
        inside = is_row;
        let is_rule = is_row && line.chars().all(|letter| "|-: ".contains(letter));
        if let (true, false, Some(table)) = (is_row, is_rule, found.last_mut()) {
            table.push(cells(line));
        }
    }
    found
}

fn cells(line: &str) -> Vec<String> {
    line.trim()
        .trim_matches('|')
        .replace("\\|", "\u{0}")
        .split('|')
        .map(|cell| cell.trim().replace('\u{0}', "|"))
        .collect()
}

/// The texts between single backticks.
pub(crate) fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The targets of all links of a page; what stands in code is no link.
pub(crate) fn links(text: &str) -> Vec<String> {
    let without_code: String = prose(text)
        .into_iter()
        .map(|line| line.split('`').step_by(2).collect::<Vec<_>>().join("`") + "\n")
        .collect();
    without_code
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap_or_default().to_owned())
        .collect()
}

/// The anchors of a page, made as the usual renderers make them from headings.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    headings(text)
        .into_iter()
        .map(|(_, title)| {
            let anchor: String = title
                .to_lowercase()
                .chars()
                .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
                .map(|letter| if letter == ' ' { '-' } else { letter })
                .collect();
            let times = seen.entry(anchor.clone()).or_default();
            *times += 1;
            match *times {
                1 => anchor,
                times => format!("{anchor}-{}", times - 1),
            }
        })
        .collect()
}

#[test]
fn links_anchors_and_cells_are_read_as_a_renderer_reads_them() {
    let page = "# A page, no `x`\n[a](b.md#c) `[no](link)` ![p](q.png)\n```\n[no](x)\n# no\n```\n# Twice\n# Twice\n";
    assert_eq!(links(page), ["b.md#c", "q.png"]);
    assert_eq!(anchors(page), ["a-page-no-x", "twice", "twice-1"]);
    assert_eq!(cells("| a | `b\\|c` |"), ["a", "`b|c`"]);
    assert_eq!(code_spans("`a` or `b`"), ["a", "b"]);
}
