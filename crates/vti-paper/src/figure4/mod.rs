//! Figure 4: the number of models from 2⁹ to 2²⁴ with three distributions over models, and one posterior of parameters by
//! chains and as learned.

mod joint;
mod plot;
mod rows;
mod settings;
mod summary;

use anyhow::Result;
use clap::Args;

use self::rows::{Case, Distribution, Finished};
use self::settings::Settings;
use super::results::Results;
use super::session::Session;
use super::study::fit_all;
use super::{ChainArgs, CommonArgs, DataSetsArgs, number};
use vti::problem::selection::simulate::Misspecification;

/// Options of `figure4`.
#[derive(Args)]
pub(super) struct Figure4Args {
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    pub(super) data_sets: DataSetsArgs,
    #[command(flatten)]
    pub(super) chains: ChainArgs,
    /// Numbers of optional covariates k instead of the scale's, of problems with 2^k models
    #[arg(long, value_name = "K,…", value_delimiter = ',', value_parser = number::<1, 60>)]
    pub(super) exponents: Vec<usize>,
}

const LEVELS: [Misspecification; 2] = [Misspecification::Mid, Misspecification::High];

pub(super) fn run(args: &Figure4Args, talk: &dyn Fn(&str)) -> Result<()> {
    let settings = Settings::new(args);
    let folder = args.common.folder("figure4");
    let mut results = Results::<Finished>::open(&folder, &settings)?;
    let (cases, left_out) = cases(&settings);
    let mut session = Session::new(args.common.threads, cases.len(), results.finished.len(), talk)?;
    let joint = joint::run(&session, &results, &settings.joint, settings.seed)?;
    let reference = (settings.seed, &settings.reference);
    fit_all(&mut session, &mut results, &cases, reference, |session, case, study, chains| {
        let models = settings.models(case.distribution);
        let fit = study.fit(&session.device, &settings.flow, models, &settings.train)?;
        let finished = Finished::new(case, chains, &fit.posterior, fit.seconds, &settings)?;
        let (seconds, found) = (finished.seconds, finished.cross_entropy.unwrap_or(f64::NAN));
        Ok((finished, format!("{}: {seconds:.1} s, cross entropy {found:.2}", case.distribution)))
    })?;
    let fits = &results.finished;
    results.write("fits.csv", &rows::table(fits, &left_out)?)?;
    results.write("summary.csv", &summary::table(&LEVELS, fits, &settings)?)?;
    results.write("summary.md", &summary::page(&LEVELS, fits, &left_out, &joint, &settings))?;
    results.write("cardinality.svg", &plot::figure(&LEVELS, fits, &settings).svg())?;
    session.say(&format!("tables and plots are in {}", results.folder().display()));
    Ok(())
}

/// Cases to be fitted, and those left out with the reason.
fn cases(settings: &Settings) -> (Vec<Case>, Vec<(Case, String)>) {
    let (mut cases, mut left_out) = (Vec::new(), Vec::new());
    for misspecification in LEVELS {
        for &exponent in &settings.exponents {
            for data_set in 1..=settings.data_sets {
                for distribution in Distribution::ALL {
                    let case = Case { misspecification, exponent, data_set, distribution };
                    match settings.left_out(distribution, exponent) {
                        Some(reason) => left_out.push((case, reason)),
                        None => cases.push(case),
                    }
                }
            }
        }
    }
    (cases, left_out)
}
