//! The table of rooms, and one file held against it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::references::{Reference, Target, references};

/// Open to every room.
const OPEN_CRATES: [&str; 2] = ["serde", "thiserror"];
/// Open from level 3 up: pure rooms neither wait nor log.
const IMPURE_CRATES: [&str; 2] = ["tokio", "tracing"];
const FIRST_IMPURE_LEVEL: u8 = 3;
/// The one room with calls into C.
const UNSAFE_ROOM: &str = "dcmi";

#[derive(Debug)]
pub(crate) struct Rooms(BTreeMap<String, Room>);

#[derive(Debug)]
struct Room {
    level: u8,
    planned: bool,
    /// Crate to the one file that may use it, or to `None` for the whole room.
    crates: BTreeMap<String, Option<String>>,
}

/// Where a file belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) room: String,
    /// Modules between the crate's root and the file's own items.
    depth: usize,
}

impl Place {
    /// The place of a file below `src/` or `migrations/`. The store includes the migrations as its own
    /// modules.
    pub(crate) fn of(file: &Path) -> Self {
        let parts: Vec<String> = file
            .with_extension("")
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        match parts.as_slice() {
            [first, ..] if first == "migrations" => Self {
                room: "store".to_owned(),
                depth: 2,
            },
            [_, root] if root == "lib" || root == "main" => Self {
                room: root.clone(),
                depth: 0,
            },
            [_, room, below @ ..] => Self {
                room: room.clone(),
                depth: 1 + below.len(),
            },
            _ => panic!("{}: not a source file of the crate", file.display()),
        }
    }
}

impl Rooms {
    /// Reads the first table below the heading `Rooms`: level, room, state, crates.
    pub(crate) fn parse(markdown: &str) -> Result<Self, String> {
        let mut rooms = BTreeMap::new();
        let rows = markdown
            .lines()
            .skip_while(|line| *line != "## Rooms")
            .skip_while(|line| !line.starts_with('|'))
            .take_while(|line| line.starts_with('|'))
            .skip(2);
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [level, name, state, crates, ..] = cells.as_slice() else {
                return Err(format!("a row needs level, room, state and crates: {row}"));
            };
            let room = Room {
                level: level
                    .parse()
                    .map_err(|_| format!("level {level:?}: {row}"))?,
                planned: match *state {
                    "here" => false,
                    "planned" => true,
                    _ => {
                        return Err(format!(
                            "state {state:?} is neither here nor planned: {row}"
                        ));
                    }
                },
                crates: crates
                    .split(',')
                    .map(str::trim)
                    .filter(|named| !named.is_empty())
                    .map(allowance)
                    .collect(),
            };
            let name = name.trim_matches('`').to_owned();
            if rooms.insert(name.clone(), room).is_some() {
                return Err(format!("room {name} stands twice in the table"));
            }
        }
        if rooms.is_empty() {
            return Err("no table below the heading \"## Rooms\"".to_owned());
        }
        Ok(Self(rooms))
    }

    /// Every pair of room and crate in the table.
    pub(crate) fn crates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(name, room)| {
            room.crates
                .keys()
                .map(move |named| (name.as_str(), named.as_str()))
        })
    }

    /// Holds the table against the rooms found.
    pub(crate) fn check_presence(&self, on_disk: &BTreeSet<String>) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, room) in &self.0 {
            match (room.planned, on_disk.contains(name)) {
                (false, false) => problems.push(format!("room {name} does not exist")),
                (true, true) => {
                    problems.push(format!("room {name} exists, the table says planned"));
                }
                _ => {}
            }
        }
        let unknown = on_disk.iter().filter(|name| !self.0.contains_key(*name));
        problems.extend(unknown.map(|name| format!("room {name} is not in the table")));
        problems
    }

    /// Holds one file against the table.
    pub(crate) fn check(
        &self,
        file: &Path,
        place: &Place,
        text: &str,
        dependencies: &BTreeSet<String>,
    ) -> Vec<String> {
        let file_name = file.file_name().unwrap_or_default().to_string_lossy();
        let here = format!("{}", file.display());
        if place.room == "lib" {
            // The crate's root declares the rooms and holds no code of its own.
            return Vec::new();
        }
        let Some(room) = self.0.get(&place.room) else {
            return vec![format!("{here}: room {} is not in the table", place.room)];
        };
        references(text, place.depth, dependencies)
            .iter()
            .filter_map(|Reference { line, target }| {
                let problem = match target {
                    Target::Room(other) => self.check_room(&place.room, room, other),
                    Target::WholeCrate => Some("imports the whole crate".to_owned()),
                    Target::Dependency(named) => room.check_crate(named, &file_name),
                    Target::Unsafe => (place.room != UNSAFE_ROOM)
                        .then(|| format!("unsafe outside the room {UNSAFE_ROOM}")),
                };
                problem.map(|problem| format!("{here}:{line}: {problem}"))
            })
            .collect()
    }

    fn check_room(&self, own_name: &str, own: &Room, other: &str) -> Option<String> {
        if other == own_name {
            return None;
        }
        match self.0.get(other) {
            None => Some(format!("imports {other}, which is no room of the table")),
            Some(room) if room.level >= own.level => Some(format!(
                "{own_name} (level {}) imports {other} (level {})",
                own.level, room.level
            )),
            Some(_) => None,
        }
    }
}

impl Room {
    fn check_crate(&self, named: &str, file_name: &str) -> Option<String> {
        if OPEN_CRATES.contains(&named)
            || (IMPURE_CRATES.contains(&named) && self.level >= FIRST_IMPURE_LEVEL)
        {
            return None;
        }
        match self.crates.get(named) {
            None => Some(format!("the crate {named} is not allowed in this room")),
            Some(Some(only)) if only != file_name => {
                Some(format!("the crate {named} is allowed in {only} only"))
            }
            Some(_) => None,
        }
    }
}

/// `name` or `name in file.rs`.
fn allowance(cell: &str) -> (String, Option<String>) {
    let plain = cell.replace('`', "");
    match plain.split_once(" in ") {
        Some((named, file)) => (named.trim().to_owned(), Some(file.trim().to_owned())),
        None => (plain, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# x\n## Rooms\n\n| level | room | state | crates | what |\n|-|-|-|-|-|\n\
        | 0 | `domain` | here | `uuid` | nouns |\n\
        | 2 | `ledger` | here | | truth |\n\
        | 3 | `dcmi` | here | | C |\n\
        | 4 | `store` | here | `bincode` in codec.rs | disk |\n\
        | 4 | `kubelet` | planned | | sockets |\n";

    fn problems(file: &str, text: &str) -> Vec<String> {
        let dependencies = ["uuid", "bincode", "tokio", "serde"]
            .map(str::to_owned)
            .into();
        let file = Path::new(file);
        let rooms = Rooms::parse(TABLE).expect("a table");
        rooms.check(file, &Place::of(file), text, &dependencies)
    }

    #[test]
    fn lower_rooms_and_allowed_crates_pass() {
        for (file, text) in [
            (
                "src/ledger.rs",
                "use crate::domain::ids; use serde::Serialize;",
            ),
            (
                "src/store/codec.rs",
                "use bincode::config; use tokio::sync; use super::names;",
            ),
            (
                "src/domain/ids.rs",
                "use uuid::Uuid; use crate::domain::time;",
            ),
            ("src/dcmi/call.rs", "unsafe { f() }"),
            (
                "migrations/0001_initial.rs",
                "use super::names; use crate::domain::ids;",
            ),
        ] {
            assert_eq!(problems(file, text), Vec::<String>::new(), "{file}");
        }
    }

    #[test]
    fn higher_equal_and_unknown_rooms_are_found() {
        for (file, text, part) in [
            ("src/domain/ids.rs", "use crate::ledger::X;", "level 0"),
            ("src/store.rs", "use crate::kubelet::X;", "level 4"),
            ("src/ledger.rs", "use super::store::X;", "level 2"),
            ("migrations/0001_x.rs", "use crate::kubelet::X;", "level 4"),
            ("src/store.rs", "use crate::cellar::X;", "cellar"),
            ("src/cellar.rs", "", "cellar"),
            ("src/store.rs", "use crate::*;", "whole crate"),
        ] {
            let found = problems(file, text);
            assert!(
                found.len() == 1 && found[0].contains(part),
                "{file}: {found:?}"
            );
        }
    }

    #[test]
    fn crates_out_of_place_and_unsafe_are_found() {
        for (file, text) in [
            ("src/ledger.rs", "use uuid::Uuid;"),
            ("src/ledger/book.rs", "tokio::pin!(x);"),
            ("src/store/names.rs", "use bincode::config;"),
            ("src/store.rs", "unsafe { f() }"),
        ] {
            assert_eq!(problems(file, text).len(), 1, "{file}");
        }
    }

    #[test]
    fn missing_rooms_and_wrong_states_are_found() {
        let rooms = Rooms::parse(TABLE).expect("a table");
        let found = |names: &[&str]| {
            let on_disk = names.iter().map(|name| (*name).to_owned()).collect();
            rooms.check_presence(&on_disk).len()
        };
        assert_eq!(found(&["domain", "ledger", "dcmi", "store"]), 0);
        assert_eq!(found(&["domain", "ledger", "dcmi"]), 1);
        assert_eq!(found(&["domain", "ledger", "dcmi", "store", "kubelet"]), 1);
        assert_eq!(found(&["domain", "ledger", "dcmi", "store", "cellar"]), 1);
    }

    #[test]
    fn a_broken_table_is_an_error() {
        for table in [
            "",
            "## Rooms\n| level |\n|-|\n| 0 |\n",
            "## Rooms\n| l | r | s | c |\n|-|-|-|-|\n| x | `a` | here | |\n",
            "## Rooms\n| l | r | s | c |\n|-|-|-|-|\n| 0 | `a` | gone | |\n",
            "## Rooms\n| l | r | s | c |\n|-|-|-|-|\n| 0 | `a` | here | |\n| 1 | `a` | here | |\n",
        ] {
            assert!(Rooms::parse(table).is_err(), "{table:?}");
        }
    }
}
