//! Figure 2 and its appendix versions: misspecification none, mid and high, focused and wide prior, three families, several
//! data sets.

mod plot;
mod rows;
mod settings;
mod summary;

use anyhow::Result;
use clap::Args;

use self::rows::{Case, Family, Finished};
use self::settings::Settings;
use super::results::Results;
use super::session::Session;
use super::study::{Prior, fit_all};
use super::{ChainArgs, CommonArgs, DataSetsArgs};
use vti::problem::selection::simulate::Misspecification;

/// Options of `figure2`.
#[derive(Args)]
pub(super) struct Figure2Args {
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    pub(super) data_sets: DataSetsArgs,
    #[command(flatten)]
    pub(super) chains: ChainArgs,
}

const LEVELS: [Misspecification; 3] = [Misspecification::None, Misspecification::Mid, Misspecification::High];
const PRIORS: [Prior; 2] = [Prior::Focused, Prior::Wide];

pub(super) fn run(args: &Figure2Args, talk: &dyn Fn(&str)) -> Result<()> {
    let settings = Settings::new(args);
    let folder = args.common.folder("figure2");
    let mut results = Results::<Finished>::open(&folder, &settings)?;
    let mut cases = Vec::new();
    for misspecification in LEVELS {
        for prior in PRIORS {
            for data_set in 1..=settings.data_sets {
                cases.extend(Family::ALL.map(|family| Case { misspecification, prior, data_set, family }));
            }
        }
    }
    let mut session = Session::new(args.common.threads, cases.len(), results.finished.len(), talk)?;
    let reference = (settings.seed, &settings.reference);
    fit_all(&mut session, &mut results, &cases, reference, |session, case, study, chains| {
        let flow = &settings.flows[case.family as usize];
        let fit = study.fit(&session.device, flow, &settings.models, &settings.train)?;
        let finished = Finished::new(case, study, chains, &fit.posterior, fit.seconds, &settings)?;
        let (seconds, distance) = (finished.seconds, finished.total_variation());
        Ok((finished, format!("{}: {seconds:.1} s, total variation {distance:.3}", case.family)))
    })?;
    write(&results, &settings)?;
    session.say(&format!("tables and plots are in {}", results.folder().display()));
    Ok(())
}

/// Tables, plots and the page in words.
fn write(results: &Results<Finished>, settings: &Settings) -> Result<()> {
    let fits = &results.finished;
    results.write("models.csv", &rows::models_table(fits)?)?;
    results.write("fits.csv", &rows::fits_table(fits)?)?;
    let means = summary::all(fits, &LEVELS, &PRIORS);
    results.write("summary.csv", &summary::table(&means)?)?;
    results.write("summary.md", &summary::page(&means, fits, settings))?;
    for level in LEVELS {
        for prior in PRIORS {
            let own: Vec<&Finished> =
                fits.iter().filter(|fit| (fit.case.misspecification, fit.case.prior) == (level, prior)).collect();
            results.write(&format!("{level}-{prior}.svg"), &plot::figure(level, prior, &own).svg())?;
        }
    }
    Ok(())
}
