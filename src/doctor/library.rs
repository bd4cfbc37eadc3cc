//! The driver library: is there one, and may it be loaded.

use std::fs;
use std::path::PathBuf;

use crate::config::Config;
use crate::dcmi::search::{Found, Refusal, Rule, Search, SearchError, examine, find};

use super::finding::Finding;
use super::running::Agent;

pub(super) const WHAT: &str = "driver library";

/// What is known of the library.
#[derive(Clone, Debug)]
pub(super) enum LibraryFacts {
    /// No agent has one: what its search would find, and whether it is spared the checks.
    Searched {
        found: Result<Found, SearchError>,
        trusted: bool,
    },
    /// The running agent has this one, wherever a search of our own would look.
    Loaded { path: PathBuf, checked: Checked },
}

#[derive(Clone, Debug)]
pub(super) enum Checked {
    /// It is spared the checks.
    Trusted,
    Safe,
    Refused(Refusal),
}

impl LibraryFacts {
    pub(super) fn is_found(&self) -> bool {
        match self {
            Self::Searched { found, .. } => found.is_ok(),
            Self::Loaded { .. } => true,
        }
    }
}

pub(super) fn search_of(config: &Config) -> Search {
    Search::of_system(
        config.ld_library_path.clone(),
        config.trusted_library.clone(),
    )
}

/// The library that the running agent has, where there is one.
pub(super) fn loaded_by(agent: &Agent) -> Option<PathBuf> {
    let status = agent.status()?;
    let library = &status.driver.library;
    (!library.is_empty()).then(|| PathBuf::from(library))
}

pub(super) fn look(search: &Search, loaded: Option<PathBuf>) -> LibraryFacts {
    let Some(path) = loaded else {
        return LibraryFacts::Searched {
            found: find(search),
            trusted: search.trusted_library.is_some(),
        };
    };
    let trusted = search.trusted_library.as_ref();
    let resolved = trusted.and_then(|trusted| fs::canonicalize(trusted).ok());
    let checked = if resolved.is_some_and(|trusted| trusted == path) {
        Checked::Trusted
    } else {
        match examine(search, &path) {
            Ok(_) => Checked::Safe,
            Err(refusal) => Checked::Refused(refusal),
        }
    };
    LibraryFacts::Loaded { path, checked }
}

pub(super) fn judge(facts: &LibraryFacts) -> Finding {
    match facts {
        LibraryFacts::Searched { found, trusted } => judge_search(found, *trusted),
        LibraryFacts::Loaded { path, checked } => judge_loaded(
            &format!("the running agent has {}", path.display()),
            checked,
        ),
    }
}

fn judge_loaded(found: &str, checked: &Checked) -> Finding {
    match checked {
        Checked::Trusted => unchecked(found),
        Checked::Safe => Finding::ok(
            WHAT,
            format!("{found}; it and its folders belong to root alone"),
        ),
        Checked::Refused(refusal) if refusal.rule == Rule::Absent => Finding::warn(
            WHAT,
            format!("{found}, which is not there for doctor"),
            "run doctor in the agent's container; when it is gone there too, install the driver again",
        ),
        Checked::Refused(refusal) => Finding::warn(
            WHAT,
            format!("{found}; {refusal}"),
            "mend it before the agent starts again; take trusted_library away on a node with real \
             hardware",
        ),
    }
}

fn unchecked(found: &str) -> Finding {
    Finding::warn(
        WHAT,
        format!("{found}, without a look at its owner and mode"),
        "take trusted_library away on a node with real hardware",
    )
}

fn judge_search(found: &Result<Found, SearchError>, trusted: bool) -> Finding {
    match (found, trusted) {
        (Ok(found), true) => unchecked(&found.path.display().to_string()),
        (Ok(found), false) if found.refused.is_empty() => Finding::ok(
            WHAT,
            format!(
                "{}; it and its folders belong to root alone",
                found.path.display()
            ),
        ),
        (Ok(found), false) => {
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
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use super::*;
    use crate::doctor::Verdict;

    fn found(refused: Vec<Refusal>, trusted: bool) -> Finding {
        judge(&LibraryFacts::Searched {
            found: Ok(Found {
                path: PathBuf::from("/d/libdcmi.so"),
                refused,
            }),
            trusted,
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
        assert_eq!(found(vec![], false).verdict, Verdict::Ok);
        let warned = found(vec![refusal()], false);
        assert_eq!(warned.verdict, Verdict::Warn);
        assert!(warned.found.contains("/open"), "{warned:?}");
    }

    #[test]
    fn a_trusted_library_is_not_for_real_nodes() {
        assert_eq!(found(vec![], true).verdict, Verdict::Warn);
    }

    #[test]
    fn a_library_that_others_may_write_is_named_with_its_rule() {
        let finding = judge(&LibraryFacts::Searched {
            found: Err(SearchError::Unsafe {
                refused: vec![refusal()],
                cache: String::new(),
            }),
            trusted: false,
        });
        assert_eq!(finding.verdict, Verdict::Fail);
        assert!(finding.found.contains("0777"), "{finding:?}");
    }

    #[test]
    fn the_library_of_a_running_agent_is_judged_wherever_a_search_would_look() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = fs::canonicalize(folder.path()).expect("a path");
        let library = top.join("libdcmi.so");
        fs::write(&library, "").expect("a file");
        fs::set_permissions(&library, fs::Permissions::from_mode(0o644)).expect("a mode");
        let search = Search {
            owner: fs::metadata(&library).expect("facts").uid(),
            top: top.clone(),
            ..Search::of_system(None, None)
        };
        let seen = |search: &Search, path: &Path| judge(&look(search, Some(path.to_path_buf())));
        let safe = seen(&search, &library);
        assert_eq!(safe.verdict, Verdict::Ok, "{safe:?}");
        assert!(safe.found.contains("the running agent has"), "{safe:?}");
        let absent = seen(&search, &top.join("gone.so"));
        assert_eq!(absent.verdict, Verdict::Warn);
        assert!(absent.found.contains("not there for doctor"), "{absent:?}");
        fs::set_permissions(&library, fs::Permissions::from_mode(0o666)).expect("a mode");
        let open = seen(&search, &library);
        assert_eq!(open.verdict, Verdict::Warn);
        assert!(open.found.contains("0666"), "{open:?}");
        let trusting = Search {
            trusted_library: Some(library.clone()),
            ..search
        };
        let trusted = seen(&trusting, &library);
        assert!(trusted.found.contains("without a look"), "{trusted:?}");
    }
}
