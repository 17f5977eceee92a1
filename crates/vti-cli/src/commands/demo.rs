//! `vti demo`: the main job on built-in data.

use std::path::Path;

use anyhow::Result;
use clap::Args;

use crate::args::RunArgs;
use crate::config::{Config, Method, ProblemConfig, SelectConfig, SourceConfig};
use crate::failure::Ending;
use crate::print;

/// Options of `vti demo`.
#[derive(Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// Steps that take well under a minute on two cores.
const STEPS: u64 = 1500;

/// Where it writes.
const PLACE: &str = "vti-demo";

pub(crate) fn run(args: DemoArgs) -> Result<Ending> {
    let DemoArgs { run: mut args } = args;
    let asked = ProblemConfig::Select(SelectConfig::new("lpsa"));
    let mut config = Config::new(SourceConfig::all("builtin:prostate"), asked);
    if args.time_limit.is_none() {
        config.train.steps = STEPS;
    }
    // To be compared with the exact answer.
    config.machine.method = Method::Vti;
    config.output.dir = Some(PLACE.into());
    let mut config = config.with(&args.set)?;
    args.apply(&mut config);
    // A demo may be shown twice, in its own place.
    args.again = config.output.dir.as_deref() == Some(Path::new(PLACE)) && !args.resume;
    if !args.quiet {
        print::talk(
            "97 men before prostate surgery: which of eight measurements go with the level of prostate-specific antigen?",
        );
    }
    let report = config.output.dir.clone().unwrap_or_default().join("report.html");
    let quiet = args.quiet;
    let ending = crate::run::run(config, &args)?;
    if ending == Ending::Done && !quiet {
        print::talk(&format!("open {} in a browser", report.display()));
    }
    Ok(ending)
}
