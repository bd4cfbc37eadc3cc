//! Finds the vendor's library and refuses one that somebody other than root could have placed or
//! could change.
//!
//! Order: every element of `LD_LIBRARY_PATH`, then the first match in the loader's cache. The file
//! and every directory above it must belong to root and be writable by nobody else. Between the
//! check and the load only root could still exchange the file, because the resolved path is loaded.

mod cache;
mod rules;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use self::cache::candidate_of_cache;
use self::rules::check;
pub use self::rules::{Refusal, Rule};

/// File name of the library.
pub const LIBRARY: &str = "libdcmi.so";

/// Longest search path and longest candidate, the vendor's own limits.
const PATH_MAX_BYTES: usize = 1024;

/// Where to look and what to hold a file to.
#[derive(Clone, Debug)]
pub struct Search {
    /// Value of `LD_LIBRARY_PATH`, if set.
    pub ld_library_path: Option<String>,
    /// A library that is taken instead of any search and is spared the checks of owner and mode,
    /// for tests and the simulator.
    pub trusted_library: Option<PathBuf>,
    /// Program that prints the loader's cache.
    pub ldconfig: PathBuf,
    /// Topmost directory that is checked.
    pub top: PathBuf,
    /// User that must own everything.
    pub owner: u32,
}

impl Search {
    /// The search of a real node: up to `/`, owned by root.
    #[must_use]
    pub fn of_system(ld_library_path: Option<String>, trusted_library: Option<PathBuf>) -> Self {
        Self {
            ld_library_path,
            trusted_library,
            ldconfig: PathBuf::from("/sbin/ldconfig"),
            top: PathBuf::from("/"),
            owner: 0,
        }
    }
}

/// A library that may be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path, symlinks resolved.
    pub path: PathBuf,
    /// Candidates that came first and were refused.
    pub refused: Vec<Refusal>,
}

/// Why there is no library to load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The trusted library cannot be used.
    #[error("{0}")]
    Trusted(Refusal),
    /// Candidates exist; each breaks a rule.
    #[error("no candidate for {LIBRARY} is safe to load: {}; {cache}", listed(.refused))]
    Unsafe {
        /// Each with its rule.
        refused: Vec<Refusal>,
        /// What the loader's cache said.
        cache: String,
    },
    /// There is no candidate.
    #[error(
        "{LIBRARY} was not found: {searched}; {cache}; mount the driver (/usr/local/Ascend/driver) \
         and set LD_LIBRARY_PATH to its lib64, lib64/driver and lib64/common directories"
    )]
    NotFound {
        /// What the search path said.
        searched: String,
        /// What the loader's cache said.
        cache: String,
    },
}

/// Finds a library that may be loaded.
///
/// # Errors
/// None exists, or each breaks a rule; the message names path, rule, finding and remedy.
pub fn find(search: &Search) -> Result<Found, SearchError> {
    if let Some(path) = &search.trusted_library {
        let found = trusted(path).map_err(SearchError::Trusted)?;
        return Ok(Found {
            path: found,
            refused: Vec::new(),
        });
    }
    let mut refused = Vec::new();
    let (candidates, searched) = candidates_of_path(search.ld_library_path.as_deref());
    for candidate in candidates {
        match check(search, &candidate) {
            Ok(path) => return Ok(Found { path, refused }),
            Err(refusal) => refused.push(refusal),
        }
    }
    let cache = match candidate_of_cache(&search.ldconfig) {
        Ok(candidate) => match check(search, &candidate) {
            Ok(path) => return Ok(Found { path, refused }),
            Err(refusal) => {
                refused.push(refusal);
                format!("the loader's cache names {}", candidate.display())
            }
        },
        Err(error) => error.to_string(),
    };
    if refused.is_empty() {
        Err(SearchError::NotFound { searched, cache })
    } else {
        Err(SearchError::Unsafe { refused, cache })
    }
}

/// Holds one library to the rules, without a search; the answer is its path, symlinks resolved.
///
/// # Errors
/// It breaks a rule.
pub fn examine(search: &Search, library: &Path) -> Result<PathBuf, Refusal> {
    check(search, library)
}

fn listed(refused: &[Refusal]) -> String {
    refused
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn trusted(path: &Path) -> Result<PathBuf, Refusal> {
    let refuse = |rule| Refusal {
        candidate: path.to_path_buf(),
        path: path.to_path_buf(),
        rule,
    };
    let examined = |error: io::Error| refuse(Rule::of_refused_look(&error));
    let resolved = fs::canonicalize(path).map_err(examined)?;
    if fs::metadata(&resolved).map_err(examined)?.is_file() {
        Ok(resolved)
    } else {
        Err(refuse(Rule::RegularFile))
    }
}

/// Existing candidates in order, and what to say if there is none. An empty element would mean the
/// working directory and is skipped.
fn candidates_of_path(search_path: Option<&str>) -> (Vec<PathBuf>, String) {
    let Some(search_path) = search_path.filter(|path| !path.is_empty()) else {
        return (Vec::new(), "LD_LIBRARY_PATH is not set".to_owned());
    };
    if search_path.len() > PATH_MAX_BYTES {
        let bytes = search_path.len();
        let said = format!(
            "LD_LIBRARY_PATH has {bytes} bytes, at most {PATH_MAX_BYTES} are allowed, shorten it"
        );
        return (Vec::new(), said);
    }
    let candidates = search_path
        .split(':')
        .filter(|element| !element.is_empty())
        .map(|element| Path::new(element).join(LIBRARY))
        .filter(|candidate| candidate.as_os_str().len() <= PATH_MAX_BYTES)
        .filter(|candidate| fs::symlink_metadata(candidate).is_ok())
        .collect();
    (
        candidates,
        format!("no directory of LD_LIBRARY_PATH ({search_path}) holds it"),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    /// A private tree that plays the whole file system, owned by whoever runs the test.
    struct Tree {
        dir: tempfile::TempDir,
        search: Search,
    }

    impl Tree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let top = dir.path().canonicalize().unwrap();
            let search = Search {
                ld_library_path: None,
                trusted_library: None,
                ldconfig: top.join("no-ldconfig"),
                owner: fs::metadata(&top).unwrap().uid(),
                top,
            };
            Self { dir, search }
        }

        fn directory(&self, name: &str) -> PathBuf {
            let path = self.search.top.join(name);
            fs::create_dir_all(&path).unwrap();
            for made in path.ancestors().take_while(|made| *made != self.search.top) {
                mode(made, 0o755);
            }
            path
        }

        fn library(&self, directory: &str) -> PathBuf {
            let path = self.directory(directory).join(LIBRARY);
            fs::write(&path, "").unwrap();
            mode(&path, 0o644);
            path
        }

        fn ldconfig(&mut self, script: &str) {
            let path = self.dir.path().join("ldconfig");
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            mode(&path, 0o755);
            self.search.ldconfig = path;
        }

        fn find_in(&mut self, directories: &[&Path]) -> Result<Found, SearchError> {
            let texts: Vec<_> = directories
                .iter()
                .map(|path| path.to_str().unwrap())
                .collect();
            self.search.ld_library_path = Some(texts.join(":"));
            find(&self.search)
        }

        fn refusal_in(&mut self, directory: &Path) -> Refusal {
            match self.find_in(&[directory]) {
                Err(SearchError::Unsafe { mut refused, .. }) => refused.remove(0),
                other => panic!("{other:?}"),
            }
        }
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn takes_the_first_candidate_that_passes_and_reports_those_refused_before() {
        let mut tree = Tree::new();
        let (bad, good) = (tree.library("bad"), tree.library("good"));
        mode(&bad, 0o664);
        let empty = tree.directory("empty");
        let found = tree
            .find_in(&[&empty, bad.parent().unwrap(), good.parent().unwrap()])
            .unwrap();
        assert_eq!(found.path, good);
        assert_eq!(found.refused.len(), 1);
        assert_eq!(found.refused[0].rule, Rule::ForeignWrite { mode: 0o664 });
    }

    #[test]
    fn names_path_rule_finding_and_remedy() {
        let mut tree = Tree::new();
        let library = tree.library("lib");
        mode(&library, 0o666);
        let text = tree
            .find_in(&[library.parent().unwrap()])
            .unwrap_err()
            .to_string();
        let path = library.display().to_string();
        for part in [&path, "writable by group or others", "0666", "chmod go-w"] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }

    #[test]
    fn refuses_a_group_writable_directory_anywhere_above() {
        let mut tree = Tree::new();
        let library = tree.library("a/b/c");
        let above = tree.directory("a");
        mode(&above, 0o775);
        let refusal = tree.refusal_in(library.parent().unwrap());
        assert_eq!(refusal.path, above);
        assert_eq!(refusal.rule, Rule::ForeignWrite { mode: 0o775 });
    }

    #[test]
    fn a_sticky_bit_does_not_excuse_a_world_writable_directory() {
        let mut tree = Tree::new();
        let library = tree.library("sticky/lib");
        mode(&tree.directory("sticky"), 0o1777);
        let refusal = tree.refusal_in(library.parent().unwrap());
        assert_eq!(refusal.rule, Rule::ForeignWrite { mode: 0o1777 });
        let text = refusal.to_string();
        assert!(text.contains("move the library elsewhere"), "{text}");
        assert!(!text.contains("chmod"), "{text}");
    }

    #[test]
    fn refuses_a_file_of_another_owner() {
        let mut tree = Tree::new();
        let library = tree.library("lib");
        let found = tree.search.owner;
        tree.search.owner = found + 1;
        let refusal = tree.refusal_in(library.parent().unwrap());
        assert_eq!(
            refusal.rule,
            Rule::Owner {
                wanted: found + 1,
                found
            }
        );
    }

    #[test]
    fn judges_a_link_by_its_own_owner_and_the_target_by_its_place() {
        let mut tree = Tree::new();
        let library = tree.library("real");
        let links = tree.directory("links");
        symlink(&library, links.join(LIBRARY)).unwrap();
        mode(&links, 0o777);
        // Directories above the link itself are not checked.
        assert_eq!(tree.find_in(&[&links]).unwrap().path, library);
        mode(&tree.directory("real"), 0o777);
        assert_eq!(
            tree.refusal_in(&links).rule,
            Rule::ForeignWrite { mode: 0o777 }
        );
        let found = tree.search.owner;
        tree.search.owner = found + 1;
        assert_eq!(
            tree.refusal_in(&links).rule,
            Rule::LinkOwner {
                wanted: found + 1,
                found
            }
        );
    }

    #[test]
    fn a_dangling_link_is_a_candidate_that_leads_nowhere() {
        let mut tree = Tree::new();
        let links = tree.directory("links");
        symlink(tree.search.top.join("gone"), links.join(LIBRARY)).unwrap();
        let refusal = tree.refusal_in(&links);
        assert_eq!(refusal.rule, Rule::Absent);
        assert!(refusal.to_string().contains("leads nowhere"), "{refusal}");
    }

    #[test]
    fn counts_at_most_nineteen_components_below_the_top() {
        let mut tree = Tree::new();
        let levels = |count: usize| vec!["d"; count].join("/");
        let fits = tree.library(&levels(18));
        assert_eq!(tree.find_in(&[fits.parent().unwrap()]).unwrap().path, fits);
        let too_deep = tree.library(&levels(19));
        assert_eq!(
            tree.refusal_in(too_deep.parent().unwrap()).rule,
            Rule::Depth
        );
    }

    #[test]
    fn skips_empty_elements_and_overlong_candidates() {
        let (candidates, _) = candidates_of_path(Some("::"));
        assert!(candidates.is_empty());
        let tree = Tree::new();
        let library = tree.library("lib");
        let directory = library.parent().unwrap().to_str().unwrap();
        let (candidates, _) = candidates_of_path(Some(&format!(":{directory}:")));
        assert_eq!(candidates, [library.as_path()]);
        let padded = format!("{directory}{}", "/.".repeat(500));
        assert!(padded.len() <= PATH_MAX_BYTES, "{}", padded.len());
        let overlong = format!(
            "{directory}{}",
            "/".repeat(PATH_MAX_BYTES - directory.len() - 5)
        );
        let (candidates, _) = candidates_of_path(Some(&overlong));
        assert!(candidates.is_empty());
    }

    #[test]
    fn a_search_path_beyond_the_limit_is_not_searched() {
        let mut tree = Tree::new();
        let library = tree.library("lib");
        let long = format!(
            "{}:{}",
            library.parent().unwrap().display(),
            "x".repeat(1024)
        );
        tree.search.ld_library_path = Some(long);
        let text = find(&tree.search).unwrap_err().to_string();
        assert!(text.contains("at most 1024"), "{text}");
    }

    #[test]
    fn asks_the_loaders_cache_last_and_checks_its_first_match_only() {
        let mut tree = Tree::new();
        let (first, second) = (tree.library("first"), tree.library("second"));
        tree.ldconfig(&format!(
            "echo '2 libs found'\n\
             echo '\tlibdcmi.so.1 (libc6,x86-64) => /nowhere/libdcmi.so.1'\n\
             echo '\tlibdcmi.so (libc6,x86-64) => {}'\n\
             echo '\tlibdcmi.so (libc6,x86-64) => {}'",
            first.display(),
            second.display()
        ));
        assert_eq!(find(&tree.search).unwrap().path, first);
        mode(&first, 0o666);
        assert!(matches!(
            find(&tree.search),
            Err(SearchError::Unsafe { .. })
        ));
        let in_path = tree.find_in(&[second.parent().unwrap()]).unwrap();
        assert_eq!(in_path.path, second);
    }

    #[test]
    fn says_where_it_looked_when_there_is_none() {
        let mut tree = Tree::new();
        let text = find(&tree.search).unwrap_err().to_string();
        assert!(text.contains("LD_LIBRARY_PATH is not set"), "{text}");
        let directory = tree.directory("empty");
        let text = tree.find_in(&[&directory]).unwrap_err().to_string();
        assert!(
            text.contains("empty) holds it") && text.contains("no-ldconfig"),
            "{text}"
        );
    }

    #[test]
    fn the_trusted_path_is_spared_owner_and_mode_and_stands_alone() {
        let mut tree = Tree::new();
        let (library, other) = (tree.library("mine"), tree.library("other"));
        mode(&library, 0o666);
        tree.search.owner += 1;
        tree.search.trusted_library = Some(library.clone());
        assert_eq!(
            tree.find_in(&[other.parent().unwrap()]).unwrap().path,
            library
        );
        tree.search.trusted_library = Some(library.with_file_name("gone.so"));
        let refused = find(&tree.search).unwrap_err().to_string();
        assert!(
            refused.contains("gone.so does not exist") && !refused.contains("readable"),
            "{refused}"
        );
    }
}
