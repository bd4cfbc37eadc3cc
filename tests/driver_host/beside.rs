//! The library in front of the simulated one, and the nodes it stands for.

use super::*;

/// Sixteen dies on eight cards.
pub(crate) const A3: &[(&str, &str)] = &[
    ("count = 8", "count = 16"),
    ("devices_per_card = 1", "devices_per_card = 2"),
    ("chip_name = \"910B3\"", "chip_name = \"Ascend910\""),
    ("board_id = 0x32", "board_id = 0xB1"),
    ("mainboard_id = 0x02", "mainboard_id = 0x1C"),
];

/// A node whose driver is the library in front, with these of its variables set.
pub(crate) fn start_beside(sim: &Sim, variables: &[(&str, &str)]) -> Node {
    let library = compiled();
    start_with(sim, |config| {
        config.trusted_library = Some(library);
        for (name, value) in variables {
            config.environment.push((name.into(), value.into()));
        }
    })
}

/// Compiled once for each process of tests.
fn compiled() -> PathBuf {
    static BUILT: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver_host/beside.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"])
            .arg("-o")
            .arg(folder.path().join("libdcmi.so"))
            .arg(source)
            .arg("-Wl,--no-as-needed")
            .arg(sim::library())
            .status()
            .unwrap();
        assert!(
            built.success(),
            "a C compiler is needed (apt-get install gcc)"
        );
        folder
    });
    folder.path().join("libdcmi.so")
}
