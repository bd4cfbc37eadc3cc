//! Families times modes.

use std::collections::BTreeSet;

use super::super::names::NameEntry;
use super::*;
use crate::domain::ids::{CardId, DeviceId, LogicId};

fn chip(family: ChipFamily, phy: u32, product_type: Option<&str>) -> Chip {
    Chip {
        die: DieId([phy + 1, 0, 0, 0, 7]),
        card: CardId(0),
        device: DeviceId(0),
        logic: LogicId(phy),
        phy: PhyId(phy),
        family,
        product: Product::Ascend310P,
        chip_name: String::new(),
        ai_cores: None,
        board_id: None,
        mainboard_id: None,
        super_pod_type: None,
        pci: None,
        numa_nodes: BTreeSet::new(),
        product_type: product_type.map(str::to_owned),
    }
}

fn offering(mode: Mode) -> Offering {
    Offering::new("huawei.com", mode, CustomNames::default()).expect("valid")
}

fn texts(offering: &Offering, chip: &Chip) -> Vec<String> {
    let places = offering.places(chip).expect("offered");
    places
        .iter()
        .map(|place| format!("{} {}", place.resource, place.id))
        .collect()
}

fn shared(count: u16) -> Mode {
    Mode {
        share_count: count,
        ..Mode::default()
    }
}

const MIXED: Mode = Mode {
    fusion_director: false,
    share_count: 1,
    mixed_insert: true,
};

const FUSION_DIRECTOR: Mode = Mode {
    fusion_director: true,
    share_count: 1,
    mixed_insert: false,
};

#[test]
fn whole_chips_have_the_vendors_names() {
    for (family, place) in [
        (ChipFamily::Ascend910, "huawei.com/Ascend910 Ascend910-3"),
        (ChipFamily::Ascend910B, "huawei.com/Ascend910 Ascend910-3"),
        (ChipFamily::Ascend910A3, "huawei.com/Ascend910 Ascend910-3"),
        (ChipFamily::Ascend950, "huawei.com/npu npu-3"),
        (ChipFamily::Ascend310, "huawei.com/Ascend310 Ascend310-3"),
        (ChipFamily::Ascend310B, "huawei.com/Ascend310 Ascend310-3"),
        (ChipFamily::Ascend310P, "huawei.com/Ascend310P Ascend310P-3"),
    ] {
        let chip = chip(family, 3, None);
        assert_eq!(texts(&offering(Mode::default()), &chip), [place]);
    }
}

#[test]
fn fusion_director_renames_310_alone() {
    let offering = offering(FUSION_DIRECTOR);
    assert_eq!(
        texts(&offering, &chip(ChipFamily::Ascend310, 3, None)),
        ["huawei.com/davinci-mini davinci-mini-3"]
    );
    let edge = chip(ChipFamily::Ascend310B, 0, None);
    assert_eq!(
        texts(&offering, &edge),
        ["huawei.com/Ascend310 Ascend310-0"]
    );
    assert_eq!(offering.without_effect(&[edge]).len(), 1);
}

#[test]
fn shares_are_numbered_from_zero_on_310p_and_310b() {
    for (family, base) in [
        (ChipFamily::Ascend310P, "Ascend310P"),
        (ChipFamily::Ascend310B, "Ascend310"),
    ] {
        let chip = chip(family, 3, None);
        let expected: Vec<String> = (0..3)
            .map(|slot| format!("huawei.com/{base} {base}-3-{slot}"))
            .collect();
        assert_eq!(texts(&offering(shared(3)), &chip), expected);
        assert_eq!(
            offering(shared(100)).places(&chip).expect("offered").len(),
            100
        );
    }
}

#[test]
fn a_310_is_not_shared_and_other_families_stay_whole() {
    let offering = offering(shared(2));
    let refused = offering.places(&chip(ChipFamily::Ascend310, 1, None));
    let Err(refusal @ ChipRefused::NotShared { .. }) = refused else {
        panic!("shared: {refused:?}");
    };
    assert!(refusal.to_string().contains("share_count = 2"), "{refusal}");
    let whole = chip(ChipFamily::Ascend910B, 1, None);
    assert_eq!(
        texts(&offering, &whole),
        ["huawei.com/Ascend910 Ascend910-1"]
    );
    assert_eq!(offering.without_effect(&[whole]).len(), 1);
    let cut = chip(ChipFamily::Ascend310P, 1, None);
    assert_eq!(offering.without_effect(&[cut]), [""; 0]);
}

#[test]
fn mixed_insert_names_each_card_by_its_product_type() {
    for (kind, name) in [
        ("Atlas 300V", "V"),
        ("Atlas 300V Pro", "VPro"),
        ("Atlas 300I Pro", "IPro"),
    ] {
        let chip = chip(ChipFamily::Ascend310P, 4, Some(kind));
        assert_eq!(
            texts(&offering(MIXED), &chip),
            [format!("huawei.com/Ascend310P-{name} Ascend310P-{name}-4")]
        );
    }
}

#[test]
fn mixed_insert_refuses_any_other_card_by_chip_and_product() {
    for (family, kind, named) in [
        (
            ChipFamily::Ascend310P,
            Some("Atlas 300I Duo"),
            "Atlas 300I Duo",
        ),
        (ChipFamily::Ascend310P, None, "unknown"),
        (ChipFamily::Ascend910B, None, "unknown"),
    ] {
        let refused = offering(MIXED).places(&chip(family, 4, kind));
        let text = refused.expect_err("refused").to_string();
        assert!(text.contains("chip 4") && text.contains(named), "{text}");
    }
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    for mode in [
        Mode {
            share_count: 2,
            ..MIXED
        },
        Mode {
            share_count: 2,
            ..FUSION_DIRECTOR
        },
        shared(0),
        shared(101),
    ] {
        let refused = Offering::new("huawei.com", mode, CustomNames::default());
        assert!(refused.is_err(), "{mode:?}");
    }
}

#[test]
fn custom_names_compose_with_every_mode() {
    let entry = NameEntry {
        resource_type: "Ascend310P".to_owned(),
        device_public_type: "example.com/npu310p".to_owned(),
        device_public_name_pre: "acme-npu".to_owned(),
        pod_configuration_name: "example.com/pod-config".to_owned(),
    };
    let names = CustomNames::new(&[entry], "huawei.com").expect("valid");
    let with = |mode| Offering::new("huawei.com", mode, names.clone()).expect("valid");
    let card = chip(ChipFamily::Ascend310P, 4, Some("Atlas 300V Pro"));
    for (mode, place) in [
        (Mode::default(), "example.com/npu310p acme-npu-4"),
        (shared(2), "example.com/npu310p acme-npu-4-0"),
        (MIXED, "example.com/npu310p-VPro acme-npu-VPro-4"),
    ] {
        assert_eq!(
            texts(&with(mode), &card).first().map(String::as_str),
            Some(place)
        );
    }
    let other = chip(ChipFamily::Ascend950, 4, None);
    assert_eq!(
        texts(&with(Mode::default()), &other),
        ["huawei.com/npu npu-4"]
    );
    assert_eq!(with(Mode::default()).without_effect(&[other]).len(), 2);
}

#[test]
fn an_id_of_any_mode_is_told_to_belong_to_its_chip() {
    let offering = offering(Mode::default());
    let card = chip(ChipFamily::Ascend310P, 4, None);
    let id = |text: &str| PluginDeviceId::new(text).expect("valid");
    for text in ["Ascend310P-4", "Ascend310P-4-11", "Ascend310P-VPro-4"] {
        assert!(offering.may_name(&id(text), &card), "{text}");
    }
    for text in [
        "Ascend310P-14",
        "Ascend310P-4-1-1",
        "Ascend310P-11-4",
        "Ascend310P-2c.1cpu-100-4",
        "Ascend310P-2c.1cpu-4-0",
        "Ascend310-4",
        "npu-core-4",
    ] {
        assert!(!offering.may_name(&id(text), &card), "{text}");
    }
}
