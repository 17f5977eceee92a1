//! Table 1: causal graphs of the flow cytometry data of Sachs et al. with every edge penalty, against both published truths,
//! beside DAGMA and DiBS.

mod rows;
mod sachs;
mod settings;
mod summary;

use crate::peers::DagmaSettings;
use anyhow::{Context, Result};
use clap::Args;
use std::sync::Arc;
use vti::problem::dag::{Dag, DagSettings, Noise, StructurePrior};

use self::rows::Case;
use self::sachs::{Sachs, TRUTHS};
use self::settings::Settings;
use super::graphs::{Asked, Finished, Job, Journal, PeerArgs, Scored, learn, table, trivial};
use super::results::Results;
use super::session::threads;
use super::{CommonArgs, number};

/// Options of `table1`.
#[derive(Args)]
pub(super) struct Table1Args {
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    peers: PeerArgs,
    /// Every N-th row only, instead of the scale's share
    #[arg(long, value_name = "N", value_parser = number::<1, 500>)]
    pub(super) every: Option<usize>,
    /// Edge penalties γ instead of the usual ones
    #[arg(long, value_name = "γ,…", value_delimiter = ',')]
    pub(super) penalties: Vec<f64>,
}

pub(super) fn run(args: &Table1Args, talk: &dyn Fn(&str)) -> Result<()> {
    let settings = Settings::new(args);
    let folder = args.common.folder("table1");
    let results = Results::<Finished<Case>>::open(&folder, &settings)?;
    let lanes = args.peers.start(threads(args.common.threads), talk)?;
    let sachs = Sachs::load(settings.every)?;
    let with_penalty = |noise| settings.penalties.iter().map(move |&penalty| Case::Vti { noise, penalty });
    let mut cases = vec![Case::Trivial];
    cases.extend(settings.noises.into_iter().flat_map(with_penalty));
    let each = |&lambda: &f64| DagmaSettings { lambdas: vec![lambda], ..settings.dagma.clone() };
    let dagma: Vec<DagmaSettings> = settings.dagma.lambdas.iter().map(each).collect();
    let mut jobs = vec![(Case::Dibs, Job::Dibs(&settings.dibs))];
    jobs.extend(
        settings.dagma.lambdas.iter().zip(&dagma).map(|(&lambda, one)| (Case::Dagma { lambda }, Job::Dagma(one))),
    );
    jobs.retain(|_| lanes.is_some());
    cases.extend(jobs.iter().map(|(case, _)| *case));
    let mut journal = Journal::new(results, &cases, args.common.threads, talk)?;
    if !journal.is_done(&Case::Trivial) {
        journal.add(Finished::own(Case::Trivial, trivial_rows(&sachs)?, 0.0, None))?;
    }
    for noise in settings.noises {
        sweep(&mut journal, &settings, &sachs, noise)?;
    }
    if let Some(lanes) = lanes {
        let (rows, seed) = (sachs.table.rows(), settings.seed);
        let asked = |(case, job)| Asked { case, job, table: &sachs.table, rows, seed };
        journal.ask(lanes, jobs.into_iter().map(asked).collect(), |_, answers| sachs.score(answers))?;
    }
    let (session, results) = journal.close();
    let fits = &results.finished;
    let cells = |case: &Case, truth: usize| [vec![TRUTHS[truth].0.to_string()], case.cells().to_vec()].concat();
    results.write("fits.csv", &table(&["truth", "noise", "edge_penalty"], fits, cells)?)?;
    results.write("summary.md", &summary::page(fits, &settings, &sachs))?;
    session.say(&format!("tables are in {}", results.folder().display()));
    Ok(())
}

/// The empty graph, the prior without a penalty, and random orders with as many edges as a truth.
fn trivial_rows(sachs: &Sachs) -> Result<Vec<Scored>> {
    let nodes = sachs.table.names.len();
    let settings = DagSettings::default();
    let prior = StructurePrior::new(settings.prior, 0.0, settings.rules.compile(nodes)?)?;
    let edges = prior.edge_probabilities();
    let first = sachs.truths.first().context("there is a truth")?;
    let density = first.edge_count() as f64 / (nodes * (nodes - 1) / 2) as f64;
    trivial(&sachs.truths, edges.as_deref(), density)
}

/// All penalties with one noise that are not done; what is found out about single nodes does not depend on the penalty.
fn sweep(journal: &mut Journal<'_, Case>, settings: &Settings, sachs: &Sachs, noise: Noise) -> Result<()> {
    let dag = Dag::new(sachs.table.clone(), DagSettings { noise, ..settings.assumed.clone() })?;
    for &penalty in &settings.penalties {
        let case = Case::Vti { noise, penalty };
        if journal.is_done(&case) {
            continue;
        }
        let dag = Arc::new(dag.with_prior(settings.assumed.prior, penalty)?);
        let device = &journal.session.device;
        let (answers, seconds, khat) = learn(device, &dag, &settings.family, &settings.train, &settings.check)?;
        journal.add(Finished::own(case, sachs.score(&answers)?, seconds, khat))?;
    }
    Ok(())
}
