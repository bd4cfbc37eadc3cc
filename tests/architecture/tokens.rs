//! Just enough of Rust's lexical rules to find paths: comments, strings and character literals are
//! skipped, the rest becomes words and the few signs that matter.

/// One token with its line, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) line: usize,
    pub(crate) kind: Kind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    Word(&'a str),
    PathSeparator,
    Open,
    Close,
    Comma,
    Star,
    /// Any other sign.
    Sign,
}

pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (length, kind) = next(rest, first);
        let (taken, behind) = rest.split_at(length);
        found.extend(kind.map(|kind| Token { line, kind }));
        line += taken.matches('\n').count();
        rest = behind;
    }
    found
}

/// Length in bytes of what stands at the front, and its token if it is one.
fn next(rest: &str, first: char) -> (usize, Option<Kind<'_>>) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if let Some(length) = raw_string(rest) {
        return (length, None);
    }
    if first == '"' {
        return (quoted(rest, '"'), None);
    }
    if first == '\'' {
        return (character_or_lifetime(rest), None);
    }
    if first.is_alphabetic() || first == '_' {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        return (word.len(), Some(Kind::Word(word)));
    }
    if first.is_whitespace() || first.is_ascii_digit() {
        return (first.len_utf8(), None);
    }
    if rest.starts_with("::") {
        return (2, Some(Kind::PathSeparator));
    }
    let kind = match first {
        '{' => Kind::Open,
        '}' => Kind::Close,
        ',' => Kind::Comma,
        '*' => Kind::Star,
        _ => Kind::Sign,
    };
    (first.len_utf8(), Some(kind))
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// `r"..."`, `r#"..."#` and the same with `b` or `c` in front.
fn raw_string(rest: &str) -> Option<usize> {
    let unmarked = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let after = unmarked.strip_prefix('r')?;
    let inner = after.trim_start_matches('#');
    let hashes = after.len() - inner.len();
    let body = inner.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(rest.len() - body.len() + length)
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + letter.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn character_or_lifetime(rest: &str) -> usize {
    let mut letters = rest.chars().skip(1);
    let (content, close) = (letters.next(), letters.next());
    if content == Some('\\') || close == Some('\'') {
        quoted(rest, '\'')
    } else {
        1
    }
}

#[test]
fn comments_and_literals_hold_no_tokens() {
    for text in [
        "// a::b\n",
        "/* a /* b */ c */",
        "\"a \\\" b\"",
        "r#\"a \" b\"#",
        "br\"a\"",
        "'\"'",
        "'\\''",
        "17",
    ] {
        let words: Vec<_> = tokens(text).into_iter().map(|token| token.kind).collect();
        let named = words
            .iter()
            .any(|kind| matches!(kind, Kind::Word(word) if *word != "b"));
        assert!(!named, "{text:?}: {words:?}");
    }
}

#[test]
fn a_lifetime_does_not_hide_what_follows() {
    let kinds: Vec<_> = tokens("&'a x::y")
        .into_iter()
        .map(|token| token.kind)
        .collect();
    assert!(kinds.contains(&Kind::Word("x")) && kinds.contains(&Kind::Word("y")));
}

#[test]
fn lines_are_counted_through_comments_and_strings() {
    let found = tokens("/* 1\n2 */ \"3\n\" x");
    assert_eq!(found.last().map(|token| token.line), Some(3));
}
