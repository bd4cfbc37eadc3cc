//! A page and its Chinese twin say the same: the same headings, code, tables and links, in the same
//! order. What a test cannot compare is the prose between them.

use std::path::{Path, PathBuf};

use super::markdown::{code_blocks, code_spans, headings, links, pages, tables};

const TWIN: &str = ".zh.md";

/// The twins that must exist.
const WANTED: &[&str] = &["README.zh.md", "docs/concepts.zh.md"];

fn original(twin: &Path) -> PathBuf {
    let name = twin.to_str().expect("a plain path");
    PathBuf::from(name.replace(TWIN, ".md"))
}

/// Every page with its twin: path, text, text of the twin.
fn twins() -> Vec<(PathBuf, String, String)> {
    let pages = pages();
    for wanted in WANTED {
        assert!(
            pages.contains_key(Path::new(wanted)),
            "there is no {wanted}"
        );
    }
    pages
        .iter()
        .filter(|(path, _)| path.to_str().is_some_and(|path| path.ends_with(TWIN)))
        .map(|(path, twin)| {
            let original = original(path);
            let text = pages
                .get(&original)
                .unwrap_or_else(|| panic!("{} has no original", path.display()));
            (original, text.clone(), twin.clone())
        })
        .collect()
}

#[test]
fn twins_have_headings_of_the_same_levels_in_the_same_order() {
    for (page, text, twin) in twins() {
        let levels = |text| {
            headings(text)
                .into_iter()
                .map(|(level, _)| level)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            levels(&text),
            levels(&twin),
            "{} and its twin:\n{:#?}\n{:#?}",
            page.display(),
            headings(&text),
            headings(&twin)
        );
    }
}

#[test]
fn twins_have_the_same_code_blocks() {
    for (page, text, twin) in twins() {
        assert_eq!(code_blocks(&text), code_blocks(&twin), "{}", page.display());
    }
}

/// What a translation leaves as it is: number of cells, code, and numbers of a row.
fn fixed_parts(row: &[String]) -> (usize, Vec<Vec<&str>>) {
    (row.len(), row.iter().map(|cell| code_spans(cell)).collect())
}

#[test]
fn twins_have_the_same_tables_row_by_row() {
    for (page, text, twin) in twins() {
        let (tables, twin_tables) = (tables(&text), tables(&twin));
        assert_eq!(
            tables.len(),
            twin_tables.len(),
            "tables of {}",
            page.display()
        );
        for (table, twin_table) in tables.iter().zip(&twin_tables) {
            let title = table.first();
            assert_eq!(
                table.len(),
                twin_table.len(),
                "{} {title:?}",
                page.display()
            );
            for (row, twin_row) in table.iter().zip(twin_table) {
                let (count, mut code) = fixed_parts(row);
                let (twin_count, mut twin_code) = fixed_parts(twin_row);
                // Another language has another order of words.
                for spans in code.iter_mut().chain(&mut twin_code) {
                    spans.sort_unstable();
                }
                assert_eq!(
                    (count, code),
                    (twin_count, twin_code),
                    "{}: {row:?}",
                    page.display()
                );
            }
        }
    }
}

#[test]
fn twins_lead_to_the_same_pages() {
    for (page, text, twin) in twins() {
        let targets = |text: &str| {
            let mut targets: Vec<String> = links(text)
                .into_iter()
                .map(|link| {
                    let target = link.split('#').next().unwrap_or_default();
                    target.replace(TWIN, ".md")
                })
                .filter(|target| !page.ends_with(target))
                .collect();
            targets.sort();
            targets
        };
        assert_eq!(targets(&text), targets(&twin), "{}", page.display());
    }
}
