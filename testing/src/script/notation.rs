//! Messages as lines, and lines as messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use xds_machine::message::{Any, Node, Resource, ResourceError, delta, sotw};
use xds_machine::{Code, Delta, Error, Instant, ResourceName, Sotw, Status, TypeUrl, type_url};

use crate::variant::Both;

/// A variant whose messages can be written as lines.
pub trait Notation: Both {
    /// Reads a request from a line.
    fn read_request(words: Words<'_>, symbols: &Symbols) -> Result<Self::Request, String>;
    /// Writes a request as a line.
    fn write_request(request: &Self::Request) -> String;
    /// Reads a response from a line.
    fn read_response(words: Words<'_>) -> Result<Self::Response, String>;
    /// Writes a response as a line.
    fn write_response(response: &Self::Response, symbols: &mut Symbols) -> String;
    /// Puts a node into a request.
    fn give_node(request: &mut Self::Request, node: Option<Node>);
}

const TYPES: [(&str, &str); 9] = [
    ("lds", type_url::LISTENER),
    ("rds", type_url::ROUTE),
    ("srds", type_url::SCOPED_ROUTE),
    ("vhds", type_url::VIRTUAL_HOST),
    ("cds", type_url::CLUSTER),
    ("eds", type_url::ENDPOINT),
    ("sds", type_url::SECRET),
    ("rtds", type_url::RUNTIME),
    ("ecds", type_url::EXTENSION_CONFIG),
];

/// Returns the type URL of a short name (`cds`), or the word itself.
pub fn read_type(word: &str) -> TypeUrl {
    let known = TYPES.iter().find(|(short, _)| *short == word);
    known.map_or(word.trim_matches('"'), |(_, url)| url).into()
}

/// Returns the short name of a type URL, if it has one.
pub fn write_type(type_url: &TypeUrl) -> &str {
    let known = TYPES.iter().find(|(_, url)| type_url == url);
    known.map_or(type_url.as_str(), |(short, _)| short)
}

/// The numbers of values that a machine makes, in order of appearance: nonces of a stream, versions of a type.
#[derive(Default)]
pub struct Symbols {
    nonces: Vec<String>,
    versions: BTreeMap<TypeUrl, Vec<String>>,
}

impl Symbols {
    /// Forgets the nonces: each stream has its own numbers.
    pub fn new_stream(&mut self) {
        self.nonces.clear();
    }

    /// Returns the number of a nonce.
    pub fn write_nonce(&mut self, nonce: &str) -> String {
        write_symbol(&mut self.nonces, nonce)
    }

    /// Returns the number of a version of a type.
    pub fn write_version(&mut self, type_url: &TypeUrl, version: &str) -> String {
        write_symbol(self.versions.entry(type_url.clone()).or_default(), version)
    }

    fn read_nonce(&self, word: &str) -> String {
        read_symbol(&self.nonces, word)
    }

    fn read_version(&self, type_url: &TypeUrl, word: &str) -> String {
        read_symbol(self.versions.get(type_url).map_or(&[][..], |versions| versions), word)
    }
}

fn write_symbol(known: &mut Vec<String>, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let at = known.iter().position(|known| known == text).unwrap_or_else(|| {
        known.push(text.into());
        known.len() - 1
    });
    (at + 1).to_string()
}

fn read_symbol(known: &[String], word: &str) -> String {
    let number = word.parse::<usize>().ok().filter(|&number| number > 0);
    number.and_then(|number| known.get(number - 1)).cloned().unwrap_or_else(|| word.into())
}

/// The words of a line, separated by spaces outside of quotes, brackets and braces.
pub struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    /// Splits a line.
    pub fn new(line: &'a str) -> Self {
        let (mut words, mut depth, mut quoted, mut start) = (Vec::new(), 0, false, 0);
        for (at, char) in line.char_indices().chain([(line.len(), ' ')]) {
            match char {
                '"' => quoted = !quoted,
                '[' | '{' if !quoted => depth += 1,
                ']' | '}' if !quoted => depth -= 1,
                ' ' if !quoted && depth == 0 => {
                    if at > start {
                        words.push(&line[start..at]);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        Self(words)
    }

    /// Returns the words.
    pub fn list(&self) -> &[&'a str] {
        &self.0
    }

    fn take_type(&mut self) -> Result<TypeUrl, String> {
        if self.0.is_empty() { Err("a type is missing".into()) } else { Ok(read_type(self.0.remove(0))) }
    }

    /// Takes the value of `key=value`.
    fn take_value(&mut self, key: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|word| word.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')))?;
        Some(&self.0.remove(at)[key.len() + 1..])
    }

    /// Takes the list between the brackets of a word such as `rm[a,b]`.
    fn take_list(&mut self, open: &str, close: char) -> Option<Vec<&'a str>> {
        let at = self.0.iter().position(|word| word.starts_with(open) && word.ends_with(close))?;
        let inside = &self.0.remove(at)[open.len()..];
        Some(inside[..inside.len() - 1].split(',').filter(|item| !item.is_empty()).map(str::trim).collect())
    }

    /// Takes `nack` and its message.
    fn take_nack(&mut self) -> Option<Status> {
        let at = self.0.iter().position(|&word| word == "nack")?;
        self.0.remove(at);
        let message = if self.0.get(at).is_some_and(|word| word.starts_with('"')) { self.0.remove(at) } else { "" };
        Some(Status::new(Code::InvalidArgument, message.trim_matches('"')))
    }

    fn end(self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("what is {:?}?", self.0)) }
    }
}

/// Reads a duration: `5s`, `200ms`.
pub fn read_duration(word: &str) -> Result<Duration, String> {
    let (digits, unit) = word.split_at(word.find(|char: char| !char.is_ascii_digit()).unwrap_or(word.len()));
    let number: u64 = digits.parse().map_err(|_| format!("{word} is no duration"))?;
    match unit {
        "s" => Ok(Duration::from_secs(number)),
        "ms" => Ok(Duration::from_millis(number)),
        _ => Err(format!("{word} is no duration")),
    }
}

/// Writes a duration in the same form.
pub fn write_duration(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}

/// Encodes a resource of this name and content.
pub fn body(name: &str, content: &str) -> Vec<u8> {
    let mut body = vec![0x0a, name.len() as u8];
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(&[0x7a, content.len() as u8]); // field 15
    body.extend_from_slice(content.as_bytes());
    body
}

/// Returns the name and the content of an encoded resource.
fn read_body(body: &[u8]) -> (String, String) {
    let text = |at: usize| {
        let len = usize::from(body[at]);
        String::from_utf8(body[at + 1..at + 1 + len].to_vec()).expect("text")
    };
    let name = text(1);
    let content = text(1 + 1 + name.len() + 1);
    (name, content)
}

/// Reads `name@version/ttl~alias`; without `@` there is no content.
fn read_resource(word: &str, type_url: &TypeUrl) -> Result<Resource, String> {
    let (word, aliases) = match word.split_once('~') {
        Some((word, aliases)) => (word, aliases.split('~').map(ResourceName::from).collect()),
        None => (word, Vec::new()),
    };
    // A name may have slashes too, but not after the version.
    let version = word.rfind('@').unwrap_or(0);
    let (word, ttl) = match word[version..].split_once('/') {
        Some((before, ttl)) if version > 0 || !word.contains(':') => {
            (&word[..version + before.len()], Some(read_duration(ttl)?))
        }
        _ => (word, None),
    };
    let (name, version) = word.split_once('@').unwrap_or((word, ""));
    let (name, beat) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
    // In `name@version:type` the type of the content differs from that of the response.
    let (version, type_url) = version.split_once(':').map_or((version, type_url.clone()), |(v, t)| (v, read_type(t)));
    let content = !beat && word.contains('@');
    let body = content.then(|| Any { type_url, value: body(name, version).into() });
    Ok(Resource { name: name.into(), version: version.into(), aliases, body, ttl })
}

fn write_resource(resource: &Resource) -> String {
    let beat = if resource.body.is_none() { "^" } else { "" };
    let ttl = resource.ttl.map_or(String::new(), |ttl| format!("/{}", write_duration(ttl)));
    let aliases: String = resource.aliases.iter().map(|alias| format!("~{alias}")).collect();
    format!("{beat}{}@{}{ttl}{aliases}", resource.name, resource.version)
}

fn write_names(names: &[ResourceName]) -> String {
    names.iter().map(ResourceName::as_str).collect::<Vec<_>>().join(",")
}

fn write_nack(error: Option<&Status>) -> String {
    error.map_or(String::new(), |error| format!(" nack \"{}\"", error.message))
}

fn read_names(names: Vec<&str>) -> Vec<ResourceName> {
    names.into_iter().map(Into::into).collect()
}

/// Writes the error of a refused input as a line.
pub(super) fn write_error(error: &Error) -> String {
    match error {
        Error::Peer(error) => format!("! error {}: {error}", error.code()),
        Error::Caller(error) => format!("! misuse: {error}"),
    }
}

/// Reads errors of resources, each `name:code`.
fn read_errors(words: Option<Vec<&str>>) -> Result<Vec<ResourceError>, String> {
    let error = |word: &str| {
        let (name, code) = word.rsplit_once(':').ok_or("an error is `name:code`")?;
        let status = code.parse().map(|code| Status { code, message: format!("{name} {code}") }).ok();
        Ok(ResourceError { name: name.into(), status })
    };
    words.unwrap_or_default().into_iter().map(error).collect()
}

fn write_errors(errors: &[ResourceError]) -> String {
    let code = |error: &ResourceError| error.status.as_ref().map_or("none".into(), |status| status.code.to_string());
    let errors: Vec<String> = errors.iter().map(|error| format!("{}:{}", error.name, code(error))).collect();
    if errors.is_empty() { String::new() } else { format!(" err[{}]", errors.join(",")) }
}

impl Notation for Sotw {
    fn read_request(mut words: Words<'_>, symbols: &Symbols) -> Result<sotw::Request, String> {
        let mut request = sotw::Request::new(words.take_type()?);
        request.names = read_names(words.take_list("[", ']').ok_or("a SotW request has a list")?);
        let version = words.take_value("v").unwrap_or_default();
        request.version = symbols.read_version(&request.type_url, version).into();
        request.nonce = symbols.read_nonce(words.take_value("n").unwrap_or_default()).into();
        request.error = words.take_nack();
        words.end()?;
        Ok(request)
    }

    fn write_request(request: &sotw::Request) -> String {
        let sotw::Request { type_url, names, version, nonce, error, node } = request;
        let node = if node.is_some() { " node" } else { "" };
        let nack = write_nack(error.as_ref());
        format!("C> {} [{}] v={version} n={nonce}{nack}{node}", write_type(type_url), write_names(names))
    }

    fn read_response(mut words: Words<'_>) -> Result<sotw::Response, String> {
        let type_url = words.take_type()?;
        let resources = words.take_list("{", '}').ok_or("a response has resources")?;
        let item = |word: &str| {
            if word == "!" {
                return Ok(sotw::Item::Malformed);
            }
            let (word, wrap) = word.strip_prefix('(').map_or((word, false), |word| (word.trim_end_matches(')'), true));
            let resource = read_resource(word, &type_url)?;
            match resource.body {
                Some(any) if !wrap && resource.ttl.is_none() => Ok(sotw::Item::Bare(any)),
                _ => Ok(sotw::Item::Wrapped(Box::new(resource))),
            }
        };
        let response = sotw::Response {
            resources: resources.into_iter().map(item).collect::<Result<_, String>>()?,
            version: words.take_value("v").unwrap_or_default().into(),
            nonce: words.take_value("n").unwrap_or_default().into(),
            control_plane: String::new(),
            errors: read_errors(words.take_list("err[", ']'))?,
            type_url,
        };
        words.end()?;
        Ok(response)
    }

    fn write_response(response: &sotw::Response, symbols: &mut Symbols) -> String {
        let item = |item: &sotw::Item| match item {
            sotw::Item::Bare(any) => {
                let (name, content) = read_body(&any.value);
                format!("{name}@{content}")
            }
            sotw::Item::Wrapped(resource) => write_resource(resource),
            sotw::Item::Malformed => "!".into(),
        };
        let items: Vec<String> = response.resources.iter().map(item).collect();
        let version = symbols.write_version(&response.type_url, response.version.as_str());
        let nonce = symbols.write_nonce(response.nonce.as_str());
        let errors = write_errors(&response.errors);
        format!("S> {} {{{}}} v={version} n={nonce}{errors}", write_type(&response.type_url), items.join(","))
    }

    fn give_node(request: &mut sotw::Request, node: Option<Node>) {
        request.node = node.map(Arc::new);
    }
}

impl Notation for Delta {
    fn read_request(mut words: Words<'_>, symbols: &Symbols) -> Result<delta::Request, String> {
        let mut request = delta::Request::new(words.take_type()?);
        request.nonce = symbols.read_nonce(words.take_value("n").unwrap_or_default()).into();
        request.error = words.take_nack();
        let versions = words.take_list("irv{", '}').unwrap_or_default();
        let versions = versions.iter().map(|version| version.rsplit_once(':').ok_or("a version is `name:version`"));
        request.initial_versions = versions.collect::<Result<_, _>>()?;
        for word in std::mem::take(&mut words.0) {
            match word.split_at(1) {
                ("+", name) => request.subscribe.push(name.into()),
                ("-", name) => request.unsubscribe.push(name.into()),
                _ => words.0.push(word),
            }
        }
        words.end()?;
        Ok(request)
    }

    fn write_request(request: &delta::Request) -> String {
        let delta::Request { type_url, subscribe, unsubscribe, initial_versions, nonce, error, node } = request;
        let mut line = format!("C> {}", write_type(type_url));
        subscribe.iter().for_each(|name| line += &format!(" +{name}"));
        unsubscribe.iter().for_each(|name| line += &format!(" -{name}"));
        if !initial_versions.is_empty() {
            let versions: Vec<_> = initial_versions.iter().map(|(name, version)| format!("{name}:{version}")).collect();
            line += &format!(" irv{{{}}}", versions.join(","));
        }
        line += &format!(" n={nonce}{}", write_nack(error.as_ref()));
        line + if node.is_some() { " node" } else { "" }
    }

    fn read_response(mut words: Words<'_>) -> Result<delta::Response, String> {
        let type_url = words.take_type()?;
        let resources = words.take_list("{", '}').unwrap_or_default();
        let response = delta::Response {
            resources: resources.into_iter().map(|word| read_resource(word, &type_url)).collect::<Result<_, _>>()?,
            removed: read_names(words.take_list("rm[", ']').unwrap_or_default()),
            system_version: words.take_value("v").unwrap_or_default().into(),
            nonce: words.take_value("n").unwrap_or_default().into(),
            control_plane: String::new(),
            errors: read_errors(words.take_list("err[", ']'))?,
            type_url,
        };
        words.end()?;
        Ok(response)
    }

    fn write_response(response: &delta::Response, symbols: &mut Symbols) -> String {
        let resources: Vec<String> = response.resources.iter().map(write_resource).collect();
        let nonce = symbols.write_nonce(response.nonce.as_str());
        let removed = match write_names(&response.removed) {
            names if names.is_empty() => String::new(),
            names => format!(" rm[{names}]"),
        };
        let errors = write_errors(&response.errors);
        format!("S> {} {{{}}}{removed} n={nonce}{errors}", write_type(&response.type_url), resources.join(","))
    }

    fn give_node(request: &mut delta::Request, node: Option<Node>) {
        request.node = node.map(Arc::new);
    }
}

/// A clock that a script advances.
#[derive(Clone, Copy, Default)]
pub struct Clock(pub Instant);
