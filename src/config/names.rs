//! The file with custom names of resources and ids.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::offering::{CustomNames, NameEntry, NameError};

/// A larger file is not one of three entries.
const FILE_MAX_BYTES: u64 = 64 << 10;

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum NamesError {
    /// It cannot be read.
    #[error("names_file {path}: cannot be read; correct it, or set names_file to \"\" for none")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// It is not a list of entries.
    #[error("names_file {path}: not a JSON list of entries")]
    Form {
        /// The file.
        path: PathBuf,
        /// Place and reason.
        #[source]
        source: serde_json::Error,
    },
    /// An entry in it breaks a rule.
    #[error("names_file {path}")]
    Entry {
        /// The file.
        path: PathBuf,
        /// Entry, field, value and rule.
        #[source]
        source: NameError,
    },
}

/// Reads the file; `None` when there is none.
pub(super) fn read_names(path: &Path, domain: &str) -> Result<Option<CustomNames>, NamesError> {
    let text = match read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(source) => {
            let path = path.to_owned();
            return Err(NamesError::Read { path, source });
        }
    };
    let entries: Vec<NameEntry> = serde_json::from_str(&text).map_err(|source| {
        let path = path.to_owned();
        NamesError::Form { path, source }
    })?;
    CustomNames::new(&entries, domain)
        .map(Some)
        .map_err(|source| {
            let path = path.to_owned();
            NamesError::Entry { path, source }
        })
}

fn read(path: &Path) -> io::Result<String> {
    // Opening a pipe would wait for a writer, without a word and for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a plain file",
        ));
    }
    let mut text = String::new();
    let read = File::open(path)?
        .take(FILE_MAX_BYTES + 1)
        .read_to_string(&mut text)?;
    if u64::try_from(read).is_ok_and(|bytes| bytes > FILE_MAX_BYTES) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it has more than {FILE_MAX_BYTES} bytes"),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_file_is_told_and_a_bad_one_is_named() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("names.json");
        assert_eq!(read_names(&path, "huawei.com").expect("absent"), None);
        for text in [
            "{}",
            "[",
            "[{\"ResourceType\": 1}]",
            "[{\"ResourceType\": \"x\"}]",
        ] {
            fs::write(&path, text).expect("written");
            let error = read_names(&path, "huawei.com").expect_err("refused");
            assert!(error.to_string().contains("names.json"), "{error}");
        }
        fs::write(&path, " ".repeat(70_000)).expect("written");
        let large = read_names(&path, "huawei.com");
        assert!(matches!(large, Err(NamesError::Read { .. })));
    }
}
