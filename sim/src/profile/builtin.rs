//! Profiles that come with the program.

/// Names and texts from the names of the files.
macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../profiles/", $name, ".toml")))),+]
    };
}

/// Name and text of each.
pub const BUILT_IN: &[(&str, &str)] = built_in![
    "910b3-8x1",
    "310p3-4x1",
    "a5-8x1",
    "310-1x4",
    "310b-1x1",
    "310p-duo-2x2",
    "310p-soc-1x1",
    "310p3-4x1-48g",
    "910a-8x1",
    "910b2-8x1",
    "910b4-2x1",
    "a3-8x2",
    "a3-8x2-arm",
    "a5-350-4x1",
    "mixed-310p-4x1",
    "two-families",
];
