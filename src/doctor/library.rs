//! The driver library: is there one, and may it be loaded.

use std::path::PathBuf;

use crate::config::Config;
use crate::dcmi::search::{Found, Search, SearchError, find};

use super::finding::Finding;

pub(super) const WHAT: &str = "driver library";

/// What the agent's own search finds.
#[derive(Clone, Debug)]
pub(super) struct LibraryFacts {
    found: Result<Found, SearchError>,
    trusted: Option<PathBuf>,
}

impl LibraryFacts {
    pub(super) fn is_found(&self) -> bool {
        self.found.is_ok()
    }
}

pub(super) fn search_of(config: &Config) -> Search {
    Search::of_system(
        config.ld_library_path.clone(),
        config.trusted_library.clone(),
    )
}

pub(super) fn look(search: &Search) -> LibraryFacts {
    LibraryFacts {
        found: find(search),
        trusted: search.trusted_library.clone(),
    }
}

pub(super) fn judge(facts: &LibraryFacts) -> Finding {
    match (&facts.found, &facts.trusted) {
        (Ok(found), Some(_)) => Finding::warn(
            WHAT,
            format!(
                "{}, without a look at its owner and mode",
                found.path.display()
            ),
            "take trusted_library away on a node with real hardware",
        ),
        (Ok(found), None) if found.refused.is_empty() => Finding::ok(
            WHAT,
            format!(
                "{}; it and its folders belong to root alone",
                found.path.display()
            ),
        ),
        (Ok(found), None) => {
            let refused: Vec<String> = found.refused.iter().map(ToString::to_string).collect();
            Finding::warn(
                WHAT,
                format!("{}; before it {}", found.path.display(), refused.join("; ")),
                "remove the unsafe copies, or take their folders out of LD_LIBRARY_PATH",
            )
        }
        (Err(error), _) => Finding::fail(
            WHAT,
            error.to_string(),
            "install the driver as root, and mount it into the agent's container at the same path",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcmi::search::{Refusal, Rule};
    use crate::doctor::Verdict;

    fn found(refused: Vec<Refusal>, trusted: Option<&str>) -> Finding {
        judge(&LibraryFacts {
            found: Ok(Found {
                path: PathBuf::from("/d/libdcmi.so"),
                refused,
            }),
            trusted: trusted.map(PathBuf::from),
        })
    }

    fn refusal() -> Refusal {
        Refusal {
            candidate: PathBuf::from("/open/libdcmi.so"),
            path: PathBuf::from("/open"),
            rule: Rule::ForeignWrite { mode: 0o777 },
        }
    }

    #[test]
    fn a_safe_library_is_good_and_one_behind_an_unsafe_copy_nearly() {
        assert_eq!(found(vec![], None).verdict, Verdict::Ok);
        let warned = found(vec![refusal()], None);
        assert_eq!(warned.verdict, Verdict::Warn);
        assert!(warned.found.contains("/open"), "{warned:?}");
    }

    #[test]
    fn a_trusted_library_is_not_for_real_nodes() {
        assert_eq!(found(vec![], Some("/d/libdcmi.so")).verdict, Verdict::Warn);
    }

    #[test]
    fn a_library_that_others_may_write_is_named_with_its_rule() {
        let finding = judge(&LibraryFacts {
            found: Err(SearchError::Unsafe {
                refused: vec![refusal()],
                cache: String::new(),
            }),
            trusted: None,
        });
        assert_eq!(finding.verdict, Verdict::Fail);
        assert!(finding.found.contains("0777"), "{finding:?}");
    }
}
