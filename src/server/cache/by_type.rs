//! A map by type. A stream looks up a dozen values for each response, among a handful of types: a linear scan takes
//! fewer steps than a tree, and the values are stored apart from the URLs.

use alloc::vec::Vec;

use crate::name::TypeUrl;

/// A map in the order of the type URLs.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct ByType<T> {
    urls: Vec<TypeUrl>,
    values: Vec<T>,
}

impl<T> ByType<T> {
    pub(super) const fn new() -> Self {
        Self { urls: Vec::new(), values: Vec::new() }
    }

    #[inline]
    pub(super) fn get(&self, type_url: &TypeUrl) -> Option<&T> {
        let at = match type_url.number() {
            Some(number) => self.urls.iter().position(|url| url.number() == Some(number)),
            None => self.find(type_url),
        };
        self.values.get(at?)
    }

    #[inline(never)] // keeps the usual case, which compares no strings, short
    fn find(&self, type_url: &TypeUrl) -> Option<usize> {
        self.urls.iter().position(|url| url == type_url)
    }

    pub(super) fn get_or_insert_with(&mut self, type_url: &TypeUrl, new: impl FnOnce() -> T) -> &mut T {
        let at = self.urls.binary_search(type_url).unwrap_or_else(|at| {
            self.urls.insert(at, type_url.clone());
            self.values.insert(at, new());
            at
        });
        &mut self.values[at]
    }

    pub(super) fn urls(&self) -> impl Iterator<Item = &TypeUrl> {
        self.urls.iter()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&TypeUrl, &T)> {
        self.urls.iter().zip(&self.values)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&TypeUrl, &mut T)> {
        self.urls.iter().zip(&mut self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_by_type_url_in_any_order_of_insertion() {
        let mut by_type = ByType::new();
        for (number, url) in ["b", "c", "a", "b"].into_iter().enumerate() {
            by_type.get_or_insert_with(&url.into(), || number);
        }
        *by_type.get_or_insert_with(&"c".into(), || 7) += 10;
        let all: Vec<_> = by_type.iter().map(|(url, number)| (url.as_str(), *number)).collect();
        assert_eq!(all, [("a", 2), ("b", 0), ("c", 11)]);
        assert_eq!(by_type.get(&"b".into()), Some(&0));
        assert_eq!(by_type.get(&"d".into()), None);
    }
}
