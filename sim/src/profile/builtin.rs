//! Profiles that come with the program.

/// Name and text of each.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("910b3-8x1", include_str!("../../profiles/910b3-8x1.toml")),
    ("310p3-4x1", include_str!("../../profiles/310p3-4x1.toml")),
    ("a5-8x1", include_str!("../../profiles/a5-8x1.toml")),
];
