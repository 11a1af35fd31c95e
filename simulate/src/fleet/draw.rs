//! The plots.

use std::fmt::Write;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 220.0;
const COLOURS: [&str; 10] =
    ["#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#eeca3b", "#ff9da6", "#79706e"];

/// A plot: curves with names over time in seconds.
pub struct Plot {
    pub title: String,
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
    pub unit: &'static str,
}

/// Returns the plots side by side, as SVG.
pub fn draw(plots: &[Plot]) -> String {
    let (step, height) = (WIDTH + 90.0, HEIGHT + 110.0);
    let width = step * plots.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\">\n\
         <style>text{{font:12px sans-serif;fill:#333}}path{{fill:none;stroke-width:1.6}}.axis{{stroke:#999}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (number, plot) in plots.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate({} 34)\">", 60.0 + step * number as f64);
        plot.draw(&mut svg);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

impl Plot {
    fn draw(&self, svg: &mut String) {
        let points = || self.curves.iter().flat_map(|(_, points)| points);
        let end = points().map(|point| point.0).fold(1e-9, f64::max);
        let most = points().map(|point| point.1).fold(1e-9, f64::max);
        let _ = writeln!(svg, "<text x=\"0\" y=\"-16\" font-weight=\"bold\">{}</text>", self.title);
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M0 0V{HEIGHT}H{WIDTH}\"/>");
        for part in 0..=4 {
            let part = f64::from(part) / 4.0;
            let (x, y) = (part * WIDTH, HEIGHT - part * HEIGHT);
            let _ = writeln!(svg, "<text x=\"{:.0}\" y=\"{}\">{} s</text>", x - 8.0, HEIGHT + 16.0, short(part * end));
            let _ = writeln!(svg, "<text x=\"-8\" y=\"{y:.0}\" text-anchor=\"end\">{}</text>", short(part * most));
        }
        let _ = writeln!(svg, "<text x=\"4\" y=\"-2\">{}</text>", self.unit);
        for (number, (name, points)) in self.curves.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let mut path = String::new();
            for (at, value) in points {
                let (x, y) = (at / end * WIDTH, HEIGHT - value / most * HEIGHT);
                let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
            }
            let _ = writeln!(svg, "<path stroke=\"{colour}\" d=\"{path}\"/>");
            let (x, y) = ((number % 5) as f64 * 90.0, HEIGHT + 40.0 + (number / 5) as f64 * 18.0);
            let names = if self.curves.len() > 4 { (x, y) } else { (0.0, HEIGHT + 36.0 + number as f64 * 15.0) };
            let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" style=\"fill:{colour}\">{name}</text>", names.0, names.1);
        }
    }
}

fn short(number: f64) -> String {
    match number {
        _ if number >= 1000.0 => format!("{:.1}k", number / 1000.0),
        _ if number >= 10.0 || number == 0.0 => format!("{number:.0}"),
        _ => format!("{number:.1}"),
    }
}
