//! Every machine the simulator knows, with a present driver and with an old one, passes one suite:
//! discover, register, allocate each size, lose and regain health, restart, and keep to dies when
//! numbers move.

use std::collections::BTreeSet;

use super::plugin::preferred;
use super::pod::pod;
use super::testbed::{Node, PATIENCE, eventually, old_driver, programs, strings};

/// What an old driver's library lacks in both interfaces.
const YOUNG_CALL: &str = "get_mainboard_id";

struct Machine {
    profile: &'static str,
    resource: &'static str,
    /// What stands before the number in a plugin device id.
    prefix: &'static str,
    chips: u32,
}

const fn machine(
    profile: &'static str,
    resource: &'static str,
    prefix: &'static str,
    chips: u32,
) -> Machine {
    Machine {
        profile,
        resource,
        prefix,
        chips,
    }
}

macro_rules! suite {
    ($($name:ident: $machine:expr;)*) => {$(
        mod $name {
            #[test]
            fn every_profile_passes_the_suite() {
                super::suite(&$machine, false);
            }

            #[test]
            fn every_profile_passes_the_suite_with_an_old_driver() {
                super::suite(&$machine, true);
            }
        }
    )*};
}

suite! {
    server_910a: super::machine("910a-8x1", "huawei.com/Ascend910", "Ascend910", 8);
    server_910b2: super::machine("910b2-8x1", "huawei.com/Ascend910", "Ascend910", 8);
    server_910b3: super::machine("910b3-8x1", "huawei.com/Ascend910", "Ascend910", 8);
    cards_910b4: super::machine("910b4-2x1", "huawei.com/Ascend910", "Ascend910", 2);
    server_a3: super::machine("a3-8x2", "huawei.com/Ascend910", "Ascend910", 16);
    server_a3_arm: super::machine("a3-8x2-arm", "huawei.com/Ascend910", "Ascend910", 16);
    cards_310p3: super::machine("310p3-4x1", "huawei.com/Ascend310P", "Ascend310P", 4);
    cards_310p3_48g: super::machine("310p3-4x1-48g", "huawei.com/Ascend310P", "Ascend310P", 4);
    cards_310p_duo: super::machine("310p-duo-2x2", "huawei.com/Ascend310P", "Ascend310P", 4);
    soc_310p: super::machine("310p-soc-1x1", "huawei.com/Ascend310P", "Ascend310P", 1);
    card_310: super::machine("310-1x4", "huawei.com/Ascend310", "Ascend310", 4);
    board_310b: super::machine("310b-1x1", "huawei.com/Ascend310", "Ascend310", 1);
    server_a5: super::machine("a5-8x1", "huawei.com/npu", "npu", 8);
}

fn suite(machine: &Machine, old: bool) {
    let mut programs = programs();
    if old {
        programs.library = old_driver(&programs.library);
    }
    let mut node = Node::with(programs, machine.profile)
        .resource(machine.resource)
        .ready(u64::from(machine.chips));
    discovered(&node, machine, old);
    // Without any pod on the list a holder counts as proven gone only after ten minutes.
    let bystander = node.admit(&pod("bystander", 0));
    assert!(bystander.is_admitted(), "{bystander:?}");
    let pods = allocate_each_size(&node, machine);
    prefer_each_size(&node, machine);
    lose_and_regain_health(&node, machine, &pods);
    restart(&mut node, &pods);
    move_numbers(&mut node, machine, &pods);
    for pod in &pods {
        node.remove_named(&pod.name);
    }
    node.allocatable(u64::from(machine.chips));
    let all = node.admit_eventually("all", machine.chips);
    assert_eq!(all.len(), number(machine.chips));
}

fn discovered(node: &Node, machine: &Machine, old: bool) {
    let status = node.status();
    let chips = status["chips"].as_array().expect("chips");
    assert_eq!(chips.len(), number(machine.chips));
    for chip in chips {
        assert_eq!(chip["resource"], machine.resource, "{chip}");
        let id = format!("{}-{}", machine.prefix, chip["phy"]);
        assert_eq!(chip["plugin_device_id"], id, "{chip}");
    }
    let dies: BTreeSet<String> = chips.iter().map(|chip| chip["die"].to_string()).collect();
    assert_eq!(dies.len(), number(machine.chips), "every chip has a die");
    let missing = strings(&status["driver"]["missing_symbols"]);
    assert_eq!(
        missing.iter().any(|name| name.ends_with(YOUNG_CALL)),
        old,
        "{missing:?}"
    );
    let ids: BTreeSet<String> = node.allocatable_ids().into_iter().collect();
    let expected = (0..machine.chips)
        .map(|phy| format!("{}-{phy}", machine.prefix))
        .collect();
    assert_eq!(ids, expected);
}

struct Given {
    name: String,
    ids: Vec<String>,
}

/// Pods of 1, 2, 4 ... chips as long as they fit beside each other, which leaves one chip free where
/// the node has more than one.
fn allocate_each_size(node: &Node, machine: &Machine) -> Vec<Given> {
    let mut pods = Vec::new();
    let mut given: BTreeSet<String> = BTreeSet::new();
    let (mut size, mut left) = (1, machine.chips);
    while size <= left {
        let name = format!("of-{size}");
        let verdict = node.admit(&pod(&name, size));
        assert!(verdict.is_admitted(), "{verdict:?}");
        let ids = verdict.ids();
        assert_eq!(ids.len(), number(size), "{verdict:?}");
        assert_eq!(verdict.container("main").chips().len(), number(size));
        for id in &ids {
            assert!(given.insert(id.clone()), "{id} was given twice");
        }
        pods.push(Given { name, ids });
        left -= size;
        size *= 2;
    }
    pods
}

/// The free chips in every size: exactly the size, or no preference at all.
fn prefer_each_size(node: &Node, machine: &Machine) {
    let all: Vec<String> = (0..machine.chips)
        .map(|phy| format!("{}-{phy}", machine.prefix))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for size in 1..=machine.chips {
        let count = i32::try_from(size).expect("a small number");
        let chosen = preferred(node, &all, &[], count).expect("an answer");
        let distinct: BTreeSet<&String> = chosen.iter().collect();
        assert_eq!(distinct.len(), chosen.len());
        assert!(
            chosen.is_empty() || chosen.len() == number(size),
            "{size}: {chosen:?}"
        );
        let again = preferred(node, &all, &[], count);
        assert_eq!(Ok(chosen), again);
    }
}

fn lose_and_regain_health(node: &Node, machine: &Machine, pods: &[Given]) {
    let id = &pods[0].ids[0];
    let phy = phy_of(id);
    node.sim(&["health", &phy, "3"]);
    node.allocatable(u64::from(machine.chips) - 1);
    assert_eq!(node.listed_health(id).as_deref(), Some("Unhealthy"));
    node.sim(&["heal", &phy]);
    node.allocatable(u64::from(machine.chips));
    assert_eq!(node.listed_health(id).as_deref(), Some("Healthy"));
}

fn restart(node: &mut Node, pods: &[Given]) {
    let held = pods.iter().map(|pod| pod.ids.len()).sum();
    let before = node.holders_known(held);
    node.stage.kill_agent();
    node.start_agent();
    let after = node.holders_known(held);
    assert_eq!(places(&before), places(&after));
}

fn places(held: &[serde_json::Value]) -> BTreeSet<(String, String, String)> {
    held.iter()
        .map(|held| {
            let word = |name: &str| held[name].to_string();
            (word("plugin_device_id"), word("die"), word("pod"))
        })
        .collect()
}

fn move_numbers(node: &mut Node, machine: &Machine, pods: &[Given]) {
    let id = &pods[0].ids[0];
    let held: BTreeSet<&String> = pods.iter().flat_map(|pod| &pod.ids).collect();
    let free = (0..machine.chips)
        .map(|phy| format!("{}-{phy}", machine.prefix))
        .find(|id| !held.contains(id));
    let die = node.holding(id).expect("the record")["die"].clone();
    node.stage.kill_agent();
    match &free {
        Some(free) => node.sim(&["swap-serials", &phy_of(id), &phy_of(free)]),
        None => node.sim(&["replace", &phy_of(id)]),
    };
    node.start_agent();
    eventually("the held id is withheld", PATIENCE, || {
        (node.listed_health(id).as_deref() == Some("Unhealthy")).then_some(())
    });
    if let Some(free) = &free {
        eventually("the die's new number is withheld", PATIENCE, || {
            (node.listed_health(free).as_deref() == Some("Unhealthy")).then_some(())
        });
    }
    assert_eq!(node.holding(id).expect("the record")["die"], die);
}

fn phy_of(id: &str) -> String {
    id.rsplit('-').next().expect("a number").to_owned()
}

fn number(chips: u32) -> usize {
    usize::try_from(chips).expect("a small number")
}
