//! Finds the arrows: the pairs of files of which the first names items of the second.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, ImplItem, Item, Stmt, Token, TraitItem};

use super::modules::{ModuleId, Target, Tree, attributes, is_re_export, is_test, leaves, text};
use super::tokens;
use crate::run::Result;

/// The arrows, from file to file, with the items that the first file names.
pub(super) type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// Returns all arrows of a crate.
pub(super) fn all(tree: &Tree) -> Result<Arrows> {
    let mut arrows = Arrows::new();
    for (file, module, content) in &tree.files {
        let module = *module;
        let mut finder = Finder { tree, file, module, locals: Vec::new(), arrows: &mut arrows, lost: Vec::new() };
        finder.visit_file(content);
        if let [first, ..] = &finder.lost[..] {
            return Err(format!("{file}: {first} leads to nothing").into());
        }
    }
    Ok(arrows)
}

struct Finder<'a> {
    tree: &'a Tree,
    file: &'a str,
    module: ModuleId,
    /// The names that `use` declares in the enclosing blocks, the innermost last.
    locals: Vec<(String, Vec<String>)>,
    arrows: &'a mut Arrows,
    /// Paths into the crate that lead to nothing.
    lost: Vec<String>,
}

impl Finder<'_> {
    /// Adds a path in code. Its first name may be declared in a block.
    fn add_path(&mut self, path: &[String]) {
        let local = self.locals.iter().rev().find(|(name, _)| Some(name) == path.first());
        match local.map(|(_, start)| [start, &path[1..]].concat()) {
            Some(whole) => self.add(&whole),
            None => self.add(path),
        }
    }

    fn add(&mut self, path: &[String]) {
        let targets = self.tree.resolve(self.module, path);
        let inside = path.first().is_some_and(|first| ["crate", "self", "super"].contains(&first.as_str()));
        if targets.is_empty() && inside {
            self.lost.push(path.join("::"));
        }
        for target in targets {
            match target {
                Target::Item { file, name, .. } if file != self.file => {
                    _ = self.arrows.entry((self.file.to_owned(), file)).or_default().insert(name);
                }
                _ => {}
            }
        }
    }

    /// Adds the paths in the arguments of a macro.
    fn add_arguments(&mut self, arguments: &TokenStream) {
        if let Ok(expressions) = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(arguments.clone()) {
            expressions.iter().for_each(|expression| self.visit_expr(expression));
        } else if let Ok(statements) = syn::Block::parse_within.parse2(arguments.clone()) {
            statements.iter().for_each(|statement| self.visit_stmt(statement));
        } else {
            self.add_tokens(arguments);
        }
    }

    fn add_tokens(&mut self, tokens: &TokenStream) {
        tokens::paths(tokens).iter().for_each(|path| self.add_path(path));
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[_] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes: &[_] = match item {
            TraitItem::Const(item) => &item.attrs,
            TraitItem::Fn(item) => &item.attrs,
            TraitItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let (Some((_, items)), Some(inner)) = (&item.content, self.tree.child(self.module, &text(&item.ident))) else {
            return;
        };
        let outer = std::mem::replace(&mut self.module, inner);
        items.iter().for_each(|item| self.visit_item(item));
        self.module = outer;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() && !is_re_export(item) {
            leaves(&item.tree).iter().for_each(|leaf| self.add(&leaf.path));
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let outer = self.locals.len();
        for statement in &block.stmts {
            if let Stmt::Item(Item::Use(item)) = statement {
                self.locals.extend(leaves(&item.tree).into_iter().filter_map(|leaf| Some((leaf.name?, leaf.path))));
            }
        }
        visit::visit_block(self, block);
        self.locals.truncate(outer);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names: Vec<String> = path.segments.iter().map(|segment| text(&segment.ident)).collect();
            self.add_path(&names);
        }
        visit::visit_path(self, path);
    }

    /// A constant in a pattern looks like a new variable; its capital tells it apart.
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        let name = text(&pattern.ident);
        if tokens::is_capital(&name) {
            self.add_path(&[name]);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        match item.ident {
            Some(_) => self.add_tokens(&item.mac.tokens),
            None => self.visit_macro(&item.mac),
        }
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.add_arguments(&item.tokens);
    }
}
