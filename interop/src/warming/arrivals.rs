//! Changes that are made, and the time that each takes to arrive at a client.

use std::thread;
use std::time::{Duration, Instant};

/// The longest time that a change may take.
pub const BOUND: Duration = Duration::from_secs(2);
/// How long a change is waited for that took too long, because the time tells what it waited for.
const LIMIT: Duration = Duration::from_secs(30);
/// The time between two looks at a client.
const PAUSE: Duration = Duration::from_millis(50);

/// A change that was made.
struct Change {
    what: &'static str,
    /// Where the change is to be seen.
    sight: Sight,
    made: Instant,
    /// The time that it took to arrive.
    took: Option<Duration>,
    /// Why it is not seen yet.
    why: String,
}

/// A place in which a change is to be seen, and the text that shows the change.
pub type Sight = (&'static str, String);

/// Looks at a place of a client.
pub type Look<'l> = &'l mut dyn FnMut(&str) -> Result<String, String>;

#[derive(Default)]
pub struct Arrivals(Vec<Change>);

impl Arrivals {
    /// Makes a change, and notes when.
    pub fn made(
        &mut self,
        what: &'static str,
        sight: Sight,
        make: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        let made = Instant::now();
        make()?;
        self.0.push(Change { what, sight, made, took: None, why: "it was not looked for".into() });
        Ok(())
    }

    /// Looks at the client until a time has passed.
    pub fn watch(&mut self, time: Duration, look: Look<'_>) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.look(look);
            thread::sleep(PAUSE);
        }
    }

    /// Looks at the client until all changes have arrived.
    ///
    /// # Errors
    ///
    /// The changes that took longer than they may.
    pub fn finish(mut self, look: Look<'_>) -> Result<(), String> {
        let end = Instant::now() + LIMIT;
        while self.0.iter().any(|change| change.took.is_none()) && Instant::now() < end {
            self.look(look);
            thread::sleep(PAUSE);
        }
        let late: Vec<String> = self.0.iter().filter_map(Change::complaint).collect();
        if late.is_empty() { Ok(()) } else { Err(late.join("; ")) }
    }

    fn look(&mut self, look: Look<'_>) {
        for change in self.0.iter_mut().filter(|change| change.took.is_none()) {
            let (place, text) = &change.sight;
            match look(place) {
                Ok(seen) if seen.contains(text) => change.took = Some(change.made.elapsed()),
                Ok(_) => change.why = format!("{place} has no {text}"),
                Err(error) => change.why = error,
            }
        }
    }
}

impl Change {
    fn complaint(&self) -> Option<String> {
        match self.took {
            Some(took) if took <= BOUND => None,
            Some(took) => Some(format!("the {} took {took:.1?}", self.what)),
            None => Some(format!("the {} is not there after {:.0?}: {}", self.what, self.made.elapsed(), self.why)),
        }
    }
}
