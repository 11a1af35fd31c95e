//! Polls over REST that are answered "not modified".

use std::hint::black_box;

use xds_machine::ResourceName;
use xds_machine::message::sotw;
use xds_machine::poll::{Question, Reply};
use xds_machine::server::{Cache, Config, Source};

use super::nothing::TIMES;
use crate::data::{cache, clusters, name};
use crate::measure::Work;

fn question(names: Vec<ResourceName>, cache: &Cache) -> Question {
    let request = sotw::Request { names, ..sotw::Request::new(clusters()) };
    let first = Question::new(&Config::ads(), request.clone()).expect("within the limits");
    let Reply::Response(response) = first.answer(cache) else { panic!("a first poll") };
    let request = sotw::Request { version: response.version().clone(), ..request };
    Question::new(&Config::ads(), request).expect("within the limits")
}

/// Polls for all resources.
pub struct NotModified(Cache, Question);

impl NotModified {
    pub fn new(n: usize) -> Self {
        let cache = cache(&clusters(), n);
        let question = question(Vec::new(), &cache);
        Self(cache, question)
    }
}

impl Work for NotModified {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {
        (0..TIMES).for_each(|_| assert_eq!(self.1.answer(&self.0), Reply::NotModified));
    }
}

/// A poll for some resources by their names.
pub struct NamedPoll(Cache, Question);

impl NamedPoll {
    pub fn new(n: usize, names: usize) -> Self {
        let cache = cache(&clusters(), n);
        let question = question((0..names).map(|i| name(i * (n / names)).into()).collect(), &cache);
        Self(cache, question)
    }
}

impl Work for NamedPoll {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {
        assert_eq!(self.1.answer(&self.0), Reply::NotModified);
    }
}

/// The floor: looks the names up in the store.
pub struct LookUps(Cache, Vec<ResourceName>);

impl LookUps {
    pub fn new(n: usize, names: usize) -> Self {
        Self(cache(&clusters(), n), (0..names).map(|i| name(i * (n / names)).into()).collect())
    }
}

impl Work for LookUps {
    type Input = ();
    type Output = ();

    fn prepare(&mut self) {}

    fn run(&mut self, (): ()) {
        let of = clusters();
        let found = self.1.iter().filter(|&name| black_box(self.0.get(&of, name)).resource().is_some());
        assert_eq!(found.count(), self.1.len());
    }
}
