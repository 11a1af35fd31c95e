//! Questions that only walks can ask: about the age of what is pending, about the cost of a step, and about the
//! difference that another type makes. Each is seen to fail with a seeded bug.

mod hunger;
