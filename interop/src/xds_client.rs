use crate::Line;
use std::path::Path;
pub fn play(_: &Path, _: &Path, _: &'static str, _: &mut Vec<Line>) {}
