//! What the C side sees. Sizes and offsets are asserted where the test program compiles.

use dcmi::wire::SYMBOLS;

use crate::bench::{Hardware, Probe};

#[test]
fn every_function_of_the_header_is_exported_and_the_reverse() {
    let header = include_str!("../../include/dcmi.h");
    let mut declared: Vec<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("int ")?.split_once('('))
        .map(|(name, _)| name)
        .collect();
    declared.sort_unstable();
    assert_eq!(declared, SYMBOLS);
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::start(&hardware);
    for name in declared {
        assert_eq!(probe.ask(&format!("symbol {name}")), "present", "{name}");
    }
    assert_eq!(
        probe.ask("symbol dcmi_get_device_multi_utilization_rate_period"),
        "absent"
    );
}

#[test]
fn null_pointers_are_invalid_parameters() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("null 0 0"), "0 -8001 -8001 -8001 -8001 -8001");
    assert_eq!(
        probe.ask("null-rows 0 0"),
        "-8001 -8001 -8001 -8001 -8001 -8001"
    );
}

#[test]
fn ecc_info_is_28_bytes_and_no_more_is_written() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("ecc 0 0 2"), "0 12");
    assert_eq!(probe.ask("ecc 0 0 0"), "-8255 12");
    assert_eq!(probe.ask("ecc 0 0 6"), "-8001 12");
}

#[test]
fn a_text_that_fills_its_field_has_no_end_mark() {
    let name = "N".repeat(32);
    let hardware = Hardware::start_edited("910b3-8x1", |text| {
        text.replace("chip_name = \"910B3\"", &format!("chip_name = \"{name}\""))
    });
    let mut probe = Probe::ready(&hardware);
    assert_eq!(
        probe.ask("chip 0 0"),
        format!("0 Ascend {name} V1 910B3 20 20")
    );
}

#[test]
fn the_library_unloads_whole_and_leaves_no_connection() {
    let hardware = Hardware::start("910b3-8x1");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("health 0 0"), "0 0");
    assert_eq!(hardware.calls()["processes"][0]["pid"], probe.pid());
    assert_eq!(probe.ask("unload"), "0 gone");
    crate::bench::eventually(|| hardware.calls()["processes"].as_array().unwrap().is_empty());
}
