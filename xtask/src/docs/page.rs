//! One page: its text, its links, and the places on it that links may lead to. Reads just enough HTML and Markdown for
//! the output of rustdoc and for this project's documents.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub struct Page {
    /// The text outside of links.
    pub prose: String,
    /// The targets of the links.
    pub links: BTreeSet<String>,
    /// The places on the page.
    pub ids: BTreeSet<String>,
}

impl Page {
    pub fn parse(html: &str) -> Self {
        let (mut page, mut rest, mut linked, mut blanket) = (Self::default(), html, false, false);
        while let Some((text, after)) = rest.split_once('<') {
            if !linked {
                page.prose.push_str(&unescape(text));
            }
            let Some((tag, after)) = after.split_once('>') else { break };
            rest = after;
            // The texts of blanket implementations are those of other crates.
            blanket |= attribute(tag, "id") == Some("blanket-implementations");
            page.ids.extend(attribute(tag, "id").map(unescape));
            match tag.split([' ', '\n']).next().unwrap_or_default() {
                "a" => {
                    let link = attribute(tag, "href").map(unescape);
                    page.links.extend(link.filter(|_| !blanket));
                    linked = attribute(tag, "href").is_some();
                }
                "/a" => linked = false,
                name @ ("script" | "style") => {
                    let end = format!("</{name}>");
                    rest = rest.split_once(&end).map_or("", |(_, after)| after);
                }
                // Texts in different blocks are separate words.
                "/p" | "/li" | "/td" | "/th" | "/h1" | "/h2" | "/h3" | "/h4" | "/div" | "/dd" | "/dt" | "br" => {
                    page.prose.push('\n');
                }
                _ => {}
            }
        }
        page.prose.push_str(&unescape(rest));
        page
    }

    /// Returns the ids of protocol rules in the text, such as C-SOTW-04.
    pub fn rule_ids(&self) -> impl Iterator<Item = &str> {
        words(&self.prose).filter(|word| is_rule_id(word))
    }

    /// Returns the Markdown files that the text names.
    pub fn markdown_files(&self) -> impl Iterator<Item = &str> {
        words(&self.prose).filter(|word| word.strip_suffix(".md").is_some_and(|stem| !stem.is_empty()))
    }

    /// Returns the source files that the text names with their folder.
    pub fn source_files(&self) -> impl Iterator<Item = &str> {
        words(&self.prose).filter(|word| word.ends_with(".rs") && word.contains('/'))
    }
}

/// Returns the words that may be a path or an id. A full stop at the end belongs to the sentence.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    text.split(move |letter| !is_part(letter)).map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty())
}

/// `[CS]-[A-Z]+-[0-9]+`
fn is_rule_id(word: &str) -> bool {
    let mut parts = word.split('-');
    let (side, topic, number) = (parts.next(), parts.next(), parts.next());
    matches!(side, Some("C" | "S"))
        && topic.is_some_and(|topic| !topic.is_empty() && topic.bytes().all(|byte| byte.is_ascii_uppercase()))
        && number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        && parts.next().is_none()
}

/// Returns whether a link leads out of the documentation. A path of Rust does: rustdoc leaves it as it is in a text
/// that comes with a trait of another crate, and refuses it in a text of this workspace.
pub fn is_external(link: &str) -> bool {
    link.contains("::") || ["https:", "http:", "mailto:", "javascript:"].iter().any(|scheme| link.starts_with(scheme))
}

/// Returns the targets of the links in a Markdown text: `[text](target)`.
pub fn markdown_links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|after| Some(after.split_once(')')?.0))
}

/// Returns an attribute of a tag. rustdoc sometimes leaves out the quotes.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    loop {
        let at = rest.find(name)?;
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        rest = after;
        let Some(value) = after.strip_prefix('=').filter(|_| before.ends_with([' ', '\n'])) else { continue };
        return match value.chars().next()? {
            quote @ ('"' | '\'') => value[1..].split(quote).next(),
            _ => value.split([' ', '\n']).next(),
        };
    }
}

fn unescape(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.to_string(), |text, (entity, letter)| text.replace(entity, letter))
}
