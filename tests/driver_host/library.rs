//! Which libraries are loaded, and what is said of those that are not.

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
    assert_eq!(inventory.missing_symbols, lacking);
    assert_eq!(inventory.chips[0].chip_name, "910B3");
    let samples = node.driver.sample(true).await.unwrap();
    // What the driver can never tell stands against nobody.
    let told: Vec<_> = samples.iter().map(|sample| &sample.processes).collect();
    assert!(
        told.iter().all(|told| **told == Some(Vec::new())),
        "{told:?}"
    );
    assert_eq!(
        health_of(&samples, 0),
        HealthReading::Level(HealthLevel::Normal)
    );
}

/// What the library lacks of what this agent calls, by interface.
const YOUNG: [(DcmiApi, &[&str]); 2] = [
    (
        DcmiApi::V1,
        &[
            "dcmi_get_device_chip_info_v2",
            "dcmi_get_mainboard_id",
            "dcmi_get_affinity_cpu_info_by_device_id",
        ],
    ),
    (
        DcmiApi::V2,
        &[
            "dcmiv2_get_mainboard_id",
            "dcmiv2_get_affinity_cpu_info_by_dev_id",
        ],
    ),
];

#[tokio::test]
async fn an_old_driver_names_what_it_lacks_and_gives_the_same_chips_but_for_the_mainboard() {
    for profile in sim::profiles() {
        let sim = Sim::start(&profile);
        let young = start(&sim).inventory().await;
        let node = start_with(&sim, |config| {
            config.trusted_library = Some(sim::old_library());
        });
        let old = node.inventory().await;
        assert!(old.is_complete(), "{profile}: {:?}", old.problems);
        let lacking = YOUNG.iter().find(|(api, _)| *api == old.api).unwrap().1;
        assert_eq!(old.missing_symbols, lacking, "{profile}");
        let boardless = |chip: &Chip| Chip {
            mainboard_id: None,
            ..chip.clone()
        };
        let expected: Vec<_> = young.chips.iter().map(boardless).collect();
        assert_eq!(old.chips, expected, "{profile}");
        assert!(old.chips.iter().all(|chip| chip.numa_nodes.len() == 1));
        let samples = node.sample().await;
        let normal = HealthReading::Level(HealthLevel::Normal);
        assert_eq!(samples.len(), old.chips.len(), "{profile}");
        assert!(samples.iter().all(|sample| sample.health == normal));
    }
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
