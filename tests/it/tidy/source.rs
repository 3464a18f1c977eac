//! Rust files as tokens without comments and unit tests, and the parts of them that imports need: modules, `use` lines
//! and paths.

use std::{iter::Peekable, str::Chars};

/// One import of a `use` line: `use a::{b as c, d::*}` has two.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    pub path: Vec<String>,
    /// The name in this file; `*` for a glob.
    pub name: String,
    /// True for `pub use` and `pub(…) use`: a name for others, not a need of this file.
    pub is_public: bool,
}

/// The names that one file uses and defines.
#[derive(Debug, Default)]
pub struct Source {
    pub imports: Vec<Import>,
    /// Paths outside of `use` lines, with at least two segments.
    pub paths: Vec<Vec<String>>,
    pub children: Vec<String>,
    pub definitions: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Word(String),
    Separator,
    Sign(char),
    /// The value of a string literal.
    Text(String),
}

/// Returns the tokens of a file, without those of its unit tests.
pub fn tokens_of_program(text: &str) -> Vec<Token> {
    without_unit_tests(&tokens(text))
}

const DEFINING: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];

impl Source {
    pub fn parse(text: &str) -> Self {
        let tokens = tokens_of_program(text);
        let mut source = Self::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match token {
                Token::Word(word) if word == "use" => source.read_use(&tokens, at),
                Token::Word(word) if word == "mod" => source.read_module(&tokens, at),
                Token::Word(word) => source.read_path(word, &tokens, at),
                _ => at + 1,
            };
        }
        source
    }

    fn read_use(&mut self, tokens: &[Token], at: usize) -> usize {
        let before = at.checked_sub(1).map(|at| &tokens[at]);
        let is_public = match before {
            Some(Token::Word(word)) => word == "pub",
            // `pub(crate) use`.
            Some(Token::Sign(')')) => true,
            _ => false,
        };
        let mut reader = UseTree { tokens, at: at + 1, imports: Vec::new(), is_public };
        reader.tree(&[]);
        self.imports.append(&mut reader.imports);
        reader.at
    }

    fn read_module(&mut self, tokens: &[Token], at: usize) -> usize {
        if let (Some(Token::Word(name)), Some(Token::Sign(';'))) =
            (tokens.get(at + 1), tokens.get(at + 2))
        {
            self.children.push(name.clone());
        }
        at + 1
    }

    fn read_path(&mut self, first: &str, tokens: &[Token], at: usize) -> usize {
        let mut path = vec![first.to_owned()];
        let mut end = at + 1;
        while let (Some(Token::Separator), Some(Token::Word(word))) =
            (tokens.get(end), tokens.get(end + 1))
        {
            path.push(word.clone());
            end += 2;
        }
        if path.len() > 1 {
            self.paths.push(path);
        } else if DEFINING.contains(&first)
            && let Some(Token::Word(name)) =
                tokens[end..].iter().find(|it| **it != Token::Sign('!'))
        {
            self.definitions.push(name.clone());
        }
        end
    }
}

struct UseTree<'a> {
    tokens: &'a [Token],
    at: usize,
    imports: Vec<Import>,
    is_public: bool,
}

impl UseTree<'_> {
    fn next(&mut self) -> Option<&Token> {
        self.at += 1;
        self.tokens.get(self.at - 1)
    }

    /// Reads one branch, up to the sign after it.
    fn tree(&mut self, above: &[String]) {
        let mut path = above.to_vec();
        loop {
            match self.next().cloned() {
                Some(Token::Word(word)) if word == "as" => {
                    if let Some(Token::Word(name)) = self.next().cloned() {
                        self.add(path, name);
                    }
                    return self.skip_sign();
                }
                Some(Token::Word(word)) => path.push(word),
                Some(Token::Separator) => {}
                Some(Token::Sign('*')) => {
                    self.add(path, "*".to_owned());
                    return self.skip_sign();
                }
                Some(Token::Sign('{')) => return self.branches(&path),
                Some(Token::Sign(_) | Token::Text(_)) => {
                    self.at -= 1;
                    if path.len() > above.len() {
                        if path.last().is_some_and(|last| last == "self") {
                            path.pop();
                        }
                        let name = path.last().cloned().unwrap_or_default();
                        self.add(path, name);
                    }
                    return self.skip_sign();
                }
                None => return,
            }
        }
    }

    fn branches(&mut self, path: &[String]) {
        while self.tokens.get(self.at).is_some_and(|token| *token != Token::Sign('}')) {
            self.tree(path);
        }
        self.at += 1;
        self.skip_sign();
    }

    /// Skips a comma or semicolon; a closing brace is left to the enclosing branches.
    fn skip_sign(&mut self) {
        if matches!(self.tokens.get(self.at), Some(Token::Sign(',' | ';'))) {
            self.at += 1;
        }
    }

    fn add(&mut self, path: Vec<String>, name: String) {
        self.imports.push(Import { path, name, is_public: self.is_public });
    }
}

/// Drops each item after `#[cfg(test)]`.
fn without_unit_tests(tokens: &[Token]) -> Vec<Token> {
    let sign = Token::Sign;
    let word = |word: &str| Token::Word(word.to_owned());
    let mark = [sign('#'), sign('['), word("cfg"), sign('('), word("test"), sign(')'), sign(']')];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].starts_with(&mark) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += mark.len();
        let mut depth = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                Token::Sign(';') if depth == 0 => break,
                _ => {}
            }
        }
    }
    kept
}

fn tokens(text: &str) -> Vec<Token> {
    let mut chars = text.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => _ = chars.by_ref().find(|c| *c == '\n'),
            '"' => tokens.push(Token::Text(read_string(&mut chars))),
            '\'' => skip_char_or_lifetime(&mut chars),
            ':' if chars.next_if_eq(&':').is_some() => tokens.push(Token::Separator),
            c if c.is_alphabetic() || c == '_' => {
                let mut word = c.to_string();
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                if word == "r" && matches!(chars.peek(), Some('"' | '#')) {
                    tokens.extend(read_raw_string(&mut chars).map(Token::Text));
                } else {
                    tokens.push(Token::Word(word));
                }
            }
            c if c.is_whitespace() => {}
            c => tokens.push(Token::Sign(c)),
        }
    }
    tokens
}

fn read_string(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                // The literal goes on with the next word.
                Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                escaped => text.extend(escaped),
            },
            '"' => break,
            c => text.push(c),
        }
    }
    text
}

/// Reads a raw string. `r#type` is a word, not a string.
fn read_raw_string(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut hashes = 0;
    while chars.next_if_eq(&'#').is_some() {
        hashes += 1;
    }
    chars.next_if_eq(&'"')?;
    let mut text = String::new();
    while let Some(c) = chars.next() {
        if c == '"' && (0..hashes).all(|_| chars.next_if_eq(&'#').is_some()) {
            break;
        }
        text.push(c);
    }
    Some(text)
}

/// Skips a literal such as `'a'` or `'\n'`, or a lifetime such as `'a`.
fn skip_char_or_lifetime(chars: &mut Peekable<Chars<'_>>) {
    let Some(c) = chars.next() else { return };
    if c == '\\' {
        chars.next();
        _ = chars.by_ref().find(|c| *c == '\'');
    } else {
        chars.next_if_eq(&'\'');
    }
}

#[test]
fn imports_paths_and_modules_are_parsed() {
    let source = Source::parse(
        r#"
        // use crate::comment;
        pub mod child;
        use crate::{a::{self, b as c}, d::*};
        pub(crate) use child::Name;
        fn f<'a>(x: &'a str) -> super::g::H { let _ = "use crate::text;"; child::run('x') }
        #[cfg(test)]
        mod tests { use crate::only_in_tests; }
        "#,
    );
    let imports: Vec<_> = source
        .imports
        .iter()
        .map(|it| format!("{} {} {}", it.path.join("::"), it.name, it.is_public))
        .collect();
    assert_eq!(
        imports,
        ["crate::a a false", "crate::a::b c false", "crate::d * false", "child::Name Name true"]
    );
    assert_eq!(source.children, ["child"]);
    assert_eq!(source.definitions, ["f"]);
    assert_eq!(source.paths, [vec!["super", "g", "H"], vec!["child", "run"]]);
}
