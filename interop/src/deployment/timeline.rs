//! The picture: requests, pushes, ACKs and kills over time.

use std::fmt::Write;

use jiff::Timestamp;

use super::cast::{ENVOYS, REPLICAS};
use super::story::Told;
use super::summary::seconds;

/// The width of the time axis, and the space to its left, in pixels.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 90.0;
const LANE: f64 = 46.0;
const TOP: f64 = 40.0;

/// The width of a bar of requests, in seconds.
const BIN: f64 = 0.2;

const LANES: [&str; 7] = [ENVOYS[0], ENVOYS[1], REPLICAS[0], REPLICAS[1], "etcd-1", "etcd-2", "etcd-3"];

const STYLE: &str = "text{font:12px sans-serif;fill:#333}.a{fill:#4c78a8}.b{fill:#f2a34c}.lost{fill:#d00}\
.life{fill:#dfe7e0}.dead{fill:#f3c4c0}.push{stroke:#2a6f4e;stroke-width:1.5}.ack{fill:#2a6f4e}\
.change{stroke:#bbb}.txn{stroke:#888;stroke-dasharray:3 2}.kill{stroke:#d00;stroke-width:1.5}";

struct Picture<'a> {
    told: &'a Told,
    svg: String,
}

/// Returns the picture as SVG.
pub fn draw(told: &Told) -> String {
    let height = TOP + LANE * LANES.len() as f64 + 62.0;
    let width = LEFT + WIDTH + 20.0;
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\">\n<style>{STYLE}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    let mut picture = Picture { told, svg };
    picture.lanes();
    picture.changes();
    picture.requests();
    picture.streams();
    picture.kills();
    picture.legend(height);
    picture.svg.push_str("</svg>\n");
    picture.svg
}

impl Picture<'_> {
    fn length(&self) -> f64 {
        seconds(self.told.begin, self.told.end)
    }

    fn x(&self, at: Timestamp) -> f64 {
        LEFT + (seconds(self.told.begin, at) / self.length()).clamp(0.0, 1.0) * WIDTH
    }

    fn bottom(&self) -> f64 {
        TOP + LANE * LANES.len() as f64
    }

    /// Draws the lives of replicas and members.
    fn lanes(&mut self) {
        for (number, lane) in LANES.iter().enumerate() {
            let y = TOP + LANE * number as f64;
            let _ = writeln!(self.svg, "<text x=\"8\" y=\"{}\">{lane}</text>", y + LANE / 2.0 + 4.0);
            if number < ENVOYS.len() {
                continue;
            }
            let _ = writeln!(
                self.svg,
                "<rect class=\"life\" x=\"{LEFT}\" y=\"{}\" width=\"{WIDTH}\" height=\"{}\"/>",
                y + 8.0,
                LANE - 16.0
            );
            let mut acts = self.told.acts.iter().filter(|act| act.who == *lane);
            while let Some(kill) = acts.next() {
                let (from, to) = (self.x(kill.at), acts.next().map_or(LEFT + WIDTH, |act| self.x(act.at)));
                let _ = writeln!(
                    self.svg,
                    "<rect class=\"dead\" x=\"{from:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"/>",
                    y + 8.0,
                    to - from,
                    LANE - 16.0
                );
            }
        }
        for second in 0..=self.length() as u32 {
            let x = LEFT + f64::from(second) / self.length() * WIDTH;
            if second % 2 == 0 {
                let _ =
                    writeln!(self.svg, "<text x=\"{:.1}\" y=\"{}\">{second} s</text>", x - 6.0, self.bottom() + 16.0);
            }
        }
    }

    fn changes(&mut self) {
        for change in &self.told.changes {
            let (x, class) = (self.x(change.at), if change.is_transaction { "txn" } else { "change" });
            let _ = writeln!(self.svg, "<path class=\"{class}\" d=\"M{x:.1} {TOP}V{}\"/>", self.bottom());
        }
    }

    /// Draws bars of the requests, by the backend that answered.
    fn requests(&mut self) {
        let bins = (self.length() / BIN).ceil() as usize + 1;
        for (lane, requests) in self.told.requests.iter().enumerate() {
            let mut counts = vec![[0_u32; 3]; bins];
            for request in requests {
                let bin = (seconds(self.told.begin, request.at).max(0.0) / BIN) as usize;
                let which = match request.answer.as_deref() {
                    Ok("a") => 0,
                    Ok(_) => 1,
                    Err(_) => 2,
                };
                counts[bin.min(bins - 1)][which] += 1;
            }
            let most = counts.iter().map(|count| count.iter().sum::<u32>()).max().unwrap_or(1).max(1);
            for (bin, count) in counts.iter().enumerate() {
                let (x, width) = (LEFT + bin as f64 * BIN / self.length() * WIDTH, BIN / self.length() * WIDTH);
                let mut y = TOP + LANE * (lane + 1) as f64 - 4.0;
                for (class, count) in ["a", "b", "lost"].iter().zip(count).filter(|(_, count)| **count > 0) {
                    let height = f64::from(*count) / f64::from(most) * (LANE - 10.0);
                    y -= height;
                    let _ = writeln!(
                        self.svg,
                        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
                    );
                }
            }
        }
    }

    /// Draws the pushes and ACKs of each replica: a line for a push, below it a dot for an ACK.
    fn streams(&mut self) {
        for (replica, events) in self.told.events.iter().enumerate() {
            let y = TOP + LANE * (ENVOYS.len() + replica) as f64;
            for seen in events.iter().filter(|seen| seen.at >= self.told.begin) {
                let x = self.x(seen.at);
                let _ = match seen.event.as_str() {
                    "send" if seen.resources > 0 => {
                        writeln!(self.svg, "<path class=\"push\" d=\"M{x:.1} {}v12\"/>", y + 10.0)
                    }
                    "ack" => writeln!(self.svg, "<circle class=\"ack\" cx=\"{x:.1}\" cy=\"{}\" r=\"2\"/>", y + 30.0),
                    _ => Ok(()),
                };
            }
        }
    }

    fn kills(&mut self) {
        for act in &self.told.acts {
            let x = self.x(act.at);
            let what = if act.is_kill { "killed" } else { "back" };
            if act.is_kill {
                let _ = writeln!(self.svg, "<path class=\"kill\" d=\"M{x:.1} {}V{}\"/>", TOP - 6.0, self.bottom());
            }
            let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{}\">{} {what}</text>", TOP - 12.0, act.who);
        }
    }

    fn legend(&mut self, height: f64) {
        let y = height - 18.0;
        let words = [
            ("a", "answered by backend a"),
            ("b", "by backend b"),
            ("lost", "lost"),
            ("dead", "not running"),
            ("ack", "ACK"),
        ];
        let mut x = LEFT;
        for (class, text) in words {
            let _ =
                writeln!(self.svg, "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\"/>", y - 9.0);
            let _ = writeln!(self.svg, "<text x=\"{}\" y=\"{y}\">{text}</text>", x + 15.0);
            x += 30.0 + 7.0 * text.len() as f64;
        }
        let _ = writeln!(
            self.svg,
            "<path class=\"push\" d=\"M{x} {}v12\"/><text x=\"{}\" y=\"{y}\">push</text>",
            y - 10.0,
            x + 8.0
        );
        let _ = writeln!(
            self.svg,
            "<path class=\"txn\" d=\"M{} {}v14\"/><text x=\"{}\" y=\"{y}\">a transaction in etcd; light: a change of endpoints</text>",
            x + 60.0,
            y - 11.0,
            x + 68.0
        );
    }
}
