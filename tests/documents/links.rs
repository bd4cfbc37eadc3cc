//! Links lead somewhere.

use std::path::{Component, Path, PathBuf};

use super::markdown::{anchors, links, pages, root};

/// Joins without asking the disk, so that a link cannot pass by way of another folder's link.
fn resolved(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                assert!(
                    path.pop(),
                    "{}: {target} leaves the project",
                    page.display()
                );
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => {
                panic!("{}: {target} is not a relative link", page.display())
            }
        }
    }
    path
}

#[test]
fn every_relative_link_leads_to_a_file_and_to_a_heading_in_it() {
    let pages = pages();
    let mut broken = Vec::new();
    let mut seen = 0;
    for (page, text) in &pages {
        for link in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (target, anchor) = match link.split_once('#') {
                Some((target, anchor)) => (target, Some(anchor)),
                None => (link.as_str(), None),
            };
            let path = match target {
                "" => page.clone(),
                target => resolved(page, target),
            };
            if !root().join(&path).exists() {
                broken.push(format!(
                    "{}: there is no {}",
                    page.display(),
                    path.display()
                ));
                continue;
            }
            if let Some(anchor) = anchor {
                let found = pages
                    .get(&path)
                    .is_some_and(|text| anchors(text).iter().any(|known| known == anchor));
                if !found {
                    broken.push(format!(
                        "{}: {} has no heading for #{anchor}",
                        page.display(),
                        path.display()
                    ));
                }
            }
        }
    }
    assert!(seen > 10, "only {seen} links were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
