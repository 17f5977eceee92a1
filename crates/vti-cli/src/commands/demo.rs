//! `vti demo`: the main job on built-in data.

use anyhow::Result;
use clap::Args;

use crate::args::RunArgs;
use crate::config::{Config, ProblemConfig, ProblemKind};
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

pub(crate) fn run(args: DemoArgs) -> Result<Ending> {
    let DemoArgs { run: mut args } = args;
    let problem = ProblemConfig {
        kind: ProblemKind::Select,
        data: "builtin:prostate".into(),
        response: "lpsa".into(),
        include: Vec::new(),
        exclude: Vec::new(),
        always: Vec::new(),
        categorical: Vec::new(),
        standardize: true,
        likelihood: vti::problem::selection::SelectionSettings::default().likelihood,
        prior: vti::problem::selection::CoefficientPrior::default(),
        model_prior: vti::problem::selection::ModelPrior::default(),
        fingerprint: None,
    };
    let mut config = Config::new(problem);
    config.train.steps = STEPS;
    config.output.dir = Some("vti-demo".into());
    args.apply(&mut config);
    let config = config.with(&args.set)?;
    // A demo may be shown twice.
    args.force = !args.resume;
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
