//! YAML, with the scalars of Envoy's loader: the words and numbers of YAML 1.1 in their places, and no merge keys.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Tag};

use super::tree::{Number, Tree};

/// The deepest nesting, which is also the parser's own limit for a flow.
const DEPTH: usize = 200;

/// How much larger than the text its tree may be, in bytes of scalars and values: aliases repeat what they name.
const GROWTH: usize = 20;

/// What a tree may have at least, so that small texts may repeat large parts.
const LEAST: usize = 1 << 20;

/// The tag of keys whose entry is left out.
const IGNORE: &str = "ignore";

impl Tree {
    /// Reads the first document of a YAML text. A text without one is [`Tree::Null`].
    ///
    /// # Errors
    ///
    /// One line that says why the text is no YAML, or which limit it exceeds.
    pub fn from_yaml(yaml: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(yaml).map_err(|error| error.to_string())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let left = (text.len() * GROWTH).max(LEAST);
        let mut builder = Builder { anchors: HashMap::new(), open: Vec::new(), left, limit: left };
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| error.to_string())?;
            let at = |error: String| format!("{error} at line {}", span.start.line());
            if let Some(tree) = builder.take(event).map_err(at)? {
                return Ok(tree); // whatever follows, good or bad
            }
        }
        Ok(Self::Null)
    }
}

struct Builder {
    /// The anchored values so far, each with its size.
    anchors: HashMap<usize, (Tree, usize)>,
    /// The collections that are not complete yet.
    open: Vec<Open>,
    /// What the tree may still grow.
    left: usize,
    limit: usize,
}

struct Open {
    anchor: usize,
    /// `left` at the start.
    left: usize,
    is_ignored: bool,
    kind: Kind,
}

enum Kind {
    List(Vec<Tree>),
    /// A map, and the key whose value comes next, or `Some(None)` if the entry is ignored.
    Map(Vec<(String, Tree)>, Option<Option<String>>),
}

impl Builder {
    /// Takes an event. Returns the first document when it is complete.
    fn take(&mut self, event: Event<'_>) -> Result<Option<Tree>, String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let size = text.len() + size_of::<Tree>();
                self.grow(size)?;
                let is_ignored = is_ignored(tag.as_deref());
                let tree = scalar(&text, style == ScalarStyle::Plain, tag.as_deref());
                let key = if tree == Tree::Null { "null".to_owned() } else { text.into_owned() };
                self.keep(anchor, &tree, size)?;
                self.put(tree, Some(key), is_ignored)
            }
            Event::Alias(anchor) => {
                let (tree, size) = self.anchors.get(&anchor).cloned().ok_or("an alias within its own anchor")?;
                self.grow(size)?;
                let key = match &tree {
                    Tree::Text(text) => Some(text.clone()),
                    _ => None,
                };
                self.put(tree, key, false)
            }
            Event::SequenceStart(_, anchor, tag) => self.open(anchor, tag.as_deref(), Kind::List(Vec::new())),
            Event::MappingStart(_, anchor, tag) => self.open(anchor, tag.as_deref(), Kind::Map(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(None) };
                let tree = match open.kind {
                    Kind::List(list) => Tree::List(list),
                    Kind::Map(entries, _) => Tree::Map(entries),
                };
                self.keep(open.anchor, &tree, open.left.saturating_sub(self.left))?;
                self.put(tree, None, open.is_ignored)
            }
            Event::DocumentEnd => Ok(Some(Tree::Null)), // a document without a value
            _ => Ok(None),
        }
    }

    fn open(&mut self, anchor: usize, tag: Option<&Tag>, kind: Kind) -> Result<Option<Tree>, String> {
        if self.open.len() >= DEPTH {
            return Err(format!("nested deeper than {DEPTH} levels"));
        }
        let left = self.left;
        self.grow(size_of::<Tree>())?;
        self.open.push(Open { anchor, left, is_ignored: is_ignored(tag), kind });
        Ok(None)
    }

    fn grow(&mut self, size: usize) -> Result<(), String> {
        let limit = self.limit;
        let error = || format!("its aliases make more than {limit} bytes of it");
        self.left = self.left.checked_sub(size).ok_or_else(error)?;
        Ok(())
    }

    /// Keeps a value for the aliases of its anchor.
    fn keep(&mut self, anchor: usize, tree: &Tree, size: usize) -> Result<(), String> {
        if anchor > 0 {
            self.grow(size)?;
            self.anchors.insert(anchor, (tree.clone(), size));
        }
        Ok(())
    }

    /// Puts a value into the collection that is open. Returns it if there is none: the document is complete.
    fn put(&mut self, tree: Tree, key: Option<String>, is_ignored: bool) -> Result<Option<Tree>, String> {
        match self.open.last_mut().map(|open| &mut open.kind) {
            None => return Ok(Some(tree)),
            Some(Kind::List(list)) => list.push(tree),
            Some(Kind::Map(entries, next)) => match next.take() {
                Some(Some(key)) => match entries.iter_mut().rfind(|(known, _)| *known == key) {
                    Some((_, old)) => *old = tree,
                    None => entries.push((key, tree)),
                },
                Some(None) => {}
                None if is_ignored => *next = Some(None),
                None => *next = Some(Some(key.ok_or("a key that is no scalar")?)),
            },
        }
        Ok(None)
    }
}

fn is_ignored(tag: Option<&Tag>) -> bool {
    tag.is_some_and(|tag| tag.suffix() == IGNORE && tag.handle() == "!")
}

/// Reads a scalar as Envoy does: what is quoted, or has the tag `!`, is a string.
fn scalar(text: &str, is_plain: bool, tag: Option<&Tag>) -> Tree {
    let is_string = match tag {
        Some(tag) => tag.handle().is_empty() && tag.suffix() == "!",
        None => !is_plain,
    };
    if is_string {
        return Tree::Text(text.to_owned());
    }
    if is_plain && tag.is_none() && matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Tree::Null;
    }
    if let Some(value) = boolean(text) {
        return Tree::Bool(value);
    }
    match integer(text) {
        Some(number) if i32::try_from(number).is_ok() => Tree::Number(Number::Whole(number.into())),
        // As text it keeps all of its digits in a field that is no integer.
        Some(number) => Tree::Text(number.to_string()),
        None => Tree::Text(text.to_owned()),
    }
}

/// Reads a boolean of YAML 1.1, in one of its three cases.
fn boolean(text: &str) -> Option<bool> {
    const WORDS: [(&str, bool); 8] = [
        ("y", true),
        ("n", false),
        ("yes", true),
        ("no", false),
        ("on", true),
        ("off", false),
        ("true", true),
        ("false", false),
    ];
    let mut letters = text.chars();
    let is_capital = letters.next().is_some_and(|first| first.is_ascii_uppercase());
    let is_lower = letters.clone().all(|letter| letter.is_ascii_lowercase());
    let is_upper = is_capital && letters.all(|letter| letter.is_ascii_uppercase());
    let word = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    word.filter(|_| is_lower || is_upper).map(|(_, value)| *value)
}

/// Reads an integer of C: `0x` is hexadecimal, a leading 0 is octal.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None; // a second sign
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok()
}
