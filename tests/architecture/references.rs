//! What a file refers to: rooms of this crate, third-party crates, `unsafe`.

use std::collections::BTreeSet;

use super::tokens::{Kind, Token, tokens};

/// One reference with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) line: usize,
    pub(crate) target: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A name directly below the crate's root.
    Room(String),
    /// Everything below the crate's root.
    WholeCrate,
    /// A dependency.
    Dependency(String),
    Unsafe,
}

/// References of a file whose module lies `depth` levels below the crate's root. Paths count wherever
/// they stand, not in `use` lines only.
pub(crate) fn references(
    text: &str,
    depth: usize,
    dependencies: &BTreeSet<String>,
) -> Vec<Reference> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut nesting = Nesting::new(depth);
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        nesting.step(&tokens, at);
        let Kind::Word(word) = token.kind else {
            continue;
        };
        let starts_a_path = before.is_none_or(|before| before.kind != Kind::PathSeparator);
        let led_by_use = before.is_some_and(|before| before.kind == Kind::Word("use"));
        let goes_on = is(&tokens, at + 1, Kind::PathSeparator);
        let mut push = |target| {
            let line = token.line;
            found.push(Reference { line, target });
        };
        match word {
            "unsafe" => push(Target::Unsafe),
            "crate" | "ascend_agent" if goes_on => {
                below_the_root(&tokens, at + 2).into_iter().for_each(push);
            }
            "super" if goes_on && starts_a_path => {
                let steps = super_steps(&tokens, at);
                if steps >= nesting.depth {
                    below_the_root(&tokens, at + 2 * steps)
                        .into_iter()
                        .for_each(push);
                }
            }
            _ if dependencies.contains(word) && starts_a_path && (goes_on || led_by_use) => {
                push(Target::Dependency(word.to_owned()));
            }
            _ => {}
        }
    }
    found
}

fn is(tokens: &[Token<'_>], at: usize, kind: Kind<'_>) -> bool {
    tokens.get(at).is_some_and(|token| token.kind == kind)
}

fn super_steps(tokens: &[Token<'_>], start: usize) -> usize {
    let mut steps = 0;
    while is(tokens, start + 2 * steps, Kind::Word("super"))
        && is(tokens, start + 2 * steps + 1, Kind::PathSeparator)
    {
        steps += 1;
    }
    steps
}

/// The names that a path enters directly below the root: one, a star, or a group of them.
fn below_the_root(tokens: &[Token<'_>], at: usize) -> Vec<Target> {
    let entry = |at: usize| {
        let kind = tokens.get(at)?.kind;
        if let Kind::Word(word) = kind {
            return Some(Target::Room(word.to_owned()));
        }
        (kind == Kind::Star).then_some(Target::WholeCrate)
    };
    if !is(tokens, at, Kind::Open) {
        return entry(at).into_iter().collect();
    }
    let mut entries = Vec::new();
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        depth += usize::from(token.kind == Kind::Open);
        depth -= usize::from(token.kind == Kind::Close);
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(token.kind, Kind::Open | Kind::Comma) {
            entries.extend(entry(place + 1));
        }
    }
    entries
}

/// Follows `mod name { ... }` blocks, because `super` counts from the innermost module.
struct Nesting {
    depth: usize,
    /// One entry per open brace: whether it opened a module.
    braces: Vec<bool>,
}

impl Nesting {
    fn new(depth: usize) -> Self {
        Self {
            depth,
            braces: Vec::new(),
        }
    }

    fn step(&mut self, tokens: &[Token<'_>], at: usize) {
        let kind = tokens[at].kind;
        if kind == Kind::Open {
            let opens_module = at >= 2 && is(tokens, at - 2, Kind::Word("mod"));
            self.braces.push(opens_module);
            self.depth += usize::from(opens_module);
        } else if kind == Kind::Close {
            let closes_module = self.braces.pop().unwrap_or(false);
            self.depth -= usize::from(closes_module);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str, depth: usize) -> Vec<Target> {
        let dependencies = BTreeSet::from(["tokio".to_owned(), "serde".to_owned()]);
        references(text, depth, &dependencies)
            .into_iter()
            .map(|reference| reference.target)
            .collect()
    }

    fn room(name: &str) -> Target {
        Target::Room(name.to_owned())
    }

    #[test]
    fn finds_rooms_in_use_lines_groups_and_expressions() {
        for text in [
            "use crate::store::Store;",
            "use crate::{store};",
            "pub use crate::store as s;",
            "fn f() { crate::store::open() }",
            "fn f(x: &crate::store::Store) {}",
            "fn main() { ascend_agent::store::open() }",
        ] {
            assert_eq!(targets(text, 1), vec![room("store")], "{text}");
        }
        let group = "use crate::{domain::{ids, time}, ports::Clock, store};";
        let expected = vec![room("domain"), room("ports"), room("store")];
        assert_eq!(targets(group, 1), expected);
    }

    #[test]
    fn super_leads_to_another_room_only_past_the_root() {
        assert_eq!(targets("use super::store::X;", 1), vec![room("store")]);
        assert_eq!(targets("use super::store::X;", 2), vec![]);
        assert_eq!(
            targets("use super::super::store::X;", 2),
            vec![room("store")]
        );
        let inline = "mod tests { use super::super::x; use super::super::super::store::X; }";
        assert_eq!(targets(inline, 2), vec![room("store")]);
    }

    #[test]
    fn finds_dependencies_but_not_names_that_only_look_like_them() {
        let tokio = vec![Target::Dependency("tokio".to_owned())];
        for text in [
            "use tokio::sync;",
            "use tokio;",
            "tokio::pin!(x);",
            "#[tokio::test]",
        ] {
            assert_eq!(targets(text, 1), tokio, "{text}");
        }
        for text in [
            "let tokio = 1;",
            "use self::x::tokio::y;",
            "// use tokio::sync;",
        ] {
            assert_eq!(targets(text, 1), vec![], "{text}");
        }
    }

    #[test]
    fn finds_the_whole_crate_and_unsafe() {
        assert_eq!(targets("use crate::*;", 1), vec![Target::WholeCrate]);
        assert_eq!(targets("unsafe { f() }", 1), vec![Target::Unsafe]);
        assert_eq!(targets("#![deny(unsafe_code)] // unsafe", 1), vec![]);
    }
}
