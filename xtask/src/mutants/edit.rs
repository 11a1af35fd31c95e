//! Inserts the mutants of a file into its source. A mutant needs a host: the body of a function, or an expression that
//! becomes a choice between the mutated text and the original.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::list::{Genre, Mutant};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// An expression; `bare` if it is a statement.
    Expression {
        bare: bool,
    },
    Body,
    /// The body of a function that returns `impl Trait`.
    Opaque,
    /// The keyword `const`, which is removed: a function with mutants is not `const`.
    Const,
}

#[derive(Debug)]
struct Host {
    genre: Genre,
    kind: Kind,
    range: Range<usize>,
}

/// Finds the possible hosts. Constants can't hold a switch.
#[derive(Default)]
struct Finder {
    hosts: Vec<Host>,
    /// The keyword `const` of functions, and their bodies.
    constants: Vec<(Range<usize>, Range<usize>)>,
    /// Inside operands, the host is the complete chain of operators, because another operator may bind its operands
    /// differently.
    chained: bool,
    statement: bool,
}

impl Finder {
    fn host(&mut self, genre: Genre, kind: Kind, span: Span) {
        self.hosts.push(Host { genre, kind, range: span.byte_range() });
    }

    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        struct Opaque(bool);
        impl Visit<'_> for Opaque {
            fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
                self.0 = true;
            }
        }
        let mut opaque = Opaque(false);
        opaque.visit_return_type(&signature.output);
        self.host(Genre::Function, if opaque.0 { Kind::Opaque } else { Kind::Body }, body.span());
        if let Some(word) = signature.constness {
            self.constants.push((word.span().byte_range(), body.span().byte_range()));
        }
    }
}

impl Visit<'_> for Finder {
    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body);
            visit::visit_trait_item_fn(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &syn::ItemConst) {}

    fn visit_impl_item_const(&mut self, _: &syn::ImplItemConst) {}

    fn visit_item_static(&mut self, _: &syn::ItemStatic) {}

    fn visit_pat(&mut self, _: &syn::Pat) {}

    fn visit_type(&mut self, _: &syn::Type) {}

    fn visit_stmt(&mut self, statement: &syn::Stmt) {
        self.statement = matches!(statement, syn::Stmt::Expr(syn::Expr::Match(_), _));
        visit::visit_stmt(self, statement);
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.host(Genre::Guard, Kind::Expression { bare: false }, guard.span());
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr(&mut self, expression: &syn::Expr) {
        let statement = std::mem::take(&mut self.statement);
        let chained = std::mem::take(&mut self.chained);
        let (genre, bare) = match expression {
            syn::Expr::Binary(_) if chained => (None, false),
            syn::Expr::Binary(_) => (Some(Genre::Binary), false),
            syn::Expr::Unary(_) => (Some(Genre::Unary), false),
            syn::Expr::Struct(_) => (Some(Genre::Field), false),
            syn::Expr::Match(_) => (Some(Genre::Arm), statement),
            _ => (None, false),
        };
        if let Some(genre) = genre {
            self.host(genre, Kind::Expression { bare }, expression.span());
        }
        if let syn::Expr::Binary(binary) = expression {
            for operand in [&binary.left, &binary.right] {
                self.chained = true;
                self.visit_expr(operand);
            }
            self.chained = false;
        } else {
            visit::visit_expr(self, expression);
        }
    }
}

/// A file with its mutants inserted.
#[derive(Default)]
pub struct Edited {
    pub text: String,
    /// The range of each mutant.
    pub places: Vec<(usize, Range<usize>)>,
    /// The range of each host, with the mutants in it.
    pub hosts: Vec<(Range<usize>, Vec<usize>)>,
    /// The position of each removed `const`, with the mutants in the body of its function.
    pub constants: Vec<(usize, Vec<usize>)>,
    /// The mutants without a host.
    pub homeless: Vec<usize>,
    /// The mutants in functions that return `impl Trait`.
    pub opaque: Vec<usize>,
}

pub fn edit(source: &str, mutants: &[&Mutant]) -> Result<Edited, syn::Error> {
    let mut finder = Finder::default();
    finder.visit_file(&syn::parse_file(source)?);
    let Finder { mut hosts, constants, .. } = finder;
    // Outer hosts first; of hosts with the same range, the body of a function first.
    hosts.sort_by_key(|host| (host.range.start, usize::MAX - host.range.end, host.genre != Genre::Function));
    let mut guests: Vec<Vec<&Mutant>> = hosts.iter().map(|_| Vec::new()).collect();
    let mut edited = Edited::default();
    for &mutant in mutants {
        let fits = |host: &Host| {
            host.genre == mutant.genre && host.range.start <= mutant.span.start && mutant.span.end <= host.range.end
        };
        match hosts.iter().rposition(fits) {
            Some(at) => guests[at].push(mutant),
            None => edited.homeless.push(mutant.id),
        }
    }
    for (range, body) in constants {
        let inside = |host: &Host| body.start <= host.range.start && host.range.end <= body.end;
        let within = hosts.iter().zip(&guests).filter(|(host, _)| inside(host));
        let guests_of_body = within.flat_map(|(_, guests)| guests.iter().copied()).collect();
        let at = hosts.partition_point(|host| host.range.start < range.start);
        hosts.insert(at, Host { genre: Genre::Function, kind: Kind::Const, range });
        guests.insert(at, guests_of_body);
    }
    let inhabited = hosts.into_iter().zip(guests).filter(|(_, guests)| !guests.is_empty()).collect::<Vec<_>>();
    Writer { source, hosts: &inhabited, edited: &mut edited }.copy(0..source.len(), 0);
    Ok(edited)
}

struct Writer<'a> {
    source: &'a str,
    hosts: &'a [(Host, Vec<&'a Mutant>)],
    edited: &'a mut Edited,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.edited.text.push_str(text);
    }

    /// Copies a range, the first host of which is at `next` or later.
    fn copy(&mut self, range: Range<usize>, mut next: usize) {
        let mut done = range.start;
        while let Some((host, guests)) = self.hosts.get(next).filter(|(host, _)| host.range.start < range.end) {
            if host.range.start >= done {
                self.push(&self.source[done..host.range.start]);
                done = host.range.end;
                self.host(host, guests, next);
            }
            next += 1;
        }
        self.push(&self.source[done..range.end]);
    }

    fn host(&mut self, host: &Host, guests: &[&Mutant], at: usize) {
        let start = self.edited.text.len();
        let Range { start: from, end: to } = host.range;
        match host.kind {
            Kind::Expression { bare } => {
                self.push(if bare { "" } else { "(" });
                for mutant in guests {
                    let text =
                        [&self.source[from..mutant.span.start], &mutant.replacement, &self.source[mutant.span.end..to]];
                    self.guest(mutant, &text.concat());
                    self.push("else ");
                }
                self.push("{ ");
                self.copy(from..to, at + 1);
                self.push(if bare { " }" } else { " })" });
            }
            Kind::Body => {
                self.push("{");
                for mutant in guests {
                    self.guest(mutant, &format!("return {};", mutant.replacement));
                }
                self.copy(from + 1..to, at + 1);
            }
            Kind::Opaque => {
                self.push("{ ");
                for mutant in guests {
                    self.edited.opaque.push(mutant.id);
                    self.guest(mutant, &format!("crate::mutants::Either::A({})", mutant.replacement));
                    self.push("else { crate::mutants::Either::B(");
                }
                self.copy(from..to, at + 1);
                self.push(&") }".repeat(guests.len()));
                self.push(" }");
            }
            Kind::Const => {}
        }
        let ids = guests.iter().map(|mutant| mutant.id).collect();
        if host.kind == Kind::Const {
            self.edited.constants.push((start, ids));
            return;
        }
        self.edited.hosts.push((start..self.edited.text.len(), ids));
    }

    fn guest(&mut self, mutant: &Mutant, text: &str) {
        let start = self.edited.text.len();
        self.push(&format!("if crate::mutants::on({}) {{ {text} }} ", mutant.id));
        self.edited.places.push((mutant.id, start..self.edited.text.len()));
    }
}
