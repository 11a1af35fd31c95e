//! Durations of a command line.

use std::time::Duration;

/// Reads a number with `ms`, `s` or `m`; without any of these it is seconds.
///
/// # Errors
///
/// If it is no such number, or a negative one.
pub fn read(time: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0)];
    let unit = units.iter().find_map(|(unit, seconds)| Some((time.strip_suffix(unit)?, *seconds)));
    let (number, seconds) = unit.unwrap_or((time, 1.0));
    let time = number.parse().ok().and_then(|number: f64| Duration::try_from_secs_f64(number * seconds).ok());
    time.ok_or_else(|| "it must be a number with ms, s or m".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_with_an_optional_unit() {
        for (text, millis) in [("250ms", 250), ("1.5s", 1500), ("2m", 120_000), ("3", 3000), ("0s", 0)] {
            assert_eq!(read(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1s", "1h", "NaNs", "infs", "1e400s"] {
            assert_eq!(read(text), Err("it must be a number with ms, s or m".into()), "{text}");
        }
    }
}
