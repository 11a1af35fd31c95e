//! Checks the documentation as its readers get it: no warnings, and no references to anything they do not have.
//!
//! rustdoc denies broken intra-doc links, also in private items. Other references are checked here, in the rendered
//! pages of every published crate and in the Markdown files of its package:
//!
//! - a link within the documentation leads to a page, and to a place on it, that exists;
//! - an id of the catalogue of rules (`tests/protocol/rules.md`), such as C-SOTW-04, is a link or stands on the page of
//!   the catalogue;
//! - a Markdown file that is named is in the package, or is an external link;
//! - a source file that is named, such as `client/mod.rs`, exists;
//! - no page cites a "DESIGN rule": the rules are those of the manual, and are linked.

mod page;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use self::page::Page;
use crate::package::{self, Package};
use crate::run::{Result, cargo, root, run};

/// The pages that define the ids of rules, by the end of their path.
const CATALOGUE: &str = "manual/catalogue/index.html";

const DOC: [&str; 4] = ["doc", "--quiet", "--no-deps", "--all-features"];

pub fn check() -> Result {
    let packages = package::publishable()?;
    let folder = root().join("target/doc");
    // Documentation of private items is not rendered for users, but its links are checked.
    for package in &packages {
        let flags = "-D warnings --document-private-items";
        run(cargo(&DOC).args(["--package", &package.name]).env("RUSTDOCFLAGS", flags))?;
    }
    for package in &packages {
        // Pages of removed items would be checked as well. The folders stay: rustdoc links to another crate only if the
        // crate's folder exists, and all crates are documented at the same time.
        let pages = folder.join(crate_name(package));
        let _ = fs::remove_dir_all(&pages);
        fs::create_dir_all(&pages)?;
    }
    run(cargo(&DOC).args(["--workspace"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    let (mut faults, mut count) = (Vec::new(), 0);
    for package in &packages {
        let site = Site::read(&folder, package)?;
        count += site.pages.len();
        faults.extend(site.faults());
        faults.extend(documents(package)?);
    }
    if !faults.is_empty() {
        return Err(format!("the documentation refers to what is not there:\n  {}", faults.join("\n  ")).into());
    }
    println!("documentation: {count} pages, and every reference leads somewhere");
    Ok(())
}

fn crate_name(package: &Package) -> String {
    package.name.replace('-', "_")
}

/// The rendered documentation of one crate. Paths are relative to the folder of the documentation, with slashes.
struct Site {
    /// The pages to check.
    pages: BTreeMap<String, Page>,
    /// All files that a link may lead to.
    files: BTreeSet<String>,
    /// The files of the package.
    packaged: BTreeSet<String>,
    /// Returns whether a source file exists, by its path from the folder of the package or from its `src/`.
    has_source: Box<dyn Fn(&str) -> bool>,
}

impl Site {
    fn read(folder: &Path, package: &Package) -> Result<Self> {
        let crate_name = crate_name(package);
        let mut files = BTreeSet::new();
        walk(folder, &mut |path| _ = files.insert(slashes(path.strip_prefix(folder).unwrap_or(path))))?;
        let inside = format!("{crate_name}/");
        let mut pages = BTreeMap::new();
        for path in files.iter().filter(|path| path.starts_with(&inside) && path.ends_with(".html")) {
            pages.insert(path.clone(), Page::parse(&fs::read_to_string(folder.join(path))?));
        }
        if pages.is_empty() {
            return Err(format!("{}: no pages of {crate_name}", folder.display()).into());
        }
        let root = package.folder.clone();
        let has_source = Box::new(move |file: &str| root.join(file).exists() || root.join("src").join(file).exists());
        Ok(Self { pages, files, packaged: package.files.clone(), has_source })
    }

    fn faults(&self) -> Vec<String> {
        let of_page = |(path, page): (&String, &Page)| {
            let faults = self.faults_of(path, page).into_iter();
            faults.map(|fault| format!("{path}: {fault}")).collect::<Vec<_>>()
        };
        self.pages.iter().flat_map(of_page).collect()
    }

    fn faults_of(&self, path: &str, page: &Page) -> BTreeSet<String> {
        let mut faults = BTreeSet::new();
        if page.prose.contains("DESIGN rule") {
            faults.insert("cites a DESIGN rule: link to the manual instead".into());
        }
        if !path.ends_with(CATALOGUE) {
            faults.extend(page.rule_ids().map(|id| format!("{id} is not linked")));
        }
        for name in page.markdown_files().filter(|name| !self.packaged.contains(*name)) {
            faults.insert(format!("{name} is not in the package"));
        }
        for file in page.source_files().filter(|file| !(self.has_source)(file)) {
            faults.insert(format!("there is no source file {file}"));
        }
        for link in &page.links {
            if let Some(target) = self.missing(path, link) {
                faults.insert(format!("the link to {link} leads nowhere: {target} is not there"));
            }
        }
        faults
    }

    /// Returns the target of a link if it does not exist.
    fn missing(&self, from: &str, link: &str) -> Option<String> {
        if page::is_external(link) {
            return None;
        }
        let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
        let path = path.split('?').next().unwrap_or_default();
        let mut target = if path.is_empty() { from.to_string() } else { resolve(from, path) };
        if target.is_empty() || target.ends_with('/') {
            target.push_str("index.html");
        }
        if !self.files.contains(&target) {
            return Some(target);
        }
        // The places on pages that are not checked, such as those of the source, are not known.
        let known = self.pages.get(&target).filter(|_| !fragment.is_empty())?;
        (!known.ids.contains(fragment)).then(|| format!("#{fragment} of {target}"))
    }
}

/// Returns the faults in the Markdown files of a package outside of `src/`. Their link targets are in the repository.
/// (A folder with a manifest of its own, such as `examples/`, is never part of the package.)
fn documents(package: &Package) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in package.files.iter().filter(|file| file.ends_with(".md") && !file.starts_with("src/")) {
        let text = fs::read_to_string(package.folder.join(file))?;
        faults.extend(document_faults(file, &text, |target| package.folder.join(target).exists()));
    }
    Ok(faults)
}

fn document_faults(file: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let links = page::markdown_links(text).filter(|link| !page::is_external(link) && !link.starts_with('#'));
    let dead = links.filter(|link| !exists(&resolve(file, link.split('#').next().unwrap_or_default())));
    dead.map(|link| format!("{file}: the link to {link} leads nowhere")).collect()
}

/// Resolves a path that is relative to a file, and returns it relative to the root.
fn resolve(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn walk(folder: &Path, each: &mut impl FnMut(&Path)) -> Result {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() { walk(&path, each)? } else { each(&path) }
    }
    Ok(())
}

fn slashes(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
