//! What a candidate and everything above it must fulfil.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path, PathBuf};

use super::Search;

/// File and directories together that are checked on the way to the root, the vendor's own limit.
const DEPTH_MAX: usize = 20;

/// Group and other write.
const FOREIGN_WRITE: u32 = 0o022;

/// The bit of folders that everybody is meant to write to, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// A rule that a candidate or a directory above it breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It must be there.
    Absent,
    /// It must be readable for the check.
    Examine {
        /// The system's words.
        cause: String,
    },
    /// It must be a regular file.
    RegularFile,
    /// It must belong to root.
    Owner {
        /// Who must own it.
        wanted: u32,
        /// Who does.
        found: u32,
    },
    /// A link must belong to root.
    LinkOwner {
        /// Who must own it.
        wanted: u32,
        /// Who does.
        found: u32,
    },
    /// Nobody else may write.
    ForeignWrite {
        /// Permission bits.
        mode: u32,
    },
    /// Not too deep.
    Depth,
}

/// One refused candidate: the path that broke a rule, the rule with what was found, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The candidate.
    pub candidate: PathBuf,
    /// The candidate itself, what it resolves to, or a directory above.
    pub path: PathBuf,
    /// The rule.
    pub rule: Rule,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "{} is refused: ", self.candidate.display())?;
        match &self.rule {
            Rule::Absent => write!(
                f,
                "{path} does not exist, or a link there leads nowhere; name the driver's library"
            ),
            Rule::Examine { cause } => {
                write!(
                    f,
                    "{path} cannot be examined ({cause}); make it readable for the agent"
                )
            }
            Rule::RegularFile => {
                write!(
                    f,
                    "{path} is not a regular file; put the driver's library there"
                )
            }
            Rule::Owner { wanted, found } => write!(
                f,
                "{path} must belong to uid {wanted}, found uid {found}; \
                 run `chown {wanted} {path}` or install the driver as root"
            ),
            Rule::LinkOwner { wanted, found } => write!(
                f,
                "the link {path} must belong to uid {wanted}, found uid {found}; \
                 run `chown -h {wanted} {path}`"
            ),
            // Taking the right away there would break every other program of the node.
            Rule::ForeignWrite { mode } if mode & STICKY != 0 => write!(
                f,
                "{path} must not be writable by group or others, found mode {mode:04o}; \
                 move the library elsewhere"
            ),
            Rule::ForeignWrite { mode } => write!(
                f,
                "{path} must not be writable by group or others, found mode {mode:04o}; \
                 run `chmod go-w {path}`, or, where others must write there, move the library elsewhere"
            ),
            Rule::Depth => write!(
                f,
                "{path} lies more than {} levels deep; install the driver closer to the root",
                DEPTH_MAX - 1
            ),
        }
    }
}

impl Rule {
    /// What it means that the system refuses a look.
    pub(super) fn of_refused_look(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::Absent;
        }
        Self::Examine {
            cause: error.to_string(),
        }
    }
}

/// Checks one candidate; the answer is the path to load.
pub(super) fn check(search: &Search, candidate: &Path) -> Result<PathBuf, Refusal> {
    let refuse = |path: &Path, rule| Refusal {
        candidate: candidate.to_path_buf(),
        path: path.to_path_buf(),
        rule,
    };
    let examined = |path: &Path, result: io::Result<Metadata>| {
        result.map_err(|error| refuse(path, Rule::of_refused_look(&error)))
    };
    let absolute = path::absolute(candidate)
        .map_err(|error| refuse(candidate, Rule::of_refused_look(&error)))?;
    let link = examined(&absolute, fs::symlink_metadata(&absolute))?;
    if link.is_symlink() && link.uid() != search.owner {
        let rule = Rule::LinkOwner {
            wanted: search.owner,
            found: link.uid(),
        };
        return Err(refuse(&absolute, rule));
    }
    let resolved = fs::canonicalize(&absolute)
        .map_err(|error| refuse(&absolute, Rule::of_refused_look(&error)))?;
    if !examined(&resolved, fs::metadata(&resolved))?.is_file() {
        return Err(refuse(&resolved, Rule::RegularFile));
    }
    for (depth, path) in resolved.ancestors().enumerate() {
        if depth >= DEPTH_MAX {
            return Err(refuse(&resolved, Rule::Depth));
        }
        let facts = examined(path, fs::symlink_metadata(path))?;
        if facts.uid() != search.owner {
            let rule = Rule::Owner {
                wanted: search.owner,
                found: facts.uid(),
            };
            return Err(refuse(path, rule));
        }
        if facts.mode() & FOREIGN_WRITE != 0 {
            return Err(refuse(
                path,
                Rule::ForeignWrite {
                    mode: facts.mode() & 0o7777,
                },
            ));
        }
        if path == search.top {
            break;
        }
    }
    Ok(resolved)
}
