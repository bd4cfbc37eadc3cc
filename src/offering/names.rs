//! Custom names of resources and ids, as an operator gives them in the vendor's file.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::domain::ids::{ResourceName, ends_like_an_id};

/// Base names that can be replaced. A5 has no custom name.
const RESOURCE_TYPES: [&str; 3] = ["Ascend910", "Ascend310", "Ascend310P"];

const TYPE_RULE: &str = "10 to 32 characters: a letter, then letters, digits, '.' and '/', a letter \
                         or digit at the end";
const PREFIX_RULE: &str = "2 to 16 characters: a letter, then letters, digits and '-'";
const POD_KEY_RULE: &str = "10 to 63 characters: a letter, then letters, digits, '.', '/' and '-', a \
                            letter or digit at the end";

/// One entry of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NameEntry {
    /// `Ascend910`, `Ascend310` or `Ascend310P`: what is renamed.
    pub resource_type: String,
    /// The resource: with a slash a whole name, without one a name below our domain.
    pub device_public_type: String,
    /// What ids begin with.
    pub device_public_name_pre: String,
    /// Key of an annotation of pods.
    pub pod_configuration_name: String,
}

/// Names by base name; a base name that is not in it keeps its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomNames {
    by_base: BTreeMap<String, CustomName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CustomName {
    /// Whole resource name.
    pub(super) resource: ResourceName,
    /// First part of the ids.
    pub(super) prefix: String,
}

/// An entry that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {entry}: {field} is {value:?}; allowed: {rule}")]
pub struct NameError {
    /// Its place in the file, from 1.
    pub entry: usize,
    /// The field.
    pub field: &'static str,
    /// Its value, cut to 64 characters.
    pub value: String,
    /// What is allowed.
    pub rule: String,
}

impl CustomNames {
    /// Checks every entry. One whose three names are empty, as in the file that the vendor ships, renames
    /// nothing.
    ///
    /// # Errors
    /// Names the first bad entry with field, value and rule; a file is taken whole or not at all.
    pub fn new(entries: &[NameEntry], domain: &str) -> Result<Self, NameError> {
        let mut names = Self::default();
        for (place, entry) in entries.iter().enumerate() {
            let refuse = |field, value: &str, rule: String| NameError {
                entry: place + 1,
                field,
                value: value.chars().take(64).collect(),
                rule,
            };
            let known = RESOURCE_TYPES.contains(&entry.resource_type.as_str());
            let renames_nothing = entry.device_public_type.is_empty()
                && entry.device_public_name_pre.is_empty()
                && entry.pod_configuration_name.is_empty();
            if renames_nothing && (known || entry.resource_type.is_empty()) {
                continue;
            }
            if !known {
                let rule = format!("one of {}", RESOURCE_TYPES.join(", "));
                return Err(refuse("ResourceType", &entry.resource_type, rule));
            }
            let text = &entry.device_public_type;
            if !is_like(text, 10, 32, "./") {
                return Err(refuse("DevicePublicType", text, TYPE_RULE.to_owned()));
            }
            let full = if text.contains('/') {
                text.clone()
            } else {
                format!("{domain}/{text}")
            };
            let resource = ResourceName::new(full)
                .map_err(|cause| refuse("DevicePublicType", text, cause.to_string()))?;
            let prefix = &entry.device_public_name_pre;
            if !is_prefix(prefix) {
                let rule = PREFIX_RULE.to_owned();
                return Err(refuse("DevicePublicNamePre", prefix, rule));
            }
            if ends_like_an_id(prefix) {
                let rule = "no number after a dash at the end: an id made from it could not be told \
                            from the id of a share";
                return Err(refuse("DevicePublicNamePre", prefix, rule.to_owned()));
            }
            let key = &entry.pod_configuration_name;
            if !is_like(key, 10, 63, "./-") {
                return Err(refuse("PodConfigurationName", key, POD_KEY_RULE.to_owned()));
            }
            let custom = CustomName {
                resource,
                prefix: prefix.clone(),
            };
            if names
                .by_base
                .insert(entry.resource_type.clone(), custom)
                .is_some()
            {
                let rule = "one entry for each type".to_owned();
                return Err(refuse("ResourceType", &entry.resource_type, rule));
            }
            if !names.are_distinct(domain) {
                let rule = "a name that no other family has".to_owned();
                return Err(refuse("DevicePublicType", text, rule));
            }
        }
        Ok(names)
    }

    /// True when nothing is renamed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_base.is_empty()
    }

    /// Base names that are replaced.
    pub(super) fn bases(&self) -> impl Iterator<Item = &str> {
        self.by_base.keys().map(String::as_str)
    }

    pub(super) fn of(&self, base: &str) -> Option<&CustomName> {
        self.by_base.get(base)
    }

    fn are_distinct(&self, domain: &str) -> bool {
        let mut seen = BTreeSet::new();
        RESOURCE_TYPES.iter().chain(&["npu"]).all(|base| {
            let name = self.of(base).map_or_else(
                || format!("{domain}/{base}"),
                |custom| custom.resource.to_string(),
            );
            seen.insert(name)
        })
    }
}

/// A letter first, a letter or digit last, letters, digits and `more` between.
fn is_like(text: &str, min: usize, max: usize, more: &str) -> bool {
    let edges = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric());
    edges
        && (min..=max).contains(&text.len())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
}

fn is_prefix(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && (2..=16).contains(&text.len())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, public: &str, prefix: &str) -> NameEntry {
        NameEntry {
            resource_type: kind.to_owned(),
            device_public_type: public.to_owned(),
            device_public_name_pre: prefix.to_owned(),
            pod_configuration_name: "example.com/pod-config".to_owned(),
        }
    }

    #[test]
    fn a_name_with_a_slash_is_whole_and_one_without_goes_below_the_domain() {
        for (public, resource) in [
            ("example.com/npu910", "example.com/npu910"),
            ("MyAscend910", "huawei.com/MyAscend910"),
        ] {
            let entries = [entry("Ascend910", public, "acme")];
            let names = CustomNames::new(&entries, "huawei.com").expect("valid");
            let custom = names.of("Ascend910").expect("renamed");
            assert_eq!(custom.resource.as_str(), resource);
            assert_eq!(custom.prefix, "acme");
        }
    }

    #[test]
    fn the_shipped_file_renames_nothing() {
        for kind in ["", "Ascend910"] {
            let entries = [NameEntry {
                resource_type: kind.to_owned(),
                ..NameEntry::default()
            }];
            let names = CustomNames::new(&entries, "huawei.com").expect("valid");
            assert!(names.is_empty());
        }
    }

    #[test]
    fn a_bad_entry_is_named_with_field_value_and_rule() {
        let good = entry("Ascend310", "example.com/npu310", "n310");
        for (bad, field, part) in [
            (
                entry("Ascend950", "example.com/npu", "n"),
                "ResourceType",
                "one of",
            ),
            (entry("", "example.com/npu", "n"), "ResourceType", "one of"),
            (
                entry("Ascend910", "short", "acme"),
                "DevicePublicType",
                "10 to 32",
            ),
            (
                entry("Ascend910", "example-x.com/n", "acme"),
                "DevicePublicType",
                "10 to 32",
            ),
            (
                entry("Ascend910", "Example.com/npu", "acme"),
                "DevicePublicType",
                "DNS",
            ),
            (
                entry("Ascend910", "a.b/c.d/efghi", "acme"),
                "DevicePublicType",
                "letters",
            ),
            (
                entry("Ascend910", "example.com/npu", "a"),
                "DevicePublicNamePre",
                "2 to 16",
            ),
            (
                entry("Ascend910", "example.com/npu", "acme-3"),
                "DevicePublicNamePre",
                "share",
            ),
            (
                entry("Ascend910", "example.com/npu310", "acme"),
                "DevicePublicType",
                "no other family",
            ),
            (
                entry("Ascend910", "huawei.com/Ascend310P", "acme"),
                "DevicePublicType",
                "no other family",
            ),
            (
                entry("Ascend310", "example.com/other", "acme"),
                "ResourceType",
                "one entry",
            ),
            (
                NameEntry {
                    pod_configuration_name: "-bad".to_owned(),
                    ..entry("Ascend910", "example.com/npu", "acme")
                },
                "PodConfigurationName",
                "10 to 63",
            ),
        ] {
            let error = CustomNames::new(&[good.clone(), bad.clone()], "huawei.com")
                .expect_err(&format!("{bad:?}"));
            assert_eq!((error.entry, error.field), (2, field), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
