//! Holds the code to the table of rooms in `ARCHITECTURE.md`: levels, third-party crates, where
//! `unsafe` may stand, file names and file sizes. The checks are functions over text, proven able to
//! fail on small strings at the bottom of `architecture/*.rs`.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "architecture/references.rs"]
mod references;
#[path = "architecture/rooms.rs"]
mod rooms;
#[path = "architecture/tokens.rs"]
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rooms::{Place, Rooms};

/// A longer file is split.
const LINES_MAX: usize = 500;

/// Words that say nothing about what a file is for.
const BANNED_WORDS: [&str; 9] = [
    "manager", "helper", "util", "common", "handler", "wrapper", "misc", "base", "impl",
];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rooms() -> Rooms {
    Rooms::parse(&read(&repository().join("ARCHITECTURE.md"))).expect("the table of rooms")
}

/// Every Rust file below a folder of the repository, as paths relative to it, sorted. A folder that
/// does not exist has none.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![repository().join(folder)];
    while let Some(next) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&next) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let inside = path
                    .strip_prefix(repository())
                    .expect("below the repository");
                found.push(inside.to_owned());
            }
        }
    }
    found.sort();
    found
}

fn dependencies() -> BTreeSet<String> {
    let manifest: toml::Table = read(&repository().join("Cargo.toml"))
        .parse()
        .expect("Cargo.toml");
    manifest["dependencies"]
        .as_table()
        .expect("[dependencies]")
        .keys()
        .map(|name| name.replace('-', "_"))
        .collect()
}

fn assert_none(problems: &[String]) {
    assert!(
        problems.is_empty(),
        "ARCHITECTURE.md and the code disagree:\n  {}",
        problems.join("\n  ")
    );
}

#[test]
fn every_import_goes_to_a_lower_room_and_every_crate_is_allowed() {
    let (rooms, dependencies) = (rooms(), dependencies());
    let files = [rust_files("src"), rust_files("migrations")].concat();
    assert!(files.len() > 10, "the sources were not found: {files:?}");
    let mut problems = Vec::new();
    for file in files {
        let place = Place::of(&file);
        let text = read(&repository().join(&file));
        problems.extend(rooms.check(&file, &place, &text, &dependencies));
    }
    assert_none(&problems);
}

#[test]
fn every_room_of_the_table_exists_unless_it_is_planned() {
    let on_disk: BTreeSet<String> = rust_files("src")
        .iter()
        .map(|file| Place::of(file).room)
        .filter(|room| room != "lib")
        .collect();
    assert_none(&rooms().check_presence(&on_disk));
}

#[test]
fn every_crate_of_the_table_is_a_dependency() {
    let dependencies = dependencies();
    let problems: Vec<String> = rooms()
        .crates()
        .filter(|(_, named)| !dependencies.contains(*named))
        .map(|(room, named)| format!("room {room} may use {named}, which Cargo.toml lacks"))
        .collect();
    assert_none(&problems);
}

#[test]
fn no_file_is_longer_than_500_lines() {
    let problems: Vec<String> = ["src", "sim", "migrations", "tests", "fuzz/fuzz_targets"]
        .iter()
        .flat_map(|folder| rust_files(folder))
        .filter_map(|file| {
            let lines = read(&repository().join(&file)).lines().count();
            (lines > LINES_MAX).then(|| format!("{}: {lines} lines", file.display()))
        })
        .collect();
    assert_none(&problems);
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    let problems: Vec<String> = [
        "src",
        "sim",
        "migrations",
        "benches",
        "tests",
        "fuzz/fuzz_targets",
    ]
    .iter()
    .flat_map(|folder| rust_files(folder))
    .filter(|file| !file.starts_with("tests/common") && has_banned_name(file))
    .map(|file| {
        format!(
            "{}: the name says nothing about its content",
            file.display()
        )
    })
    .collect();
    assert_none(&problems);
}

fn has_banned_name(file: &Path) -> bool {
    file.components().any(|part| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        let stem = name.strip_suffix(".rs").unwrap_or(&name);
        name == "mod.rs"
            || stem.split(['_', '-']).any(|word| {
                BANNED_WORDS.contains(&word)
                    || word
                        .strip_suffix('s')
                        .is_some_and(|one| BANNED_WORDS.contains(&one))
            })
    })
}

#[test]
fn the_name_check_finds_banned_names() {
    for name in [
        "src/utils.rs",
        "src/store/mod.rs",
        "src/slot_manager.rs",
        "src/base/x.rs",
    ] {
        assert!(has_banned_name(Path::new(name)), "{name}");
    }
    for name in ["src/database.rs", "src/store/model.rs", "src/commonly.rs"] {
        assert!(!has_banned_name(Path::new(name)), "{name}");
    }
}
