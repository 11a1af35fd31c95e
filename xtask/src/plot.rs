//! Writes a table and a plot of the growth of costs.

use std::fmt::Write;

use serde_json::Value;

/// A curve: the rows that it is made of, and the numbers that it shows.
struct Curve {
    title: &'static str,
    workload: &'static str,
    cost: &'static str,
    unit: &'static str,
    /// The growing number, `n` or `s`. The other one has its usual value.
    grows: &'static str,
    with: (&'static str, u64),
}

const fn curve(title: &'static str, workload: &'static str, cost: &'static str, grows: &'static str) -> Curve {
    let with = if grows.as_bytes()[0] == b'n' { ("s", 1000) } else { ("n", 100_000) };
    let unit = if cost.as_bytes()[0] == b'n' { "µs" } else { "bytes" };
    Curve { title, workload, cost, unit, grows, with }
}

const CURVES: [Curve; 7] = [
    curve("F1: a change, 1,000 streams", "F1", "ns", "n"),
    curve("F3: an idle stream", "F3", "bytes", "n"),
    Curve { with: ("s", 1), ..curve("F5: the first stream", "F5 first", "ns", "n") },
    Curve { with: ("s", 1), ..curve("F5: each further stream", "F5 further", "ns", "n") },
    curve("F1: a change, 100,000 resources", "F1", "ns", "s"),
    curve("F3: an idle stream of so many", "F3", "bytes", "s"),
    curve("F5: all streams", "F5 all", "ns", "s"),
];

impl Curve {
    /// Returns the size and the cost of each point.
    fn points(&self, rows: &[Value]) -> Vec<(f64, f64)> {
        let (other, size) = self.with;
        let of_curve = |row: &&Value| row["workload"] == self.workload && row[other] == size;
        let scale = if self.cost == "ns" { 1000.0 } else { 1.0 };
        let point = |row: &Value| Some((row[self.grows].as_f64()?, row[self.cost].as_f64()? / scale));
        let mut points: Vec<_> = rows.iter().filter(of_curve).filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by_key(|point| point.0);
        points
    }
}

/// Returns a table of each curve.
pub fn table(rows: &[Value]) -> String {
    let mut text = "<!-- written by `cargo xtask scaling` -->\n".to_owned();
    for curve in &CURVES {
        let (grows, unit) = (curve.grows, curve.unit);
        let points = curve.points(rows);
        let line = |cell: &dyn Fn(&(f64, f64)) -> String| points.iter().map(cell).collect::<Vec<_>>().join(" | ");
        let lines = [
            format!("\n**{}**\n", curve.title),
            format!("| {grows} | {} |", line(&|point| short(point.0))),
            format!("|---|{}", "---:|".repeat(points.len())),
            format!("| {unit} | {} |", line(&|point| short(point.1))),
        ];
        text.extend(lines.iter().map(|line| format!("{line}\n")));
    }
    text
}

/// Formats a number with up to three digits, in thousands or millions if large.
fn short(value: f64) -> String {
    match value {
        0.0..10.0 => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        0.0..100.0 => format!("{value:.1}").trim_end_matches(".0").to_owned(),
        0.0..10_000.0 => format!("{value:.0}"),
        0.0..1_000_000.0 => format!("{:.0}k", value / 1000.0),
        _ => format!("{:.1}M", value / 1e6),
    }
}

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 220.0;
const COLUMNS: usize = 4;
/// The space around a panel's axes: left, top, right, bottom.
const MARGIN: [f64; 4] = [52.0, 30.0, 14.0, 34.0];

/// Draws a panel for each curve, with two logarithmic axes.
pub fn svg(rows: &[Value]) -> String {
    let lines = CURVES.len().div_ceil(COLUMNS);
    let (width, height) = (WIDTH * COLUMNS as f64, HEIGHT * lines as f64);
    let mut panels = String::new();
    for (at, curve) in CURVES.iter().enumerate() {
        let (x, y) = ((at % COLUMNS) as f64 * WIDTH, (at / COLUMNS) as f64 * HEIGHT);
        panels += &format!("<g transform=\"translate({x},{y})\">\n{}</g>\n", panel(curve, &curve.points(rows)));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{panels}</svg>\n"
    )
}

fn panel(curve: &Curve, points: &[(f64, f64)]) -> String {
    let mut panel = format!("<text x=\"{}\" y=\"18\" font-weight=\"bold\">{}</text>\n", MARGIN[0], curve.title);
    let decades = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let low = points.iter().map(of).fold(f64::INFINITY, f64::min).log10().floor();
        let high = points.iter().map(of).fold(0.0, f64::max).log10().ceil();
        (low, high.max(low + 1.0))
    };
    let (across, up) = (decades(&|point| point.0), decades(&|point| point.1));
    let along = |value: f64, (low, high): (f64, f64)| (value.log10() - low) / (high - low);
    let x = |value: f64| MARGIN[0] + along(value, across) * (WIDTH - MARGIN[0] - MARGIN[2]);
    let y = |value: f64| HEIGHT - MARGIN[3] - along(value, up) * (HEIGHT - MARGIN[1] - MARGIN[3]);
    let (left, right) = (x(10f64.powf(across.0)), x(10f64.powf(across.1)));
    let (bottom, top) = (y(10f64.powf(up.0)), y(10f64.powf(up.1)));
    for decade in across.0 as i32..=across.1 as i32 {
        let (value, at) = (10f64.powi(decade), x(10f64.powi(decade)));
        _ = writeln!(panel, "<path d=\"M{at:.1} {bottom:.1}V{top:.1}\" stroke=\"#ddd\"/>");
        panel += &text(at, bottom + 14.0, "middle", &short(value));
    }
    for decade in up.0 as i32..=up.1 as i32 {
        let (value, at) = (10f64.powi(decade), y(10f64.powi(decade)));
        _ = writeln!(panel, "<path d=\"M{left:.1} {at:.1}H{right:.1}\" stroke=\"#ddd\"/>");
        panel += &text(left - 4.0, at + 4.0, "end", &short(value));
    }
    let line: Vec<String> = points.iter().map(|&(size, cost)| format!("{:.1},{:.1}", x(size), y(cost))).collect();
    _ = writeln!(panel, "<polyline points=\"{}\" fill=\"none\" stroke=\"#06c\" stroke-width=\"2\"/>", line.join(" "));
    for &(size, cost) in points {
        _ = writeln!(panel, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"#06c\"/>", x(size), y(cost));
    }
    panel += &text((left + right) / 2.0, bottom + 28.0, "middle", curve.grows);
    panel += &text(2.0, top - 2.0, "start", curve.unit);
    panel
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}
