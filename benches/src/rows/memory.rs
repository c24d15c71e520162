//! Anonymous memory of the host's own program: with no plugin, and what each of fifty more plugins takes.
//!
//! A round is a new host; what the plugins' processes take is not the host's.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    Options, Outcome, package,
    report::{Bound, Line, Values},
    rounds::Series,
    served::{Served, anonymous_kb},
};

const IDLE_MB: f64 = 40.0;
const SLOPE_KB: f64 = 400.0;
const FEW: usize = 10;
const MANY: usize = 60;

/// For start-up work to end before memory is read.
const SETTLE: Duration = Duration::from_millis(500);

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let host = options.program("kandev-host")?;
    let guest = options.program("bench-guest")?;
    let folder = tempfile::tempdir()?;
    let mut packages = Vec::new();
    for number in 0..MANY {
        let path = folder.path().join(format!("{number}.tar.gz"));
        package::pack(&path, &format!("bench-{number}"), &guest, &[], 1)?;
        packages.push(path);
    }
    let (mut idle, mut slope) = (Series::default(), Series::default());
    for _ in 0..options.rounds {
        let served = Served::start(&host).await?;
        sleep(SETTLE).await;
        idle.0.push(anonymous_kb(served.pid())? / 1000.0);
        let mut few = 0.0;
        for (number, package) in packages.iter().enumerate() {
            if number == FEW {
                sleep(SETTLE).await;
                few = anonymous_kb(served.pid())?;
            }
            served.install(package).await?;
        }
        sleep(SETTLE).await;
        slope.0.push((anonymous_kb(served.pid())? - few) / (MANY - FEW) as f64);
    }
    Ok(vec![
        Line {
            row: "memory-idle",
            what: "anonymous memory, idle",
            unit: "MB",
            values: Values::Single(idle),
            bound: Bound::AtMost { median: IDLE_MB, p99: None },
        },
        Line {
            row: "memory-slope",
            what: "anonymous memory for each plugin, 10 to 60",
            unit: "kB",
            values: Values::Single(slope),
            bound: Bound::AtMost { median: SLOPE_KB, p99: None },
        },
    ])
}
