//! Values of sensors: fixed by a request, fixed by the profile, or a seeded wave.

use std::f64::consts::TAU;

use super::{Chip, Hardware};
use crate::profile::{Reading, Wave};

impl Hardware {
    /// The reading of that name for the chip; `None` when the family does not have it.
    pub(super) fn reading(&self, chip: &Chip, name: &str, unix_ms: u64) -> Option<i64> {
        let known = self.kind(chip).readings.get(name)?;
        let value = chip
            .fixed
            .get(name)
            .copied()
            .unwrap_or_else(|| match known {
                Reading::Fixed(value) => *value,
                Reading::Wave(wave) => follow(*wave, &chip.serial, name, unix_ms),
            });
        Some(value)
    }
}

/// The wave's value. Its phase comes from serial and name, so chips differ and runs repeat.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a wave needs no more than 52 bits and stays within middle and swing"
)]
fn follow(wave: Wave, serial: &str, name: &str, unix_ms: u64) -> i64 {
    let period_ms = u64::from(wave.period_s.max(1)) * 1000;
    let phase = crate::profile::phase_of(serial, name) % period_ms;
    let turn = ((unix_ms % period_ms) + phase) as f64 / period_ms as f64;
    wave.middle + ((turn * TAU).sin() * wave.swing as f64).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAVE: Wave = Wave {
        middle: 50,
        swing: 10,
        period_s: 60,
    };

    #[test]
    fn a_wave_stays_within_its_swing_and_repeats() {
        for step in 0..120_u64 {
            let value = follow(WAVE, "A", "power", step * 1000);
            assert!((40..=60).contains(&value));
            assert_eq!(value, follow(WAVE, "A", "power", (step + 60) * 1000));
        }
    }

    #[test]
    fn chips_do_not_move_in_step() {
        let all_equal = (0..60_u64)
            .all(|s| follow(WAVE, "A", "power", s * 1000) == follow(WAVE, "B", "power", s * 1000));
        assert!(!all_equal);
    }
}
