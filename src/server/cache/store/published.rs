//! Pages of resources that are encoded together: adjacent slots, and their published encodings.

use alloc::string::String;
use alloc::vec::Vec;

use super::slot::Slot;
use crate::ensure::ensure;
use crate::name::TypeUrl;
use crate::server::page::Page;
use crate::server::variant::Variant;

#[derive(Clone, Debug)]
pub(super) struct Published {
    /// Number of slots in a page.
    size: usize,
    pages: Vec<Encoded>,
    /// Pages to publish, for each variant.
    stale: [Vec<u32>; 2],
}

/// The published encodings of a page.
#[derive(Clone, Debug, Default)]
struct Encoded {
    /// The page; `None` once it is out of date.
    page: Option<Page>,
    /// For each variant, whether the page is listed for publication.
    stale: [bool; 2],
}

impl Published {
    pub(super) fn new(size: usize) -> Self {
        Self { size, pages: Vec::new(), stale: [Vec::new(), Vec::new()] }
    }

    /// Marks the page of a changed slot as out of date.
    pub(super) fn mark(&mut self, slot: usize) {
        let at = slot / self.size;
        if self.pages.len() <= at {
            self.pages.resize(at + 1, Encoded::default());
        }
        let encoded = &mut self.pages[at];
        encoded.page = None;
        for (stale, listed) in self.stale.iter_mut().zip(&mut encoded.stale) {
            if !core::mem::replace(listed, true) {
                stale.push(at as u32);
            }
        }
    }

    pub(super) fn publish<V: Variant>(&mut self, slots: &[Slot], type_url: &TypeUrl) {
        for at in core::mem::take(&mut self.stale[V::NUMBER]) {
            let encoded = &mut self.pages[at as usize];
            encoded.page = Some(match encoded.page.take() {
                Some(page) => page.encoded::<V>(type_url),
                None => {
                    let slots = slots.chunks(self.size).nth(at as usize).unwrap_or_default();
                    Page::of::<V>(slots.iter().filter_map(Slot::resource), self.size, type_url)
                }
            });
            encoded.stale[V::NUMBER] = false;
        }
    }

    /// Returns the page of a number, built now if it was not published.
    pub(super) fn page(&self, slots: &[Slot], at: usize) -> Option<Page> {
        let slots = slots.chunks(self.size).nth(at)?;
        let page = self.pages.get(at).and_then(|encoded| encoded.page.as_ref());
        Some(page.cloned().unwrap_or_else(|| Page::new(slots.iter().filter_map(Slot::resource).cloned().collect())))
    }

    pub(super) fn bytes(&self) -> usize {
        self.pages.iter().filter_map(|encoded| encoded.page.as_ref()).map(Page::encoded_bytes).sum()
    }

    /// Checks that published pages are up to date, and that all others are listed for publication.
    pub(super) fn check(&self, slots: &[Slot]) -> Result<(), String> {
        for (at, encoded) in self.pages.iter().enumerate() {
            let slots = || slots.iter().skip(at * self.size).take(self.size).filter_map(Slot::resource);
            let up_to_date = |page: &Page| page.resources().iter().eq(slots());
            ensure!(encoded.page.as_ref().is_none_or(up_to_date), "page {at} is out of date");
            for (stale, &listed) in self.stale.iter().zip(&encoded.stale) {
                let times = stale.iter().filter(|&&page| page as usize == at).count();
                ensure!(times == usize::from(listed), "page {at} is to be published, and listed {times} times");
                ensure!(listed || encoded.page.is_some(), "page {at} is nowhere");
            }
        }
        Ok(())
    }
}
