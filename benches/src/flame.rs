//! Draws a flame graph from `perf script -F pid,ip,sym`: what one process spent its time on, as SVG.
//!
//! Stacks stand on their root; a block is as wide as its share of the samples. Blocks too narrow to see are left out,
//! so that the file stays small enough to keep in the repository.

use std::{collections::BTreeMap, fmt::Write as _, io::BufRead};

use crate::Outcome;

/// What to draw.
#[derive(Debug, clap::Args)]
pub struct Flame {
    /// Process whose samples count
    #[arg(long)]
    pub pid: u32,
    /// Text above the picture
    #[arg(long)]
    pub title: String,
}

const WIDTH: f64 = 1400.0;
const ROW: f64 = 17.0;
const TOP: f64 = 34.0;

/// Narrower blocks are left out, in pixels.
const NARROWEST: f64 = 2.0;

/// Of a character, in pixels.
const CHARACTER: f64 = 6.6;

/// A frame, how often it was seen, and what it called.
#[derive(Default)]
struct Node {
    samples: u64,
    calls: BTreeMap<String, Node>,
}

/// Reads samples from standard input and prints the picture.
pub fn run(flame: &Flame) -> Outcome<()> {
    let root = read(std::io::stdin().lock(), flame.pid)?;
    if root.samples == 0 {
        return Err(format!("no samples of process {}", flame.pid).into());
    }
    println!("{}", draw(&root, &flame.title));
    Ok(())
}

/// Samples are separated by empty lines; the first line of each names the process, the others are frames from the
/// innermost outwards.
fn read(input: impl BufRead, pid: u32) -> Outcome<Node> {
    let mut root = Node::default();
    let mut counts = false;
    let mut frames: Vec<String> = Vec::new();
    for line in input.lines().chain([Ok(String::new())]) {
        let line = line?;
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (None, _) => {
                if counts && !frames.is_empty() {
                    root.add(frames.drain(..).rev());
                }
                frames.clear();
                counts = false;
            }
            (Some(first), None) => counts = first == pid.to_string(),
            (Some(address), Some(_)) => {
                let name = line.trim_start().strip_prefix(address).unwrap_or_default().trim();
                frames.extend(readable(name));
            }
        }
    }
    Ok(root)
}

impl Node {
    fn add(&mut self, frames: impl Iterator<Item = String>) {
        self.samples += 1;
        let mut node = self;
        for frame in frames {
            node = node.calls.entry(frame).or_default();
            node.samples += 1;
        }
    }

    fn depth(&self, narrowest: u64) -> usize {
        let calls = self.calls.values().filter(|call| call.samples >= narrowest);
        1 + calls.map(|call| call.depth(narrowest)).max().unwrap_or(0)
    }
}

/// A name without its hash and type arguments; `None` for wrappers that say nothing.
fn readable(symbol: &str) -> Option<String> {
    let symbol = match symbol.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => symbol,
    };
    let mut name = String::new();
    let mut depth = 0_u32;
    let mut characters = symbol.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '<' if depth == 0 && name.is_empty() => {} // `<Type as Trait>::method`
            '<' => depth += 1,
            '-' if characters.peek() == Some(&'>') => {
                characters.next();
            }
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => name.push(character),
            _ => {}
        }
    }
    let name = name.split(" as ").next().unwrap_or_default().to_owned()
        + name.rsplit_once(' ').map_or("", |(_, end)| end.find("::").map_or("", |at| &end[at..]));
    let noise = name.is_empty()
        || name.contains("[unknown]")
        || ["core::", "std::panic", "__rust_begin", "std::sys::backtrace", "alloc::boxed"]
            .iter()
            .any(|start| name.starts_with(start));
    (!noise).then(|| name.replace("::{{closure}}", "").replace("::{closure#0}", ""))
}

fn draw(root: &Node, title: &str) -> String {
    let narrowest = ((root.samples as f64 * NARROWEST / WIDTH).ceil() as u64).max(1);
    let height = TOP + root.depth(narrowest) as f64 * ROW + 4.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"6\" y=\"20\" font-size=\"14\">{}, {} samples</text>\n",
        escape(title),
        root.samples
    );
    let mut sheet = Sheet { svg: &mut svg, floor: height - 4.0 - ROW, scale: WIDTH / root.samples as f64, narrowest };
    sheet.blocks(root, 0.0, 0);
    svg.push_str("</svg>");
    svg
}

struct Sheet<'a> {
    svg: &'a mut String,
    floor: f64,
    scale: f64,
    narrowest: u64,
}

impl Sheet<'_> {
    fn blocks(&mut self, node: &Node, mut x: f64, level: usize) {
        for (name, call) in &node.calls {
            if call.samples >= self.narrowest {
                self.block(name, call, x, level);
                self.blocks(call, x, level + 1);
            }
            x += call.samples as f64 * self.scale;
        }
    }

    fn block(&mut self, name: &str, node: &Node, x: f64, level: usize) {
        let (width, y) = (node.samples as f64 * self.scale, self.floor - level as f64 * ROW);
        let share = node.samples as f64 * self.scale / WIDTH * 100.0;
        let room = (width / CHARACTER) as usize;
        let shown: String = if room < 4 { String::new() } else { name.chars().take(room - 1).collect() };
        // Writing to a text cannot fail.
        let _ = writeln!(
            self.svg,
            "<g><title>{} {share:.1} %</title><rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"{:.0}\" \
             fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.0}\">{}</text></g>",
            escape(name),
            (width - 0.5).max(0.5),
            ROW - 1.0,
            colour(name),
            x + 2.0,
            y + 12.0,
            escape(&shown),
        );
    }
}

/// One colour for each party.
fn colour(name: &str) -> &'static str {
    let parties: [(&[&str], &str); 5] = [
        (&["kandev_", "goplugin", "bench::", "actix"], "#f4a259"),
        (&["tonic", "h2::", "hyper", "prost", "tower", "http"], "#8cb369"),
        (&["rustls", "tokio_rustls", "aws_lc", "ring"], "#9a8fc7"),
        (&["tokio", "mio", "std::", "parking_lot"], "#7fb7d6"),
        (&["sqlx", "sea_", "sqlite", "libsqlite"], "#e8c547"),
    ];
    let found = parties.iter().find(|(starts, _)| starts.iter().any(|start| name.starts_with(start)));
    found.map_or("#d3d3d3", |(_, colour)| colour)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
