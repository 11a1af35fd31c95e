//! Finds the paths in the tokens of a macro, which need not be valid Rust.

use proc_macro2::{Spacing, TokenStream, TokenTree};

use super::modules::text;

/// Returns the paths in some tokens: those of two names or more, and single names that begin with a capital.
pub(super) fn paths(tokens: &TokenStream) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    add_paths(tokens, &mut all);
    all.retain(|path| path.len() > 1 || is_capital(&path[0]));
    all
}

/// Returns the names in some tokens that are not part of a path.
pub(super) fn single_names(tokens: &TokenStream) -> Vec<String> {
    let mut all = Vec::new();
    add_paths(tokens, &mut all);
    all.into_iter().filter(|path| path.len() == 1).flatten().collect()
}

/// Returns whether a name is that of a type or of a constant.
pub(super) fn is_capital(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

fn add_paths(tokens: &TokenStream, to: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = &tokens[..at];
        at += 1;
        match token {
            TokenTree::Group(group) => add_paths(&group.stream(), to),
            TokenTree::Ident(ident) => {
                let mut path = vec![text(ident)];
                while let Some(name) = next_of_path(&tokens[at..]) {
                    path.push(name);
                    at += 3;
                }
                if !is_part(before, &path[0]) {
                    to.push(path);
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the name after two colons.
fn next_of_path(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [TokenTree::Punct(one), TokenTree::Punct(two), TokenTree::Ident(name), ..]
            if one.as_char() == ':' && one.spacing() == Spacing::Joint && two.as_char() == ':' =>
        {
            Some(text(name))
        }
        _ => None,
    }
}

/// Returns whether a name belongs to the tokens before it: a field, a method, a lifetime, a variable of the macro, or a
/// name after `::` that follows no name.
fn is_part(before: &[TokenTree], name: &str) -> bool {
    let mark = |back: usize| match before.len().checked_sub(back).map(|at| &before[at]) {
        Some(TokenTree::Punct(punct)) => punct.as_char(),
        _ => ' ',
    };
    match mark(1) {
        '.' => mark(2) != '.',
        '$' => name != "crate",
        '\'' => true,
        ':' => mark(2) == ':',
        _ => false,
    }
}
