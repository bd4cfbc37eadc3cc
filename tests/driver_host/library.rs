//! Which libraries are loaded, and what is said of those that are not.

use super::beside::A3;
use super::*;

#[tokio::test]
async fn a_library_that_lacks_functions_is_used_without_them_and_they_are_named() {
    let sim = Sim::start("910b3-8x1");
    let dir = tempfile::tempdir().unwrap();
    let lacking = [
        "dcmi_get_device_chip_info_v2",
        "dcmi_get_device_resource_info",
    ];
    let older = library_without(dir.path(), &lacking);
    let node = start_with(&sim, |config| config.trusted_library = Some(older.clone()));
    let inventory = node.inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    assert_eq!(
        inventory.missing_symbols,
        [
            &lacking[..1],
            &NOT_SIMULATED[..1],
            &lacking[1..],
            &NOT_SIMULATED[1..]
        ]
        .concat()
    );
    assert_eq!(inventory.chips[0].chip_name, "910B3");
    let samples = node.driver.sample(true).await.unwrap();
    assert!(samples.iter().all(|sample| sample.processes.is_none()));
    assert_eq!(
        health_of(&samples, 0),
        HealthReading::Level(HealthLevel::Normal)
    );
}

/// What drivers of the years before lack; each has a fallback or disables one fact.
const YOUNG: [&str; 3] = [
    "dcmi_get_device_chip_info_v2",
    "dcmi_get_mainboard_id",
    "dcmi_get_affinity_cpu_info_by_device_id",
];

#[tokio::test]
async fn an_old_driver_gives_the_same_chips_but_for_the_mainboard() {
    let dir = tempfile::tempdir().unwrap();
    let library = library_without(dir.path(), &YOUNG);
    for (profile, changes) in [
        ("910b3-8x1", &[][..]),
        ("910b3-8x1", A3),
        ("310p3-4x1", &[][..]),
    ] {
        let sim = Sim::start_changed(profile, changes);
        let young = start(&sim).inventory().await;
        let node = start_with(&sim, |config| {
            config.trusted_library = Some(library.clone());
        });
        let old = node.inventory().await;
        assert!(old.is_complete(), "{:?}", old.problems);
        let named: BTreeSet<_> = old.missing_symbols.iter().map(String::as_str).collect();
        assert!(named.is_superset(&BTreeSet::from(YOUNG)), "{named:?}");
        let boardless = |chip: &Chip| Chip {
            mainboard_id: None,
            ..chip.clone()
        };
        let expected: Vec<_> = young.chips.iter().map(boardless).collect();
        assert_eq!(old.chips, expected);
        assert!(old.chips.iter().all(|chip| chip.numa_nodes.len() == 1));
    }
}

#[tokio::test]
async fn an_old_driver_of_the_second_interface_names_what_it_lacks() {
    let sim = Sim::start_changed("a5-8x1", &[("mainboard_id = 0x25", "mainboard_id = 0x68")]);
    let dir = tempfile::tempdir().unwrap();
    let lacking = [
        "dcmiv2_get_mainboard_id",
        "dcmiv2_get_affinity_cpu_info_by_dev_id",
        "dcmiv2_get_device_proc_mem_info",
        "dcmiv2_get_all_device_count",
    ];
    let library = library_without(dir.path(), &lacking);
    let node = start_with(&sim, |config| config.trusted_library = Some(library));
    let inventory = node.inventory().await;
    assert!(inventory.is_complete(), "{:?}", inventory.problems);
    for name in lacking {
        assert!(inventory.missing_symbols.iter().any(|known| known == name));
    }
    // Without the mainboard a card reads as the commonest product.
    let product = |chip: &Chip| (chip.mainboard_id, chip.product);
    let products: BTreeSet<_> = inventory.chips.iter().map(product).collect();
    assert_eq!(products, BTreeSet::from([(None, Product::AtlasA5)]));
    assert_eq!(node.sample().await.len(), 8);
}

#[tokio::test]
async fn a_failed_initialisation_tells_both_codes_and_the_next_try_works() {
    let sim = Sim::start("910b3-8x1");
    sim.ctl(&["return-code", "dcmi_init", "-8005", "--times", "1"]);
    let node = start(&sim);
    let Err(HardwareError::Init(text)) = node.driver.inventory(false).await else {
        panic!("the initialisation did not fail");
    };
    assert!(
        text.contains("dcmi_init returned -8005 (inner error)"),
        "{text}"
    );
    assert!(
        text.contains("dcmiv2_init returned -8255 (not supported)"),
        "{text}"
    );
    assert!(node.inventory().await.is_complete());
}

#[tokio::test]
async fn an_unsafe_library_is_refused_with_path_rule_finding_and_remedy() {
    let sim = Sim::start("910b3-8x1");
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("libdcmi.so");
    fs::copy(sim::library(), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o666)).unwrap();
    let node = start_with(&sim, |config| {
        config.trusted_library = None;
        config.ld_library_path = Some(dir.path().to_str().unwrap().to_owned());
    });
    let Err(HardwareError::Library(text)) = node.driver.inventory(false).await else {
        panic!("an unsafe library was loaded");
    };
    // The owner is checked first, so who runs this test decides which rule is named.
    let canonical: PathBuf = copy.canonicalize().unwrap();
    assert!(text.contains(&canonical.display().to_string()), "{text}");
    assert!(text.contains("run `ch"), "{text}");
}

#[tokio::test]
async fn a_missing_library_says_where_it_was_looked_for() {
    let sim = Sim::start("910b3-8x1");
    let node = start_with(&sim, |config| {
        config.trusted_library = None;
        config.ld_library_path = Some("/nowhere/lib64".to_owned());
    });
    let Err(HardwareError::Library(text)) = node.driver.inventory(false).await else {
        panic!("a library was found");
    };
    assert!(
        text.contains("/nowhere/lib64") && text.contains("libdcmi.so was not found"),
        "{text}"
    );
}

#[tokio::test]
async fn a_sample_repeats_why_there_is_no_driver() {
    let sim = Sim::start("910b3-8x1");
    let node = start_with(&sim, |config| {
        config.trusted_library = Some("/nowhere.so".into());
    });
    for _ in 0..6 {
        let failed = node.driver.sample(false).await;
        assert!(
            matches!(failed, Err(HardwareError::Library(_))),
            "{failed:?}"
        );
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let sim = Sim::start("910b3-8x1");
    let node = start_with(&sim, |config| config.program = "/nowhere/agent".into());
    let Err(HardwareError::Host(text)) = node.driver.inventory(false).await else {
        panic!("it was started");
    };
    assert!(text.contains("/nowhere/agent"), "{text}");
}
