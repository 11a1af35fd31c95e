//! Reduces failing runs, whatever their steps are.

/// Removes runs of steps, long ones first, as long as `fails` returns the steps of a faulty run.
pub fn fewest<S: Clone>(mut steps: Vec<S>, mut fails: impl FnMut(Vec<S>) -> Option<Vec<S>>) -> Vec<S> {
    let mut size = steps.len();
    while size > 0 {
        let (mut at, before) = (0, steps.len());
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            match fails(fewer) {
                Some(fewer) => steps = fewer,
                None => at += size,
            }
        }
        size = if size == 1 && steps.len() < before { 1 } else { size / 2 };
    }
    steps
}
