//! The order in which answers and changes of subscriptions are sent, so that no type starves another.

/// The turns on one stream. Answers and news alternate while both wait, and the types with news take turns; the types
/// with answers are in a queue of their own. A stream with nothing to send begins anew.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Turns {
    /// Whether the last request was an ACK or NACK.
    answered: bool,
    /// The number of the type that has the next turn to send news.
    next: usize,
}

impl Turns {
    /// Returns the number of the next of the types that has news.
    pub(super) fn next(&self, types: usize, has_news: impl Fn(usize) -> bool) -> Option<usize> {
        let next = self.next.min(types);
        (next..types).chain(0..next).find(|&at| has_news(at))
    }

    /// Chooses between an answer (`Ok`) and the news of a type (`Err`), and notes the choice.
    pub(super) fn choose(&mut self, answer: Option<usize>, news: Option<usize>) -> Option<Result<usize, usize>> {
        let answers = answer.filter(|_| news.is_none() || !self.answered);
        self.answered = answers.is_some();
        match (answers, news) {
            (Some(answer), _) => Some(Ok(answer)),
            (None, Some(news)) => {
                self.next = news + 1;
                Some(Err(news))
            }
            (None, None) => None,
        }
    }
}
