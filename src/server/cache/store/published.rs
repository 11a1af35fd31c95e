//! Resources that are encoded together: slots side by side, and what was published of them.

use alloc::string::String;
use alloc::vec::Vec;

use super::slot::Slot;
use crate::ensure::ensure;
use crate::name::TypeUrl;
use crate::server::page::Page;
use crate::server::variant::Variant;

#[derive(Clone, Debug)]
pub(super) struct Published {
    /// Slots in a page.
    size: usize,
    pages: Vec<Encoded>,
    /// The pages to publish, for each variant.
    stale: [Vec<u32>; 2],
}

/// What was published of some slots.
#[derive(Clone, Debug, Default)]
struct Encoded {
    /// `None` where it is not true any more.
    page: Option<Page>,
    /// For each variant, whether it is in the list of those to publish.
    stale: [bool; 2],
}

impl Published {
    pub(super) fn new(size: usize) -> Self {
        Self { size, pages: Vec::new(), stale: [Vec::new(), Vec::new()] }
    }

    /// A slot changed.
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

    /// The page of a number, made now if it was not published.
    pub(super) fn page(&self, slots: &[Slot], at: usize) -> Option<Page> {
        let slots = slots.chunks(self.size).nth(at)?;
        let page = self.pages.get(at).and_then(|encoded| encoded.page.as_ref());
        Some(page.cloned().unwrap_or_else(|| Page::new(slots.iter().filter_map(Slot::resource).cloned().collect())))
    }

    pub(super) fn bytes(&self) -> usize {
        self.pages.iter().filter_map(|encoded| encoded.page.as_ref()).map(Page::encoded_bytes).sum()
    }

    /// What is published is true, and what is not is to be.
    pub(super) fn check(&self, slots: &[Slot]) -> Result<(), String> {
        for (at, encoded) in self.pages.iter().enumerate() {
            let slots = || slots.iter().skip(at * self.size).take(self.size).filter_map(Slot::resource);
            let true_to_life = |page: &Page| page.resources().iter().eq(slots());
            ensure!(encoded.page.as_ref().is_none_or(true_to_life), "page {at} is out of date");
            for (stale, &listed) in self.stale.iter().zip(&encoded.stale) {
                let times = stale.iter().filter(|&&page| page as usize == at).count();
                ensure!(times == usize::from(listed), "page {at} is to be published, and listed {times} times");
                ensure!(listed || encoded.page.is_some(), "page {at} is nowhere");
            }
        }
        Ok(())
    }
}
