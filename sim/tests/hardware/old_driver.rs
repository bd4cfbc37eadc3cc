//! The library of an old driver: what it lacks, and that what remains answers for every machine.

use dcmi::profile::BUILT_IN;
use dcmi::wire::{NEWER_SYMBOLS, SYMBOLS};

use crate::bench::{Hardware, Probe};

#[test]
fn an_old_library_lacks_the_newer_functions_and_no_other() {
    let hardware = Hardware::start("910b3-8x1");
    let mut old = Probe::start_old(&hardware);
    let mut present = Probe::start(&hardware);
    for name in SYMBOLS {
        let expected = if NEWER_SYMBOLS.contains(name) {
            "absent"
        } else {
            "present"
        };
        assert_eq!(old.ask(&format!("symbol {name}")), expected, "{name}");
        assert_eq!(present.ask(&format!("symbol {name}")), "present", "{name}");
    }
    assert!(NEWER_SYMBOLS.iter().all(|name| SYMBOLS.contains(name)));
}

#[test]
fn the_old_chip_info_names_every_machine_of_the_first_generation() {
    for (name, text) in BUILT_IN {
        if text.contains("api = \"v2\"") {
            continue;
        }
        let hardware = Hardware::start(name);
        let mut new = Probe::ready(&hardware);
        let mut old = Probe::start_old(&hardware);
        assert_eq!(old.ask("init"), "0", "{name}");
        let card = new.ask("bylogic 0");
        let place = card.strip_prefix("0 ").unwrap();
        assert_eq!(old.ask("bylogic 0"), card, "{name}");
        assert_eq!(old.ask(&format!("health {place}")), "0 0", "{name}");
        let facts = old.ask(&format!("oldchip {place}"));
        let words: Vec<&str> = facts.split(' ').collect();
        let full = new.ask(&format!("chip {place}"));
        let expected: Vec<&str> = full.split(' ').collect();
        assert_eq!(words[..3], expected[..3], "{name}");
        assert_eq!(words[3], expected[6], "{name}");
    }
}

#[test]
fn the_second_generation_has_an_old_form_too() {
    for name in ["a5-8x1", "a5-350-4x1"] {
        let hardware = Hardware::start(name);
        let mut old = Probe::start_old(&hardware);
        assert_eq!(old.ask("init"), "-8255");
        assert_eq!(old.ask("init2"), "0");
        assert_eq!(old.ask("chip2 0"), "0 Ascend950PR 9589 32");
        assert_eq!(old.ask("health2 0"), "0 0");
    }
}
