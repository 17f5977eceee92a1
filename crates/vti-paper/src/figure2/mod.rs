//! Figure 2 and its appendix versions: misspecification none, mid and high, focused and wide prior, three families, several
//! data sets.

mod plot;
mod rows;
mod settings;
mod summary;

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use vti::rjmcmc::Chains;

use self::rows::{Case, Family, Finished};
use self::settings::Settings;
use super::results::Results;
use super::session::Session;
use super::study::{Prior, Study, data_seed};
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
    let fits = LEVELS.len() * PRIORS.len() * settings.data_sets * Family::ALL.len();
    let mut session = Session::new(args.common.threads, fits, results.finished.len(), talk)?;
    for misspecification in LEVELS {
        for prior in PRIORS {
            for data_set in 1..=settings.data_sets {
                one(&mut session, &mut results, &settings, (misspecification, prior, data_set))?;
            }
        }
    }
    write(&results, &settings)?;
    session.say(&format!("tables and plots are in {}", results.folder().display()));
    Ok(())
}

/// The three fits of one data set under one prior, as far as they are not finished.
fn one(
    session: &mut Session<'_>,
    results: &mut Results<Finished>,
    settings: &Settings,
    (misspecification, prior, data_set): (Misspecification, Prior, usize),
) -> Result<()> {
    let study = Study::new(misspecification, prior, settings.covariates, data_seed(settings.seed, data_set))?;
    let mut chains: Option<Chains> = None;
    for (family, flow) in Family::ALL.into_iter().zip(&settings.flows) {
        let case = Case { misspecification, prior, data_set, family };
        if results.finished.iter().any(|fit| fit.case == case) {
            continue;
        }
        let chains = match &mut chains {
            Some(chains) => chains,
            none => none.insert(reference(session, &study, settings, case)?),
        };
        let fit = study.fit(&session.device, flow, &settings.models, &settings.train)?;
        let finished = Finished::new(case, &study, chains, &fit.posterior, fit.seconds, settings)?;
        drop(fit);
        let distance = finished.total_variation();
        let seconds = finished.seconds;
        results.add(finished)?;
        session.finished(&format!("{}, {family}: {seconds:.1} s, total variation {distance:.3}", name(case)));
    }
    Ok(())
}

fn reference(session: &Session<'_>, study: &Study, settings: &Settings, case: Case) -> Result<Chains> {
    let clock = Instant::now();
    let chains = study.reference(&session.device, settings.reference(case.prior))?;
    let (seconds, Chains { rhat, effective, .. }) = (clock.elapsed().as_secs_f64(), &chains);
    session.say(&format!(
        "{}: reference chains {seconds:.1} s, R̂ {rhat:.3}, effective sample size {effective:.0}",
        name(case)
    ));
    Ok(chains)
}

fn name(Case { misspecification, prior, data_set, .. }: Case) -> String {
    format!("{misspecification} misspecification, {prior} prior, data set {data_set}")
}

/// Tables, plots and the page in words.
fn write(results: &Results<Finished>, settings: &Settings) -> Result<()> {
    let fits = &results.finished;
    results.write("models.csv", &rows::models_table(fits))?;
    results.write("fits.csv", &rows::fits_table(fits))?;
    let means = summary::all(fits, &LEVELS, &PRIORS);
    results.write("summary.csv", &summary::table(&means))?;
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
