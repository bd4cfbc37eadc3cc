//! Every built-in machine: it starts, counts its chips, and answers as its family does.

use dcmi::profile::BUILT_IN;
use dcmi::wire::NEWER_SYMBOLS;

use crate::bench::{Hardware, Probe};

/// What the first chip of a machine and the machine as a whole answer.
struct Machine {
    profile: &'static str,
    /// Card ids; logic ids in the second generation.
    cards: &'static str,
    chips: usize,
    /// Chips on the first card, id of its microcontroller.
    first_card: &'static str,
    /// Chip name, NPU name, AI cores.
    chip: &'static str,
    board: &'static str,
    mainboard: &'static str,
    product: &'static str,
    affinity: &'static str,
    brother: &'static str,
    network: &'static str,
    ip: &'static str,
    /// Between the first chip and the last.
    link: &'static str,
    subscribe: &'static str,
    /// MB of high-bandwidth memory, MB of other memory.
    memory: [&'static str; 2],
    ecc: [&'static str; 2],
    /// Without those of chips.
    nodes: &'static [&'static str],
}

const NO: &str = "-8255";
const STANDARD: &[&str] = &["davinci_manager", "devmm_svm", "dvpp_cmdlist", "hisi_hdc"];
const UB: &[&str] = &[
    "davinci_manager",
    "dvpp_cmdlist",
    "hisi_hdc",
    "uburma/uburma0",
    "ummu/ummu0",
];

/// What most machines of the first generation have in common.
const COMMON: Machine = Machine {
    profile: "",
    cards: "0 1 2 3 4 5 6 7",
    chips: 8,
    first_card: "1 -1",
    chip: "",
    board: "",
    mainboard: NO,
    product: NO,
    affinity: NO,
    brother: NO,
    network: "0",
    ip: "-8023",
    link: NO,
    subscribe: "0",
    memory: [NO, NO],
    ecc: [NO, NO],
    nodes: STANDARD,
};

const MACHINES: &[Machine] = &[
    Machine {
        profile: "910a-8x1",
        chip: "910A 910A 30",
        board: "0x2",
        ip: "192.168.100.101",
        memory: ["32768", "15171"],
        ecc: ["0", "0"],
        ..COMMON
    },
    Machine {
        profile: "910b2-8x1",
        chip: "910B2 910B2 24",
        board: "0x30",
        mainboard: "0x2",
        affinity: "0-23",
        ip: "10.20.1.11",
        link: "3",
        memory: ["65536", NO],
        ecc: [NO, "0"],
        ..COMMON
    },
    Machine {
        profile: "910b3-8x1",
        chip: "910B3 910B3 20",
        board: "0x32",
        mainboard: "0x2",
        affinity: "0-31",
        ip: "10.20.0.11",
        link: "3",
        memory: ["65536", NO],
        ecc: [NO, "0"],
        ..COMMON
    },
    Machine {
        profile: "910b4-2x1",
        cards: "1 4",
        chips: 2,
        chip: "910B4 910B4 20",
        board: "0x28",
        mainboard: "0",
        affinity: "0-31",
        network: NO,
        ip: NO,
        link: "1",
        memory: ["32768", NO],
        ecc: [NO, "0"],
        ..COMMON
    },
    Machine {
        profile: "a3-8x2",
        chips: 16,
        first_card: "2 -1",
        chip: "Ascend910 9391 24",
        board: "0xb0",
        mainboard: "0x15",
        affinity: "0-79",
        brother: "4",
        ip: "10.30.1.11",
        link: "7",
        memory: ["65536", NO],
        ecc: [NO, "0"],
        ..COMMON
    },
    Machine {
        profile: "a3-8x2-arm",
        chips: 16,
        first_card: "2 -1",
        chip: "Ascend910 9391 24",
        board: "0xb0",
        mainboard: "0x1c",
        brother: "-1",
        ip: "10.30.1.11",
        link: "7",
        memory: ["65536", NO],
        ecc: [NO, "0"],
        ..COMMON
    },
    Machine {
        profile: "310p3-4x1",
        cards: "2 3 6 15104",
        chips: 4,
        first_card: "1 1",
        chip: "310P3 310P3 8",
        board: "0x64",
        product: "Atlas 300I Pro",
        memory: [NO, "21527"],
        ecc: ["0", NO],
        ..COMMON
    },
    Machine {
        profile: "310p3-4x1-48g",
        cards: "1 2 5 6",
        chips: 4,
        first_card: "1 1",
        chip: "310P3 310P3 8",
        board: "0x6e",
        product: "Atlas 300V Pro",
        memory: [NO, "43054"],
        ecc: ["0", NO],
        ..COMMON
    },
    Machine {
        profile: "mixed-310p-4x1",
        cards: "2 3 6 15104",
        chips: 4,
        first_card: "1 1",
        chip: "310P3 310P3 8",
        board: "0x64",
        product: "Atlas 300I Pro",
        memory: [NO, "21527"],
        ecc: ["0", NO],
        ..COMMON
    },
    Machine {
        profile: "310p-duo-2x2",
        cards: "1 5",
        chips: 4,
        first_card: "2 2",
        chip: "310P3 310P3 8",
        board: "0x97",
        product: "Atlas 300I Duo",
        memory: [NO, "43054"],
        ecc: ["0", NO],
        ..COMMON
    },
    Machine {
        profile: "310p-soc-1x1",
        cards: "0",
        chips: 1,
        chip: "310P3 310P3 8",
        board: "0x1c7",
        product: "Atlas 200I SoC A1",
        memory: [NO, "21527"],
        ecc: ["0", NO],
        nodes: &[
            "davinci_manager",
            "event_sched",
            "log_drv",
            "memory_bandwidth",
            "spi_smbus",
            "svm0",
            "sys",
            "ts_aisle",
            "upgrade",
            "user_config",
            "vdec",
            "vpc",
            "xsmem_dev",
        ],
        ..COMMON
    },
    Machine {
        profile: "310-1x4",
        cards: "5",
        chips: 4,
        first_card: "4 4",
        chip: "310 310 0",
        board: "0x7",
        product: "Atlas 300I",
        subscribe: NO,
        memory: [NO, "8192"],
        ..COMMON
    },
    Machine {
        profile: "310b-1x1",
        cards: "0",
        chips: 1,
        chip: "310B4 310B4 1",
        board: "0x5",
        product: "Atlas 200I A2",
        network: NO,
        ip: NO,
        memory: [NO, "8192"],
        nodes: &[
            "acodec",
            "ai",
            "ao",
            "davinci_manager",
            "davinci_manager_docker",
            "dvpp_cmdlist",
            "hdmi",
            "log_drv",
            "pngd",
            "svm0",
            "sys",
            "ts_aisle",
            "upgrade",
            "vdec",
            "venc",
            "vo",
            "vpc",
        ],
        ..COMMON
    },
    Machine {
        profile: "two-families",
        cards: "1 4 6 9",
        chips: 4,
        chip: "910B4 910B4 20",
        board: "0x28",
        mainboard: "0",
        affinity: "0-31",
        network: NO,
        ip: NO,
        link: "1",
        memory: ["32768", NO],
        ecc: [NO, "0"],
        ..COMMON
    },
    Machine {
        profile: "a5-8x1",
        chip: "Ascend950PR 9589 32",
        board: "0xa",
        mainboard: "0x25",
        link: "8",
        memory: ["131072", NO],
        nodes: UB,
        ..COMMON
    },
    Machine {
        profile: "a5-350-4x1",
        cards: "0 1 2 3",
        chips: 4,
        chip: "Ascend950PR 9589 32",
        board: "0xa",
        mainboard: "0x68",
        network: NO,
        link: "1",
        memory: ["131072", NO],
        nodes: UB,
        ..COMMON
    },
];

#[test]
fn every_machine_answers_as_its_family_does() {
    let mut names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let mut tested: Vec<&str> = MACHINES.iter().map(|machine| machine.profile).collect();
    names.sort_unstable();
    tested.sort_unstable();
    assert_eq!(
        tested, names,
        "every built-in profile is in the table, once"
    );
    for machine in MACHINES {
        let hardware = Hardware::start(machine.profile);
        let mut probe = Probe::start(&hardware);
        if machine.profile.starts_with("a5") {
            answers_in_second_generation(machine, &mut probe);
        } else {
            answers_in_first_generation(machine, &mut probe);
        }
        let mut nodes: Vec<String> = machine.nodes.iter().map(ToString::to_string).collect();
        nodes.extend((0..machine.chips).map(|phy| format!("davinci{phy}")));
        nodes.sort();
        assert_eq!(hardware.all_nodes(), nodes, "{}", machine.profile);
    }
}

#[test]
fn the_readme_names_every_machine_and_every_function_old_drivers_lack() {
    let readme = include_str!("../../README.md");
    for (name, _) in BUILT_IN {
        assert!(readme.contains(&format!("\n| `{name}` | ")), "{name}");
    }
    for name in NEWER_SYMBOLS {
        assert!(readme.contains(name), "{name}");
    }
}

fn answers_in_first_generation(machine: &Machine, probe: &mut Probe) {
    let name = machine.profile;
    assert_eq!(probe.ask("init2"), NO, "{name}");
    assert_eq!(probe.ask("init"), "0", "{name}");
    assert_eq!(
        probe.ask("list 64"),
        format!("0 {}", machine.cards),
        "{name}"
    );
    assert_eq!(probe.ask("count"), format!("0 {}", machine.chips), "{name}");
    let card = machine.cards.split(' ').next().unwrap();
    let ids = probe.ask(&format!("ids {card}"));
    assert_eq!(ids, format!("0 {} -1", machine.first_card), "{name}");
    let here = format!("{card} 0");
    let chip = probe.ask(&format!("chip {here}"));
    let words: Vec<&str> = chip.split(' ').collect();
    assert_eq!([words[0], words[1]], ["0", "Ascend"], "{name}");
    assert_eq!(
        [words[2], words[4], words[5]].join(" "),
        machine.chip,
        "{name}"
    );
    let mut expect = |command: &str, value: &str| {
        let answer = probe.ask(command);
        let found = match answer.strip_prefix("0 ") {
            Some(found) if value.starts_with("-8") => panic!("{name}: {command} gives {found}"),
            Some(found) => found,
            None => answer.split(' ').next().unwrap(),
        };
        let matches = found == value || found.starts_with(&format!("{value} "));
        assert!(matches, "{name}: {command} gives {answer}, not {value}");
    };
    expect(&format!("board {here}"), machine.board);
    expect(&format!("mainboard {here}"), machine.mainboard);
    expect(&format!("product {here} 64"), machine.product);
    expect(&format!("affinity {here}"), machine.affinity);
    expect(&format!("brother {here}"), machine.brother);
    expect(&format!("network {here}"), machine.network);
    expect(&format!("ip {here} 1 0 0"), machine.ip);
    expect(&format!("hbm {here}"), machine.memory[0]);
    expect(&format!("memory {here}"), machine.memory[1]);
    expect("subscribe -1 -1 0 0 0", machine.subscribe);
    for (kind, answer) in [(0, machine.ecc[0]), (2, machine.ecc[1])] {
        let found = probe.ask(&format!("ecc {here} {kind}"));
        assert_eq!(found.split(' ').next(), Some(answer), "{name} ecc {kind}");
    }
    let last = probe.ask(&format!("bylogic {}", machine.chips - 1));
    let link = probe.ask(&format!("link {here} {}", last.strip_prefix("0 ").unwrap()));
    assert_eq!(link.trim_start_matches("0 "), machine.link, "{name}");
}

fn answers_in_second_generation(machine: &Machine, probe: &mut Probe) {
    let name = machine.profile;
    assert_eq!(probe.ask("init"), NO, "{name}");
    assert_eq!(probe.ask("init2"), "0", "{name}");
    assert_eq!(
        probe.ask("list2 64"),
        format!("0 {}", machine.cards),
        "{name}"
    );
    assert_eq!(
        probe.ask("count2"),
        format!("0 {}", machine.chips),
        "{name}"
    );
    assert_eq!(
        probe.ask("chip2 0"),
        format!("0 {}", machine.chip),
        "{name}"
    );
    assert_eq!(
        probe.ask("board2 0"),
        format!("0 {} 0", machine.board),
        "{name}"
    );
    assert_eq!(
        probe.ask("mainboard2 0"),
        format!("0 {}", machine.mainboard),
        "{name}"
    );
    let network = probe.ask("network2 0");
    assert_eq!(network.split(' ').next(), Some(machine.network), "{name}");
    assert_eq!(
        probe.ask("hbm2 0"),
        format!("0 {}", machine.memory[0]),
        "{name}"
    );
    let link = probe.ask(&format!("link2 0 {}", machine.chips - 1));
    assert_eq!(link, format!("0 {}", machine.link), "{name}");
    assert_eq!(
        probe.ask("subscribe2 -1 0 0 0"),
        machine.subscribe,
        "{name}"
    );
}

#[test]
fn a_server_of_mixed_cards_names_each_product() {
    let hardware = Hardware::start("mixed-310p-4x1");
    let mut probe = Probe::ready(&hardware);
    for (card, product) in [
        (2, "Atlas 300I Pro"),
        (3, "Atlas 300I Pro"),
        (6, "Atlas 300V"),
        (15104, "Atlas 300V Pro"),
    ] {
        let answer = probe.ask(&format!("product {card} 0 64"));
        assert_eq!(answer, format!("0 {product}"));
    }
}

#[test]
fn two_families_answer_side_by_side_each_by_its_own_rules() {
    let hardware = Hardware::start("two-families");
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("chip 4 0"), "0 Ascend 910B4 V1 910B4 20 20");
    assert_eq!(probe.ask("chip 6 0"), "0 Ascend 310P3 V1 310P3 8 8");
    assert_eq!(probe.ask("pcie 4 0"), "0 19e5 d802 0000:41:00.0");
    assert_eq!(probe.ask("pcie 9 0"), "0 19e5 d500 0000:C1:00.0");
    assert_eq!(probe.ask("board 9 0"), "0 0x64 9");
    assert_eq!(probe.ask("product 4 0 64"), "-8255 ");
    assert_eq!(probe.ask("product 9 0 64"), "0 Atlas 300I Pro");
    assert_eq!(probe.ask("ids 4"), "0 1 -1 -1");
    assert_eq!(probe.ask("ids 9"), "0 1 1 -1");
    assert_eq!(probe.ask("hbm 9 0"), "-8255 0 0 0");
    assert_eq!(probe.ask("memory 9 0"), "0 21527 19804 2048 8");
    assert_eq!(probe.ask("memory 4 0"), "-8255 0 0 0 0");
    assert_eq!(probe.ask("link 1 0 9 0"), "0 1");
    assert_eq!(probe.ask("link 9 0 1 0"), "-8255");
    assert_eq!(probe.ask("label 9"), "0 NA SIM310P30003");
}

#[test]
fn sixty_four_chips_fit_on_a_node() {
    let hardware =
        Hardware::start_edited("a3-8x2", |text| text.replace("count = 16", "count = 64"));
    let mut probe = Probe::ready(&hardware);
    assert_eq!(probe.ask("count"), "0 64");
    assert_eq!(probe.ask("bylogic 63"), "0 31 1");
    assert_eq!(hardware.nodes().len(), 65);
}
