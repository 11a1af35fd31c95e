//! The modules of a crate, and the meaning of each name in them.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Item, Meta, UseTree, Visibility};

use super::tokens;
use crate::run::Result;

/// The index of a module in the [`Tree`].
pub(super) type ModuleId = usize;

/// The modules of a crate. The first one is the root.
#[derive(Default)]
pub(super) struct Tree {
    modules: Vec<Module>,
    /// The path, the module and the content of each file.
    pub(super) files: Vec<(String, ModuleId, syn::File)>,
}

struct Module {
    parent: ModuleId,
    file: String,
    names: BTreeMap<String, Vec<Named>>,
    /// The paths of glob imports, `use x::*`.
    globs: Vec<Vec<String>>,
    /// The names among the arguments of macros that are called in place of an item, some of which the macros define.
    macro_names: BTreeSet<String>,
}

/// The meaning of a name in a module.
enum Named {
    Module(ModuleId),
    Generated,
    /// `has_names`: the item is a type or a trait, so that a path may continue with a name inside it.
    Item {
        has_names: bool,
    },
    Import(Vec<String>),
}

/// The target of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Target {
    Module(ModuleId),
    Generated,
    Item { file: String, name: String, has_names: bool },
}

/// A name that a `use` declares.
pub(super) struct Leaf {
    /// `None` for a glob.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
}

/// Reads the files of a crate into a [`Tree`].
struct Reader<'a> {
    sources: &'a BTreeMap<String, String>,
    generated: &'a [&'a str],
    tree: Tree,
}

impl Reader<'_> {
    fn add_file(&mut self, path: &str, parent: ModuleId) -> Result<ModuleId> {
        let source = self.sources.get(path).ok_or_else(|| format!("{path} is missing"))?;
        let file = syn::parse_file(source).map_err(|error| format!("{path}: {error}"))?;
        let folder = match path.rsplit_once('/') {
            Some((folder, "mod.rs")) => format!("{folder}/"),
            None if path == "lib.rs" => String::new(),
            _ => format!("{}/", path.trim_end_matches(".rs")),
        };
        let module = self.add_module(path, &folder, parent, &file.items)?;
        self.tree.files.push((path.to_owned(), module, file));
        Ok(module)
    }

    /// Adds a module and the modules in it, whose files are in `folder`.
    fn add_module(&mut self, file: &str, folder: &str, parent: ModuleId, items: &[Item]) -> Result<ModuleId> {
        let id = self.tree.modules.len();
        let (names, globs, macro_names) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        self.tree.modules.push(Module { parent, file: file.to_owned(), names, globs, macro_names });
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            match item {
                Item::Mod(inner) => {
                    let named = self.add_inner(file, folder, id, inner)?;
                    self.tree.modules[id].name(&inner.ident, named);
                }
                Item::Use(item) if item.leading_colon.is_none() => self.tree.modules[id].import(&item.tree),
                Item::Macro(item) => match &item.ident {
                    Some(name) => self.tree.modules[id].name(name, Named::Item { has_names: false }),
                    None => self.tree.modules[id].macro_names.extend(tokens::single_names(&item.mac.tokens)),
                },
                _ => {
                    if let Some((name, has_names)) = defined(item) {
                        self.tree.modules[id].name(name, Named::Item { has_names });
                    }
                }
            }
        }
        Ok(id)
    }

    /// Adds the module that `mod x` declares.
    fn add_inner(&mut self, file: &str, folder: &str, parent: ModuleId, item: &syn::ItemMod) -> Result<Named> {
        let name = text(&item.ident);
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("path")) {
            return Err(format!("{file}: mod {name} has a #[path]").into());
        }
        if let Some((_, items)) = &item.content {
            return Ok(Named::Module(self.add_module(file, &format!("{folder}{name}/"), parent, items)?));
        }
        let files = [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")];
        if files.iter().any(|file| self.generated.contains(&file.as_str())) {
            return Ok(Named::Generated);
        }
        let path = files.iter().find(|&file| self.sources.contains_key(file)).unwrap_or(&files[0]);
        Ok(Named::Module(self.add_file(path, parent)?))
    }
}

impl Module {
    fn name(&mut self, name: &syn::Ident, named: Named) {
        self.names.entry(text(name)).or_default().push(named);
    }

    fn import(&mut self, tree: &UseTree) {
        for leaf in leaves(tree) {
            match leaf.name {
                Some(name) => self.names.entry(name).or_default().push(Named::Import(leaf.path)),
                None => self.globs.push(leaf.path),
            }
        }
    }
}

impl Tree {
    /// Reads a crate from its files, by their paths. The first file is `lib.rs`.
    pub(super) fn read(sources: &BTreeMap<String, String>, generated: &[&str]) -> Result<Self> {
        let mut reader = Reader { sources, generated, tree: Self::default() };
        reader.add_file("lib.rs", 0)?;
        Ok(reader.tree)
    }

    /// Returns the targets of a path in a module: several if a name means both a type and a function, for example; none
    /// if the path leads out of the crate.
    pub(super) fn resolve(&self, from: ModuleId, path: &[String]) -> Vec<Target> {
        self.follow(from, path, &mut Vec::new())
    }

    /// Returns the child module of this name, if it exists.
    pub(super) fn child(&self, of: ModuleId, name: &str) -> Option<ModuleId> {
        self.modules[of].names.get(name)?.iter().find_map(|named| match named {
            Named::Module(id) => Some(*id),
            _ => None,
        })
    }

    fn follow<'a>(&'a self, from: ModuleId, path: &'a [String], seen: &mut Vec<(ModuleId, &'a str)>) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let mut at = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(from)],
            "super" => vec![Target::Module(self.modules[from].parent)],
            name => self.lookup(from, name, seen),
        };
        for name in rest {
            let step = |target| match target {
                Target::Module(id) if name == "super" => vec![Target::Module(self.modules[id].parent)],
                Target::Module(id) => self.lookup(id, name, seen),
                Target::Item { has_names: false, .. } => Vec::new(),
                target => vec![target],
            };
            at = at.into_iter().flat_map(step).collect();
        }
        at
    }

    /// Returns the targets of a name in a module. `seen` holds the names that are being looked up, because an import
    /// may lead to itself.
    fn lookup<'a>(&'a self, id: ModuleId, name: &'a str, seen: &mut Vec<(ModuleId, &'a str)>) -> Vec<Target> {
        if seen.contains(&(id, name)) {
            return Vec::new();
        }
        seen.push((id, name));
        let module = &self.modules[id];
        let item = |has_names| Target::Item { file: module.file.clone(), name: name.to_owned(), has_names };
        let mut found = Vec::new();
        match module.names.get(name) {
            Some(all) => all.iter().for_each(|named| match named {
                Named::Module(id) => found.push(Target::Module(*id)),
                Named::Generated => found.push(Target::Generated),
                Named::Item { has_names } => found.push(item(*has_names)),
                Named::Import(path) => found.extend(self.follow(id, path, seen)),
            }),
            None => found.extend(self.lookup_in_globs(id, name, seen)),
        }
        if found.is_empty() && !module.names.contains_key(name) && module.macro_names.contains(name) {
            found.push(item(true));
        }
        seen.pop();
        found
    }

    fn lookup_in_globs<'a>(&'a self, id: ModuleId, name: &'a str, seen: &mut Vec<(ModuleId, &'a str)>) -> Vec<Target> {
        let mut found = Vec::new();
        for glob in &self.modules[id].globs {
            for target in self.follow(id, glob, seen) {
                if let Target::Module(of) = target {
                    found.extend(self.lookup(of, name, seen));
                }
            }
        }
        found
    }
}

/// Returns the names that a `use` declares.
pub(super) fn leaves(tree: &UseTree) -> Vec<Leaf> {
    let mut all = Vec::new();
    add_leaves(tree, &[], &mut all);
    all
}

fn add_leaves(tree: &UseTree, prefix: &[String], to: &mut Vec<Leaf>) {
    let with = |ident: &syn::Ident| match text(ident) {
        this if this == "self" && !prefix.is_empty() => prefix.to_vec(),
        name => [prefix, &[name]].concat(),
    };
    match tree {
        UseTree::Path(path) => add_leaves(&path.tree, &with(&path.ident), to),
        UseTree::Name(name) => {
            let path = with(&name.ident);
            to.push(Leaf { name: path.last().cloned(), path });
        }
        UseTree::Rename(rename) => to.push(Leaf { name: Some(text(&rename.rename)), path: with(&rename.ident) }),
        UseTree::Glob(_) => to.push(Leaf { name: None, path: prefix.to_vec() }),
        UseTree::Group(group) => group.items.iter().for_each(|tree| add_leaves(tree, prefix, to)),
    }
}

/// Returns a name without the `r#` of a raw identifier.
pub(super) fn text(ident: &syn::Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}

/// Returns whether a `use` is a re-export.
pub(super) fn is_re_export(item: &syn::ItemUse) -> bool {
    !matches!(item.vis, Visibility::Inherited)
}

/// Returns whether an item with these attributes is compiled for tests only.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    let cfg = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    cfg.filter_map(|attribute| attribute.parse_args().ok()).any(|meta| needs_test(&meta))
}

fn needs_test(meta: &Meta) -> bool {
    match meta {
        Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
        Meta::List(list) if list.path.is_ident("all") => {
            let all = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
            list.parse_args_with(all).is_ok_and(|all| all.iter().any(needs_test))
        }
        _ => false,
    }
}

/// Returns the name that an item defines, and whether a path may continue after the name.
fn defined(item: &Item) -> Option<(&syn::Ident, bool)> {
    Some(match item {
        Item::Const(item) => (&item.ident, false),
        Item::Enum(item) => (&item.ident, true),
        Item::Fn(item) => (&item.sig.ident, false),
        Item::Static(item) => (&item.ident, false),
        Item::Struct(item) => (&item.ident, true),
        Item::Trait(item) => (&item.ident, true),
        Item::TraitAlias(item) => (&item.ident, true),
        Item::Type(item) => (&item.ident, true),
        Item::Union(item) => (&item.ident, true),
        _ => return None,
    })
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
