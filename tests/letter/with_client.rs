//! Our client beside a naive server.
use super::setup::{Setup, Step};
use super::walk::{Fault, Story, Walk};
use super::wire::Variant;
pub struct WithClient<V> { story: Story, v: std::marker::PhantomData<V> }
impl<V: Variant> Walk for WithClient<V> {
    fn new(_: Setup) -> Self { Self { story: Story::default(), v: std::marker::PhantomData } }
    fn take(&mut self, _: Step) -> Result<(), Fault> { Ok(()) }
    fn story(&mut self) -> &mut Story { &mut self.story }
}
