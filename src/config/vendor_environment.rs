//! The variables that the vendor's device plugin reads, as far as they can be wrong.
//!
//! None of them changes what the agent does; a manifest in which they are wrong is wrong all the same,
//! and the API server will need the node's name one day.

use std::ffi::OsString;
use std::net::IpAddr;

use super::sources::Environment;

/// Longest node name, the vendor's own limit.
const NODE_NAME_MAX_BYTES: usize = 230;

/// Longest library search path, the vendor's own limit.
const LIBRARY_PATH_MAX_BYTES: usize = 1024;

/// A variable with a value that the vendor's plugin would refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("variable {name}={value:?}: {remedy}")]
pub struct VendorEnvironmentError {
    /// Its name.
    pub name: &'static str,
    /// Its value, cut.
    pub value: String,
    /// What to do.
    pub remedy: String,
}

/// Checks `NODE_NAME`, `HOST_IP`, `KUBELET_PORT` and `LD_LIBRARY_PATH` when they are set. What is
/// missing comes back as notes for a person.
///
/// # Errors
/// Names the first bad variable with its value and what is allowed.
pub fn check_environment(
    environment: &impl Environment,
) -> Result<Vec<String>, VendorEnvironmentError> {
    let variables = environment.variables();
    let find = |name: &str| -> Option<&OsString> {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    };
    let check = |name, is_good: &dyn Fn(&str) -> bool, remedy: String| match find(name) {
        Some(value) if !value.to_str().is_some_and(is_good) => Err(VendorEnvironmentError {
            name,
            value: value.to_string_lossy().chars().take(256).collect(),
            remedy,
        }),
        found => Ok(found.is_some()),
    };
    let named = check(
        "NODE_NAME",
        &is_node_name,
        format!(
            "must be a DNS name of at most {NODE_NAME_MAX_BYTES} bytes; take it from \
             spec.nodeName by a fieldRef"
        ),
    )?;
    check(
        "HOST_IP",
        &|value| value.parse::<IpAddr>().is_ok(),
        "must be an IP address; take it from status.hostIP by a fieldRef or remove it".to_owned(),
    )?;
    check(
        "KUBELET_PORT",
        &|value| value.parse::<u16>().is_ok_and(|port| port > 0),
        "must be a port from 1 to 65535; remove it, it is not used".to_owned(),
    )?;
    check(
        "LD_LIBRARY_PATH",
        &|value| value.len() <= LIBRARY_PATH_MAX_BYTES,
        format!("must have at most {LIBRARY_PATH_MAX_BYTES} bytes; shorten it"),
    )?;
    if named {
        return Ok(Vec::new());
    }
    Ok(vec![
        "NODE_NAME is not set: not needed yet, as no API server is used; the vendor's plugin needs it"
            .to_owned(),
    ])
}

/// A DNS subdomain: labels of lower case letters, digits and dashes between dots.
fn is_node_name(name: &str) -> bool {
    name.len() <= NODE_NAME_MAX_BYTES
        && name.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Vec<(&'static str, String)>);

    impl Environment for Fixed {
        fn variables(&self) -> Vec<(OsString, OsString)> {
            let variables = self.0.iter();
            variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        }
    }

    fn check(name: &'static str, value: &str) -> Result<Vec<String>, VendorEnvironmentError> {
        check_environment(&Fixed(vec![(name, value.to_owned())]))
    }

    #[test]
    fn good_values_pass_and_a_missing_node_name_is_a_note() {
        for (name, value) in [
            ("HOST_IP", "fd00::1"),
            ("HOST_IP", "10.0.0.1"),
            ("KUBELET_PORT", "10250"),
            ("LD_LIBRARY_PATH", &"x".repeat(1024)),
        ] {
            let notes = check(name, value).unwrap();
            assert!(notes.concat().contains("NODE_NAME is not set"), "{notes:?}");
        }
        for name in ["n", "node-1.example.com", &"x".repeat(230)] {
            assert_eq!(check("NODE_NAME", name), Ok(Vec::new()), "{name}");
        }
    }

    #[test]
    fn a_bad_value_is_named_with_the_remedy() {
        for (name, value) in [
            ("NODE_NAME", ""),
            ("NODE_NAME", "Node"),
            ("NODE_NAME", "-a"),
            ("NODE_NAME", "a..b"),
            ("NODE_NAME", "a/b"),
            ("NODE_NAME", &"x".repeat(231)),
            ("HOST_IP", "localhost"),
            ("KUBELET_PORT", "0"),
            ("KUBELET_PORT", "65536"),
            ("LD_LIBRARY_PATH", &"x".repeat(1025)),
        ] {
            let said = check(name, value).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains("; "), "{said}");
        }
    }
}
