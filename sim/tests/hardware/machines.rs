//! Built-in machines with something added or another board.

use crate::bench::Hardware;

/// A built-in machine with these lines behind its profile.
pub(crate) fn with(profile: &str, lines: &'static str) -> Hardware {
    Hardware::start_edited(profile, move |text| format!("{text}\n{lines}"))
}

/// A 910B3 server with another board id and number of AI cores.
pub(crate) fn on_910b(board: &'static str, cores: u32) -> Hardware {
    Hardware::start_edited("910b3-8x1", move |text| {
        text.replace("board_id = 0x32", &format!("board_id = {board}"))
            .replace("aicore_count = 20", &format!("aicore_count = {cores}"))
    })
}

/// An A3 server on another mainboard.
pub(crate) fn on_a3(mainboard: &'static str) -> Hardware {
    Hardware::start_edited("a3-8x2", move |text| {
        text.replace(
            "mainboard_id = 0x15",
            &format!("mainboard_id = {mainboard}"),
        )
    })
}
