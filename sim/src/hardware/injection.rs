//! Fault rules: hold, delay, or answer a call with a chosen code.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::wire::{Caller, Quirk, Quirks, ReturnCode};

/// Most rules of all kinds together.
pub(super) const MAX_RULES: usize = 256;

/// Matches every symbol.
pub(super) const ANY_SYMBOL: &str = "*";

#[derive(Debug, Default)]
pub(super) struct Injection {
    holds: Vec<Scope>,
    answer_holds: Vec<Scope>,
    delays: Vec<(Scope, Duration)>,
    codes: Vec<CodeRule>,
    caller: Caller,
    quirks: Quirks,
}

/// Which calls a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scope {
    /// Exported name or `*`.
    pub(crate) symbol: String,
    /// Slot number of the chip, all when absent.
    pub(crate) chip: Option<usize>,
}

#[derive(Debug)]
struct CodeRule {
    scope: Scope,
    code: ReturnCode,
    left: Left,
}

/// How long a code rule lasts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Left {
    Always,
    Times(u32),
    Until(Instant),
}

impl Scope {
    fn covers(&self, symbol: &str, chips: &[usize]) -> bool {
        (self.symbol == ANY_SYMBOL || self.symbol == symbol)
            && self.chip.is_none_or(|chip| chips.contains(&chip))
    }
}

impl Injection {
    pub(super) fn is_full(&self) -> bool {
        let holds = self.holds.len() + self.answer_holds.len();
        holds + self.delays.len() + self.codes.len() >= MAX_RULES
    }

    /// Holds the call or, once it was carried out, only its answer.
    pub(super) fn hold(&mut self, scope: Scope, only_answer: bool) {
        let holds = if only_answer {
            &mut self.answer_holds
        } else {
            &mut self.holds
        };
        if !holds.contains(&scope) {
            holds.push(scope);
        }
    }

    /// Drops the holds that a release names; an absent part of the release names all.
    pub(super) fn release(&mut self, symbol: Option<&str>, chip: Option<usize>) {
        let stays = |hold: &Scope| {
            symbol.is_some_and(|symbol| hold.symbol != symbol)
                || (chip.is_some() && hold.chip != chip)
        };
        self.holds.retain(stays);
        self.answer_holds.retain(stays);
    }

    pub(super) fn set_delay(&mut self, scope: Scope, delay: Duration) {
        self.delays.retain(|(known, _)| *known != scope);
        if !delay.is_zero() {
            self.delays.push((scope, delay));
        }
    }

    pub(super) fn set_code(&mut self, scope: Scope, code: ReturnCode, left: Left) {
        self.codes.retain(|rule| rule.scope != scope);
        if code != ReturnCode::OK {
            self.codes.push(CodeRule { scope, code, left });
        }
    }

    pub(super) fn set_caller(&mut self, caller: Caller) {
        self.caller = caller;
    }

    pub(super) fn caller(&self) -> Caller {
        self.caller
    }

    pub(super) fn set_quirk(&mut self, quirk: Quirk, on: bool) {
        self.quirks = self.quirks.with(quirk, on);
    }

    pub(super) fn quirks(&self) -> Quirks {
        self.quirks
    }

    pub(super) fn is_held(&self, symbol: &str, chips: &[usize]) -> bool {
        self.holds.iter().any(|hold| hold.covers(symbol, chips))
    }

    pub(super) fn is_answer_held(&self, symbol: &str, chips: &[usize]) -> bool {
        let mut holds = self.answer_holds.iter();
        holds.any(|hold| hold.covers(symbol, chips))
    }

    pub(super) fn delay(&self, symbol: &str, chips: &[usize]) -> Option<Duration> {
        self.delays
            .iter()
            .find(|(scope, _)| scope.covers(symbol, chips))
            .map(|(_, delay)| *delay)
    }

    /// The code this call is to return. A rule for so many calls is used up by asking.
    pub(super) fn code(
        &mut self,
        symbol: &str,
        chips: &[usize],
        now: Instant,
    ) -> Option<ReturnCode> {
        self.codes.retain(|rule| match rule.left {
            Left::Always => true,
            Left::Times(times) => times > 0,
            Left::Until(end) => now < end,
        });
        let rule = self
            .codes
            .iter_mut()
            .find(|rule| rule.scope.covers(symbol, chips))?;
        if let Left::Times(times) = &mut rule.left {
            *times = times.saturating_sub(1);
        }
        Some(rule.code)
    }

    /// Every rule as a line for people.
    pub(super) fn describe(&self) -> Vec<String> {
        let holds = self
            .holds
            .iter()
            .map(|scope| format!("hang {}", scope.describe()));
        let answer_holds = self
            .answer_holds
            .iter()
            .map(|scope| format!("hang --answer {}", scope.describe()));
        let delays = self
            .delays
            .iter()
            .map(|(scope, delay)| format!("latency {} {} ms", scope.describe(), delay.as_millis()));
        let codes = self.codes.iter().map(|rule| {
            format!(
                "return-code {} {} {:?}",
                rule.scope.describe(),
                rule.code.0,
                rule.left
            )
        });
        let caller = (self.caller != Caller::Root).then(|| format!("caller {:?}", self.caller));
        let quirks = [
            ("ecc-36", self.quirks.long_ecc),
            ("garbage", self.quirks.garbage),
            ("unterminated", self.quirks.unterminated),
        ];
        let quirks = quirks
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| format!("quirk {name}"));
        let rules = holds.chain(answer_holds).chain(delays).chain(codes);
        rules.chain(caller).chain(quirks).collect()
    }
}

impl Scope {
    fn describe(&self) -> String {
        match self.chip {
            Some(chip) => format!("{} chip in slot {chip}", self.symbol),
            None => self.symbol.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn scope(symbol: &str, chip: Option<usize>) -> Scope {
        Scope {
            symbol: symbol.to_owned(),
            chip,
        }
    }

    #[test]
    fn a_rule_for_two_calls_ends_after_two() {
        let mut rules = Injection::default();
        let now = clock::now().instant;
        rules.set_code(scope("a", None), ReturnCode::INNER_ERROR, Left::Times(2));
        assert_eq!(rules.code("b", &[], now), None);
        assert_eq!(rules.code("a", &[], now), Some(ReturnCode::INNER_ERROR));
        assert_eq!(rules.code("a", &[1], now), Some(ReturnCode::INNER_ERROR));
        assert_eq!(rules.code("a", &[], now), None);
    }

    #[test]
    fn a_rule_for_a_period_ends_with_it() {
        let mut rules = Injection::default();
        let now = clock::now().instant;
        let end = now + Duration::from_secs(1);
        rules.set_code(scope("*", Some(3)), ReturnCode::TIMEOUT, Left::Until(end));
        assert_eq!(rules.code("a", &[3], now), Some(ReturnCode::TIMEOUT));
        assert_eq!(rules.code("a", &[2], now), None);
        assert_eq!(rules.code("a", &[3], end), None);
    }

    #[test]
    fn a_release_frees_only_what_it_names() {
        let mut rules = Injection::default();
        rules.hold(scope("a", Some(1)), false);
        rules.hold(scope("b", None), false);
        rules.release(Some("a"), Some(2));
        assert!(rules.is_held("a", &[1]));
        rules.release(Some("a"), None);
        assert!(!rules.is_held("a", &[1]));
        assert!(rules.is_held("b", &[7]));
        rules.release(None, None);
        assert!(!rules.is_held("b", &[7]));
    }
}
